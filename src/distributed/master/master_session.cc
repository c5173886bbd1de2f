#include "distributed/master/master_session.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/timeline.h"
#include "distributed/master/step.h"
#include "graph/import.h"
#include "runtime/partial_run.h"

namespace headrace::distributed {
namespace {

// Of calls by which a master forgets something on a worker.
constexpr std::chrono::seconds kCleanUpTime{10};
// Values that come with a run: of more, those that are there by then go
// together where a call of their own waits for them.
constexpr size_t kMostBrought = 16;

CallOptions Until(Clock::time_point deadline) {
  CallOptions options;
  options.deadline = deadline;
  return options;
}

// Tells a task something whose answer nobody waits for.
void Tell(Channel& channel, const char* method,
          const google::protobuf::MessageLite& request) {
  channel.Start(absl::StrCat(kWorkerService, method), WriteMessage(request),
                Until(Clock::now() + kCleanUpTime), [](const Answer&) {});
}

void TellOver(Channel& channel, int64_t step) {
  tensorflow::CleanupGraphRequest request;
  request.set_step_id(step);
  Tell(channel, "CleanupGraph", request);
}

void AddNames(const char* kind, const std::vector<std::string>& names,
              std::string* key) {
  absl::StrAppend(key, kind, names.size());
  for (const std::string& n : names) absl::StrAppend(key, ";", n);
}

std::vector<std::string> FeedNames(const StepRequest& r) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : r.feeds) names.push_back(name);
  return names;
}

std::string KeyOf(const StepRequest& r) {
  std::string key;
  AddNames("feeds ", FeedNames(r), &key);
  AddNames(" fetches ", r.fetches, &key);
  AddNames(" targets ", r.targets, &key);
  return key;
}

// Why what is to be fetched is no output of the graph.
Status NoFetch(const Graph& graph, const std::string& name) {
  const size_t colon = name.find(':');
  const Node* node = graph.FindNode(StringView(name).substr(0, colon));
  int64_t output = 0;
  if (node == nullptr ||
      (colon != std::string::npos &&
       !absl::SimpleAtoi(name.substr(colon + 1), &output)) ||
      output < 0) {
    return NotFound("FetchOutputs node ", name, ": not found");
  }
  if (node->num_outputs() == 0) {
    return InvalidArgument(
        "Tried to fetch data for '", name,
        "', which produces no output.  To run to a node but not fetch any "
        "data, "
        "pass '",
        name,
        "' as an argument to the 'target_node_names' argument of the "
        "Session::Run API.");
  }
  return InvalidArgument("FetchOutputs ", name,
                         ": output index too large, must be < ",
                         node->num_outputs());
}

Status HasWork(const StepRequest& request) {
  if (!request.fetches.empty() || !request.targets.empty()) return OkStatus();
  return InvalidArgument(
      "Must specify at least one target to fetch or execute.");
}

// What a request names, in the graph.
StatusOr<PartitionRequest> Named(const Graph& graph,
                                 const tensorflow::GraphDef& def,
                                 const StepRequest& r) {
  PartitionRequest request;
  request.graph = &graph;
  request.def = &def;
  HashSet<Edge> fed;
  for (const auto& [name, tensor] : r.feeds) {
    const StatusOr<Edge> e = graph.FindOutput(name);
    if (!e.ok()) {
      return NotFound("FeedInputs: unable to find feed output ", name);
    }
    if (!fed.insert(*e).second) {
      return InvalidArgument("Endpoint \"", name, "\" fed more than once.");
    }
    request.feeds.push_back(*e);
  }
  for (const std::string& name : r.fetches) {
    const StatusOr<Edge> e = graph.FindOutput(name);
    if (!e.ok()) return NoFetch(graph, name);
    request.fetches.push_back(*e);
  }
  for (const std::string& name : r.targets) {
    Node* n = graph.FindNode(StringView(name).substr(0, name.find(':')));
    if (n == nullptr) {
      return NotFound("PruneForTargets: Some target nodes not found: ", name);
    }
    request.targets.push_back(n);
  }
  return request;
}

