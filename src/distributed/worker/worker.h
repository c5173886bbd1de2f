// What a task does for masters and for other tasks: it runs parts of graphs,
// keeps their variables, and hands out the tensors that they send.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "distributed/cluster.h"
#include "distributed/collective/engine.h"
#include "distributed/request_ids.h"
#include "distributed/worker/registered_graph.h"
#include "distributed/worker/steps.h"
#include "op/resource.h"
#include "tensorflow/core/protobuf/worker.pb.h"

namespace headrace::distributed {

class ManyTaker;
class PausedRun;

// One run of a registered graph.
struct GraphRun {
  std::string session, graph;
  bool in_session = false;  // else `session` is not looked at
  int64_t step = 0;
  RegisteredGraph::Named feeds;  // by key
  std::vector<std::string> fetches;
  bool trace = false, partition_graphs = false;
  bool is_partial = false, is_last_partial_run = false;
  const CancellationToken* token = nullptr;  // what ends it
  // Values of other tasks that came with it.
  std::vector<std::pair<RendezvousKey, SentValue>> given;
};

struct GraphRunResult {
  std::vector<Tensor> fetched;
  tensorflow::StepStats step_stats;
  std::vector<tensorflow::GraphDef> partition_graphs;
};

// Thread-safe. Errors have upstream's codes and texts.
class Worker {
 public:
  // `processors`: its devices, all of type CPU. `rings`: whether collectives
  // may go by TensorFlow's messages.
  Worker(std::shared_ptr<Cluster> cluster, int processors, bool rings = false);
  ~Worker();

  const DeviceName& task() const { return task_; }
  // No task of the cluster may be TensorFlow's.
  bool among_own() const { return among_own_; }
  const std::vector<tensorflow::DeviceAttributes>& devices() const {
    return devices_;
  }
  uint64_t incarnation() const { return devices_[0].incarnation(); }
  const std::shared_ptr<Cluster>& cluster() const { return cluster_; }
  // Of groups whose members are devices of the cluster's tasks.
  const std::shared_ptr<RemoteCollectives>& collectives() const {
    return collectives_;
  }

  // By which tensors go in collectives: those, unless another took their place.
  const std::shared_ptr<CollectiveEngine>& engine() const { return engine_; }
  // Before anything runs here. It finds the members of groups by collectives().
  void UseEngine(std::shared_ptr<CollectiveEngine> engine);

  // The task that tells who is in a group.
  DeviceName leader() const;

  // `resources`, which outlive it: of a session whose state is this process'.
  Status CreateSession(const tensorflow::CreateWorkerSessionRequest& request,
                       ResourceManager* resources = nullptr);
  // Its cluster is another one from now on.
  Status UpdateSession(const std::string& handle,
                       const tensorflow::ServerDef& def);
  Status DeleteSession(const std::string& handle);
  StatusOr<std::string> RegisterGraph(tensorflow::RegisterGraphRequest request);
  Status DeregisterGraph(const tensorflow::DeregisterGraphRequest& request);
  // What such a graph takes from others.
  StatusOr<std::vector<ExpectedKeysPtr>> ReceivesOf(const std::string& session,
                                                    const std::string& graph);
  // What it gives to others before it waits for anything.
  StatusOr<std::vector<ExpectedKeysPtr>> GivesOf(const std::string& session,
                                                 const std::string& graph);
  // Where this task's runs of a step leave what they send.
  std::shared_ptr<StepRendezvous> RendezvousOf(int64_t step) {
    return steps_.Find(step);
  }
  // Before a step of such a graph runs, which is to get these values by the
  // call that runs the other task's part (RunAndPull): what takes them from
  // there. Null where they come by other calls.
  std::shared_ptr<ManyTaker> TakeByRun(const std::string& session, int64_t step,
                                       const ExpectedKeysPtr& expected);
  // Whether such a run ends at once, and waits for nothing. False where there
  // is no such graph.
  bool EndsSoon(const tensorflow::RunGraphRequest& request);
  bool EndsSoon(const std::string& session, const std::string& graph);
  // On the caller's thread.
  Status Run(GraphRun run, GraphRunResult* result);
  // Whether such a run may go by Begin: it takes a thread only for short parts
  // between its waits.
  bool MayPause(const tensorflow::RunGraphRequest& request);
  bool MayPause(const std::string& session, const std::string& graph);
  // The same as Run, which holds no thread while it waits, and listens to
  // PausedRun::Stop alone. `ended` is called once, perhaps at once, unless what
  // this returns is an error. This object must live until then.
  Status Begin(GraphRun run, const std::shared_ptr<PausedRun>& paused,
               std::function<void(Status, GraphRunResult)> ended);
  // A session's variables and cluster, for ops that run outside of graphs.
  struct SessionState {
    std::shared_ptr<const void> held;  // keeps the others
    ResourceManager* resources = nullptr;
    std::shared_ptr<Cluster> cluster;
  };
  StatusOr<SessionState> StateOf(const std::string& session);
  // Where such ops meet those of other tasks of the session's cluster, which
  // may call this task by another name. It stays until CleanUp.
  StatusOr<std::shared_ptr<StepRendezvous>> Meet(const std::string& session,
                                                 int64_t step);
  // What the step has sent and nobody has taken is gone.
  void CleanUp(int64_t step);
  // Forgets the state in these containers; none: the standard one.
  void CleanUpAll(const std::vector<std::string>& containers);

