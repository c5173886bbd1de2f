// The state of tf.random.Generator: a variable of int64.
#pragma once

#include <optional>

#include "base/random/philox.h"
#include "op/op.h"

namespace headrace {

// Moves the state behind input 0 on by `delta` outputs; the generator as it
// was before in *before. InvalidArgument for another algorithm than Philox or
// a variable that holds no such state. No algorithm: the state begins with it.
Status TakeFromState(KernelContext& c, std::optional<int64_t> algorithm,
                     uint64_t delta, Philox* before);

}  // namespace headrace
