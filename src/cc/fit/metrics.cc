#include "headrace/fit/metrics.h"

#include "cc/compose.h"
#include "cc/fit/shapes.h"

namespace headrace::tf::metrics {

using internal::Cast;
using internal::kFloat;
using internal::Number;
using internal::Op;

namespace {

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
  const TensorShape shape = values.shape();
  if (!shape.known_rank || shape.rank() > 0) {  // a scalar counts once a weight
    // Laid out in full, so that its sum counts each value.
    weight = Op("BroadcastTo", {internal::FittedWeight(weight, values),
                                internal::ShapeOf(values)});
  }
  total.assign_add(internal::SumAll(values * weight));
  if (count) count->assign_add(internal::SumAll(weight));
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
  const Tensor values = function_(y_true, y_pred);
  const bool weighted = static_cast<bool>(sample_weight);
  Add(values, weighted ? sample_weight : values.mask(), total_, &count_);
}
Tensor MeanOf::result() const { return internal::DivideNoNan(total_, count_); }

RootMeanSquaredError::RootMeanSquaredError(std::string name)
    : Metric(std::move(name)),
      total_(NewTotal(this, "total")),
      count_(NewTotal(this, "count")) {}
void RootMeanSquaredError::Update(const Tensor& y_true, const Tensor& y_pred,
                                  const Tensor& sample_weight) {
  Tensor t = Cast(y_true, kFloat), p = Cast(y_pred, kFloat);
  internal::DropLastAxis(&t, &p);
  const Tensor squares = Op("SquaredDifference", {p, t});
  Tensor counts = Op("OnesLike", {squares});
  if (sample_weight) {
    counts =
        counts * internal::FittedWeight(Cast(sample_weight, kFloat), squares);
  }
  total_.assign_add(internal::SumAll(squares * counts));
  count_.assign_add(internal::SumAll(counts));
}
Tensor RootMeanSquaredError::result() const {
  return Op("Sqrt", {internal::DivideNoNan(total_, count_)});
}

MeanTensor::MeanTensor(std::string name) : name_(std::move(name)) {}
void MeanTensor::Update(const Tensor& given, const Tensor& sample_weight) {
  const Tensor values = Cast(given, kFloat);
  if (!total_) {
    for (const int64_t n : values.shape().dims) {
      if (n >= 0) continue;
      internal::Throw(
          ErrorCode::kInvalidArgument,
          "MeanTensor: values of shape " + values.shape().ToString());
    }
    internal::Outside outside;
    const auto make = [&](const char* name) {
      return Track(name, Variable(internal::Full(kFloat, values.shape(), 0),
                                  name, false));
    };
    total_ = make("total");
    count_ = make("count");
  }
  Tensor counts = Op("OnesLike", {values});
  if (sample_weight) {
    counts =
        counts * internal::FittedWeight(Cast(sample_weight, kFloat), values);
  }
  total_.assign_add(values * counts);
  count_.assign_add(counts);
}
Tensor MeanTensor::result() const {
  if (!total_) {
    internal::Throw(ErrorCode::kFailedPrecondition,
                    "MeanTensor does not have any value yet.");
  }
  return internal::DivideNoNan(total_, count_);
}
void MeanTensor::Reset() { ResetAll(*this); }

}  // namespace headrace::tf::metrics
