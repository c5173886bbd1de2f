// How much of the calling thread's stack is left, for what calls itself as
// deep as its input says.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace headrace {
namespace stack_room {
// Where the room ends; not known yet when a thread starts.
extern constinit thread_local uintptr_t lowest
    [[gnu::tls_model("initial-exec")]];
Status LookClosely(uintptr_t here, StringView what, size_t needed);
}  // namespace stack_room

// ResourceExhausted ("WHAT: too deep for this thread's stack") when fewer than
// `needed` bytes and a reserve are left: a quarter of the stack, or half a MiB.
// A nanosecond.
inline Status CheckStackRoom(StringView what, size_t needed = 0) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (here >= stack_room::lowest && here - stack_room::lowest >= needed)
      [[likely]]
    return OkStatus();
  return stack_room::LookClosely(here, what, needed);
}

}  // namespace headrace
