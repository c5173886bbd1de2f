// How many floating-point operations a call takes, as TensorFlow's profiler
// counts them: products and sums of matrices, convolutions and reductions, and
// what goes element by element. Ops that TensorFlow counts nothing for have no
// rule.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "absl/types/span.h"
#include "op/resolved_op.h"
#include "tensor/shape.h"

namespace headrace {

// What a rule sees: a call and the shapes that are known of it. A rule that
// asks for a size that is not known gets 0, and its count is unknown.
class FloatOpsContext {
 public:
  FloatOpsContext(const ResolvedOp& op, absl::Span<const Shape* const> inputs,
                  absl::Span<const Shape* const> outputs)
      : op_(op), inputs_(inputs), outputs_(outputs) {}

  const ResolvedOp& op() const { return op_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  // How many elements an input (output) has. Counts are doubles, which do not
  // overflow and are exact below 2^53.
  double input(int i) { return Elements(inputs_, i); }
  double output(int i = 0) { return Elements(outputs_, i); }
  // One size of an input (output); `d` below 0 is from the end.
  double input_dim(int i, int d) { return Dim(inputs_, i, d); }
  double output_dim(int i, int d) { return Dim(outputs_, i, d); }
  // The product of an attribute's integers.
  double Product(StringView ints_attr) const;
  bool known() const { return known_; }

 private:
  double Dim(absl::Span<const Shape* const> shapes, int i, int d);
  double Elements(absl::Span<const Shape* const> shapes, int i);

  const ResolvedOp& op_;
  absl::Span<const Shape* const> inputs_;
  absl::Span<const Shape* const> outputs_;
  bool known_ = true;
};

using FloatOpsFn = double (*)(FloatOpsContext& c);
// Says the rule of ops, in the file that defines them, at namespace scope.
class FloatOps {
 public:
  FloatOps(std::initializer_list<const char*> ops, FloatOpsFn rule);
};
// The op's rule; null where nothing is counted.
FloatOpsFn FloatOpsRule(const OpDef& op);

// `n` for each element of the output.
template <int n>
double FloatOpsPerElement(FloatOpsContext& c) {
  return n * c.output();
}
// What becomes of input 0 by sums (or comparisons) alone.
double FloatOpsOfReduction(FloatOpsContext& c);

inline constexpr int64_t kUnknownFloatOps = -1;
// Of a call of an op that has a rule, or nothing; kUnknownFloatOps where the
// shapes do not say it.
std::optional<int64_t> CountFloatOps(const ResolvedOp& op,
                                     absl::Span<const Shape* const> inputs,
                                     absl::Span<const Shape* const> outputs);

}  // namespace headrace
