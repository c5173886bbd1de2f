// A worker of the data service: asks its dispatcher for tasks, and hands their
// elements to clients.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "distributed/channels.h"
#include "distributed/data_service/task.h"

namespace headrace::distributed::data_service {

struct WorkerOptions {
  std::string dispatcher;  // "host:port"
  std::string address;     // by which clients reach it
  std::chrono::milliseconds heartbeat{2'000};
  // How long it waits, at its start, for the dispatcher.
  std::chrono::milliseconds dispatcher_timeout = kGathering;
};

// Thread-safe.
class DataWorker : public std::enable_shared_from_this<DataWorker> {
 public:
  DataWorker(WorkerOptions options, std::shared_ptr<Channels> channels);

  // Asks for the first tasks, and goes on asking on a thread of its own.
  Status Start();
  // As WorkerTask::Take; NotFound for tasks that are not here.
  Status Take(const GetElementsRequest& request, Bytes* answer);
  int num_tasks();
  void Stop();

  // Those of this process, by address: clients of it take their elements
  // without the network.
  static std::shared_ptr<DataWorker> Find(const std::string& address);

 private:
  Status Heartbeat(std::chrono::milliseconds wait, const CallOptions& options);
  Status Add(const ServiceTask& task, const ServiceIteration& iteration);
  void TellEnd(int64_t task_id);
  void Beat();

  const WorkerOptions options_;
  const std::shared_ptr<Channels> channels_;
  const uint64_t life_;
  CancellationToken token_;
  Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<int64_t, std::shared_ptr<WorkerTask>> tasks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed::data_service
