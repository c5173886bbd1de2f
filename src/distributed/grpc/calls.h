// One call over gRPC.
#pragma once

#include "distributed/grpc/channel.h"

namespace headrace::distributed {

// For texts of errors.
struct Called {
  std::string address, path;
};

std::shared_ptr<ClientCall> StartCall(grpc::GenericStub& stub, Called called,
                                      const Bytes& request,
                                      const CallOptions& options,
                                      std::shared_ptr<EventQueue> queue,
                                      std::function<void(Answer)> done);
std::shared_ptr<ClientCall> EndedCall();

}  // namespace headrace::distributed
