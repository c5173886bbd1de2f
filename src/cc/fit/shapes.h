// Labels and predictions whose shapes nearly fit, for losses and metrics.
#pragma once

#include "cc/access.h"

namespace headrace::tf::internal {

inline constexpr double kEpsilon = 1e-7;
inline constexpr DType kFloat = DType::kFloat32;

Tensor MeanOfLast(const Tensor& x);
// Where one of the two has a last axis of 1 more than the other, drops it.
void DropLastAxis(Tensor* y_true, Tensor* y_pred);
// A weight in the values' dtype, with as many axes as they have (or none).
Tensor FittedWeight(const Tensor& weight, const Tensor& values);
// x with axes of 1 behind it, until it has as many as the other (a scalar as it
// is).
Tensor WithAxesOf(Tensor x, const Tensor& other);
// Classes' numbers without a last axis of 1 that the predictions have for the
// classes.
Tensor ClassNumbers(const Tensor& y_true, const Tensor& y_pred);
// kInvalidArgument where shapes are known to differ.
void CheckSameShape(const Tensor& a, const Tensor& b);
// One value a row of the last axis of logits of any rank.
Tensor SoftmaxCrossentropy(const Tensor& labels, const Tensor& logits);
Tensor SparseCrossentropy(const Tensor& ids, const Tensor& logits);

}  // namespace headrace::tf::internal