// In a cluster of a session's own a task may have another name: that of the
// address at which the client found it.
// InvalidArgument where it has none, or the one that it began with.
Status NameTaskAt(StringView target, tensorflow::ServerDef* def) {
  if (!absl::ConsumePrefix(&target, "grpc://")) return OkStatus();
  for (const auto& job : def->cluster().job()) {
    for (const auto& [index, address] : job.tasks()) {
      if (address != target) continue;
      if (job.name() == def->job_name() && index == def->task_index()) {
        return InvalidArgument(
            "The ClusterSpec names the job and task index to be the same names "
            "that were provided when the server booted. This is currently not "
            "allowed. Job: ",
            job.name(), ", task index: ", index);
      }
      def->set_job_name(job.name());
      def->set_task_index(index);
      return OkStatus();
    }
  }
  return InvalidArgument(
      "The master (current machine) is not included in the provided "
      "cluster_def: none of its tasks is at ",
      target);
}

}  // namespace

struct MasterSession::PartialRun {
  std::shared_ptr<const Plan> plan;
  int64_t step = 0;
  std::vector<std::string> feeds, fetches;  // as planned
  std::shared_ptr<Graph> graph;             // of these:
  std::vector<Edge> fed_edges, fetched_edges;
  Mutex mutex;
  bool begun ABSL_GUARDED_BY(mutex) = false;
  // Of each one planned, whether that has been done.
  std::vector<bool> fed ABSL_GUARDED_BY(mutex);
  std::vector<bool> fetched ABSL_GUARDED_BY(mutex);
};

StatusOr<std::shared_ptr<MasterSession>> MasterSession::Make(
    std::shared_ptr<Worker> worker,
    const tensorflow::CreateSessionRequest& request,
    Clock::time_point deadline) {
  std::shared_ptr<MasterSession> made(new MasterSession);
  made->config_ = request.config();
  made->handle_ =
      absl::StrFormat("%016x", static_cast<uint64_t>(NewRequestId()));
  made->cluster_ = worker->cluster();
  if (request.config().cluster_def().job_size() > 0) {
    tensorflow::ServerDef def = made->cluster_->def();
    *def.mutable_cluster() = request.config().cluster_def();
    HR_RETURN_IF_ERROR(NameTaskAt(request.target(), &def));
    HR_ASSIGN_OR_RETURN(made->cluster_, made->cluster_->With(def));
  }
  made->worker_ = std::move(worker);
  {
    // A graph that is none is told before anybody is waited for.
    MutexLock lock(made->mutex_);
    HR_RETURN_IF_ERROR(made->SetGraph(request.graph_def()));
  }
  const auto& filters = request.config().device_filters();
  HR_ASSIGN_OR_RETURN(made->tasks_,
                      FindTasks(*made->worker_, *made->cluster_,
                                {filters.begin(), filters.end()}, deadline));
  HR_RETURN_IF_ERROR(made->MakeWorkerSessions(deadline));
  return made;
}

StatusOr<std::shared_ptr<MasterSession>> MasterSession::Join(
    std::shared_ptr<Worker> worker, const std::string& session,
    tensorflow::GraphDef graph, const std::vector<std::string>& filters,
    Clock::time_point deadline) {
  std::shared_ptr<MasterSession> made(new MasterSession);
  made->handle_ = session;
  made->owns_sessions_ = false;
  made->config_.set_allow_soft_placement(true);
  HR_ASSIGN_OR_RETURN(const Worker::SessionState state,
                      worker->StateOf(session));
  made->cluster_ = state.cluster;
  made->worker_ = std::move(worker);
  {
    MutexLock lock(made->mutex_);
    HR_RETURN_IF_ERROR(made->SetGraph(std::move(graph)));
  }
  HR_ASSIGN_OR_RETURN(made->tasks_, FindTasks(*made->worker_, *made->cluster_,
                                              filters, deadline));
  return made;
}

