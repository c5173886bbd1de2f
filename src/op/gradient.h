// Gradients of ops, written once against the Emitter.
#pragma once

#include <vector>

#include "op/emitter.h"

namespace headrace {

// A gradient on its way back: dense, or rows of a larger tensor
// (tf.IndexedSlices). Null when nothing flows.
struct Gradient {
  Value dense;                         // or:
  Value values, indices, dense_shape;  // slices; dense_shape may be null
  explicit operator bool() const { return dense || values; }
  bool is_slices() const { return static_cast<bool>(values); }
};
// The dense form (sums duplicate rows).
Value Densify(OpScope& s, const Gradient& g);

// The sum of what arrives at one value from several users: dense, or slices
// one after another when all are slices. Null for none.
Gradient SumGradients(OpScope& s, absl::Span<const Gradient> parts);
// Zeros like `x` (for a resource or variant: like what is behind it).
Value ZerosFor(OpScope& s, const Value& x);
// Ones like `x`, where the walk back begins: made without the value of `x`
// where its shape is known, as that may want what is not fed.
Value OnesFor(OpScope& s, const Value& x);

// One call whose gradient is asked for. Emitting goes through the inherited
// OpScope. Inputs and outputs that
// GradientSkips named may have a dtype and shape only (Value::has_value()).
class GradientContext : public OpScope {
 public:
  GradientContext(const ResolvedOpPtr& op, absl::Span<const Value> inputs,
                  absl::Span<const Value> outputs,
                  absl::Span<const Gradient> output_gradients)
      : op_(op),
        inputs_(inputs),
        outputs_(outputs),
        output_gradients_(output_gradients),
        results_(inputs.size()) {}

  const ResolvedOp& op() const { return *op_; }
  const ResolvedOpPtr& op_ptr() const { return op_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // Null, and the gradient fails with InvalidArgument, where the call has no
  // input (output) i: what attributes count need not be what came.
  const Value& input(int i) { return At(inputs_, i, "input"); }
  const Value& output(int i) { return At(outputs_, i, "output"); }
  absl::Span<const Value> inputs() const { return inputs_; }
  absl::Span<const Value> outputs() const { return outputs_; }
  // The gradient that arrives at output i, dense; null when none does (a
  // function may use ZerosLike(output) for it).
  Value grad(int i = 0);
  // The same, or zeros like output i.
  Value grad_or_zeros(int i = 0);
  // Zeros that stand for the gradients of outputs where none arrives, null for
  // other outputs.
  void set_zeros(std::vector<Value> zeros) { zeros_ = std::move(zeros); }
  const Gradient& raw_grad(int i);
  // True when somebody wants input i's gradient; asking is optional.
  bool wants(int i) const {
    return wanted_.empty() ||
           (i < static_cast<int>(wanted_.size()) && wanted_[i]);
  }
  void set_wanted(std::vector<bool> wanted) { wanted_ = std::move(wanted); }

  // Result for input i; unset inputs get none.
  void set(int i, Value v) {
    Gradient g;
    g.dense = std::move(v);
    set(i, std::move(g));
  }
  void set(int i, Gradient g);
  std::vector<Gradient>& results() { return results_; }

  // Sums `g` down to the shape of `x` where x was broadcast.
  Value ReduceTo(const Value& g, const Value& x);
  // The pair of sums for the operands of a broadcasting op; skips the work
  // when the shapes are equal.
  void SetBroadcast(const Value& ga, const Value& gb);

 private:
  bool Has(size_t count, int i, const char* what);
  const Value& At(absl::Span<const Value> values, int i, const char* what);

  ResolvedOpPtr op_;
  absl::Span<const Value> inputs_;
  absl::Span<const Value> outputs_;
  absl::Span<const Gradient> output_gradients_;
  std::vector<Gradient> results_;
  std::vector<bool> wanted_;
  std::vector<Value> zeros_;  // empty, or one an output
};

// Calls the op's gradient function; its results hold one entry an input.
// LookupError's text (NotFound) when none is registered.
Status CallGradient(GradientContext& g);

}  // namespace headrace
