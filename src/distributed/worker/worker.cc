#include "distributed/worker/worker.h"

#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/job_threads.h"
#include "base/timeline.h"
#include "distributed/messages.h"
#include "distributed/worker/paused_run.h"
#include "distributed/worker/pull.h"
#include "distributed/worker/pull_many.h"
#include "formats/step_stats.h"
#include "graph/step_labels.h"

namespace headrace::distributed {
namespace {

// What upstream says of processors, whose memory has no limit.
constexpr int64_t kProcessorBytes = int64_t{256} << 20;
// Of variables that name no container.
constexpr char kStandardContainer[] = "localhost";

std::string NameOf(const DeviceName& task) { return task.ToString(); }

// Of groups: whom the configuration says, else the first chief or worker, else
// the first task.
DeviceName LeaderOf(const Cluster& cluster) {
  DeviceName said;
  const std::string& text = cluster.def()
                                .default_session_config()
                                .experimental()
                                .collective_group_leader();
  if (!text.empty() && DeviceName::Parse(text, &said) && said.job &&
      said.task) {
    return DeviceName::OfTask(*said.job, *said.task);
  }
  const auto& tasks = cluster.tasks();
  for (const char* job : {"chief", "worker"}) {
    const auto it = tasks.lower_bound({job, 0});
    if (it != tasks.end() && it->first.first == job) {
      return DeviceName::OfTask(job, it->first.second);
    }
  }
  return DeviceName::OfTask(tasks.begin()->first.first,
                            tasks.begin()->first.second);
}

}  // namespace

// What a master has made here.
struct Worker::Session {
  std::string handle;
  ResourceManager* resources = nullptr;
  std::unique_ptr<ResourceManager> own;  // of an isolated one
  std::string master_task;
  int64_t master_incarnation = 0;
  const std::shared_ptr<LargeValues> large = std::make_shared<LargeValues>();

  std::shared_ptr<Cluster> ClusterNow() {
    MutexLock lock(mutex);
    return cluster;
  }

  // What the session's cluster calls this task.
  DeviceName TaskNow() {
    const auto now = ClusterNow();
    return DeviceName::OfTask(now->def().job_name(), now->def().task_index());
  }