Status MasterSession::MakeWorkerSessions(Clock::time_point deadline) {
  Calls calls;
  for (const Task& task : tasks_) {
    tensorflow::CreateWorkerSessionRequest request;
    request.set_session_handle(handle_);
    *request.mutable_server_def() = cluster_->def();
    request.mutable_server_def()->set_job_name(*task.name.job);
    request.mutable_server_def()->set_task_index(*task.name.task);
    // Tasks that others may name otherwise have state of the session's own.
    request.set_isolate_session_state(config_.isolate_session_state() ||
                                      config_.cluster_def().job_size() > 0);
    request.set_master_task(worker_->task().ToString());
    request.set_master_incarnation(
        static_cast<int64_t>(worker_->incarnation()));
    if (!task.channel) {
      HR_RETURN_IF_ERROR(worker_->CreateSession(request));
      continue;
    }
    calls.Start(*task.channel,
                absl::StrCat(kWorkerService, "CreateWorkerSession"),
                WriteMessage(request), Until(deadline));
  }
  return calls.Wait();
}

int64_t MasterSession::version() const {
  MutexLock lock(mutex_);
  return version_;
}

Status MasterSession::SetGraph(tensorflow::GraphDef def) {
  auto graph = std::make_shared<Graph>();
  HR_RETURN_IF_ERROR(
      ImportGraphDef(def, ImportOptions(), graph.get(), nullptr));
  graph_ = std::move(graph);
  def_ = std::move(def);
  return OkStatus();
}

StatusOr<int64_t> MasterSession::Extend(
    const tensorflow::ExtendSessionRequest& request) {
  MutexLock lock(mutex_);
  if (request.current_graph_version() != version_) {
    return Aborted("Current version is ", version_, " but caller expected ",
                   request.current_graph_version(), ".");
  }
  tensorflow::GraphDef all = def_;
  for (const auto& node : request.graph_def().node()) *all.add_node() = node;
  HashSet<std::string> known;
  for (const auto& f : def_.library().function()) {
    known.insert(f.signature().name());
  }
  for (const auto& f : request.graph_def().library().function()) {
    if (!known.contains(f.signature().name())) {
      *all.mutable_library()->add_function() = f;
    }
  }
  if (request.graph_def().has_versions()) {
    *all.mutable_versions() = request.graph_def().versions();
  }
  HR_RETURN_IF_ERROR(SetGraph(std::move(all)));
  // Plans stay: graphs only grow.
  return ++version_;
}

Devices MasterSession::AllDevices() const {
  Devices devices;
  for (const Task& task : tasks_) {
    for (const auto& d : task.devices) {
      DeviceName name;
      if (DeviceName::Parse(d.name(), &name) && name.full()) {
        devices.all.push_back({name, d.incarnation()});
      }
    }
  }
  devices.standard = devices.all.front().name;
  devices.soft = config_.allow_soft_placement();
  return devices;
}

StatusOr<std::shared_ptr<const MasterSession::Plan>> MasterSession::PlanOf(
    const StepRequest& request) {
  const std::string key = KeyOf(request);
  // Others that ask for the same wait for its making.
  MutexLock lock(mutex_);
  std::shared_ptr<const Plan>& plan = plans_[key];
  if (plan) return plan;
  StatusOr<std::shared_ptr<const Plan>> made = MakePlan(request);
  if (made.ok()) {
    plan = *made;
  } else {
    plans_.erase(key);
  }
  return made;
}

