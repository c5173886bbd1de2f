#include "distributed/data_service/dispatcher.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/cancellation.h"
#include "data/dataset.h"
#include "distributed/data_service/splits.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace::distributed::data_service {
namespace {

// A client that was silent so long is gone: it says something every second.
constexpr std::chrono::seconds kClientTimeout{120};
// The longest that an answer waits for news, below what a call may last.
constexpr int64_t kLongestWait = 5'000;
// How many rounds behind the furthest consumer a new task begins: they are
// asked for ahead.
constexpr int64_t kRoundsAhead = 16;
constexpr int64_t kMostConsumers = 100'000;
// Until a stop is felt.
constexpr std::chrono::milliseconds kWaitsAtOnce{100};

std::string HostOf(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

Clock::time_point EndOfWait(int64_t wait_ms) {
  return Clock::now() + std::chrono::milliseconds(
                            std::clamp<int64_t>(wait_ms, 0, kLongestWait));
}

bool IsStatic(int policy) { return policy >= kFile && policy <= kHint; }

}  // namespace

StatusOr<std::shared_ptr<Dispatcher>> Dispatcher::Make(
    DispatcherOptions options) {
  std::shared_ptr<Dispatcher> made(new Dispatcher(std::move(options)));
  const DispatcherOptions& o = made->options_;
  MutexLock lock(made->mutex_);
  made->next_gc_ = Clock::now() + o.gc_interval;
  if (o.fault_tolerant) {
    if (o.work_dir.empty()) {
      return InvalidArgument(
          "Must specify work_dir when using fault_tolerant_mode");
    }
    HR_ASSIGN_OR_RETURN(made->journal_,
                        Journal::Open(o.work_dir, &made->state_));
  }
  // Workers of an earlier life of this dispatcher have as long as others to say
  // that they are there.
  for (const auto& [id, iteration] : made->state_.iterations) {
    for (const auto& [task_id, task] : iteration.tasks) {
      made->workers_[task.address()].heard = Clock::now();
    }
  }
  return made;
}

Status Dispatcher::Update(const DispatcherUpdate& update) {
  if (journal_) HR_RETURN_IF_ERROR(journal_->Add(update));
  const Status s = state_.Apply(update);
  changed_.NotifyAll();
  return s;
}

// --- datasets ---

Status Dispatcher::CheckRequested(const ServiceDataset& dataset) {
  const auto at = state_.datasets.find(dataset.id());
  if (at == state_.datasets.end()) return OkStatus();
  const ServiceDataset& has = at->second;
  std::string differs;
  if (has.element_spec() != dataset.element_spec()) {
    differs = " with different element_spec";
  } else if (has.cardinality() != dataset.cardinality()) {
    differs = absl::StrCat(": modified: cardinality: ", has.cardinality(),
                           " -> ", dataset.cardinality());
  }
  if (differs.empty()) return OkStatus();
  return InvalidArgument(
      "Failed to register dataset: Datasets with the same ID should have the "
      "same structure, got diff for dataset ID ",
      dataset.id(), differs,
      ". To fix this error, make sure you're registering the same dataset "
      "with the same ID.");
}

Status Dispatcher::Register(const RegisterDatasetRequest& request,
                            RegisterDatasetResponse* response) {
  ServiceDataset dataset = request.dataset();
  tensorflow::GraphDef graph;
  if (!graph.ParseFromString(dataset.graph())) {
    return InvalidArgument("a dataset's graph cannot be read");
  }
  MutexLock lock(mutex_);
  HR_RETURN_IF_ERROR(CheckRequested(dataset));
  if (dataset.id().empty()) dataset.set_id(absl::StrCat(state_.next_id++));
  response->set_id(dataset.id());
  if (state_.datasets.contains(dataset.id())) return OkStatus();
  DispatcherUpdate update;
  *update.mutable_dataset() = std::move(dataset);
  return Update(update);
}

Status Dispatcher::Get(const GetDatasetRequest& request,
                       GetDatasetResponse* response) {
  MutexLock lock(mutex_);
  const auto at = state_.datasets.find(request.id());
  if (at == state_.datasets.end()) {
    return NotFound("Dataset id ", request.id(), " not found. It must be ",
                    "registered with `register_dataset` before calling ",
                    "`from_dataset_id`.");
  }
  ServiceDataset& out = *response->mutable_dataset();
  if (!request.without_graph()) {
    out = at->second;
    return OkStatus();
  }
  out.set_id(at->second.id());
  out.set_element_spec(at->second.element_spec());
  out.set_compression(at->second.compression());
  out.set_cardinality(at->second.cardinality());
  return OkStatus();
}

// --- iterations ---

namespace {

// A second client of a job wants the same.
Status CheckSameJob(const ServiceIteration& has,
                    const ServiceIteration& wants) {
  std::string differs;
  const auto compare = [&](const char* what, const auto& a, const auto& b) {
    if (a != b) {
      absl::StrAppend(&differs, "Existing ", what, ": <", a, ">; got <", b,
                      ">. ");
    }
  };
  compare("processing mode", has.policy(), wants.policy());
  compare("number of consumers", has.num_consumers(), wants.num_consumers());
  compare("cross-trainer cache", has.cross_trainer(), wants.cross_trainer());
  if (differs.empty()) return OkStatus();
  return InvalidArgument("Tried to create job with name ", wants.job_name(),
                         ", but found an existing job with different ",
                         "parameters: ", differs);
}

Status CheckSpec(const ServiceIteration& spec, const ServiceDataset& dataset) {
  if (spec.policy() < kOff || spec.policy() > kHint) {
    return InvalidArgument("ProcessingMode ", spec.policy(), " is invalid.");
  }
  if (spec.num_consumers() < 0 || spec.num_consumers() > kMostConsumers ||
      spec.repetition() < 0) {
    return InvalidArgument("a job of ", spec.num_consumers(),
                           " consumers cannot be opened");
  }
  if (spec.cross_trainer() && spec.job_name().empty()) {
    return InvalidArgument(
        "Cross-trainer caching requires named jobs. Got empty `job_name`.");
  }
  if (spec.cross_trainer() && spec.num_consumers() > 0) {
    return InvalidArgument(
        "Cross-trainer caching does not support coordinated reads. Got "
        "number of coordinated consumers: ",
        spec.num_consumers());
  }
  if (spec.cross_trainer() && dataset.cardinality() != kInfiniteCardinality) {
    return InvalidArgument(
        "Cross-trainer caching requires the input dataset to be infinite. Got "
        "input with cardinality ",
        dataset.cardinality());
  }
  return OkStatus();
}

}  // namespace

StatusOr<int64_t> Dispatcher::MakeIteration(ServiceIteration spec) {
  const auto dataset = state_.datasets.find(spec.dataset_id());
  if (dataset == state_.datasets.end()) {
    return NotFound("Dataset id ", spec.dataset_id(), " not found.");
  }
  HR_RETURN_IF_ERROR(CheckSpec(spec, dataset->second));
  spec.set_id(state_.next_id);
  if (IsStatic(spec.policy())) {
    for (const auto& [address, worker] : workers_) {
      const auto index = IndexOf(address);
      if (index.ok()) continue;
      return Status(
          index.status().code(),
          absl::StrCat("Failed to get or create iteration for job ", "with id ",
                       spec.id(), ": ", index.status().message()));
    }
  }
  spec.clear_sources();
  if (spec.policy() == kDynamic) {
    const std::string graph = dataset->second.graph();
    // Without the lock, as ops of the graph run.
    StatusOr<std::vector<int64_t>> counts = std::vector<int64_t>();
    {
      MutexUnlock unlock(mutex_);
      counts = CountSources(graph);
    }
    HR_RETURN_IF_ERROR(counts.status());
    for (const int64_t n : *counts) spec.add_sources(n);
    // Another client may have opened the job by now.
    if (auto* other = state_.FindJob(spec.job_name(), spec.repetition())) {
      return other->spec.id();
    }
    spec.set_id(state_.next_id);
  }
  DispatcherUpdate update;
  *update.mutable_iteration() = spec;
  HR_RETURN_IF_ERROR(Update(update));
  for (const auto& [address, worker] : workers_) {
    HR_RETURN_IF_ERROR(GiveTask(state_.FindIteration(spec.id()), address));
  }
  return spec.id();
}

Status Dispatcher::Open(OpenIterationRequest request,
                        OpenIterationResponse* response) {
  ServiceIteration& spec = *request.mutable_iteration();
  MutexLock lock(mutex_);
  int64_t id = 0;
  if (auto* job = state_.FindJob(spec.job_name(), spec.repetition())) {
    HR_RETURN_IF_ERROR(CheckSameJob(job->spec, spec));
    id = job->spec.id();
  } else {
    HR_ASSIGN_OR_RETURN(id, MakeIteration(std::move(spec)));
  }
  DispatcherUpdate update;
  update.mutable_client()->set_id(state_.next_id);
  update.mutable_client()->set_iteration_id(id);
  response->set_client_id(state_.next_id);
  return Update(update);
}

StatusOr<int> Dispatcher::IndexOf(const std::string& address) const {
  const auto& all = options_.worker_addresses;
  for (const std::string& wanted :
       {address, HostOf(address) + ":%port%", HostOf(address)}) {
    const auto at = std::find(all.begin(), all.end(), wanted);
    if (at != all.end()) return static_cast<int>(at - all.begin());
  }
  return NotFound("Failed to shard dataset in tf.data service: Worker ",
                  address, " is not in the workers list. Got workers list ",
                  absl::StrJoin(all, ","), ".");
}

Status Dispatcher::GiveTask(IterationState* iteration,
                            const std::string& address) {
  DispatcherUpdate update;
  ServiceTask& task = *update.mutable_task();
  if (IsStatic(iteration->spec.policy())) {
    const auto index = IndexOf(address);
    if (!index.ok()) return OkStatus();  // a worker that has no part of it
    task.set_worker_index(*index);
    task.set_num_workers(
        static_cast<int64_t>(options_.worker_addresses.size()));
  }
  task.set_id(state_.next_id);
  task.set_iteration_id(iteration->spec.id());
  task.set_address(address);
  if (!iteration->in_rounds() || iteration->num_clients == 0) {
    return Update(update);
  }
  // One after the other: the next worker's comes with one of its heartbeats.
  if (iteration->pending) return OkStatus();
  int64_t furthest = 0;
  for (const auto& [id, client] : state_.clients) {
    if (client.iteration_id == iteration->spec.id()) {
      furthest = std::max(furthest, client.round);
    }
  }
  task.set_starting_round(furthest + kRoundsAhead);
  ++state_.next_id;
  ++iteration->version;
  iteration->pending = PendingTask{task, {}};
  changed_.NotifyAll();
  return OkStatus();
}

Status Dispatcher::GiveTasks(const std::string& address) {
  for (auto& [id, iteration] : state_.iterations) {
    if (iteration.finished() ||
        (iteration.pending && iteration.pending->task.address() == address)) {
      continue;
    }
    if (iteration.done.contains(address)) continue;
    const bool has_one = std::any_of(
        iteration.tasks.begin(), iteration.tasks.end(), [&](const auto& task) {
          return task.second.address() == address && !task.second.lost();
        });
    if (!has_one) HR_RETURN_IF_ERROR(GiveTask(&iteration, address));
  }
  return OkStatus();
}

Status Dispatcher::TaskEnded(int64_t task_id) {
  MutexLock lock(mutex_);
  for (const auto& [id, iteration] : state_.iterations) {
    if (!iteration.tasks.contains(task_id)) continue;
    DispatcherUpdate update;
    update.mutable_task_end()->set_id(task_id);
    return Update(update);
  }
  return OkStatus();  // told twice
}

Status Dispatcher::Split(const GetSplitRequest& request,
                         GetSplitResponse* response) {
  MutexLock lock(mutex_);
  IterationState* iteration = state_.FindIteration(request.iteration_id());
  const int at = request.source();
  if (iteration == nullptr || at < 0 ||
      static_cast<size_t>(at) >= iteration->sources.size()) {
    return NotFound("there is no source ", at, " of an iteration ",
                    request.iteration_id());
  }
  Source& source = iteration->sources[at];
  if (request.repetition() < source.repetition) {
    response->set_end(true);
    return OkStatus();
  }
  DispatcherUpdate update;
  auto& split = *update.mutable_split();
  split.set_iteration_id(request.iteration_id());
  split.set_source(at);
  const int64_t count = iteration->spec.sources(at);
  // The first worker that comes to the end begins the next repetition.
  response->set_end(request.past_end() || (count >= 0 && source.next >= count));
  response->set_index(source.next);
  split.set_repetition(source.repetition + (response->end() ? 1 : 0));
  split.set_next(response->end() ? 0 : source.next + 1);
  if (journal_) HR_RETURN_IF_ERROR(journal_->Add(update));
  return state_.Apply(update);
}

// --- who is there ---

Status Dispatcher::WaitUntil(Clock::time_point end) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  changed_.WaitFor(
      mutex_, std::clamp(left, std::chrono::milliseconds(1), kWaitsAtOnce));
  if (stopped_) return Unavailable("the dispatcher is stopping");
  return CheckTokens();
}

