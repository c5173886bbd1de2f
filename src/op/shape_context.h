// What a shape rule sees and says.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "op/resolved_op.h"
#include "op/shape_refusal.h"
#include "tensor/variant.h"

namespace headrace {

// Eager calls a rule with every shape and value known; tracing and import with
// what is known. A rule sets every output (unset ones have unknown rank) and
// reports contradictions as InvalidArgument. Not thread-safe; lives for a call.
class ShapeContext {
 public:
  ShapeContext(const ResolvedOp& op, absl::Span<const Shape* const> inputs,
               absl::Span<const Tensor* const> values)
      : op_(op),
        inputs_(inputs),
        values_(values),
        outputs_(op.num_outputs(), Shape::UnknownRank()) {}

  const ResolvedOp& op() const { return op_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const Shape& input(int i) const { return *inputs_[i]; }
  DType input_dtype(int i) const { return op_.input_types()[i]; }
  // The value of input i where it is known, else null.
  const Tensor* value(int i) const {
    asked_ |= uint64_t{1} << std::min(i, 63);
    return i < static_cast<int>(values_.size()) ? values_[i] : nullptr;
  }
  // Whether the rule asked for the value of input i: what it says may depend
  // on it.
  bool asked_value(int i) const { return asked_ >> std::min(i, 63) & 1; }
  // Input i's value, an integer scalar, if known. InvalidArgument when it is
  // known and not a scalar of int32 or int64.
  Status IntValue(int i, bool* known, int64_t* v) const;
  // Input i, an integer vector that holds a shape (-1: unknown size): as a
  // shape, unknown where the value is.
  StatusOr<Shape> ShapeValue(int i) const;
  // Input i, an integer vector or scalar: its values, if known (else false).
  bool IntValues(int i, absl::InlinedVector<int64_t, 8>* out) const;

  // `rule`, the rule's error, of which graphs speak in other words.
  Status Refuse(ShapeRefusal in_graph, Status rule) {
    refusal_ = std::move(in_graph);
    return rule;
  }
  const ShapeRefusal& refusal() const { return refusal_; }
  // Whether a graph is being made: some shapes are refused only there, and fail
  // when they run, or make nothing, elsewhere.
  bool in_graph() const { return in_graph_; }
  void set_in_graph() { in_graph_ = true; }

  void set_output(int i, Shape s) { outputs_[i] = std::move(s); }
  const Shape& output(int i) const { return outputs_[i]; }
  absl::InlinedVector<Shape, 2>& outputs() { return outputs_; }

  // What is known behind a resource or variant input; null when nothing.
  const HandleData* input_handle(int i) const {
    return i < static_cast<int>(handles_.size()) ? handles_[i] : nullptr;
  }
  void set_input_handles(absl::Span<const HandleData* const> handles) {
    handles_ = handles;
  }
  void set_output_handle(int i, HandleData data);
  std::shared_ptr<const HandleData> output_handle(int i) const {
    return i < static_cast<int>(output_handles_.size()) ? output_handles_[i]
                                                        : nullptr;
  }
  // A shape known only part way, where an integer vector value is partly
  // known (the Pack of a Shape's pieces, say); set by the graph builder.
  using PartialShapeFn = Shape (*)(const void* arg, int input);
  void set_partial_shapes(PartialShapeFn fn, const void* arg) {
    partial_fn_ = fn;
    partial_arg_ = arg;
  }

 private:
  const ResolvedOp& op_;
  absl::Span<const Shape* const> inputs_;
  absl::Span<const Tensor* const> values_;
  absl::Span<const HandleData* const> handles_;
  absl::InlinedVector<Shape, 2> outputs_;
  std::vector<std::shared_ptr<const HandleData>> output_handles_;
  ShapeRefusal refusal_;
  bool in_graph_ = false;
  mutable uint64_t asked_ = 0;  // bit i: for input i's value
  PartialShapeFn partial_fn_ = nullptr;
  const void* partial_arg_ = nullptr;
};

// Runs the op's shape rule, which it must have. InvalidArgument also for a
// result of more than 2^63-1 elements, whose count would overflow behind it.
Status RunShapeRule(ShapeContext& c);

// --- Checks, with upstream's texts ("Shape must be rank 2 but is rank 1").
Status CheckRank(const Shape& s, int rank);
Status CheckRankAtLeast(const Shape& s, int rank);
Status CheckRankAtMost(const Shape& s, int rank);
// axis in [-rank, rank) -> [0, rank); InvalidArgument otherwise.
StatusOr<int> NormalizeAxis(int64_t axis, int rank);

// --- Rules that many ops share.
Status UnchangedShape(ShapeContext& c);  // output 0 is like input 0
Status ScalarShape(ShapeContext& c);     // every output is a scalar
Status BroadcastShape(ShapeContext& c);  // of inputs 0 and 1
Status NoOutputs(ShapeContext& c);
Status UnknownShape(ShapeContext& c);    // nothing can be said
Status ReductionShape(ShapeContext& c);  // (input, axes), keep_dims
Status MergeAllInputs(ShapeContext& c);  // all inputs alike (AddN)
// Output 0 has the shape that input `i` (an integer vector) holds.
template <int i>
Status ShapeFromInput(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape s, c.ShapeValue(i));
  c.set_output(0, std::move(s));
  return OkStatus();
}
// Output 0 is like input i.
template <int i>
Status LikeInput(ShapeContext& c) {
  c.set_output(0, c.input(i));
  return OkStatus();
}

}  // namespace headrace