StatusOr<std::shared_ptr<const MasterSession::Plan>> MasterSession::MakePlan(
    const StepRequest& r) {
  HR_ASSIGN_OR_RETURN(const PartitionRequest request, Named(*graph_, def_, r));
  auto plan = std::make_shared<Plan>();
  for (size_t i = 0; i < request.fetches.size(); ++i) {
    const auto feed = std::find(request.feeds.begin(), request.feeds.end(),
                                request.fetches[i]);
    if (feed != request.feeds.end()) {
      plan->fed_fetches.emplace_back(i, feed - request.feeds.begin());
    }
  }
  HR_ASSIGN_OR_RETURN(std::vector<Part> parts,
                      Partition(request, AllDevices()));
  HR_RETURN_IF_ERROR(Register(std::move(parts), plan.get()));
  return plan;
}

// Gives each task its part.
Status MasterSession::Register(std::vector<Part> parts, Plan* plan) {
  plan->parts.resize(parts.size());
  Calls calls;
  const Clock::time_point deadline = Clock::now() + kRendezvousTime;
  for (size_t i = 0; i < parts.size(); ++i) {
    PlannedPart& planned = plan->parts[i];
    for (const Task& task : tasks_) {
      if (task.name.SameTask(parts[i].task)) planned.task = &task;
    }
    planned.feeds = std::move(parts[i].feeds);
    planned.fetches = std::move(parts[i].fetches);
    plan->graphs.push_back(parts[i].graph);
    tensorflow::RegisterGraphRequest request;
    request.set_session_handle(handle_);
    request.set_create_worker_session_called(true);
    *request.mutable_graph_def() = std::move(parts[i].graph);
    *request.mutable_graph_options() = config_.graph_options();
    *request.mutable_config_proto() = config_;
    if (!planned.task->channel) {
      HR_ASSIGN_OR_RETURN(planned.graph,
                          worker_->RegisterGraph(std::move(request)));
      continue;
    }
    calls.Start(*planned.task->channel,
                absl::StrCat(kWorkerService, "RegisterGraph"),
                WriteMessage(request), Until(deadline),
                [&planned](const Answer& answer) -> Status {
                  HR_RETURN_IF_ERROR(StatusOf(answer));
                  tensorflow::RegisterGraphResponse response;
                  HR_RETURN_IF_ERROR(ReadMessage(answer.body, &response));
                  planned.graph = response.graph_handle();
                  return OkStatus();
                });
  }
  HR_RETURN_IF_ERROR(calls.Wait());
  return FindBrought(plan);
}

// Of tasks of ours, the own part gets what it takes by the call that runs
// theirs, and what it gives may go with that. What is fetched comes in another
// kind of answer.
Status MasterSession::FindBrought(Plan* plan) {
  if (!worker_->among_own()) return OkStatus();
  for (const PlannedPart& own : plan->parts) {
    if (own.task->channel) continue;
    const auto note = [&](const std::vector<ExpectedKeysPtr>& all,
                          ExpectedKeysPtr PlannedPart::*as) {
      for (const ExpectedKeysPtr& expected : all) {
        for (PlannedPart& part : plan->parts) {
          if (part.fetches.empty() && expected->keys.size() <= kMostBrought &&
              part.task->name.SameTask(expected->task)) {
            part.*as = expected;
          }
        }
      }
    };
    HR_ASSIGN_OR_RETURN(const auto receives,
                        worker_->ReceivesOf(handle_, own.graph));
    note(receives, &PlannedPart::brings);
    HR_ASSIGN_OR_RETURN(const auto gives, worker_->GivesOf(handle_, own.graph));
    note(gives, &PlannedPart::given);
  }
  return OkStatus();
}

void MasterSession::CleanUp(const Plan& plan, int64_t step, bool at_once) {
  // Tasks of TensorFlow do not look for it in other calls.
  at_once |= !worker_->among_own();
  for (const PlannedPart& part : plan.parts) {
    if (!part.task->channel) {
      worker_->CleanUp(step);
    } else if (at_once || !part.task->over->Add(step)) {
      TellOver(*part.task->channel, step);
    }
  }
}