  Mutex mutex;
  std::shared_ptr<Cluster> cluster ABSL_GUARDED_BY(mutex);
  int64_t next ABSL_GUARDED_BY(mutex) = 0;
  std::map<std::string, std::shared_ptr<RegisteredGraph>> graphs
      ABSL_GUARDED_BY(mutex);
};

// A step whose feeds and fetches come in several calls.
struct Worker::PartialRun {
  std::shared_ptr<Session> session;
  std::shared_ptr<RegisteredGraph> graph;
  std::shared_ptr<StepRendezvous> rendezvous;
  CancellationToken token;
  Mutex mutex;
  CondVar changed;
  bool ended ABSL_GUARDED_BY(mutex) = false;
  Status status ABSL_GUARDED_BY(mutex);
};

Worker::Worker(std::shared_ptr<Cluster> cluster, int processors, bool rings)
    : cluster_(std::move(cluster)),
      among_own_(!rings),
      task_(DeviceName::OfTask(cluster_->def().job_name(),
                               cluster_->def().task_index())),
      common_(std::make_shared<Session>()) {
  for (int i = 0; i < processors; ++i) {
    DeviceName name = task_;
    name.type = "CPU";
    name.id = i;
    auto& device = devices_.emplace_back();
    device.set_name(name.ToString());
    device.set_device_type("CPU");
    device.set_memory_limit(kProcessorBytes);
    device.mutable_locality();
    device.set_incarnation(static_cast<uint64_t>(NewRequestId()));
    device.set_xla_global_id(-1);
    device_names_.push_back(std::move(name));
  }
  RemoteCollectivesOptions meeting;
  meeting.task = task_;
  meeting.incarnation = incarnation();
  meeting.leader = leader();
  meeting.channel_of = [cluster = cluster_](const DeviceName& task) {
    return cluster->ChannelOf(task);
  };
  meeting.rings = rings;
  collectives_ = RemoteCollectives::Make(std::move(meeting));
  UseEngine(collectives_);
  {
    MutexLock lock(common_->mutex);
    common_->cluster = cluster_;
  }
  common_->resources = &resources_;
}

Worker::~Worker() { Stop(); }

DeviceName Worker::leader() const { return LeaderOf(*cluster_); }

void Worker::Stop() {
  const Status why = Cancelled("the server is stopped");
  collectives_->Stop();
  std::map<int64_t, std::shared_ptr<PartialRun>> partial;
  {
    MutexLock lock(mutex_);
    partial.swap(partial_runs_);
  }
  for (auto& [step, run] : partial) run->token.Cancel();
  steps_.AbortAll(why);
}

StatusOr<std::shared_ptr<Cluster>> Worker::ClusterOf(
    const tensorflow::ServerDef& def) const {
  if (def.cluster().job_size() == 0) return cluster_;
  return cluster_->With(def);
}

Status Worker::UpdateSession(const std::string& handle,
                             const tensorflow::ServerDef& def) {
  HR_ASSIGN_OR_RETURN(const auto session, SessionOf(true, handle));
  HR_ASSIGN_OR_RETURN(auto cluster, ClusterOf(def));
  MutexLock lock(session->mutex);
  session->cluster = std::move(cluster);
  return OkStatus();
}

Status Worker::CreateSession(
    const tensorflow::CreateWorkerSessionRequest& request,
    ResourceManager* resources) {
  if (request.session_handle().empty()) {
    return InvalidArgument("Session must be non-empty.");
  }
  auto session = std::make_shared<Session>();
  session->handle = request.session_handle();
  HR_ASSIGN_OR_RETURN(auto cluster, ClusterOf(request.server_def()));
  {
    MutexLock lock(session->mutex);
    session->cluster = std::move(cluster);
  }
  session->resources = resources ? resources : &resources_;
  if (request.isolate_session_state()) {
    session->own = std::make_unique<ResourceManager>();
    GiveCollectives(*session->own);
    session->resources = session->own.get();
  }
  session->master_task = request.master_task();
  session->master_incarnation = request.master_incarnation();
  // Those of a life of that master that is over, and what is left of their
  // steps, of which it has told nobody.
  std::vector<std::shared_ptr<Session>> over;
  {
    MutexLock lock(mutex_);
    for (auto it = sessions_.begin(); it != sessions_.end();) {
      const Session& other = *it->second;
      if (session->master_task.empty() ||
          other.master_task != session->master_task ||
          other.master_incarnation == session->master_incarnation) {
        ++it;
        continue;
      }
      over.push_back(std::move(it->second));
      it = sessions_.erase(it);
    }
    sessions_[request.session_handle()] = std::move(session);
  }
  for (const auto& last : over) steps_.CleanUpOf(last.get());
  return OkStatus();
}

Status Worker::DeleteSession(const std::string& handle) {
  std::shared_ptr<Session> last;  // ends behind the lock
  MutexLock lock(mutex_);
  if (const auto it = sessions_.find(handle); it != sessions_.end()) {
    last = std::move(it->second);
    sessions_.erase(it);
  }
  // Nobody is left to feed them.
  for (const auto& [step, run] : partial_runs_) {
    if (run->session == last) run->token.Cancel();
  }
  return OkStatus();
}

StatusOr<std::shared_ptr<Worker::Session>> Worker::SessionOf(
    bool in_session, const std::string& handle) {
  if (!in_session) return common_;
  MutexLock lock(mutex_);
  const auto it = sessions_.find(handle);
  if (it != sessions_.end()) return it->second;
  return Aborted("Session handle is not found: ", handle,
                 ". Possibly this worker (\"", NameOf(task_),
                 "\") just restarted.");
}

StatusOr<std::shared_ptr<RegisteredGraph>> Worker::GraphOf(
    Session& session, const std::string& handle) {
  MutexLock lock(session.mutex);
  const auto it = session.graphs.find(handle);
  if (it != session.graphs.end()) return it->second;
  return Aborted("Graph handle is not found: ", handle);
}

StatusOr<std::string> Worker::RegisterGraph(
    tensorflow::RegisterGraphRequest request) {
  HR_ASSIGN_OR_RETURN(const auto session,
                      SessionOf(request.create_worker_session_called(),
                                request.session_handle()));
  std::vector<DeviceName> names = device_names_;
  if (const DeviceName task = session->TaskNow(); !task.SameTask(task_)) {
    for (const DeviceName& own : device_names_) {
      names.push_back({task.job, task.replica, task.task, own.type, own.id});
    }
  }
  HR_ASSIGN_OR_RETURN(
      auto graph,
      RegisteredGraph::Make(std::move(*request.mutable_graph_def()), names));
  MutexLock lock(session->mutex);
  std::string handle = absl::StrFormat("%016x", session->next++);
  session->graphs[handle] = std::move(graph);
  return handle;
}

Status Worker::DeregisterGraph(
    const tensorflow::DeregisterGraphRequest& request) {
  HR_ASSIGN_OR_RETURN(const auto session,
                      SessionOf(request.create_worker_session_called(),
                                request.session_handle()));
  const auto graph = GraphOf(*session, request.graph_handle());
  if (!graph.ok()) {
    return Aborted(graph.status().message(),
                   ". Possibly, this worker just restarted.");
  }
  MutexLock lock(session->mutex);
  session->graphs.erase(request.graph_handle());
  return OkStatus();  // the graph ends behind the lock, or with its last run
}

// Members of a lone task meet as those of a program do.
void Worker::GiveCollectives(ResourceManager& resources) {
  if (cluster_->tasks().size() > 1) GiveEngine(engine_, resources);
}

void Worker::UseEngine(std::shared_ptr<CollectiveEngine> engine) {
  engine_ = std::move(engine);
  GiveCollectives(resources_);
}

RunServices Worker::ServicesOf(const Session& session,
                               const RegisteredGraph& graph,
                               int64_t step) const {
  RunServices services;
  services.resources = session.resources;
  services.functions = graph.caller();
  services.step_id = step;
  return services;
}

StepRendezvous::Fetch Worker::FetchFor(const std::shared_ptr<Session>& session,
                                       int64_t step) {
  return [session, step](const RendezvousKey& key,
                         LocalRendezvous::Done done) -> std::function<void()> {
    const auto channel = session->ClusterNow()->ChannelOf(key.source);
    if (!channel) {
      done(InvalidArgument("No worker known as ", key.source.ToString()));
      return [] {};
    }
    return Pull(channel, step, key.text, session->large, std::move(done));
  };
}

StepRendezvous::FetchMany Worker::FetchManyFor(
    const std::shared_ptr<Session>& session, int64_t step) {
  return [session, step](const ExpectedKeysPtr& expected,
                         std::function<void(size_t, StatusOr<SentValue>)> done)
             -> std::function<void()> {
    const auto channel = session->ClusterNow()->ChannelOf(expected->task);
    if (!channel) {
      done(0,
           InvalidArgument("No worker known as ", expected->task.ToString()));
      return [] {};
    }
    return PullMany(channel, step, expected, session->large, done);
  };
}

std::shared_ptr<ManyTaker> Worker::TakeByRun(const std::string& handle,
                                             int64_t step,
                                             const ExpectedKeysPtr& expected) {
  const auto session = SessionOf(true, handle);
  if (!session.ok()) return nullptr;
  const auto channel = (*session)->ClusterNow()->ChannelOf(expected->task);
  if (!channel) return nullptr;
  const auto rendezvous = steps_.Find(step);
  steps_.Hold(step, session->get());
  rendezvous->SetFetch(FetchFor(*session, step), (*session)->TaskNow());
  std::shared_ptr<ManyTaker> taker;
  rendezvous->Expect(
      expected, [&](const ExpectedKeysPtr& keys,
                    std::function<void(size_t, StatusOr<SentValue>)> done) {
        std::function<void()> end;
        taker = TakeMany(channel, step, keys, (*session)->large, done, &end);
        return end;
      });
  return taker;
}

StatusOr<std::vector<ExpectedKeysPtr>> Worker::ReceivesOf(
    const std::string& handle, const std::string& graph_handle) {
  HR_ASSIGN_OR_RETURN(const auto session, SessionOf(true, handle));
  HR_ASSIGN_OR_RETURN(const auto graph, GraphOf(*session, graph_handle));
  return graph->receives();
}

StatusOr<std::vector<ExpectedKeysPtr>> Worker::GivesOf(
    const std::string& handle, const std::string& graph_handle) {
  HR_ASSIGN_OR_RETURN(const auto session, SessionOf(true, handle));
  HR_ASSIGN_OR_RETURN(const auto graph, GraphOf(*session, graph_handle));
  return graph->gives();
}

StatusOr<Worker::SessionState> Worker::StateOf(const std::string& handle) {
  HR_ASSIGN_OR_RETURN(const auto session, SessionOf(true, handle));
  return SessionState{session, session->resources, session->ClusterNow()};
}

StatusOr<std::shared_ptr<StepRendezvous>> Worker::Meet(
    const std::string& handle, int64_t step) {
  HR_ASSIGN_OR_RETURN(const auto session, SessionOf(true, handle));
  auto rendezvous = steps_.Find(step);
  steps_.Hold(step, session.get());
  rendezvous->SetFetch(FetchFor(session, step), session->TaskNow());
  return rendezvous;
}

StatusOr<std::shared_ptr<RegisteredGraph>> Worker::GraphOf(
    bool in_session, const std::string& handle, const std::string& graph) {
  HR_ASSIGN_OR_RETURN(const auto session, SessionOf(in_session, handle));
  return GraphOf(*session, graph);
}

bool Worker::EndsSoon(const tensorflow::RunGraphRequest& request) {
  if (request.is_partial()) return false;
  const auto graph = GraphOf(request.create_worker_session_called(),
                             request.session_handle(), request.graph_handle());
  return graph.ok() && (*graph)->ends_soon();
}

bool Worker::EndsSoon(const std::string& session,
                      const std::string& graph_handle) {
  const auto graph = GraphOf(true, session, graph_handle);
  return graph.ok() && (*graph)->ends_soon();
}

bool Worker::MayPause(const std::string& session,
                      const std::string& graph_handle) {
  const auto graph = GraphOf(true, session, graph_handle);
  return graph.ok() && (*graph)->may_pause();
}

bool Worker::MayPause(const tensorflow::RunGraphRequest& request) {
  const tensorflow::ExecutorOpts& opts = request.exec_opts();
  if (request.is_partial() || opts.record_timeline() || opts.record_costs()) {
    return false;
  }
  const auto graph = GraphOf(request.create_worker_session_called(),
                             request.session_handle(), request.graph_handle());
  return graph.ok() && (*graph)->may_pause();
}

StatusOr<Worker::Surroundings> Worker::SurroundingsOf(GraphRun& run) {
  Surroundings around;
  HR_ASSIGN_OR_RETURN(around.session, SessionOf(run.in_session, run.session));
  HR_ASSIGN_OR_RETURN(around.graph, GraphOf(*around.session, run.graph));
  around.rendezvous = steps_.Find(run.step);
  steps_.Hold(run.step, around.session.get());
  around.rendezvous->SetFetch(FetchFor(around.session, run.step),
                              around.session->TaskNow());
  for (auto& [key, value] : run.given) {
    HR_RETURN_IF_ERROR(around.rendezvous->Came(key, std::move(value)));
  }
  return around;
}

void Worker::Expect(const GraphRun& run, const Surroundings& around) {
  if (!among_own_) return;
  for (const ExpectedKeysPtr& expected : around.graph->receives()) {
    // One alone costs less by RecvTensor.
    around.rendezvous->Expect(expected, FetchManyFor(around.session, run.step),
                              /*least=*/2);
  }
}

Status Worker::Run(GraphRun run, GraphRunResult* result) {
  HR_ASSIGN_OR_RETURN(const Surroundings around, SurroundingsOf(run));
  if (run.is_partial) {
    return RunPart(run, around.session, around.graph, around.rendezvous,
                   result);
  }
  Expect(run, around);
  const RunServices services =
      ServicesOf(*around.session, *around.graph, run.step);
  const RendezvousScope meeting(around.rendezvous.get());
  const Status s = RunWhole(run, *around.graph, services, result);
  // Who waits for what this step was to send need not wait any longer.
  if (!s.ok()) around.rendezvous->Abort(s);
  return s;
}

Status Worker::Begin(GraphRun run, const std::shared_ptr<PausedRun>& paused,
                     std::function<void(Status, GraphRunResult)> ended) {
  HR_ASSIGN_OR_RETURN(const Surroundings around, SurroundingsOf(run));
  Expect(run, around);
  paused->MeetsIn(around.rendezvous);
  const auto over = [around, ended = std::move(ended),
                     with_graphs = run.partition_graphs](
                        Status s, std::vector<Tensor> fetched) {
    GraphRunResult result{std::move(fetched), {}, {}};
    if (!s.ok()) around.rendezvous->Abort(s);
    if (s.ok() && with_graphs) {
      result.partition_graphs.push_back(around.graph->def());
    }
    ended(std::move(s), std::move(result));
  };
  const auto begun =
      around.graph->Begin(ServicesOf(*around.session, *around.graph, run.step),
                          std::move(run.feeds), run.fetches, paused, over);
  if (!begun.ok()) {
    around.rendezvous->Abort(begun.status());
    return begun.status();
  }
  paused->Is(*begun);
  return OkStatus();
}

Status Worker::RunWhole(GraphRun& run, RegisteredGraph& graph,
                        const RunServices& services, GraphRunResult* result) {
  const StopScope stop(run.token);
  std::optional<timeline::OfThisThread> ran;
  if (run.trace) ran.emplace();
  HR_RETURN_IF_ERROR(
      graph.Run(services, std::move(run.feeds), run.fetches, &result->fetched));
  if (ran) {
    AddStepStats(ran->events(), &result->step_stats);
    LabelInputs(graph.graph(), &result->step_stats);
    std::vector<std::string> names;
    for (const auto& device : devices_) names.push_back(device.name());
    SortByDevice(graph.graph(), names, &result->step_stats);
  }
  if (run.partition_graphs) result->partition_graphs.push_back(graph.def());
  return OkStatus();
}

// The first call begins the step, on a thread of its own; the last one waits
// for its end.
Status Worker::RunPart(GraphRun& run, std::shared_ptr<Session> session,
                       std::shared_ptr<RegisteredGraph> graph,
                       std::shared_ptr<StepRendezvous> rendezvous,
                       GraphRunResult* result) {
  std::shared_ptr<PartialRun> part;
  bool first = false;
  {
    MutexLock lock(mutex_);
    std::shared_ptr<PartialRun>& found = partial_runs_[run.step];
    if (!found) {
      first = true;
      found = std::make_shared<PartialRun>();
      found->session = std::move(session);
      found->graph = std::move(graph);
      found->rendezvous = rendezvous;
    }
    part = found;
  }
  if (first) {
    const RunServices services =
        ServicesOf(*part->session, *part->graph, run.step);
    HR_RETURN_IF_ERROR(RunOnOwnThread([part, services] {
      const RendezvousScope meeting(part->rendezvous.get());
      const StopScope stop(&part->token);
      Status s = part->graph->RunPartial(services);
      if (!s.ok()) part->rendezvous->Abort(s);
      MutexLock lock(part->mutex);
      part->ended = true;
      part->status = std::move(s);
      part->changed.NotifyAll();
    }));
  }
  const StopScope stop(run.token);
  for (auto& [name, tensor] : run.feeds) {
    if (!part->graph->HasFeed(name)) {
      return InvalidArgument("The graph has no feed ", name);
    }
    HR_ASSIGN_OR_RETURN(const RendezvousKey key, RendezvousKey::Parse(name));
    HR_RETURN_IF_ERROR(rendezvous->Send(key, {std::move(tensor), false}));
  }
  for (const std::string& name : run.fetches) {
    if (!part->graph->HasFetch(name)) {
      return InvalidArgument("The graph has no fetch ", name);
    }
    HR_ASSIGN_OR_RETURN(const RendezvousKey key, RendezvousKey::Parse(name));
    SentValue value;
    HR_RETURN_IF_ERROR(headrace::Receive(*rendezvous, key, &value));
    if (value.dead) {
      return InvalidArgument("The tensor returned for ", key.edge,
                             " was not valid.");
    }
    result->fetched.push_back(std::move(value.tensor));
  }
  if (!run.is_last_partial_run) return OkStatus();
  while (true) {
    {
      MutexLock lock(part->mutex);
      if (!part->ended) {
        part->changed.WaitFor(part->mutex, std::chrono::milliseconds(20));
      }
      if (part->ended) break;
    }
    HR_RETURN_IF_ERROR(CheckStop());
  }
  MutexLock lock(part->mutex);
  return part->status;
}

void Worker::CleanUp(int64_t step) {
  std::shared_ptr<PartialRun> part;
  {
    MutexLock lock(mutex_);
    if (auto node = partial_runs_.extract(step))
      part = std::move(node.mapped());
  }
  if (part) part->token.Cancel();
  steps_.CleanUp(step);
}

void Worker::CleanUpAll(const std::vector<std::string>& containers) {
  if (containers.empty()) {
    resources_.ClearContainer(kStandardContainer);
    collectives_->Forget(Cancelled("the cluster was reset"));
  }
  for (const std::string& c : containers) resources_.ClearContainer(c);
}

Status Worker::SendAgain(const tensorflow::RecvTensorRequest& request,
                         SentValue value) {
  HR_ASSIGN_OR_RETURN(const RendezvousKey key,
                      RendezvousKey::Parse(request.rendezvous_key()));
  return steps_.Find(request.step_id())->Send(key, std::move(value));
}

std::function<void()> Worker::Receive(
    const tensorflow::RecvTensorRequest& request, LocalRendezvous::Done done) {
  const auto refuse = [&](Status s) {
    done(std::move(s));
    return std::function<void()>([] {});
  };
  auto key = RendezvousKey::Parse(request.rendezvous_key());
  if (!key.ok()) return refuse(key.status());
  // Clients of other clusters may call the task by another name.
  const tensorflow::DeviceAttributes* device = nullptr;
  for (size_t i = 0; i < devices_.size(); ++i) {
    const DeviceName& own = device_names_[i];
    if (own.type == key->source.type && own.id == key->source.id) {
      device = &devices_[i];
    }
  }
  if (device == nullptr) {
    return refuse(InvalidArgument(key->source.ToString(), " unknown device."));
  }
  if (device->incarnation() != key->incarnation) {
    return refuse(Aborted(
        "RecvTensor expects a different device incarnation: ", key->incarnation,
        " vs. ", device->incarnation(), ". Your worker job (\"", NameOf(task_),
        "\") was probably restarted. Check your worker job for the reason why "
        "it was restarted."));
  }
  const int64_t step = request.step_id();
  const auto rendezvous = steps_.Find(step);
  const int64_t number = rendezvous->ReceiveAsync(*key, std::move(done));
  return [this, rendezvous, step, number, key = *std::move(key)] {
    rendezvous->Forget(key, number);
    steps_.ForgetIdle(step);
  };
}

}  // namespace headrace::distributed
