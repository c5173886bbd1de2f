// What an executable needs for one run; for its own sources.
#pragma once

#include <vector>

#include "base/allocator.h"
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

}  // namespace headrace