void Dispatcher::Agree(IterationState* iteration,
                       const ClientHeartbeatRequest& request) {
  PendingTask& pending = *iteration->pending;
  if (request.round() > pending.task.starting_round()) {
    pending.task.set_starting_round(request.round() + kRoundsAhead);
    pending.agreed.clear();
    ++iteration->version;
  } else if (request.blocked_round() == pending.task.starting_round()) {
    pending.agreed[request.client_id()] = true;
  }
}

void Dispatcher::Describe(const IterationState& iteration,
                          ClientHeartbeatResponse* response) {
  for (const auto& [id, task] : iteration.tasks) *response->add_tasks() = task;
  response->set_finished(iteration.finished());
  response->set_version(iteration.version);
  response->set_block_round(
      iteration.pending ? iteration.pending->task.starting_round() : -1);
}

Status Dispatcher::Heartbeat(const ClientHeartbeatRequest& request,
                             ClientHeartbeatResponse* response) {
  const Clock::time_point end = EndOfWait(request.wait_ms());
  MutexLock lock(mutex_);
  while (true) {
    const auto client = state_.clients.find(request.client_id());
    if (client == state_.clients.end()) {
      return NotFound("Unknown iteration client id ", request.client_id());
    }
    client->second.heard = Clock::now();
    client->second.round = std::max(client->second.round, request.round());
    IterationState* iteration =
        state_.FindIteration(client->second.iteration_id);
    if (iteration == nullptr) return NotFound("the iteration is gone");
    if (iteration->pending) {
      Agree(iteration, request);
      if (static_cast<int64_t>(iteration->pending->agreed.size()) >=
          iteration->spec.num_consumers()) {
        DispatcherUpdate update;
        *update.mutable_task() = iteration->pending->task;
        iteration->pending.reset();
        HR_RETURN_IF_ERROR(Update(update));
      }
    }
    if (iteration->version != request.known() || Clock::now() >= end) {
      Describe(*iteration, response);
      return OkStatus();
    }
    HR_RETURN_IF_ERROR(WaitUntil(end));
  }
}

