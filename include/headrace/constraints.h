// What weights are held to after each update: tf.keras.constraints.
//
//   tf::layers::Dense(8, {.kernel_constraint = tf::constraints::MaxNorm(2)})
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "headrace/tensor.h"

namespace headrace::tf {

// A function from a weight to what it is to be, of the same shape; or the name
// that Keras knows one by: "non_neg", "unit_norm", "max_norm", "min_max_norm"
// (others throw kInvalidArgument). None: the weight is free. Copies are cheap.
class HR_API Constraint {
 public:
  Constraint() = default;
  // Names stand for the functions below with their defaults.
  Constraint(const std::string& name);                             // NOLINT
  Constraint(const char* name) : Constraint(std::string(name)) {}  // NOLINT
  template <typename F, typename = std::enable_if_t<
                            std::is_invocable_r_v<Tensor, F, const Tensor&>>>
  Constraint(F function) : function_(std::move(function)) {}  // NOLINT

  explicit operator bool() const { return function_ != nullptr; }
  // `weight` is a float tensor; the result has its dtype and shape.
  Tensor operator()(const Tensor& weight) const {
    return function_ ? function_(weight) : weight;
  }

 private:
  std::function<Tensor(const Tensor&)> function_;
};

// Norms are L2 norms along `axis` (counted from the end if negative): of a
// kernel [in, out], axis 0 gives that of each unit's weights. Numbers that are
// not finite are kInvalidArgument, here; an axis that a weight does not have
// is, where the constraint is applied. As Keras does, 1e-7 is added to the
// norms that are divided by, so that a weight of zeros stays zero instead of
// NaN.
namespace constraints {

// Zero instead of negative values.
HR_API Constraint NonNeg();
// Norms of 1.
HR_API Constraint UnitNorm(int axis = 0);
// Norms of at most max_value.
HR_API Constraint MaxNorm(double max_value = 2, int axis = 0);
// Norms drawn into [min_value, max_value], by a share `rate` of the way: 1 goes
// there at once, smaller rates over several steps.
HR_API Constraint MinMaxNorm(double min_value = 0, double max_value = 1,
                             double rate = 1, int axis = 0);

}  // namespace constraints
}  // namespace headrace::tf