Status MasterSession::Run(StepRequest request, std::vector<Tensor>* fetched,
                          tensorflow::RunMetadata* metadata) {
  if (closing_.cancelled()) return Cancelled("Session has been closed.");
  const StopScope closing(&closing_);
  const int64_t timeout = request.options.timeout_in_ms() > 0
                              ? request.options.timeout_in_ms()
                              : config_.operation_timeout_in_ms();
  std::optional<Deadline> deadline;
  if (timeout > 0) deadline.emplace(timeout);
  HR_RETURN_IF_ERROR(HasWork(request));
  HR_ASSIGN_OR_RETURN(const auto plan, PlanOf(request));
  return RunPlan(*plan, request, fetched, metadata);
}

std::shared_ptr<ClientCall> MasterSession::TryBegin(StepRequest& request,
                                                    const Later& later,
                                                    Ended ended) {
  const tensorflow::RunOptions& options = request.options;
  if (options.timeout_in_ms() > 0 || config_.operation_timeout_in_ms() > 0 ||
      options.trace_level() > tensorflow::RunOptions::NO_TRACE ||
      options.output_partition_graphs()) {
    return nullptr;
  }
  std::shared_ptr<const Plan> plan;
  {
    MutexLock lock(mutex_);
    const auto it = plans_.find(KeyOf(request));
    if (it == plans_.end()) return nullptr;
    plan = it->second;
  }
  const int64_t number = NewStepId();
  const auto results = std::make_shared<std::vector<Tensor>>();
  const auto step = StepOf(*plan, request, number, results.get());
  if (!step->MayBegin()) return nullptr;
  {
    MutexLock lock(mutex_);
    begun_[number] = step;
  }
  if (closing_.cancelled()) step->Cancel();
  step->Begin(later, [self = shared_from_this(), plan, number, results,
                      ended = std::move(ended)](const Status& s) {
    {
      MutexLock lock(self->mutex_);
      self->begun_.erase(number);
    }
    self->CleanUp(*plan, number, /*at_once=*/!s.ok());
    ended(s, std::move(*results));
  });
  return step;
}

std::shared_ptr<Step> MasterSession::StepOf(const Plan& plan,
                                            StepRequest& request,
                                            int64_t number,
                                            std::vector<Tensor>* results) {
  results->resize(request.fetches.size());
  for (const auto& [fetch, feed] : plan.fed_fetches) {
    (*results)[fetch] = request.feeds[feed].second;
  }
  auto step = std::make_shared<Step>(*worker_, handle_, number);
  step->trace =
      request.options.trace_level() > tensorflow::RunOptions::NO_TRACE;
  for (const PlannedPart& part : plan.parts) {
    StepPart& p = step->Add(*part.task, part.graph);
    p.brings = part.brings;
    p.given = part.given;
    for (const auto& [feed, key] : part.feeds) {
      p.feeds.emplace_back(key, request.feeds[feed].second);
    }
    for (const auto& [fetch, key] : part.fetches) {
      p.fetches.emplace_back(key, &(*results)[fetch]);
    }
  }
  return step;
}

Status MasterSession::RunPlan(const Plan& plan, StepRequest& request,
                              std::vector<Tensor>* fetched,
                              tensorflow::RunMetadata* metadata) {
  const int64_t number = NewStepId();
  std::vector<Tensor> results;
  const auto step = StepOf(plan, request, number, &results);
  const Status s = step->Run();
  CleanUp(plan, number, /*at_once=*/!s.ok());
  HR_RETURN_IF_ERROR(s);
  if (metadata && step->trace) step->TakeStats(metadata->mutable_step_stats());
  if (metadata && request.options.output_partition_graphs()) {
    for (const auto& graph : plan.graphs) {
      *metadata->add_partition_graphs() = graph;
    }
  }
  *fetched = std::move(results);
  return OkStatus();
}

