// Parts of a tensor handed out without a copy.
#pragma once

#include "base/allocator.h"
#include "op/op.h"
#include "ops/array/block_copy.h"

namespace headrace {

// Makes output `i`, which is the elements of `in` from number `first` on, a
// view of them. False where it must be copied instead: in memory that a plan
// laid out, or where the part is not aligned as tensors are, or so small that
// it is not worth keeping all of `in` alive.
inline bool PartAsView(const KernelContext& c, const Tensor& in, int64_t first,
                       int i) {
  // Bytes: less is copied in no time, and a view of a few numbers could keep a
  // gigabyte alive.
  constexpr size_t kLeast = 4096;
  const Tensor& out = c.output(i);
  if (!in.counted() || !out.counted() || out.bytes() < kLeast) return false;
  if (reinterpret_cast<uintptr_t>(At(in, first)) % Allocator::kAlignment) {
    return false;
  }
  const Tensor all = in.WithShape(Shape{in.num_elements()});
  c.set_output(i, all.Rows(first, first + out.num_elements())
                      .WithShape(Shape(out.shape())));
  return true;
}

}  // namespace headrace
