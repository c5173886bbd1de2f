#include "serving/model/model_session.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "serving/model/direct_runner.h"

namespace headrace::serving {
namespace {

constexpr size_t kMostSessionRunners = 64;

// The node that a tensor's name means, and which output.
struct TensorPlace {
  Node* node = nullptr;
  int index = 0;
};
TensorPlace PlaceOfTensor(const Graph& graph, StringView name) {
  TensorPlace place;
  const size_t colon = name.rfind(':');
  if (colon != StringView::npos &&
      absl::SimpleAtoi(name.substr(colon + 1), &place.index)) {
    name = name.substr(0, colon);
  }
  place.node = graph.FindNode(name);
  return place;
}

StatusOr<Edge> FeedNamed(const Graph& graph, const std::string& name) {
  const TensorPlace place = PlaceOfTensor(graph, name);
  if (place.node == nullptr) {
    return NotFound("FeedInputs: unable to find feed output ", name);
  }
  if (place.index < 0 || place.index >= place.node->num_outputs()) {
    return InvalidArgument("FeedInputs: ", name, " should have output index < ",
                           place.node->num_outputs());
  }
  return Edge{place.node, place.index};
}

StatusOr<Edge> FetchNamed(const Graph& graph, const std::string& name) {
  const TensorPlace place = PlaceOfTensor(graph, name);
  if (place.node == nullptr) {
    return NotFound("FetchOutputs node ", name, ": not found");
  }
  if (place.node->num_outputs() == 0) {
    return InvalidArgument("Tried to fetch data for '", name,
                           "', which produces no output.  To run to a node but "
                           "not fetch any data, pass '",
                           name,
                           "' as an argument to the 'target_node_names' "
                           "argument of the Session::Run API.");
  }
  if (place.index < 0 || place.index >= place.node->num_outputs()) {
    return InvalidArgument("FetchOutputs ", name,
                           ": output index too large, must be < ",
                           place.node->num_outputs());
  }
  return Edge{place.node, place.index};
}

}  // namespace

StatusOr<RunnerPtr> ModelSession::Make(const SessionNames& names) const {
  const SessionGraph& session = model_->session();
  const Graph& graph = *session.graph;
  if (names.fetches.empty() && names.targets.empty()) {
    return InvalidArgument(
        "Must specify at least one target to fetch or execute.");
  }
  DirectRun run;
  run.graph = &graph;
  for (size_t i = 0; i < names.feeds.size(); ++i) {
    HR_ASSIGN_OR_RETURN(const Edge feed, FeedNamed(graph, names.feeds[i]));
    if (std::find(run.feeds.begin(), run.feeds.end(), feed) !=
        run.feeds.end()) {
      return InvalidArgument("Endpoint \"", names.feeds[i],
                             "\" fed more than once.");
    }
    run.feeds.push_back(feed);
    run.inputs.push_back(static_cast<int>(i));
  }
  for (const std::string& name : names.fetches) {
    HR_ASSIGN_OR_RETURN(run.fetches.emplace_back(), FetchNamed(graph, name));
  }
  std::vector<std::string> missing;
  for (const std::string& name : names.targets) {
    Node* node = graph.FindNode(name);
    if (node == nullptr) missing.push_back(name);
    run.targets.push_back(node);
  }
  if (!missing.empty()) {
    return NotFound("PruneForTargets: Some target nodes not found: ",
                    absl::StrJoin(missing, " "), " ");
  }
  for (const auto& [node, object] : session.captures) {
    const Edge feed{node, 0};
    if (std::find(run.feeds.begin(), run.feeds.end(), feed) !=
        run.feeds.end()) {
      continue;
    }
    run.feeds.push_back(feed);
    run.captures.push_back(model_->value(object).tensor());
  }
  run.max_request_memory_bytes = max_memory_;
  run.keep = model_;
  const SandboxScope scope(sandbox_);
  return MakeDirectRunner(std::move(run));
}

StatusOr<RunnerPtr> ModelSession::RunnerOf(const SessionNames& names) {
  MutexLock lock(mutex_);
  for (auto it = runners_.begin(); it != runners_.end(); ++it) {
    if (it->first != names) continue;
    std::rotate(runners_.begin(), it, it + 1);
    return runners_.front().second;
  }
  HR_ASSIGN_OR_RETURN(RunnerPtr runner, Make(names));
  if (runners_.size() == kMostSessionRunners) runners_.pop_back();
  runners_.insert(runners_.begin(), {names, runner});
  return runner;
}

}  // namespace headrace::serving
