#include "cc/fit/shapes.h"

#include "cc/compose.h"

namespace headrace::tf::internal {
namespace {

bool EndsInOne(const TensorShape& s) {
  return s.known_rank && s.rank() > 0 && s.dims.back() == 1;
}

// The sizes of all axes but the last, as an int32 vector.
Tensor OuterSizes(const Tensor& x) {
  return Op("StridedSlice", {ShapeOf(x), Ints({0}), Ints({-1}), Ints({1})});
}

}  // namespace

void DropLastAxis(Tensor* y_true, Tensor* y_pred) {
  const TensorShape t = y_true->shape(), p = y_pred->shape();
  // Traced with open ranks: nothing can be told, and the op says what does not
  // fit.
  if (!t.known_rank || !p.known_rank) return;
  if (p.rank() - t.rank() == 1 && EndsInOne(p)) {
    *y_pred = SqueezeLast(*y_pred);
  } else if (t.rank() - p.rank() == 1 && EndsInOne(t)) {
    *y_true = SqueezeLast(*y_true);
  }
}

Tensor MeanOfLast(const Tensor& x) { return Reduce("Mean", x, {-1}); }

Tensor FittedWeight(const Tensor& weight, const Tensor& values) {
  Tensor w = Cast(weight, values.dtype());
  const TensorShape v = values.shape();
  if (!v.known_rank || !w.shape().known_rank || w.shape().rank() == 0) return w;
  // Weights as a column for values that a loss has reduced over the last axis.
  if (w.shape().rank() - v.rank() == 1 && EndsInOne(w.shape())) {
    return SqueezeLast(w);
  }
  return WithAxesOf(w, values);
}

Tensor WithAxesOf(Tensor x, const Tensor& other) {
  const TensorShape shape = other.shape();
  if (!shape.known_rank || !x.shape().known_rank || x.shape().rank() == 0) {
    return x;
  }
  while (x.shape().rank() < shape.rank()) x = Op("ExpandDims", {x, Int(-1)});
  return x;
}

Tensor ClassNumbers(const Tensor& y_true, const Tensor& y_pred) {
  const TensorShape t = y_true.shape();
  const bool same = t.known_rank && t.rank() == y_pred.shape().rank();
  return same && EndsInOne(t) ? SqueezeLast(y_true) : y_true;
}

void CheckSameShape(const Tensor& a, const Tensor& b) {
  const TensorShape s = a.shape(), t = b.shape();
  if (!s.known_rank || !t.known_rank) return;
  bool fits = s.rank() == t.rank();
  for (int i = 0; fits && i < s.rank(); ++i) {
    fits = s[i] == t[i] || s[i] < 0 || t[i] < 0;
  }
  if (fits) return;
  Throw(ErrorCode::kInvalidArgument, "Shapes " + s.ToString() + " and " +
                                         t.ToString() + " are incompatible");
}

Tensor SoftmaxCrossentropy(const Tensor& labels, const Tensor& logits) {
  const TensorShape shape = logits.shape();
  // The op takes matrices alone.
  const bool flat = shape.known_rank && shape.rank() == 2;
  if (flat) {
    return OpAll("SoftmaxCrossEntropyWithLogits", {logits, labels})[0];
  }
  const Tensor width =
      Op("StridedSlice", {ShapeOf(logits), Ints({-1}), Ints({0}), Ints({1})},
         {{"end_mask", 1}});
  const Tensor two = Op("ConcatV2", {Ints({-1}), width, Int(0)}, {{"N", 2}});
  const Tensor values =
      OpAll("SoftmaxCrossEntropyWithLogits",
            {Op("Reshape", {logits, two}), Op("Reshape", {labels, two})})[0];
  return Op("Reshape", {values, OuterSizes(logits)});
}

Tensor SparseCrossentropy(const Tensor& ids, const Tensor& logits) {
  const TensorShape shape = logits.shape();
  if (shape.known_rank && shape.rank() == 2) {
    return OpAll("SparseSoftmaxCrossEntropyWithLogits", {logits, ids})[0];
  }
  const Tensor width =
      Op("StridedSlice", {ShapeOf(logits), Ints({-1}), Ints({0}), Ints({1})},
         {{"end_mask", 1}});
  const Tensor two = Op("ConcatV2", {Ints({-1}), width, Int(0)}, {{"N", 2}});
  const Tensor values =
      OpAll("SparseSoftmaxCrossEntropyWithLogits",
            {Op("Reshape", {logits, two}), Reshape(ids, {-1})})[0];
  return Op("Reshape", {values, OuterSizes(logits)});
}

}  // namespace headrace::tf::internal
