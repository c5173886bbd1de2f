// Which calls of a program run side by side: calls that do not wait for one
// another and that kernels do not cut over the threads themselves.
#pragma once

#include <vector>

#include "op/passes/call_work.h"
#include "runtime/program.h"

namespace headrace {

// Calls [begin, end) of a program. A strand's calls run in order, on one
// thread; no strand waits for another.
struct SideGroup {
  int begin = 0, end = 0;
  std::vector<std::vector<int>> strands;  // calls, in order; the longest first
  double ns = 0;                          // of all together, on one thread
};

// How long a call takes, by its known shapes; its kernel must be bound.
CallWork WorkOf(const Program& p, const Call& call);

// The groups that pay on so many threads, in order; none overlap, and none has
// calls of [begin, end). Kernels must be bound. `guess`: per call, whether
// shapes are looked at when it runs.
// What groups hold has no effects and known shapes, and makes plain tensors.
std::vector<SideGroup> FindSideGroups(const Program& p,
                                      const std::vector<bool>& guess,
                                      int threads, int begin = 0, int end = 0);

}  // namespace headrace
