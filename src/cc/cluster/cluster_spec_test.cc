#include <functional>

#include "gtest/gtest.h"
#include "headrace/cluster.h"
#include "headrace/error.h"

namespace headrace::tf::distribute {
namespace {

std::string ErrorOf(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument) << e.what();
    return e.what();
  }
  return "no error";
}

TEST(ClusterSpec, SaysItsTasks) {
  const ClusterSpec spec{{"worker", {"a:1", "b:2"}}, {"ps", {"c:3"}}};
  EXPECT_EQ(spec.jobs(), (std::vector<std::string>{"ps", "worker"}));
  EXPECT_EQ(spec.address("worker", 1), "b:2");
  EXPECT_EQ(spec.tasks("ps"), (ClusterSpec::Tasks{{0, "c:3"}}));
  EXPECT_EQ(ErrorOf([&] { spec.tasks("chief"); }),
            "No such job in cluster: 'chief'");
  EXPECT_EQ(ErrorOf([&] { spec.address("ps", 1); }),
            "No task with index 1 in job 'ps'");
  const auto holes = ClusterSpec::OfTasks({{"worker", {{3, "d:4"}}}});
  EXPECT_EQ(holes.address("worker", 3), "d:4");
}

TEST(ClusterSpec, TfConfigAsOperatorsSetIt) {
  const TaskConfig task = TaskConfig::Parse(
      R"({"cluster": {"chief": ["a:1"], "worker": ["b:1", "b:2"],
          "ps": {"2": "c:1"}}, "task": {"type": "chief", "index": 0},
          "environment": "cloud"})");
  EXPECT_EQ(task.job, "chief");
  EXPECT_EQ(task.index, 0);
  EXPECT_EQ(task.cluster.jobs(),
            (std::vector<std::string>{"chief", "ps", "worker"}));
  EXPECT_EQ(task.cluster.address("worker", 1), "b:2");
  EXPECT_EQ(task.cluster.address("ps", 2), "c:1");
  EXPECT_EQ(TaskConfig::Parse(R"({"task": {"index": "4"}})").index, 4);
  EXPECT_TRUE(TaskConfig::Parse("").cluster.jobs().empty());
  EXPECT_EQ(TaskConfig::Parse("{}").index, -1);
}

TEST(ClusterSpec, TfConfigsThatAreNone) {
  const std::pair<const char*, const char*> cases[] = {
      {"[1]", "a JSON object"},
      {"{\"cluster\": ", "TF_CONFIG: "},
      {R"({"cluster": ["a:1"]})", "\"cluster\""},
      {R"({"cluster": {"ps": "a:1"}})", "job \"ps\""},
      {R"({"cluster": {"ps": [1]}})", "job \"ps\" is no text"},
      {R"({"cluster": {"ps": {"x": "a:1"}}})", "\"x\""},
      {R"({"task": 1})", "\"task\""},
      {R"({"task": {"type": 1}})", "\"type\""},
      {R"({"task": {"index": -1}})", "\"-1\""},
      {R"({"task": {"index": []}})", "\"index\""},
  };
  for (const auto& [text, part] : cases) {
    const std::string told = ErrorOf([&] { TaskConfig::Parse(text); });
    EXPECT_NE(told.find(part), std::string::npos) << text << ": " << told;
  }
}

TEST(ClusterSpec, OneWorkerNeedsNoNetwork) {
  for (const char* text :
       {"", R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker",
             "index": 0}})",
        R"({"cluster": {"worker": ["a:1", "a:2"]}, "task":
            {"type": "evaluator", "index": 0}})"}) {
    const MultiWorkerMirroredStrategy strategy(TaskConfig::Parse(text));
    EXPECT_EQ(strategy.size(), 1);
    EXPECT_EQ(strategy.rank(), 0);
    const Tensor x(3.0f);
    EXPECT_EQ(strategy.AllReduce(ReduceOp::kMean, x).item<float>(), 3);
    EXPECT_EQ(strategy.Broadcast(x).item<float>(), 3);
    strategy.Barrier();
  }
}

TEST(ClusterSpec, WorkersThatAreNone) {
  const char* const cluster = R"({"cluster": {"worker": ["a:1", "a:2"]})";
  const auto told = [&](const std::string& behind) {
    return ErrorOf([&] {
      MultiWorkerMirroredStrategy(TaskConfig::Parse(cluster + behind));
    });
  };
  EXPECT_NE(told("}").find("(worker:0, worker:1), and this task is not said"),
            std::string::npos);
  EXPECT_NE(told(R"(, "task": {"type": "ps", "index": 0}})").find("is ps:0"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::tf::distribute