StatusOr<std::string> MasterSession::SetUpPartialRun(StepRequest request) {
  HR_RETURN_IF_ERROR(HasWork(request));
  auto run = std::make_shared<PartialRun>();
  HR_ASSIGN_OR_RETURN(run->plan, PlanOf(request));
  run->step = NewStepId();
  run->feeds = FeedNames(request);
  run->fetches = request.fetches;
  MutexLock lock(mutex_);
  run->graph = graph_;
  HR_ASSIGN_OR_RETURN(PartitionRequest named, Named(*graph_, def_, request));
  run->fed_edges = std::move(named.feeds);
  run->fetched_edges = std::move(named.fetches);
  {
    MutexLock its(run->mutex);
    run->fed.resize(run->feeds.size());
    run->fetched.resize(run->fetches.size());
  }
  std::string name = absl::StrCat("partial_run_", next_++);
  partial_runs_[name] = std::move(run);
  return name;
}

Status MasterSession::RunPart(const std::string& name, StepRequest request,
                              std::vector<Tensor>* fetched) {
  std::shared_ptr<PartialRun> run;
  {
    MutexLock lock(mutex_);
    const auto it = partial_runs_.find(name);
    if (it == partial_runs_.end()) {
      return InvalidArgument(
          "Must run PartialRunSetup before performing partial runs");
    }
    run = it->second;
  }
  if (!request.targets.empty()) {
    return InvalidArgument("Targets cannot be specified in a partial run");
  }
  const StopScope closing(&closing_);
  MutexLock lock(run->mutex);
  // What is refused leaves the run as it was.
  std::vector<bool> fed = run->fed, taken = run->fetched;
  std::map<int, Tensor> feeds;  // by number in the plan
  for (auto& [feed, tensor] : request.feeds) {
    const auto at = std::find(run->feeds.begin(), run->feeds.end(), feed);
    const auto i = at - run->feeds.begin();
    if (at == run->feeds.end()) {
      return InvalidArgument("The feed ", feed,
                             " was not specified in partial_run_setup.");
    }
    if (fed[i]) {
      return InvalidArgument("The feed ", feed, " has already been fed.");
    }
    fed[i] = true;
    feeds[static_cast<int>(i)] = std::move(tensor);
  }
  const auto supply = [&](const Edge& e) {
    const auto at = absl::c_find(run->fed_edges, e);
    if (at == run->fed_edges.end()) return Supply::kComputed;
    return fed[at - run->fed_edges.begin()] ? Supply::kThere : Supply::kToBeFed;
  };
  std::vector<Tensor> results(request.fetches.size());
  std::map<int, Tensor*> fetches;
  for (size_t r = 0; r < request.fetches.size(); ++r) {
    const std::string& fetch = request.fetches[r];
    const auto at = std::find(run->fetches.begin(), run->fetches.end(), fetch);
    const auto i = at - run->fetches.begin();
    if (at == run->fetches.end()) {
      return InvalidArgument("The fetch ", fetch,
                             " was not specified in partial_run_setup.");
    }
    if (taken[i]) {
      return InvalidArgument("The fetch ", fetch, " has already been fetched.");
    }
    // It would wait for ever.
    HR_RETURN_IF_ERROR(CheckSupply({&run->fetched_edges[i], 1}, supply));
    taken[i] = true;
    fetches[static_cast<int>(i)] = &results[r];
  }
  run->fed = std::move(fed);
  run->fetched = std::move(taken);
  const bool last = absl::c_all_of(run->fed, [](bool b) { return b; }) &&
                    absl::c_all_of(run->fetched, [](bool b) { return b; });
  Step step(*worker_, handle_, run->step);
  step.is_partial = true;
  step.is_last = last;
  for (const PlannedPart& part : run->plan->parts) {
    StepPart p(*part.task, part.graph);
    for (const auto& [feed, key] : part.feeds) {
      if (const auto it = feeds.find(feed); it != feeds.end()) {
        p.feeds.emplace_back(key, it->second);
      }
    }
    for (const auto& [fetch, key] : part.fetches) {
      if (const auto it = fetches.find(fetch); it != fetches.end()) {
        p.fetches.emplace_back(key, it->second);
      }
    }
    const bool used = !p.feeds.empty() || !p.fetches.empty();
    if (used || last || !run->begun) step.Add(std::move(p));
  }
  run->begun = true;
  const Status s = step.Run();
  if (!s.ok() || last) {
    CleanUp(*run->plan, run->step, /*at_once=*/true);
    MutexLock all(mutex_);
    partial_runs_.erase(name);
  }
  HR_RETURN_IF_ERROR(s);
  *fetched = std::move(results);
  return OkStatus();
}

