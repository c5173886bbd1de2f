// Runs a kernel on behalf of the engine.
#pragma once

#include <new>
#include <stdexcept>

#include "op/kernel.h"

namespace headrace {

// kernel->Run(c). Containers of the standard library say by exceptions that
// memory ran out: here that becomes ResourceExhausted, as for tensors.
inline Status RunKernel(Kernel* kernel, KernelContext& c) {
  try {
    return kernel->Run(c);
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  return ResourceExhausted("out of memory in op ", c.op().name());
}

// OK where the system can give room for `count` objects of `size` bytes; else
// ResourceExhausted. For containers whose length a caller chose.
Status CheckRoomFor(int64_t count, size_t size);

}  // namespace headrace
