// The data service as programs use it: over gRPC, from this process.
#pragma once

#include <memory>
#include <string>

#include "distributed/data_service/servers.h"

namespace headrace::distributed::data_service {

// Servers that are not started, at "ADDRESS:PORT" of all that reach this
// machine by "localhost". NotFound, with upstream's text, for protocols other
// than "grpc", and TransportOfProcess's errors.
StatusOr<std::unique_ptr<DispatchServer>> NewDispatchServer(
    const std::string& protocol, int port, DispatcherOptions options);
StatusOr<std::unique_ptr<WorkerServer>> NewWorkerServer(
    const std::string& protocol, int port, WorkerOptions options);

// The connections of this process' clients.
StatusOr<std::shared_ptr<Channels>> ChannelsOfProcess(
    const std::string& protocol);

// What a dispatcher knows of a dataset, without its graph.
StatusOr<ServiceDataset> DescribeDataset(const std::string& protocol,
                                         const std::string& dispatcher,
                                         const std::string& id);

}  // namespace headrace::distributed::data_service
