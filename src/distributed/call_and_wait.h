// Calls whose caller has nothing else to do: tests, tools and programs.
#pragma once

#include "distributed/transport.h"

namespace headrace::distributed {

// The answer; not for threads of a transport.
Answer CallAndWait(Channel& channel, const std::string& path, Bytes request,
                   const CallOptions& options);

}  // namespace headrace::distributed