bool Dispatcher::News(const WorkerHeartbeatRequest& request,
                      WorkerHeartbeatResponse* response) {
  const std::set<int64_t> has(request.tasks().begin(), request.tasks().end());
  std::set<int64_t> wanted;
  for (const auto& [id, iteration] : state_.iterations) {
    // What has ended is kept until all of its iteration has: clients may still
    // ask for it.
    bool gives = false;
    for (const auto& [task_id, task] : iteration.tasks) {
      if (task.address() != request.address() || task.lost()) continue;
      wanted.insert(task_id);
      if (has.contains(task_id)) continue;
      *response->add_new_tasks() = task;
      gives = true;
    }
    if (gives) *response->add_iterations() = iteration.spec;
  }
  for (const int64_t id : has) {
    if (!wanted.contains(id)) response->add_ended_tasks(id);
  }
  return response->new_tasks_size() > 0 || response->ended_tasks_size() > 0;
}

Status Dispatcher::Heartbeat(const WorkerHeartbeatRequest& request,
                             WorkerHeartbeatResponse* response) {
  if (request.address().empty()) {
    return InvalidArgument("a worker without an address");
  }
  const Clock::time_point end = EndOfWait(request.wait_ms());
  MutexLock lock(mutex_);
  const auto known = workers_.find(request.address());
  // Another process at that address: what its predecessor did is lost.
  if (known != workers_.end() && known->second.life != 0 &&
      known->second.life != request.life()) {
    HR_RETURN_IF_ERROR(Lose(request.address()));
  }
  while (true) {
    workers_[request.address()] = {request.life(), Clock::now()};
    HR_RETURN_IF_ERROR(GiveTasks(request.address()));
    response->Clear();
    if (News(request, response) || Clock::now() >= end) return OkStatus();
    HR_RETURN_IF_ERROR(WaitUntil(end));
  }
}

