// A session of a cluster's master, as a client holds it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "distributed/cluster.h"
#include "distributed/master/master_session.h"
#include "distributed/master/steps_together.h"
#include "graph/graph.h"

namespace headrace::distributed {

// How a client reaches a master: over a channel, or within the process.
class MasterStub {
 public:
  virtual ~MasterStub() = default;
  // `target` is "grpc://host:port" of a server, perhaps one of this process.
  // InvalidArgument where it is no such name.
  static StatusOr<std::unique_ptr<MasterStub>> Of(const std::string& target,
                                                  const Dial& dial);

  // A call of the service's method; `deadline` may be max(). What CheckStop
  // says ends it.
  virtual Status Call(const char* method,
                      const google::protobuf::MessageLite& request,
                      google::protobuf::MessageLite* response,
                      Clock::time_point deadline) = 0;
  // RunStep; `partial_run` may be empty.
  virtual Status Run(const std::string& session, const std::string& partial_run,
                     StepRequest request, std::vector<Tensor>* fetched,
                     tensorflow::RunMetadata* metadata) = 0;
  // Several, by one call (many_steps.h). Unimplemented within a process;
  // masters of TensorFlow do not know such calls.
  virtual StatusOr<std::unique_ptr<StepsTogether>> RunTogether(
      const std::string& session, const std::vector<StepRequest>& steps,
      std::chrono::microseconds within) = 0;
};

// When what a client asks of a master with this configuration has to be done:
// behind its operation_timeout_in_ms, or else behind the time within which
// tasks find each other.
Clock::time_point OperationDeadline(const tensorflow::ConfigProto& config);

// Thread-safe.
class ClientSession {
 public:
  // Makes no session yet: the first run does, with the graph as it is then.
  // `of_graph`, where there is one, is held while the graph is read.
  ClientSession(std::unique_ptr<MasterStub> master,
                std::shared_ptr<Graph> graph, tensorflow::ConfigProto config,
                std::string target, Mutex* of_graph = nullptr)
      : master_(std::move(master)),
        graph_(std::move(graph)),
        config_(std::move(config)),
        target_(std::move(target)),
        graph_mutex_(of_graph != nullptr ? *of_graph : no_other_reads_) {}
  ~ClientSession() { Close().IgnoreError(); }

  // Sends what the graph has gained; makes the session where there is none.
  Status Extend();
  // Extends, and runs. Names are those of the graph.
  Status Run(StepRequest request, std::vector<Tensor>* fetched,
             tensorflow::RunMetadata* metadata);
  // The same of several, as MasterStub has it.
  StatusOr<std::unique_ptr<StepsTogether>> RunTogether(
      std::vector<StepRequest> steps, std::chrono::microseconds within);
  StatusOr<std::string> SetUpPartialRun(
      const tensorflow::PartialRunSetupRequest& request);
  Status RunPart(const std::string& run, StepRequest request,
                 std::vector<Tensor>* fetched);
  StatusOr<tensorflow::ListDevicesResponse> ListDevices();
  // How many of the graph's nodes the master has.
  int sent();
  // Twice is once.
  Status Close();

 private:
  // The nodes that are not sent, up to `end` and no more.
  StatusOr<tensorflow::GraphDef> Grown(int end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_, graph_mutex_);
  Status ExtendLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<std::string> Handle();

  const std::unique_ptr<MasterStub> master_;
  const std::shared_ptr<Graph> graph_;
  const tensorflow::ConfigProto config_;
  const std::string target_;
  Mutex no_other_reads_;  // stands in for a graph's lock where none was given
  Mutex& graph_mutex_;
  Mutex mutex_;
  std::string handle_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  int sent_ ABSL_GUARDED_BY(mutex_) = 0;  // nodes
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace headrace::distributed
