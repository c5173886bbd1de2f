// How long calls take: for who decides what runs side by side.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "tensor/shape.h"

namespace headrace {

struct CallWork {
  double ns = 0;      // on one thread, a guess within a factor of a few
  int64_t tasks = 1;  // what the kernel itself cuts it into, at most
};

// A kernel that knows. Others are taken to take as long as their memory does,
// and to be cut as finely as one likes.
class KnowsWork {
 public:
  virtual ~KnowsWork() = default;
  // Of a call with these shapes, all known and of the ranks that the op's shape
  // rule wants.
  virtual CallWork WorkOf(absl::Span<const Shape* const> inputs,
                          absl::Span<const Shape* const> outputs) const = 0;
};

}  // namespace headrace