Status Dispatcher::Release(int64_t client_id) {
  MutexLock lock(mutex_);
  const auto client = state_.clients.find(client_id);
  if (client == state_.clients.end()) return OkStatus();
  DispatcherUpdate update;
  update.mutable_client()->set_id(client_id);
  update.mutable_client()->set_iteration_id(client->second.iteration_id);
  update.mutable_client()->set_released(true);
  const IterationState* iteration =
      state_.FindIteration(client->second.iteration_id);
  const bool alone = iteration->spec.job_name().empty();
  const int64_t id = iteration->spec.id();
  HR_RETURN_IF_ERROR(Update(update));
  if (!alone) return OkStatus();
  // Nobody else can come to read it.
  DispatcherUpdate drop;
  drop.set_dropped_iteration(id);
  return Update(drop);
}

std::vector<std::string> Dispatcher::Workers() {
  MutexLock lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [address, worker] : workers_) out.push_back(address);
  return out;
}

Status Dispatcher::Lose(const std::string& address) {
  workers_.erase(address);
  std::vector<int64_t> lost;
  for (auto& [id, iteration] : state_.iterations) {
    if (iteration.pending && iteration.pending->task.address() == address) {
      iteration.pending.reset();
      ++iteration.version;
    }
    for (const auto& [task_id, task] : iteration.tasks) {
      if (task.address() == address && !task.lost()) lost.push_back(task_id);
    }
  }
  for (const int64_t id : lost) {
    DispatcherUpdate update;
    update.mutable_task_end()->set_id(id);
    update.mutable_task_end()->set_lost(true);
    HR_RETURN_IF_ERROR(Update(update));
  }
  return OkStatus();
}

