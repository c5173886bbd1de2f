// Metrics: tf.keras.metrics. A metric keeps a state in variables, which
// checkpoints of it hold, and may be updated in traced functions.
//
//   tf::metrics::SparseCategoricalAccuracy accuracy;
//   for (auto& e : batches) accuracy.Update(e[1], model(e[0]));
//   float share = accuracy.result().item<float>();
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "headrace/fit/losses.h"
#include "headrace/variable.h"

namespace headrace::tf::metrics {

// Base of metrics of labels and predictions. Not thread-safe: the state is
// several variables that change one after another.
class HR_API Metric : public Module {
 public:
  // Takes a batch in; one weight a sample where `sample_weight` is given (its
  // shape as for losses). Throws kInvalidArgument for shapes that do not fit.
  virtual void Update(const Tensor& y_true, const Tensor& y_pred,
                      const Tensor& sample_weight = {}) = 0;
  // What has been taken in gives: a float32 scalar, 0 where that is nothing.
  // May be asked for at any time.
  virtual Tensor result() const = 0;
  // As if nothing had been taken in: sets all variables to zero.
  void Reset();
  const std::string& name() const { return name_; }

 protected:
  explicit Metric(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

// The mean of values of any shape and number dtype, weighted where there are
// weights (sum of value * weight over sum of weights). Tracks "total" and
// "count", in float32 as Keras does: counts above 2^24 are rounded.
class HR_API Mean : public Module {
 public:
  explicit Mean(std::string name = "mean");
  void Update(const Tensor& values, const Tensor& sample_weight = {});
  Tensor result() const;
  void Reset();
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  Variable total_, count_;
};

// The sum of values, times their weights where there are some. Tracks "total",
// in float32.
class HR_API Sum : public Module {
 public:
  explicit Sum(std::string name = "sum");
  void Update(const Tensor& values, const Tensor& sample_weight = {});
  Tensor result() const;
  void Reset();
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  Variable total_;
};

// The mean of a function that gives one value a sample. Without weights a mask
// of the function's result (Tensor::mask) leaves values out. Tracks "total" and
// "count".
class HR_API MeanOf : public Metric {
 public:
  using Function =
      std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;
  MeanOf(Function function, std::string name);
  // Of a loss' values.
  MeanOf(std::shared_ptr<const losses::Loss> loss, std::string name);
  void Update(const Tensor& y_true, const Tensor& y_pred,
              const Tensor& sample_weight = {}) override;
  Tensor result() const override;

 private:
  Function function_;
  Variable total_, count_;
};

// How often predictions equal labels, compared in the predictions' dtype.
class HR_API Accuracy : public MeanOf {
 public:
  explicit Accuracy(std::string name = "accuracy");
};
// How often a prediction above `threshold` goes with a label of 1, as a mean
// over the last axis.
class HR_API BinaryAccuracy : public MeanOf {
 public:
  explicit BinaryAccuracy(double threshold = 0.5,
                          std::string name = "binary_accuracy");
};
// How often the greatest prediction along the last axis is the label's; and the
// same with classes' numbers as labels.
class HR_API CategoricalAccuracy : public MeanOf {
 public:
  explicit CategoricalAccuracy(std::string name = "categorical_accuracy");
};
class HR_API SparseCategoricalAccuracy : public MeanOf {
 public:
  explicit SparseCategoricalAccuracy(
      std::string name = "sparse_categorical_accuracy");
};
// How often the label's prediction is among the k greatest (those equal to the
// k-th included); labels are distributions, or classes' numbers.
class HR_API TopKCategoricalAccuracy : public MeanOf {
 public:
  explicit TopKCategoricalAccuracy(
      int64_t k = 5, std::string name = "top_k_categorical_accuracy");
};
class HR_API SparseTopKCategoricalAccuracy : public MeanOf {
 public:
  explicit SparseTopKCategoricalAccuracy(
      int64_t k = 5, std::string name = "sparse_top_k_categorical_accuracy");
};

// Means of the values of losses of these names (losses.h). They weigh samples
// alike over all batches, where a mean of Loss's results would weigh batches.
class HR_API MeanSquaredError : public MeanOf {
 public:
  explicit MeanSquaredError(std::string name = "mean_squared_error");
};
class HR_API MeanAbsoluteError : public MeanOf {
 public:
  explicit MeanAbsoluteError(std::string name = "mean_absolute_error");
};
class HR_API MeanAbsolutePercentageError : public MeanOf {
 public:
  explicit MeanAbsolutePercentageError(
      std::string name = "mean_absolute_percentage_error");
};
class HR_API MeanSquaredLogarithmicError : public MeanOf {
 public:
  explicit MeanSquaredLogarithmicError(
      std::string name = "mean_squared_logarithmic_error");
};
class HR_API Hinge : public MeanOf {
 public:
  explicit Hinge(std::string name = "hinge");
};
class HR_API SquaredHinge : public MeanOf {
 public:
  explicit SquaredHinge(std::string name = "squared_hinge");
};
class HR_API CategoricalHinge : public MeanOf {
 public:
  explicit CategoricalHinge(std::string name = "categorical_hinge");
};
class HR_API LogCoshError : public MeanOf {
 public:
  explicit LogCoshError(std::string name = "logcosh");
};
class HR_API KLDivergence : public MeanOf {
 public:
  explicit KLDivergence(std::string name = "kullback_leibler_divergence");
};
class HR_API Poisson : public MeanOf {
 public:
  explicit Poisson(std::string name = "poisson");
};
class HR_API BinaryCrossentropy : public MeanOf {
 public:
  explicit BinaryCrossentropy(losses::CrossentropyOptions options = {},
                              std::string name = "binary_crossentropy");
};
class HR_API CategoricalCrossentropy : public MeanOf {
 public:
  explicit CategoricalCrossentropy(
      losses::CrossentropyOptions options = {},
      std::string name = "categorical_crossentropy");
};
class HR_API SparseCategoricalCrossentropy : public MeanOf {
 public:
  explicit SparseCategoricalCrossentropy(
      losses::CrossentropyOptions options = {},
      std::string name = "sparse_categorical_crossentropy");
};
// The cosine itself: 1 where labels and predictions point the same way.
class HR_API CosineSimilarity : public MeanOf {
 public:
  explicit CosineSimilarity(int axis = -1,
                            std::string name = "cosine_similarity");
};
// The root of the mean of squared differences over all elements. Tracks "total"
// and "count".
class HR_API RootMeanSquaredError : public Metric {
 public:
  explicit RootMeanSquaredError(std::string name = "root_mean_squared_error");
  void Update(const Tensor& y_true, const Tensor& y_pred,
              const Tensor& sample_weight = {}) override;
  Tensor result() const override;

 private:
  Variable total_, count_;
};

// The mean of each element of values of one shape, which the first Update fixes
// and which must be known (kInvalidArgument). Tracks "total" and "count", once
// the first values have come.
class HR_API MeanTensor : public Module {
 public:
  explicit MeanTensor(std::string name = "mean_tensor");
  void Update(const Tensor& values, const Tensor& sample_weight = {});
  // kFailedPrecondition before the first Update.
  Tensor result() const;
  void Reset();
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  Variable total_, count_;
};

// Keras' short names.
using MSE = MeanSquaredError;
using MAE = MeanAbsoluteError;
using MAPE = MeanAbsolutePercentageError;
using MSLE = MeanSquaredLogarithmicError;
using KLD = KLDivergence;

}  // namespace headrace::tf::metrics
