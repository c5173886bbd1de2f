// Sessions on the tasks of a cluster, whose target is grpc://host:port.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "c/devices.h"
#include "c/graph.h"
#include "c/request.h"
#include "tensor/tensor.h"

namespace tensorflow {
class RunMetadata;
class RunOptions;
}  // namespace tensorflow

namespace headrace::distributed {
class ClientSession;
struct StepRequest;
}  // namespace headrace::distributed

namespace headrace::capi {

// Thread-safe. The master gets the graph with the first run, and what the graph
// has gained with later ones. FailedPrecondition where nodes were changed that
// the master has: it keeps them as they were.
class ClusterSession {
 public:
  // No master is called yet. InvalidArgument for targets without a host or
  // port, FailedPrecondition where gRPC's library cannot be loaded.
  static StatusOr<std::unique_ptr<ClusterSession>> Make(
      TF_Graph* g, const std::string& target, const std::string& config);
  ~ClusterSession();

  Status Extend();
  // `metadata` may be null.
  Status Run(const Request& request, const tensorflow::RunOptions& options,
             std::vector<Tensor> feeds, std::vector<Tensor>* fetched,
             tensorflow::RunMetadata* metadata);
  // The run's handle.
  StatusOr<std::string> SetUpPartialRun(const Request& plan);
  Status RunPart(const std::string& handle, const Request& step,
                 std::vector<Tensor> feeds, std::vector<Tensor>* fetched);
  StatusOr<TF_DeviceList*> ListDevices();
  Status Close();

 private:
  ClusterSession(TF_Graph* g,
                 std::unique_ptr<distributed::ClientSession> client);
  Status CheckUnchanged();

  TF_Graph* const graph_;
  const std::unique_ptr<distributed::ClientSession> client_;
  size_t seen_ = 0;  // of the graph's changed nodes, under the graph's mutex
};

}  // namespace headrace::capi
