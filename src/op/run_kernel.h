// Runs a kernel on behalf of the engine.
#pragma once

#include "base/cancellation.h"
#include "base/guard.h"
#include "base/sandbox.h"
#include "op/kernel.h"
#include "op/reach.h"

namespace headrace {

// What a kernel threw, inside a catch block, as a status that names the op.
[[gnu::cold]] Status KernelThrew(const KernelContext& c);

// Counts what the strings hold that a kernel made; ResourceExhausted beyond a
// sandbox's limits.
[[gnu::cold]] Status CountStrings(const KernelContext& c);

// f(c), a Status, as a kernel runs: containers of the standard library say by
// exceptions that memory ran out: here that becomes ResourceExhausted, as for
// tensors, and whatever else is thrown Internal. Parallel loops on this thread
// (not those inside them, on others) end early when the run should stop.
// In a sandbox, only where the op is permitted, and with the strings that it
// makes counted.
template <typename F>
Status RunAsKernel(KernelContext& c, F&& f) {
  const Stoppable stoppable;
  try {
    if (InSandbox()) [[unlikely]] {
      HR_RETURN_IF_ERROR(CheckOpPermitted(c.op().def()));
      HR_RETURN_IF_ERROR(f(c));
      return CountStrings(c);
    }
    return f(c);
  } catch (...) {
    return KernelThrew(c);
  }
}
inline Status RunKernel(Kernel* kernel, KernelContext& c) {
  return RunAsKernel(c, [=](KernelContext& k) { return kernel->Run(k); });
}

// OK where the system can give room for `count` objects of `size` bytes; else
// ResourceExhausted. For containers whose length a caller chose.
Status CheckRoomFor(int64_t count, size_t size);

}  // namespace headrace
