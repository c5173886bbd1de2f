// How a gradient that nobody has written is told from one that failed.
#pragma once

namespace headrace {

// The payload of CallGradient's Unimplemented when the gradient function itself
// says that it has nothing for such a call, not when an op that it emits fails.
inline constexpr char kNoSuchGradient[] = "headrace/no_such_gradient";

}  // namespace headrace
