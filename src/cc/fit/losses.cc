#include "headrace/fit/losses.h"

#include "cc/compose.h"
#include "cc/fit/shapes.h"
#include "graph/graph.h"

namespace headrace::tf::losses {

using internal::Cast;
using internal::kEpsilon;
using internal::MeanOfLast;
using internal::Number;
using internal::Op;
using internal::Throw;

namespace {

struct Pair {
  Tensor y_true, y_pred;
};

Pair Fitted(const Tensor& y_true, const Tensor& y_pred) {
  Pair p{y_true, y_pred};
  internal::DropLastAxis(&p.y_true, &p.y_pred);
  p.y_true = Cast(p.y_true, p.y_pred.dtype());
  return p;
}

// The logits that probabilities were made of in a traced function: taken from
// there, as upstream does; else null.
Tensor LogitsBehind(const Tensor& y_pred, const char* op) {
  const Value& v = internal::Access::ValueOf(y_pred);
  // Eagerly the logits are gone; upstream looks behind in graphs alone, too, so
  // losses may differ in the last digits between the two.
  if (!v.is_symbolic() || v.node()->op().name() != op) return Tensor();
  const Edge& in = v.node()->inputs()[0];
  return internal::Access::Wrap(v.graph()->Output(in));
}

// A weight that leaves out what the mask hides; `of_mean`: of the mean's
// divisor too.
Tensor ValidWeight(const Tensor& mask, const Tensor& values,
                   const Tensor& sample_weight, bool of_mean) {
  Tensor shown = Cast(mask, values.dtype());
  if (of_mean) {
    // Scaled by all over shown: the division by the number of all values, which
    // follows, then divides by the number of those shown.
    const Tensor whole = Cast(Op("Size", {shown}), values.dtype());
    shown = shown * internal::DivideNoNan(whole, internal::SumAll(shown));
  }
  if (!sample_weight) return shown;
  const Tensor weight = Cast(sample_weight, values.dtype());
  shown = internal::WithAxesOf(shown, weight);
  return internal::FittedWeight(weight, shown) * shown;
}

void Refuse(bool given, const char* loss, const char* option) {
  if (!given) return;
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat(loss, " has no option ", option));
}

void CheckSmoothing(double share) {
  if (share >= 0 && share <= 1) return;
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("label_smoothing must be in [0, 1], but is ", share));
}

}  // namespace

Tensor Loss::operator()(const Tensor& y_true, const Tensor& y_pred,
                        const Tensor& sample_weight) const {
  Tensor values = Values(y_true, y_pred);
  Tensor mask = y_pred.mask(), weight = sample_weight;
  if (const Tensor counted = values.mask()) {
    mask = mask ? Op("LogicalAnd", {mask, counted}) : counted;
  }
  if (mask) {
    weight = ValidWeight(mask, values, weight,
                         reduction_ == Reduction::kSumOverBatchSize);
  }
  if (weight) values = values * internal::FittedWeight(weight, values);
  if (reduction_ == Reduction::kNone) return values;
  if (reduction_ == Reduction::kSum) return internal::SumAll(values);
  if (!weight) return internal::MeanAll(values);
  const Tensor count = Cast(Op("Size", {values}), values.dtype());
  // By the number of values and not by the sum of the weights: that is what
  // upstream's SUM_OVER_BATCH_SIZE means.
  return internal::DivideNoNan(internal::SumAll(values), count);
}

MeanSquaredError::MeanSquaredError(Options options) : Loss(options.reduction) {}
Tensor MeanSquaredError::Values(const Tensor& y_true,
                                const Tensor& y_pred) const {
  const Pair p = Fitted(y_true, y_pred);
  return MeanOfLast(Op("SquaredDifference", {p.y_pred, p.y_true}));
}

MeanAbsoluteError::MeanAbsoluteError(Options options)
    : Loss(options.reduction) {}
Tensor MeanAbsoluteError::Values(const Tensor& y_true,
                                 const Tensor& y_pred) const {
  const Pair p = Fitted(y_true, y_pred);
  return MeanOfLast(Op("Abs", {p.y_pred - p.y_true}));
}

Huber::Huber(double delta, Options options)
    : Loss(options.reduction), delta_(delta) {}
Tensor Huber::Values(const Tensor& y_true, const Tensor& y_pred) const {
  const Pair p = Fitted(y_true, y_pred);
  const Tensor error = Op("Abs", {p.y_pred - p.y_true});
  const Tensor small = 0.5 * Op("Square", {error});
  // The tangent of the parabola where the error is delta, so that value and
  // slope go over into each other.
  const Tensor large = delta_ * error - 0.5 * delta_ * delta_;
  return MeanOfLast(Op("SelectV2", {error <= delta_, small, large}));
}

