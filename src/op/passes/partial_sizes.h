// What ops say of the sizes that a small integer output holds while a graph is
// built: some are known, others are not.
#pragma once

#include <cstdint>
#include <optional>

#include "op/resolved_op.h"
#include "tensor/tensor.h"

namespace headrace {

// One output of a node, to an op's PartialSizesFn. Asked for a vector, that
// answers with the sizes in it, -1 where one is not known, or with no rank
// where not even their number is; asked for a scalar, with a shape of one size.
class PartialSizes {
 public:
  virtual ~PartialSizes() = default;
  virtual bool is_scalar() const = 0;
  virtual const ResolvedOp& op() const = 0;
  virtual int output() const = 0;  // which one is asked for
  virtual int num_inputs() const = 0;
  virtual const Shape& input_shape(int i) const = 0;
  virtual const Shape& output_shape() const = 0;
  // Input i's value where it is a constant; else null.
  virtual const Tensor* Constant(int i) const = 0;
  // What is known of input i, a vector or a scalar of sizes. They look back
  // through the graph, so far and no farther: ask for what is needed only.
  virtual Shape Vector(int i) = 0;
  virtual int64_t Scalar(int i) = 0;

  // A constant integer, else nothing.
  std::optional<int64_t> ConstantScalar(int i) const {
    const Tensor* t = Constant(i);
    if (t == nullptr || t->num_elements() != 1 || !HoldsSizes(t->dtype())) {
      return std::nullopt;
    }
    return t->IntAt(0);
  }
  // Size k of input i, a vector, counted from behind where k is negative.
  int64_t SizeAt(int i, int64_t k) {
    const Shape s = Vector(i);
    if (!s.known_rank()) return Shape::kUnknown;
    if (k < 0) k += s.rank();
    return k < 0 || k >= s.rank() ? Shape::kUnknown : s[static_cast<int>(k)];
  }
  // What is known of any op's output: how many sizes there are.
  Shape Uncertain() const {
    if (is_scalar()) return Shape{Shape::kUnknown};
    const Shape& made = output_shape();
    if (!made.known_rank() || made.rank() != 1 || made[0] < 0 ||
        made[0] > Shape::kMaxRank) {
      return Shape::UnknownRank();
    }
    return Shape::UnknownOfRank(static_cast<int>(made[0]));
  }

  static bool HoldsSizes(DType d) {
    return d == DType::kInt32 || d == DType::kInt64;
  }
};

// Of ops whose output holds what input 0 holds.
inline Shape SizesOfInput(PartialSizes& c) {
  return c.is_scalar() ? Shape{c.Scalar(0)} : c.Vector(0);
}

}  // namespace headrace