Status Dispatcher::DropUnused(Clock::time_point now) {
  std::vector<int64_t> unused;
  for (const auto& [id, iteration] : state_.iterations) {
    if (iteration.num_clients == 0 &&
        now - iteration.unused_since >= options_.gc_timeout) {
      unused.push_back(id);
    }
  }
  for (const int64_t id : unused) {
    DispatcherUpdate update;
    update.set_dropped_iteration(id);
    HR_RETURN_IF_ERROR(Update(update));
  }
  return OkStatus();
}

std::chrono::milliseconds Dispatcher::Sweep() {
  const Clock::time_point now = Clock::now();
  std::vector<int64_t> gone;
  {
    MutexLock lock(mutex_);
    std::vector<std::string> silent;
    for (const auto& [address, worker] : workers_) {
      if (now - worker.heard >= options_.worker_timeout) {
        silent.push_back(address);
      }
    }
    // A journal that cannot be written to says so to who asks for more.
    for (const std::string& address : silent) Lose(address).IgnoreError();
    for (const auto& [id, client] : state_.clients) {
      if (now - client.heard >= kClientTimeout) gone.push_back(id);
    }
    if (now >= next_gc_) {
      next_gc_ = now + options_.gc_interval;
      DropUnused(now).IgnoreError();
    }
  }
  for (const int64_t id : gone) Release(id).IgnoreError();
  constexpr std::chrono::milliseconds kOften{10}, kSeldom{500};
  return std::clamp(std::min(options_.gc_interval, options_.worker_timeout) / 4,
                    kOften, kSeldom);
}

void Dispatcher::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  changed_.NotifyAll();
}

}  // namespace headrace::distributed::data_service
