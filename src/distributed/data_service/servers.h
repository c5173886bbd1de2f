// The servers of the data service, over a transport.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "distributed/data_service/dispatcher.h"
#include "distributed/data_service/worker.h"
#include "distributed/transport.h"

namespace headrace::distributed::data_service {

// By path.
std::map<std::string, Method> DispatcherMethods(
    std::shared_ptr<Dispatcher> dispatcher);
std::map<std::string, Method> DataWorkerMethods(
    std::shared_ptr<DataWorker> worker);

// A server of either kind. Thread-safe.
class DataServer {
 public:
  virtual ~DataServer() = default;
  // Answers from now on; twice is once.
  virtual Status Start() = 0;
  virtual int port() const = 0;
  // Waits for Stop, as CheckStop allows.
  Status Join();
  // Ends what is under way; its port is free.
  void Stop();

 protected:
  virtual void End() = 0;
  bool stopped();

 private:
  Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

class DispatchServer : public DataServer {
 public:
  // Listens at "localhost:PORT", or at the one given, and answers after Start.
  static StatusOr<std::unique_ptr<DispatchServer>> Make(
      Transport& transport, const std::string& address,
      DispatcherOptions options);
  // The dispatcher; null before Start.
  virtual std::shared_ptr<Dispatcher> dispatcher() = 0;
};

class WorkerServer : public DataServer {
 public:
  // `options.address` may have "%port%" for the port that it listens at.
  static StatusOr<std::unique_ptr<WorkerServer>> Make(
      Transport& transport, const std::string& address, WorkerOptions options);
  virtual int num_tasks() = 0;
};

// The connections of this process' clients and workers over that transport.
std::shared_ptr<Channels> ChannelsOver(Transport& transport);

}  // namespace headrace::distributed::data_service