BinaryCrossentropy::BinaryCrossentropy(CrossentropyOptions options)
    : Loss(options.reduction), options_(options) {
  Refuse(options.ignore_class.has_value(), "BinaryCrossentropy",
         "ignore_class");
  CheckSmoothing(options.label_smoothing);
}

Tensor BinaryCrossentropy::Values(const Tensor& y_true,
                                  const Tensor& y_pred) const {
  Tensor x = options_.from_logits ? y_pred : LogitsBehind(y_pred, "Sigmoid");
  const bool logits = static_cast<bool>(x);
  const Pair p = Fitted(y_true, logits ? x : y_pred);
  Tensor y = p.y_true;
  if (const double s = options_.label_smoothing) y = y * (1 - s) + 0.5 * s;
  x = p.y_pred;
  if (logits) {
    // max(x, 0) - x y + log(1 + exp(-|x|)): the exponent is never positive, so
    // nothing overflows. Selected by sign and not made with Maximum and Abs, as
    // upstream: so the gradient at 0 is sigmoid(0) - y.
    const Tensor zeros = Op("ZerosLike", {x});
    const Tensor positive = Op("GreaterEqual", {x, zeros});
    const Tensor above = Op("SelectV2", {positive, x, zeros});
    const Tensor sizes = Op("SelectV2", {positive, -x, x});
    return MeanOfLast(above - x * y + Op("Log1p", {Op("Exp", {sizes})}));
  }
  x = internal::ClipByValue(x, kEpsilon, 1 - kEpsilon);
  // Epsilon once more, behind the clip: Keras has it in both places, and values
  // agree with Keras' to the last digits.
  return MeanOfLast(-(y * Op("Log", {x + kEpsilon}) +
                      (1.0 - y) * Op("Log", {1.0 - x + kEpsilon})));
}

CategoricalCrossentropy::CategoricalCrossentropy(CrossentropyOptions options)
    : Loss(options.reduction), options_(options) {
  Refuse(options.ignore_class.has_value(), "CategoricalCrossentropy",
         "ignore_class");
  CheckSmoothing(options.label_smoothing);
}

Tensor CategoricalCrossentropy::Values(const Tensor& y_true,
                                       const Tensor& y_pred) const {
  Tensor y = Cast(y_true, y_pred.dtype());
  internal::CheckSameShape(y, y_pred);
  if (const double s = options_.label_smoothing) {
    const Tensor sizes = internal::ShapeOf(y);
    const Tensor classes = Op(
        "StridedSlice",
        {sizes, internal::Ints({-1}), internal::Ints({0}), internal::Ints({1})},
        {{"shrink_axis_mask", 1}, {"end_mask", 1}});
    y = y * (1 - s) + s / Cast(classes, y.dtype());
  }
  Tensor x = options_.from_logits ? y_pred : LogitsBehind(y_pred, "Softmax");
  if (x) return internal::SoftmaxCrossentropy(y, x);
  // Predictions need not sum to 1: Keras takes them as shares.
  x = y_pred / internal::Reduce("Sum", y_pred, {-1}, /*keep_dims=*/true);
  x = internal::ClipByValue(x, kEpsilon, 1 - kEpsilon);
  return -internal::Reduce("Sum", y * Op("Log", {x}), {-1});
}

SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(
    CrossentropyOptions options)
    : Loss(options.reduction), options_(options) {
  Refuse(options.label_smoothing != 0, "SparseCategoricalCrossentropy",
         "label_smoothing");
}

Tensor SparseCategoricalCrossentropy::Values(const Tensor& y_true,
                                             const Tensor& y_pred) const {
  Tensor x = options_.from_logits ? y_pred : LogitsBehind(y_pred, "Softmax");
  if (!x) {
    // Logarithms of probabilities are logits: softmax gives the probabilities
    // back.
    x = Op("Log", {internal::ClipByValue(y_pred, kEpsilon, 1 - kEpsilon)});
  }
  const Tensor ids =
      Cast(internal::ClassNumbers(y_true, y_pred), DType::kInt64);
  if (!options_.ignore_class) return internal::SparseCrossentropy(ids, x);
  const Tensor kept =
      Op("NotEqual",
         {ids, internal::Number(DType::kInt64,
                                static_cast<double>(*options_.ignore_class))});
  const Tensor values = internal::SparseCrossentropy(
      // Class 0 in place of the ignored one, which need be no class: the op
      // would refuse it.
      Op("SelectV2", {kept, ids, Op("ZerosLike", {ids})}), x);
  const Tensor counted =
      Op("SelectV2", {kept, values, Op("ZerosLike", {values})});
  return counted.with_mask(kept);  // the mean is over what counts alone
}

}  // namespace headrace::tf::losses
