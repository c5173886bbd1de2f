// A server of methods over gRPC.
#pragma once

#include <memory>
#include <string>

#include "distributed/transport.h"
#include "rpc/event_queue.h"

namespace headrace::distributed {

// *queue: that of its calls, which others may use as well.
std::unique_ptr<Listener> ListenGrpc(ListenOptions options, std::string* error,
                                     std::shared_ptr<EventQueue>* queue);

}  // namespace headrace::distributed