  // Calls `done` when the key's value is there. A function that ends the wait.
  std::function<void()> Receive(const tensorflow::RecvTensorRequest& request,
                                LocalRendezvous::Done done);
  // The value is there for another such request.
  Status SendAgain(const tensorflow::RecvTensorRequest& request,
                   SentValue value);
  // Those that are not forgotten yet.
  size_t num_steps() const { return steps_.size(); }
  // Ends all that waits.
  void Stop();

  RequestIds run_requests, receive_requests;

 private:
  struct Session;
  struct PartialRun;

  StatusOr<std::shared_ptr<Cluster>> ClusterOf(
      const tensorflow::ServerDef& def) const;
  StatusOr<std::shared_ptr<Session>> SessionOf(bool in_session,
                                               const std::string& handle);
  StatusOr<std::shared_ptr<RegisteredGraph>> GraphOf(Session& session,
                                                     const std::string& handle);
  void GiveCollectives(ResourceManager& resources);
  RunServices ServicesOf(const Session& session, const RegisteredGraph& graph,
                         int64_t step) const;
  StepRendezvous::Fetch FetchFor(const std::shared_ptr<Session>& session,
                                 int64_t step);
  StepRendezvous::FetchMany FetchManyFor(
      const std::shared_ptr<Session>& session, int64_t step);
  // What a run is amid.
  struct Surroundings {
    std::shared_ptr<Session> session;
    std::shared_ptr<RegisteredGraph> graph;
    std::shared_ptr<StepRendezvous> rendezvous;
  };
  StatusOr<Surroundings> SurroundingsOf(GraphRun& run);
  // Begins to fetch what the run takes from others.
  void Expect(const GraphRun& run, const Surroundings& around);
  StatusOr<std::shared_ptr<RegisteredGraph>> GraphOf(bool in_session,
                                                     const std::string& session,
                                                     const std::string& graph);
  Status RunWhole(GraphRun& run, RegisteredGraph& graph,
                  const RunServices& services, GraphRunResult* result);
  Status RunPart(GraphRun& run, std::shared_ptr<Session> session,
                 std::shared_ptr<RegisteredGraph> graph,
                 std::shared_ptr<StepRendezvous> rendezvous,
                 GraphRunResult* result);

  const std::shared_ptr<Cluster> cluster_;
  const bool among_own_;
  const DeviceName task_;
  std::vector<tensorflow::DeviceAttributes> devices_;
  std::vector<DeviceName> device_names_;
  std::shared_ptr<RemoteCollectives> collectives_;
  std::shared_ptr<CollectiveEngine> engine_;
  ResourceManager resources_;  // of all sessions that are not isolated
  Steps steps_;
  Mutex mutex_;
  std::shared_ptr<Session> common_;  // of clients that make none
  std::map<std::string, std::shared_ptr<Session>> sessions_
      ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, std::shared_ptr<PartialRun>> partial_runs_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
