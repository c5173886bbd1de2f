#include "distributed/data_service/process.h"

#include "distributed/data_service/ask.h"
#include "distributed/data_service/methods.h"
#include "distributed/process_transport.h"

namespace headrace::distributed::data_service {
namespace {

StatusOr<Transport*> TransportOf(const std::string& protocol) {
  if (protocol != "grpc") {
    return NotFound("No credentials factory has been registered for protocol ",
                    protocol, ". The available types are: [ grpc ]");
  }
  return TransportOfProcess();
}

StatusOr<std::string> LocalAddress(int port) {
  if (port < 0 || port > 65535) {
    return InvalidArgument("there is no port ", port);
  }
  return absl::StrCat("localhost:", port);
}

}  // namespace

StatusOr<std::unique_ptr<DispatchServer>> NewDispatchServer(
    const std::string& protocol, int port, DispatcherOptions options) {
  HR_ASSIGN_OR_RETURN(Transport * transport, TransportOf(protocol));
  HR_ASSIGN_OR_RETURN(const std::string address, LocalAddress(port));
  return DispatchServer::Make(*transport, address, std::move(options));
}

StatusOr<std::unique_ptr<WorkerServer>> NewWorkerServer(
    const std::string& protocol, int port, WorkerOptions options) {
  HR_ASSIGN_OR_RETURN(Transport * transport, TransportOf(protocol));
  HR_ASSIGN_OR_RETURN(const std::string address, LocalAddress(port));
  return WorkerServer::Make(*transport, address, std::move(options));
}

StatusOr<std::shared_ptr<Channels>> ChannelsOfProcess(
    const std::string& protocol) {
  HR_ASSIGN_OR_RETURN(Transport * transport, TransportOf(protocol));
  static const auto* const channels =
      new std::shared_ptr<Channels>(ChannelsOver(*transport));
  return *channels;
}

StatusOr<ServiceDataset> DescribeDataset(const std::string& protocol,
                                         const std::string& dispatcher,
                                         const std::string& id) {
  HR_ASSIGN_OR_RETURN(const auto channels, ChannelsOfProcess(protocol));
  GetDatasetRequest request;
  request.set_id(id);
  request.set_without_graph(true);
  CallOptions options;
  options.wait_for_ready = true;
  GetDatasetResponse response;
  HR_RETURN_IF_ERROR(
      Ask(*channels, dispatcher, kGetDataset, request, &response, options));
  return response.dataset();
}

}  // namespace headrace::distributed::data_service
