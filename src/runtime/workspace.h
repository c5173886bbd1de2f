// What an executable needs for one run; for its own sources.
#pragma once

#include <atomic>
#include <vector>

#include "base/allocator.h"
#include "base/mutex.h"
#include "runtime/executable.h"

namespace headrace {

// The memory of one run.
struct Executable::Workspace {
  std::vector<Tensor> slots;
  // What a dynamic step's shape rule last said, and of what. `lasts`: of these
  // shapes it will say so again.
  struct Ruled {
    absl::InlinedVector<Shape, 3> inputs;
    absl::InlinedVector<Shape, 2> outputs;
    bool lasts = false;
  };
  std::vector<Ruled> ruled;
  std::vector<RunWeights> weights;      // that products of the run share
  std::vector<Tensor*> pointers;        // all steps' inputs and outputs
  std::vector<KernelContext> contexts;  // one a step
  RunServices services;
  bool repeated = false;  // serves a loop
  void* arena = nullptr;
  size_t arena_bytes = 0;

  // Lets go of the tensors in those slots.
  void Clear(absl::Span<const ValueId> values);

  ~Workspace() {
    if (arena) FreeMemory(arena, arena_bytes);
  }
};

// Of steps that run side by side: that of the first in order.
struct Executable::FirstError {
  explicit FirstError(int end) : step(end) {}
  void Set(int at, Status s) {
    MutexLock lock(mutex);
    if (at >= step) return;
    step = at;
    status = std::move(s);
  }
  std::atomic<int> step;  // which failed, or behind the last
  Mutex mutex;
  Status status ABSL_GUARDED_BY(mutex);
};

}  // namespace headrace
