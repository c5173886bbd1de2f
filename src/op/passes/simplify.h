// What OpBuilder::Simplify's rules see and say: how an op's file tells plans of
// a shorter way to its results.
#pragma once

#include <initializer_list>

#include "op/attr.h"
#include "op/resolved_op.h"

namespace headrace {

// A tensor of a plan that is being made.
struct PlanValue {
  int32_t id = -1;
};

// One call of a plan. A rule replaces outputs by inputs, or by what calls of
// other ops make, or it does nothing. The call goes when nobody reads it any
// more. Where a rule fails, all stays as it was. Calls that a rule emits are
// simplified by their own rules, which must not lead back to its op.
class SimplifyContext {
 public:
  virtual ~SimplifyContext() = default;

  virtual const ResolvedOp& op() const = 0;
  int num_inputs() const { return op().num_inputs(); }
  int num_outputs() const { return op().num_outputs(); }
  DType input_dtype(int i) const { return op().input_types()[i]; }
  DType output_dtype(int o) const { return op().output_types()[o]; }
  // As far as they are known before the plan runs.
  virtual Shape input_shape(int i) const = 0;
  virtual Shape output_shape(int o) const = 0;
  // The value of input i; no buffer where it is not known.
  virtual Tensor value(int i) const = 0;
  // Whether a call or the plan's caller reads output o.
  virtual bool is_read(int o) const = 0;

  virtual PlanValue input(int i) const = 0;
  virtual PlanValue Constant(Tensor t) = 0;
  // Output 0 of a call of the op, its shape inferred. Does nothing after an
  // error.
  virtual PlanValue operator()(StringView op,
                               std::initializer_list<PlanValue> inputs,
                               const AttrMap& attrs = {}) = 0;
  // Who reads output o reads `v` instead, a tensor of the same dtype.
  virtual void Replace(int o, PlanValue v) = 0;
  // The first error, for the rule to return.
  const Status& status() const { return status_; }

  // --- What rules often ask.
  // Whether input i's shape is known and that of output 0.
  bool keeps_shape(int i) const;
  // Whether input i is known to be that number, alone in its tensor.
  bool is_number(int i, double number) const;

 protected:
  Status status_;
};

}  // namespace headrace
