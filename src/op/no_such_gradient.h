// How a gradient that nobody has written is told from one that failed.
#pragma once

#include "base/status.h"

namespace headrace {

// The payload of CallGradient's Unimplemented when the gradient function itself
// says that it has nothing for such a call, not when an op that it emits fails.
inline constexpr char kNoSuchGradient[] = "headrace/no_such_gradient";
// The payload of NotFound where an op has no gradient at all: LookupError.
inline constexpr char kNoGradient[] = "headrace/no_gradient";

template <typename... Parts>
Status NoGradient(const Parts&... parts) {
  Status s = NotFound(parts...);
  s.SetPayload(kNoGradient, absl::Cord());
  return s;
}

}  // namespace headrace
