// How element-wise kernels walk operands that are broadcast to one shape.
#pragma once

#include <array>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "tensor/shape.h"

namespace headrace {

// The output's dimensions, merged as far as the operands allow and outermost
// first, with each operand's strides in elements (0 where it is repeated).
// Shapes must broadcast to `out`, which has at least one element.
class BroadcastPlan {
 public:
  static constexpr int kMaxOperands = 3;

  BroadcastPlan(const Shape& out, absl::Span<const Shape* const> operands);

  int num_operands() const { return num_operands_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  int64_t stride(int operand, int i) const { return strides_[operand][i]; }
  // The innermost dimension, walked by the loops, and the number of its rows.
  int64_t inner() const { return dims_.back(); }
  int64_t rows() const { return rows_; }
  // The operand's stride in a row: 1, or 0 where one element serves it all.
  int64_t inner_stride(int operand) const { return strides_[operand].back(); }
  // True when the operand has an element for each of the output's.
  bool whole(int operand) const { return whole_[operand]; }
  // True when every row of the operand is the same.
  bool same_rows(int operand) const { return same_rows_[operand]; }

 private:
  int num_operands_;
  int64_t rows_ = 1;
  absl::InlinedVector<int64_t, 6> dims_;
  std::array<absl::InlinedVector<int64_t, 6>, kMaxOperands> strides_;
  std::array<bool, kMaxOperands> whole_ = {};
  std::array<bool, kMaxOperands> same_rows_ = {};
};

// Goes through the rows of a plan in order and tells where each operand's row
// begins. Borrows the plan.
class RowWalker {
 public:
  RowWalker(const BroadcastPlan& plan, int64_t row);
  int64_t offset(int operand) const { return offsets_[operand]; }
  void Next();

 private:
  const BroadcastPlan& plan_;
  absl::InlinedVector<int64_t, 6> at_;
  std::array<int64_t, BroadcastPlan::kMaxOperands> offsets_ = {};
};

// One call of a loop: `n` elements from `out` on; bit k of `repeated` is set
// when operand k is one element, used for all of them.
struct BroadcastSpan {
  std::array<const char*, BroadcastPlan::kMaxOperands> operands;
  char* out;
  int64_t n;
  int repeated;
};

// Computes a broadcast op: calls `loop` for spans that cover the output, from
// several threads when that pays. Operands whose rows are too short for a loop
// are first laid out in tiles, when `plain` says that elements are bytes.
struct BroadcastOperand {
  const void* data;
  size_t element_size;
};
void RunBroadcast(const BroadcastPlan& plan,
                  absl::Span<const BroadcastOperand> operands, void* out,
                  size_t out_element_size, bool plain, double ns_per_element,
                  absl::FunctionRef<void(const BroadcastSpan&)> loop);

}  // namespace headrace
