// A part of a session's graph, as its worker runs it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "distributed/worker/steps.h"
#include "op/rendezvous.h"
#include "runtime/executable.h"
#include "runtime/function_caller.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace::distributed {

// Thread-safe; runs overlap.
class RegisteredGraph {
 public:
  // `devices`: those of this worker. InvalidArgument for a node on another's;
  // what import and planning report.
  static StatusOr<std::shared_ptr<RegisteredGraph>> Make(
      tensorflow::GraphDef def, const std::vector<DeviceName>& devices);

  using Named = std::vector<std::pair<std::string, Tensor>>;
  // `feeds` by key, moved from; `fetched` as `keys` says. InvalidArgument for
  // keys that the graph does not have, or has and is not given.
  Status Run(const RunServices& services, Named feeds,
             const std::vector<std::string>& keys,
             std::vector<Tensor>* fetched);
  // The same of a run that holds no thread while it waits, where may_pause():
  // what has begun, with `ended` to be called. What was wrong before.
  using Ended = std::function<void(Status, std::vector<Tensor> fetched)>;
  StatusOr<std::shared_ptr<PausingRun>> Begin(
      const RunServices& services, Named feeds,
      const std::vector<std::string>& keys, std::shared_ptr<RunHost> host,
      Ended ended);
  // A run whose feeds and fetches go by the rendezvous, step by step.
  Status RunPartial(const RunServices& services);
  bool HasFetch(const std::string& key) const {
    return fetch_at_.contains(key);
  }
  bool HasFeed(const std::string& key) const { return feed_at_.contains(key); }
  // By tasks that send values: none where there are loops, whose keys have
  // numbers of turns.
  const std::vector<ExpectedKeysPtr>& receives() const { return receives_; }
  // By tasks to which values are sent: those that each run sends before it
  // waits for anything, soon. None where a run may take long before.
  const std::vector<ExpectedKeysPtr>& gives() const { return gives_; }
  // Whether whole runs end at once, and wait for nothing.
  bool ends_soon() const { return plan_->ends_soon(); }
  bool may_pause() const { return plan_->may_pause(); }
  // The graph as it was registered.
  const tensorflow::GraphDef& def() const { return def_; }
  const Graph& graph() const { return *graph_; }
  FunctionCaller* caller() const { return caller_.get(); }

 private:
  RegisteredGraph() = default;
  Status FindEnds();
  Status FindGiven();
  // Feeds in the plan's order, and which of the plan's fetches are wanted.
  Status Arrange(Named feeds, const std::vector<std::string>& keys,
                 std::vector<Tensor>* given, std::vector<int>* wanted) const;
  StatusOr<std::shared_ptr<Executable>> PartialPlan();

  tensorflow::GraphDef def_;
  std::shared_ptr<Graph> graph_;
  std::unique_ptr<LibraryCaller> caller_;
  std::vector<Edge> feeds_, fetches_;
  std::vector<Node*> targets_, client_ends_;
  std::map<std::string, int> feed_at_, fetch_at_;  // by key
  std::vector<ExpectedKeysPtr> receives_, gives_;
  std::shared_ptr<Executable> plan_;
  Mutex mutex_;
  std::shared_ptr<Executable> partial_plan_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
