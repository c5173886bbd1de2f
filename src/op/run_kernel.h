// Runs a kernel on behalf of the engine.
#pragma once

#include "base/guard.h"
#include "op/kernel.h"

namespace headrace {

// What a kernel threw, inside a catch block, as a status that names the op.
[[gnu::cold]] Status KernelThrew(const KernelContext& c);

// kernel->Run(c). Containers of the standard library say by exceptions that
// memory ran out: here that becomes ResourceExhausted, as for tensors, and
// whatever else a kernel throws Internal.
inline Status RunKernel(Kernel* kernel, KernelContext& c) {
  try {
    return kernel->Run(c);
  } catch (...) {
    return KernelThrew(c);
  }
}

// OK where the system can give room for `count` objects of `size` bytes; else
// ResourceExhausted. For containers whose length a caller chose.
Status CheckRoomFor(int64_t count, size_t size);

}  // namespace headrace
