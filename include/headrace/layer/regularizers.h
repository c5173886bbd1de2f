// Penalties of weights that are added to the loss: tf.keras.regularizers.
//
//   tf::layers::Dense(8, {.kernel_regularizer = tf::regularizers::L2(1e-4)})
//
// Layer::losses() gives them; train::Fit adds them up.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "headrace/tensor.h"

namespace headrace::tf {

// A function from a weight to a scalar of its dtype; or the name that Keras
// knows one by: "l1", "l2", "l1_l2", "orthogonal_regularizer" (others throw
// kInvalidArgument). None: no penalty. Copies are cheap.
class HR_API Regularizer {
 public:
  Regularizer() = default;
  Regularizer(const std::string& name);                              // NOLINT
  Regularizer(const char* name) : Regularizer(std::string(name)) {}  // NOLINT
  template <typename F, typename = std::enable_if_t<
                            std::is_invocable_r_v<Tensor, F, const Tensor&>>>
  Regularizer(F function) : function_(std::move(function)) {}  // NOLINT

  explicit operator bool() const { return function_ != nullptr; }
  // Only of one that is not none.
  Tensor operator()(const Tensor& weight) const { return function_(weight); }

 private:
  std::function<Tensor(const Tensor&)> function_;
};

// Factors are taken as float32, as Keras takes them; those that are not finite
// are kInvalidArgument. Penalties have the weight's dtype and are thread-safe.
namespace regularizers {

// l1 * sum(|w|), l2 * sum(w^2), and both.
HR_API Regularizer L1(double l1 = 0.01);
HR_API Regularizer L2(double l2 = 0.01);
HR_API Regularizer L1L2(double l1 = 0.01, double l2 = 0.01);
// The mean size of the cosines between rows (or "columns"), times factor: 0
// where all are orthogonal. Of weights of two axes; others are kInvalidArgument
// where the penalty is computed, other modes here.
HR_API Regularizer Orthogonal(double factor = 0.01,
                              const std::string& mode = "rows");

}  // namespace regularizers
}  // namespace headrace::tf
