// The dispatcher of the data service: which datasets there are, who reads
// them, and which worker walks along which.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "distributed/data_service/journal.h"
#include "distributed/data_service/state.h"

namespace headrace::distributed::data_service {

struct DispatcherOptions {
  std::string work_dir;  // of the journal
  bool fault_tolerant = false;
  // Of static sharding, in order: "host:port", or "host" and "host:%port%",
  // which are any worker of that host.
  std::vector<std::string> worker_addresses;
  // How often what nobody reads is looked for, and how long a named job that
  // nobody reads is kept.
  std::chrono::milliseconds gc_interval{600'000}, gc_timeout{300'000};
  // After which silence a worker is lost, and with it its tasks.
  std::chrono::milliseconds worker_timeout{10'000};
};

// Thread-safe. Its functions are the methods of its service.
class Dispatcher {
 public:
  static StatusOr<std::shared_ptr<Dispatcher>> Make(DispatcherOptions options);

  Status Register(const RegisterDatasetRequest& request,
                  RegisterDatasetResponse* response);
  Status Get(const GetDatasetRequest& request, GetDatasetResponse* response);
  Status Open(OpenIterationRequest request, OpenIterationResponse* response);
  // These two wait, as CheckStop allows.
  Status Heartbeat(const ClientHeartbeatRequest& request,
                   ClientHeartbeatResponse* response);
  Status Heartbeat(const WorkerHeartbeatRequest& request,
                   WorkerHeartbeatResponse* response);
  Status Release(int64_t client_id);
  Status TaskEnded(int64_t task_id);
  Status Split(const GetSplitRequest& request, GetSplitResponse* response);
  std::vector<std::string> Workers();

  // Looks for who is silent and what nobody reads; how long until the next
  // look.
  std::chrono::milliseconds Sweep();
  // Who waits is told Unavailable.
  void Stop();

 private:
  struct Worker {
    uint64_t life = 0;
    Clock::time_point heard;
  };

  explicit Dispatcher(DispatcherOptions options)
      : options_(std::move(options)) {}
  // Writes it down, then does it.
  Status Update(const DispatcherUpdate& update)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status CheckRequested(const ServiceDataset& dataset)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<int64_t> MakeIteration(ServiceIteration spec)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A task of that worker for each iteration that has none of it.
  Status GiveTasks(const std::string& address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status GiveTask(IterationState* iteration, const std::string& address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<int> IndexOf(const std::string& address) const;
  void Agree(IterationState* iteration, const ClientHeartbeatRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Describe(const IterationState& iteration,
                ClientHeartbeatResponse* response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool News(const WorkerHeartbeatRequest& request,
            WorkerHeartbeatResponse* response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Lose(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status DropUnused(Clock::time_point now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits a while for changes; an error where that has no use any more.
  Status WaitUntil(Clock::time_point end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const DispatcherOptions options_;
  Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  DispatcherState state_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Journal> journal_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Worker> workers_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point next_gc_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed::data_service
