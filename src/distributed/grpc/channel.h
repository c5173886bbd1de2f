// Calls over gRPC, as their caller sees them.
#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include "distributed/transport.h"

namespace headrace::distributed {

// What the queue of all channels gives back.
struct ClientEvent {
  void* of;
  void (*happened)(void* of, bool ok);
};
// Until the queue is shut down and empty.
void ServeClient(grpc::CompletionQueue& queue);

// A connection of its own to that address, made with the first call. The queue
// outlives all calls.
std::shared_ptr<Channel> ConnectGrpc(const std::string& address,
                                     const ConnectOptions& options,
                                     grpc::CompletionQueue* queue);

}  // namespace headrace::distributed
