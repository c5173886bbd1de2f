// Clusters as programs, and operators' TF_CONFIG, say them.
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "base/text/json_value.h"
#include "cc/compose.h"
#include "headrace/cluster.h"

namespace headrace::tf::distribute {

using internal::Throw;

namespace {

using Kind = JsonValue::Kind;

[[noreturn]] void ThrowOfConfig(const std::string& what) {
  Throw(ErrorCode::kInvalidArgument, absl::StrCat("TF_CONFIG: ", what));
}

int NumberOf(const std::string& text, const std::string& what) {
  int number = -1;
  if (!absl::SimpleAtoi(text, &number) || number < 0) {
    ThrowOfConfig(
        absl::StrCat(what, " is to be a number from 0, and is \"", text, "\""));
  }
  return number;
}

ClusterSpec::Tasks TasksOf(const std::string& job, const JsonValue& said) {
  if (said.kind != Kind::kList && said.kind != Kind::kObject) {
    ThrowOfConfig(absl::StrCat("the tasks of job \"", job,
                               "\" are to be a list of addresses, or addresses "
                               "by number"));
  }
  ClusterSpec::Tasks tasks;
  for (size_t i = 0; i < said.items.size(); ++i) {
    if (said.items[i].kind != Kind::kText) {
      ThrowOfConfig(absl::StrCat("an address of job \"", job, "\" is no text"));
    }
    const int index =
        said.kind == Kind::kList
            ? static_cast<int>(i)
            : NumberOf(said.keys[i],
                       absl::StrCat("a task's name in job \"", job, "\""));
    tasks[index] = said.items[i].text;
  }
  return tasks;
}

}  // namespace

ClusterSpec::ClusterSpec(
    const std::map<std::string, std::vector<std::string>>& jobs) {
  for (const auto& [job, addresses] : jobs) {
    Tasks& tasks = jobs_[job];
    int index = 0;
    for (const std::string& address : addresses) tasks[index++] = address;
  }
}

ClusterSpec ClusterSpec::OfTasks(std::map<std::string, Tasks> jobs) {
  ClusterSpec spec;
  spec.jobs_ = std::move(jobs);
  return spec;
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  for (const auto& [job, tasks] : jobs_) names.push_back(job);
  return names;
}

const ClusterSpec::Tasks& ClusterSpec::tasks(const std::string& job) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("No such job in cluster: '", job, "'"));
  }
  return found->second;
}

const std::string& ClusterSpec::address(const std::string& job,
                                        int index) const {
  const Tasks& all = tasks(job);
  const auto found = all.find(index);
  if (found == all.end()) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("No task with index ", index, " in job '", job, "'"));
  }
  return found->second;
}

TaskConfig TaskConfig::Parse(const std::string& text) {
  TaskConfig config;
  if (text.empty()) return config;
  const StatusOr<JsonValue> read = ParseJson(text);
  if (!read.ok()) ThrowOfConfig(std::string(read.status().message()));
  if (read->kind != Kind::kObject) ThrowOfConfig("it is to be a JSON object");
  if (const JsonValue* cluster = read->Find("cluster")) {
    if (cluster->kind != Kind::kObject) {
      ThrowOfConfig("\"cluster\" is to be an object of jobs");
    }
    std::map<std::string, ClusterSpec::Tasks> jobs;
    for (size_t i = 0; i < cluster->items.size(); ++i) {
      jobs[cluster->keys[i]] = TasksOf(cluster->keys[i], cluster->items[i]);
    }
    config.cluster = ClusterSpec::OfTasks(std::move(jobs));
  }
  const JsonValue* task = read->Find("task");
  if (task == nullptr) return config;
  if (task->kind != Kind::kObject) {
    ThrowOfConfig("\"task\" is to be an object of \"type\" and \"index\"");
  }
  if (const JsonValue* type = task->Find("type")) {
    if (type->kind != Kind::kText) ThrowOfConfig("task's \"type\" is no text");
    config.job = type->text;
  }
  if (const JsonValue* index = task->Find("index")) {
    config.index = NumberOf(index->text, "task's \"index\"");
  }
  return config;
}

TaskConfig TaskConfig::FromEnvironment() {
  const char* said = std::getenv("TF_CONFIG");
  return Parse(said == nullptr ? "" : said);
}

}  // namespace headrace::tf::distribute
