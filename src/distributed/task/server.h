// A task of a cluster: what masters, workers and clients reach it by.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "distributed/coordination/agent.h"
#include "distributed/coordination/config.h"
#include "distributed/coordination/service.h"
#include "distributed/eager/eager_contexts.h"
#include "distributed/master/master.h"
#include "tensorflow/core/protobuf/tensorflow_server.pb.h"

namespace headrace::distributed {

// What carries the tensors of collectives between tasks.
enum class Carrier {
  kTransport,  // the tasks' own way (distributed/collective)
  kMpi,        // an MPI library that is found at run time (distributed/mpi)
};

struct ServerOptions {
  Transport* transport = nullptr;  // outlives the server
  ConnectOptions connect;
  TlsKeys tls;  // what the server shows
  // Whether TensorFlow's tasks and clients may talk with it, which tell of no
  // version.
  bool allows_tensorflow = false;
  // All tasks of a cluster decide alike. kMpi: FailedPrecondition where there
  // is no MPI library, or no launcher of MPI started the process.
  Carrier carrier = Carrier::kTransport;
};

// How a task, or a client that is called so, reaches others: over one channel
// an address.
Dial Dialling(Transport& transport, const ConnectOptions& connect,
              const std::string& task, bool allows_tensorflow);

// Thread-safe.
class Server {
 public:
  // Listens at the task's own address; with port 0 at one that is free. Calls
  // are Unavailable until Start. Internal for a cluster without the task, and
  // Unknown where it cannot listen, with upstream's texts.
  static StatusOr<std::unique_ptr<Server>> Make(tensorflow::ServerDef def,
                                                const ServerOptions& options);
  // As Stop.
  ~Server();

  // With the port that it listens at.
  const tensorflow::ServerDef& def() const { return worker_->cluster()->def(); }
  // "grpc://host:port"; sessions of this process reach it without the network.
  const std::string& target() const { return target_; }
  const std::shared_ptr<Worker>& worker() const { return worker_; }
  const std::shared_ptr<Master>& master() const { return master_; }
  // Of remote clients of eager ops.
  const std::shared_ptr<EagerContexts>& eager() const { return eager_; }

  // Twice is once.
  void Start();
  // Waits for Stop, as CheckStop allows.
  Status Join();
  // Meets these tasks of the cluster, TensorFlow's among them, by the
  // coordination service of the leader, and waits until all have come, as
  // CheckStop allows. Collectives fail once one of them is gone. Twice is once.
  Status Coordinate(const std::set<TaskId>& tasks);
  // Ends sessions and steps; those under way have `grace` to end.
  void Stop(std::chrono::milliseconds grace = {});

  // The master behind a target of this process; null where it is another's.
  static std::shared_ptr<Master> FindMaster(const std::string& target);

 private:
  Server() = default;

  std::shared_ptr<Worker> worker_;
  std::shared_ptr<Master> master_;
  std::shared_ptr<EagerContexts> eager_;
  // Who leads by the coordination service.
  DeviceName Coordinator() const;

  CoordinationConfig coordination_config_;
  std::shared_ptr<CoordinationService> coordination_;
  std::shared_ptr<CoordinationAgent> agent_ ABSL_GUARDED_BY(mutex_);
  struct Services;
  std::shared_ptr<Services> services_;
  std::unique_ptr<Listener> listener_;
  std::string target_;
  Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace headrace::distributed
