// Losses that are one function of labels and predictions.
#include "cc/compose.h"
#include "cc/fit/shapes.h"
#include "headrace/fit/losses.h"

namespace headrace::tf::losses {

using internal::Cast;
using internal::kEpsilon;
using internal::MeanOfLast;
using internal::Number;
using internal::Op;

namespace {

Tensor AtLeast(const Tensor& x, double low) {
  return Op("Maximum", {x, Number(x.dtype(), low)});
}
Tensor Log(const Tensor& x) { return Op("Log", {x}); }

// Labels 0 and 1 as -1 and 1; others as they are.
Tensor Signs(const Tensor& y) {
  const Tensor zero = Op("Equal", {y, Number(y.dtype(), 0)});
  const Tensor one = Op("Equal", {y, Number(y.dtype(), 1)});
  const Tensor binary =
      internal::Reduce("All", Op("LogicalOr", {zero, one}), {});
  return Op("SelectV2", {binary, 2.0 * y - 1.0, y});
}

Tensor OfHinge(const Tensor& y_true, const Tensor& y_pred) {
  return AtLeast(1.0 - Signs(y_true) * y_pred, 0);
}

Tensor OfLogCosh(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor x = y_pred - y_true;
  // log(cosh(x)) with log(2) drawn out: cosh itself overflows from x = 89 on.
  return MeanOfLast(x + Op("Softplus", {-2.0 * x}) - 0.6931471805599453);
}

Tensor OfKLDivergence(const Tensor& y_true, const Tensor& y_pred) {
  // Labels of 0 as well: the quotient's logarithm must be finite.
  const Tensor t = internal::ClipByValue(y_true, kEpsilon, 1);
  const Tensor p = internal::ClipByValue(y_pred, kEpsilon, 1);
  return internal::Reduce("Sum", t * Log(t / p), {-1});
}

Tensor OfCategoricalHinge(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor right = internal::Reduce("Sum", y_true * y_pred, {-1});
  // The right class counts as a 0 here: where all wrong scores are negative,
  // the margin is one to 0, as in Keras.
  const Tensor wrong = internal::Reduce("Max", (1.0 - y_true) * y_pred, {-1});
  return AtLeast(wrong - right + 1.0, 0);
}

Tensor OfLogarithms(const Tensor& y_true, const Tensor& y_pred) {
  return MeanOfLast(
      Op("SquaredDifference", {Log(AtLeast(y_pred, kEpsilon) + 1.0),
                               Log(AtLeast(y_true, kEpsilon) + 1.0)}));
}

Tensor OfLength1(const Tensor& x, int axis) {
  const Tensor sum =
      internal::Reduce("Sum", Op("Square", {x}), {axis}, /*keep_dims=*/true);
  // The epsilon of tf.math.l2_normalize: a vector of zeros stays one.
  return x * Op("Rsqrt", {AtLeast(sum, 1e-12)});
}

Tensor OfFocal(const BinaryFocalOptions& o, const Tensor& y_true,
               const Tensor& y_pred) {
  Tensor y = y_true;
  if (const double s = o.label_smoothing) y = y * (1 - s) + 0.5 * s;
  const Tensor p = o.from_logits ? Op("Sigmoid", {y_pred}) : y_pred;
  const Tensor q = internal::ClipByValue(p, kEpsilon, 1 - kEpsilon);
  const Tensor cross =
      -(y * Log(q + kEpsilon) + (1.0 - y) * Log(1.0 - q + kEpsilon));
  const Tensor right = y * p + (1.0 - y) * (1.0 - p);
  Tensor values =
      Op("Pow", {1.0 - right, Number(right.dtype(), o.gamma)}) * cross;
  if (o.apply_class_balancing) {
    values = values * (y * o.alpha + (1.0 - y) * (1 - o.alpha));
  }
  return MeanOfLast(values);
}

}  // namespace

LossOf::LossOf(Function function, Options options)
    : Loss(options.reduction), function_(std::move(function)) {
  if (!function_) {
    internal::Throw(ErrorCode::kInvalidArgument, "a loss of no function");
  }
}

Tensor LossOf::Values(const Tensor& y_true, const Tensor& y_pred) const {
  Tensor t = y_true, p = y_pred;
  internal::DropLastAxis(&t, &p);
  return function_(Cast(t, p.dtype()), p);
}

MeanAbsolutePercentageError::MeanAbsolutePercentageError(Options options)
    : LossOf(
          [](const Tensor& t, const Tensor& p) {
            const Tensor scale = AtLeast(Op("Abs", {t}), kEpsilon);
            return 100.0 * MeanOfLast(Op("Abs", {(t - p) / scale}));
          },
          options) {}
MeanSquaredLogarithmicError::MeanSquaredLogarithmicError(Options options)
    : LossOf(OfLogarithms, options) {}
Hinge::Hinge(Options options)
    : LossOf([](const Tensor& t,
                const Tensor& p) { return MeanOfLast(OfHinge(t, p)); },
             options) {}
SquaredHinge::SquaredHinge(Options options)
    : LossOf(
          [](const Tensor& t, const Tensor& p) {
            return MeanOfLast(Op("Square", {OfHinge(t, p)}));
          },
          options) {}
CategoricalHinge::CategoricalHinge(Options options)
    : LossOf(OfCategoricalHinge, options) {}
LogCosh::LogCosh(Options options) : LossOf(OfLogCosh, options) {}
KLDivergence::KLDivergence(Options options) : LossOf(OfKLDivergence, options) {}
Poisson::Poisson(Options options)
    : LossOf(
          [](const Tensor& t, const Tensor& p) {
            return MeanOfLast(p - t * Log(p + kEpsilon));
          },
          options) {}
CosineSimilarity::CosineSimilarity(int axis, Options options)
    : LossOf(
          [axis](const Tensor& t, const Tensor& p) {
            return -internal::Reduce(
                "Sum", OfLength1(t, axis) * OfLength1(p, axis), {axis});
          },
          options) {}
BinaryFocalCrossentropy::BinaryFocalCrossentropy(BinaryFocalOptions options)
    : LossOf([options](const Tensor& t,
                       const Tensor& p) { return OfFocal(options, t, p); },
             {options.reduction}) {}

}  // namespace headrace::tf::losses
