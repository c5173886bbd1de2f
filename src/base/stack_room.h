// How much of the calling thread's stack is left, for what calls itself as
// deep as its input says.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace headrace {
namespace stack_room {
// Where the room ends; not known yet when a thread starts.
extern constinit thread_local uintptr_t lowest
    [[gnu::tls_model("initial-exec")]];
Status LookClosely(uintptr_t here);
}  // namespace stack_room

// ResourceExhausted when a quarter of the stack, or half a MiB, is all that is
// left. A nanosecond.
inline Status CheckStackRoom() {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (here >= stack_room::lowest) [[likely]]
    return OkStatus();
  return stack_room::LookClosely(here);
}

}  // namespace headrace