StatusOr<int64_t> MasterSession::MakeCallable(
    const tensorflow::CallableOptions& options) {
  if (options.tensor_connection_size() > 0) {
    return Unimplemented("CallableOptions.tensor_connection");
  }
  StepRequest request;
  for (const std::string& name : options.feed()) {
    request.feeds.emplace_back(name, Tensor());
  }
  request.fetches = {options.fetch().begin(), options.fetch().end()};
  request.targets = {options.target().begin(), options.target().end()};
  HR_RETURN_IF_ERROR(HasWork(request));
  HR_RETURN_IF_ERROR(PlanOf(request).status());
  MutexLock lock(mutex_);
  callables_[next_] = options;
  return next_++;
}

Status MasterSession::RunCallable(int64_t callable, std::vector<Tensor> feeds,
                                  std::vector<Tensor>* fetched,
                                  tensorflow::RunMetadata* metadata) {
  StepRequest request;
  {
    MutexLock lock(mutex_);
    const auto it = callables_.find(callable);
    if (it == callables_.end() && callable < next_) {
      return InvalidArgument(
          "Attempted to run callable after handle was released: ", callable);
    }
    if (it == callables_.end()) {
      return InvalidArgument("No such callable handle: ", callable);
    }
    const tensorflow::CallableOptions& options = it->second;
    if (static_cast<int>(feeds.size()) != options.feed_size()) {
      return InvalidArgument("Expected ", options.feed_size(),
                             " feed tensors, but got ", feeds.size());
    }
    for (int i = 0; i < options.feed_size(); ++i) {
      request.feeds.emplace_back(options.feed(i), std::move(feeds[i]));
    }
    request.fetches = {options.fetch().begin(), options.fetch().end()};
    request.targets = {options.target().begin(), options.target().end()};
    request.options = options.run_options();
  }
  return Run(std::move(request), fetched, metadata);
}

Status MasterSession::ReleaseCallable(int64_t callable) {
  MutexLock lock(mutex_);
  callables_.erase(callable);
  return OkStatus();  // also of one that is not there, as TensorFlow's
}

void MasterSession::Close() {
  if (closing_.cancelled()) return;
  closing_.Cancel();
  std::map<std::string, std::shared_ptr<PartialRun>> partial;
  std::map<int64_t, std::weak_ptr<ClientCall>> begun;
  {
    MutexLock lock(mutex_);
    partial.swap(partial_runs_);
    begun = begun_;
  }
  for (const auto& [number, step] : begun) {
    if (const auto runs = step.lock()) runs->Cancel();
  }
  for (const auto& [name, run] : partial) {
    CleanUp(*run->plan, run->step, /*at_once=*/true);
  }
  for (const Task& task : tasks_) {
    for (const int64_t step : task.over->Take()) {
      TellOver(*task.channel, step);
    }
  }
  if (!owns_sessions_) return;
  tensorflow::DeleteWorkerSessionRequest request;
  request.set_session_handle(handle_);
  for (const Task& task : tasks_) {
    if (task.channel) {
      Tell(*task.channel, "DeleteWorkerSession", request);
    } else {
      worker_->DeleteSession(handle_).IgnoreError();
    }
  }
}

}  // namespace headrace::distributed
