// Means of functions of labels and predictions.
#include "cc/compose.h"
#include "cc/fit/shapes.h"
#include "headrace/fit/metrics.h"

namespace headrace::tf::metrics {

using internal::Cast;
using internal::kFloat;
using internal::Op;

namespace {

Tensor Same(const Tensor& a, const Tensor& b) {
  return Cast(Op("Equal", {a, b}), kFloat);
}

Tensor Greatest(const Tensor& x) {
  return Op("ArgMax", {x, internal::Int(-1)});
}

Tensor SparseRight(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor ids = internal::ClassNumbers(y_true, y_pred);
  return Same(Cast(ids, DType::kInt64), Greatest(y_pred));
}

// fn of a pair of which a last axis of 1 too many was dropped.
MeanOf::Function Fitting(MeanOf::Function fn) {
  return [fn](const Tensor& y_true, const Tensor& y_pred) {
    Tensor t = y_true, p = y_pred;
    internal::DropLastAxis(&t, &p);
    return fn(t, p);
  };
}

// Whether the label's prediction is among the k greatest.
Tensor AmongTop(const Tensor& y_true, const Tensor& given_pred, int64_t k) {
  Tensor ids = internal::ClassNumbers(y_true, given_pred), y_pred = given_pred;
  const Tensor shape = internal::ShapeOf(ids);
  // The op takes matrices only.
  if (y_pred.shape().rank() > 2) {
    y_pred = internal::Reshape(y_pred, {-1, y_pred.shape().dims.back()});
    ids = internal::Reshape(ids, {-1});
  }
  const Tensor found =
      Op("InTopKV2",
         {Cast(y_pred, kFloat), Cast(ids, DType::kInt32), internal::Int(k)});
  return Op("Reshape", {Cast(found, kFloat), shape});
}

}  // namespace

Accuracy::Accuracy(std::string name)
    : MeanOf(Fitting([](const Tensor& y_true, const Tensor& y_pred) {
               return Same(Cast(y_true, y_pred.dtype()), y_pred);
             }),
             std::move(name)) {}

BinaryAccuracy::BinaryAccuracy(double threshold, std::string name)
    : MeanOf(Fitting([threshold](const Tensor& y_true, const Tensor& y_pred) {
               const Tensor found = Cast(y_pred > threshold, y_true.dtype());
               return internal::Reduce("Mean", Same(y_true, found), {-1});
             }),
             std::move(name)) {}

CategoricalAccuracy::CategoricalAccuracy(std::string name)
    : MeanOf(Fitting([](const Tensor& y_true, const Tensor& y_pred) {
               return SparseRight(Greatest(y_true), y_pred);
             }),
             std::move(name)) {}

SparseCategoricalAccuracy::SparseCategoricalAccuracy(std::string name)
    : MeanOf(SparseRight, std::move(name)) {}

TopKCategoricalAccuracy::TopKCategoricalAccuracy(int64_t k, std::string name)
    : MeanOf(Fitting([k](const Tensor& y_true, const Tensor& y_pred) {
               return AmongTop(Greatest(y_true), y_pred, k);
             }),
             std::move(name)) {}

SparseTopKCategoricalAccuracy::SparseTopKCategoricalAccuracy(int64_t k,
                                                             std::string name)
    : MeanOf([k](const Tensor& y_true,
                 const Tensor& y_pred) { return AmongTop(y_true, y_pred, k); },
             std::move(name)) {}

MeanSquaredError::MeanSquaredError(std::string name)
    : MeanOf(std::make_shared<losses::MeanSquaredError>(), std::move(name)) {}
MeanAbsoluteError::MeanAbsoluteError(std::string name)
    : MeanOf(std::make_shared<losses::MeanAbsoluteError>(), std::move(name)) {}
MeanAbsolutePercentageError::MeanAbsolutePercentageError(std::string name)
    : MeanOf(std::make_shared<losses::MeanAbsolutePercentageError>(),
             std::move(name)) {}
MeanSquaredLogarithmicError::MeanSquaredLogarithmicError(std::string name)
    : MeanOf(std::make_shared<losses::MeanSquaredLogarithmicError>(),
             std::move(name)) {}
Hinge::Hinge(std::string name)
    : MeanOf(std::make_shared<losses::Hinge>(), std::move(name)) {}
SquaredHinge::SquaredHinge(std::string name)
    : MeanOf(std::make_shared<losses::SquaredHinge>(), std::move(name)) {}
CategoricalHinge::CategoricalHinge(std::string name)
    : MeanOf(std::make_shared<losses::CategoricalHinge>(), std::move(name)) {}
LogCoshError::LogCoshError(std::string name)
    : MeanOf(std::make_shared<losses::LogCosh>(), std::move(name)) {}
KLDivergence::KLDivergence(std::string name)
    : MeanOf(std::make_shared<losses::KLDivergence>(), std::move(name)) {}
Poisson::Poisson(std::string name)
    : MeanOf(std::make_shared<losses::Poisson>(), std::move(name)) {}
BinaryCrossentropy::BinaryCrossentropy(losses::CrossentropyOptions options,
                                       std::string name)
    : MeanOf(std::make_shared<losses::BinaryCrossentropy>(options),
             std::move(name)) {}
CategoricalCrossentropy::CategoricalCrossentropy(
    losses::CrossentropyOptions options, std::string name)
    : MeanOf(std::make_shared<losses::CategoricalCrossentropy>(options),
             std::move(name)) {}
SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(
    losses::CrossentropyOptions options, std::string name)
    : MeanOf(std::make_shared<losses::SparseCategoricalCrossentropy>(options),
             std::move(name)) {}
CosineSimilarity::CosineSimilarity(int axis, std::string name)
    : MeanOf(
          [axis](const Tensor& y_true, const Tensor& y_pred) {
            // The loss is the negative similarity.
            return -losses::CosineSimilarity(axis).Values(y_true, y_pred);
          },
          std::move(name)) {}

}  // namespace headrace::tf::metrics
