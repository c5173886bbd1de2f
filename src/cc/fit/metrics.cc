#include "headrace/metrics.h"

#include "cc/compose.h"
#include "cc/fit/shapes.h"

namespace headrace::tf::metrics {

using internal::Cast;
using internal::Number;
using internal::Op;

namespace {

constexpr DType kFloat = DType::kFloat32;

Variable NewTotal(Module* metric, const char* name) {
  internal::Outside outside;
  return metric->Track(name, Variable(Number(kFloat, 0), name, false));
}

void ResetAll(const Module& metric) {
  for (const Variable& v : metric.variables()) {
    v.assign(internal::Full(v.dtype(), v.shape(), 0));
  }
}

// Adds a batch to a sum and, unless null, to a number of values.
void Add(const Tensor& given, const Tensor& sample_weight,
         const Variable& total, const Variable* count) {
  Tensor values = Cast(given, kFloat);
  if (!sample_weight) {
    total.assign_add(internal::SumAll(values));
    if (count) count->assign_add(Cast(Op("Size", {values}), kFloat));
    return;
  }
  Tensor weight = Cast(sample_weight, kFloat);
  weight = Op("BroadcastTo", {internal::FittedWeight(weight, values),
                              internal::ShapeOf(values)});
  total.assign_add(internal::SumAll(values * weight));
  if (count) count->assign_add(internal::SumAll(weight));
}

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

}  // namespace

void Metric::Reset() { ResetAll(*this); }

Mean::Mean(std::string name)
    : name_(std::move(name)),
      total_(NewTotal(this, "total")),
      count_(NewTotal(this, "count")) {}
void Mean::Update(const Tensor& values, const Tensor& sample_weight) {
  Add(values, sample_weight, total_, &count_);
}
Tensor Mean::result() const { return internal::DivideNoNan(total_, count_); }
void Mean::Reset() { ResetAll(*this); }

Sum::Sum(std::string name)
    : name_(std::move(name)), total_(NewTotal(this, "total")) {}
void Sum::Update(const Tensor& values, const Tensor& sample_weight) {
  Add(values, sample_weight, total_, nullptr);
}
Tensor Sum::result() const { return total_; }
void Sum::Reset() { ResetAll(*this); }

MeanOf::MeanOf(Function function, std::string name)
    : Metric(std::move(name)),
      function_(std::move(function)),
      total_(NewTotal(this, "total")),
      count_(NewTotal(this, "count")) {}
MeanOf::MeanOf(std::shared_ptr<const losses::Loss> loss, std::string name)
    : MeanOf(
          [loss](const Tensor& y_true, const Tensor& y_pred) {
            return loss->Values(y_true, y_pred);
          },
          std::move(name)) {}
void MeanOf::Update(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight) {
  Add(function_(y_true, y_pred), sample_weight, total_, &count_);
}
Tensor MeanOf::result() const { return internal::DivideNoNan(total_, count_); }

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

MeanSquaredError::MeanSquaredError(std::string name)
    : MeanOf(std::make_shared<losses::MeanSquaredError>(), std::move(name)) {}

MeanAbsoluteError::MeanAbsoluteError(std::string name)
    : MeanOf(std::make_shared<losses::MeanAbsoluteError>(), std::move(name)) {}

}  // namespace headrace::tf::metrics
