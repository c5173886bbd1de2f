#include "distributed/coordinator/coordinated.h"

#include <thread>
#include <utility>

#include "base/cancellation.h"

namespace headrace::distributed {
namespace {

constexpr char kServers[] = "ps", kWorkers[] = "worker";
// Of a task that may have come back: who is there answers at once, on a busy
// machine within some seconds.
constexpr std::chrono::seconds kKnockTime{5};
// Of taking in a worker that has just answered.
constexpr std::chrono::seconds kJoinTime{10};
// Before a server that cannot be used yet is asked again.
constexpr std::chrono::milliseconds kRetryPause{100};
// A coordinator that dies is forgotten after so long, in seconds: as of other
// clients of eager operations.
constexpr int64_t kKeptAlive = 600;

}  // namespace

StatusOr<std::shared_ptr<Coordinated>> Coordinated::Connect(
    const tensorflow::ServerDef& def, Clock::time_point deadline) {
  std::shared_ptr<Coordinated> made(new Coordinated);
  made->options_.def = def;
  made->options_.keep_alive_secs = kKeptAlive;
  made->options_.clear_existing_contexts = true;
  for (const auto& job : def.cluster().job()) {
    const bool works = job.name() == kWorkers;
    if (!works && job.name() != kServers) continue;
    const std::map<int, std::string> tasks(job.tasks().begin(),
                                           job.tasks().end());
    for (const auto& [index, address] : tasks) {
      HR_RETURN_IF_ERROR(CheckAddress(address));
      const std::string name = DeviceName::OfTask(job.name(), index).ToString();
      if (works) {
        made->workers_.push_back({name, address, index});
      } else {
        made->server_names_.push_back(name);
      }
    }
  }
  made->listening_ = ListenForParts(&made->options_);
  while (true) {
    auto context = ConnectEagerly(made->OptionsWith({}, deadline));
    if (context.ok()) {
      made->context_ = *std::move(context);
      break;
    }
    // One that listens, and is not started yet, says so.
    const bool may_come = absl::IsUnavailable(context.status()) &&
                          Clock::now() + kRetryPause < deadline;
    if (!may_come) return context.status();
    HR_RETURN_IF_ERROR(CheckStop());
    std::this_thread::sleep_for(kRetryPause);
  }
  for (const std::string& name : made->server_names_) {
    HR_ASSIGN_OR_RETURN(auto place, made->context_->PlaceOf(name));
    made->servers_.push_back(std::move(place));
  }
  // Functions that are called here may use variables of several servers.
  SetConnectedTasks(made->context_->calls());
  return made;
}

Coordinated::~Coordinated() { Close(); }

void Coordinated::Close() {
  if (!context_) return;
  if (ConnectedTasks() == context_->calls()) SetConnectedTasks(nullptr);
  context_->Close();
  if (listening_) listening_->Stop();
}

RemoteOptions Coordinated::OptionsWith(const std::set<int>& workers,
                                       Clock::time_point deadline) const {
  RemoteOptions options = options_;
  options.deadline = deadline;
  for (auto& job : *options.def.mutable_cluster()->mutable_job()) {
    if (job.name() != kWorkers) continue;
    job.clear_tasks();
    for (const int w : workers) {
      (*job.mutable_tasks())[workers_[w].index] = workers_[w].address;
    }
  }
  return options;
}

StatusOr<std::shared_ptr<RemotePlace>> Coordinated::Join(int worker) {
  const Task& task = workers_[worker];
  HR_RETURN_IF_ERROR(context_->Knock(task.address, kKnockTime));
  MutexLock lock(mutex_);
  // Others that are gone, as nobody has noticed yet, would be waited for.
  std::set<int> now = {worker};
  for (const int other : joined_) {
    if (other != worker && context_->CheckAlive(workers_[other].name).ok()) {
      now.insert(other);
    }
  }
  HR_RETURN_IF_ERROR(
      context_->Update(OptionsWith(now, Clock::now() + kJoinTime)));
  joined_ = std::move(now);
  return context_->PlaceOf(task.name);
}

void Coordinated::Leave(int worker) {
  MutexLock lock(mutex_);
  joined_.erase(worker);
}

Status Coordinated::CheckWorker(int worker) {
  {
    MutexLock lock(mutex_);
    if (!joined_.contains(worker)) {
      return Unavailable(workers_[worker].name, " is lost");
    }
  }
  return context_->CheckAlive(workers_[worker].name);
}

Status Coordinated::CheckServers() {
  for (const std::string& name : server_names_) {
    const Status s = context_->CheckAlive(name);
    if (!s.ok()) return Unavailable(name, " is lost: ", s.message());
  }
  return OkStatus();
}

}  // namespace headrace::distributed
