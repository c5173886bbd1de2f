// Losses: tf.keras.losses.
//
//   tf::losses::SparseCategoricalCrossentropy loss({.from_logits = true});
//   tf::Tensor mean = loss(labels, model(images));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "headrace/tensor.h"

namespace headrace::tf::losses {

// What a loss makes of the values of a batch: their sum over their number,
// their sum, or themselves.
enum class Reduction { kSumOverBatchSize, kSum, kNone };

// Base of losses. Labels are cast to the predictions' dtype (but for sparse
// ones); where one of the two has a last axis of 1 too many, it is dropped.
// Immutable and thread-safe. Throws kInvalidArgument for shapes that do not
// fit.
class HR_API Loss {
 public:
  virtual ~Loss() = default;

  // One value a sample, times its weight where `sample_weight` is given,
  // reduced. What the mask of y_pred, or of the values, hides counts neither in
  // the sum nor in the mean's divisor.
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight = {}) const;
  // One value a sample: the shape is that of y_pred without its last axis.
  virtual Tensor Values(const Tensor& y_true, const Tensor& y_pred) const = 0;

 protected:
  explicit Loss(Reduction reduction) : reduction_(reduction) {}

 private:
  Reduction reduction_;
};

struct Options {
  Reduction reduction = Reduction::kSumOverBatchSize;
};

// The mean over the last axis of squares, or sizes, of differences.
class HR_API MeanSquaredError : public Loss {
 public:
  explicit MeanSquaredError(Options options = {});
  Tensor Values(const Tensor& y_true, const Tensor& y_pred) const override;
};
class HR_API MeanAbsoluteError : public Loss {
 public:
  explicit MeanAbsoluteError(Options options = {});
  Tensor Values(const Tensor& y_true, const Tensor& y_pred) const override;
};

// A loss of a function that gives one value a sample. Labels have the
// predictions' dtype when it is called.
class HR_API LossOf : public Loss {
 public:
  using Function =
      std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;
  explicit LossOf(Function function, Options options = {});
  Tensor Values(const Tensor& y_true, const Tensor& y_pred) const override;

 private:
  Function function_;
};

// 100 times the mean of differences over labels.
class HR_API MeanAbsolutePercentageError : public LossOf {
 public:
  explicit MeanAbsolutePercentageError(Options options = {});
};
// The mean of squared differences of logarithms of 1 + x.
class HR_API MeanSquaredLogarithmicError : public LossOf {
 public:
  explicit MeanSquaredLogarithmicError(Options options = {});
};
// The mean of max(1 - y_true * y_pred, 0), and of its square; labels are -1 and
// 1 (0 and 1 are taken for them).
class HR_API Hinge : public LossOf {
 public:
  explicit Hinge(Options options = {});
};
class HR_API SquaredHinge : public LossOf {
 public:
  explicit SquaredHinge(Options options = {});
};
// How far the greatest wrong prediction comes to the right one, plus 1.
class HR_API CategoricalHinge : public LossOf {
 public:
  explicit CategoricalHinge(Options options = {});
};
// The mean logarithm of the hyperbolic cosine of differences.
class HR_API LogCosh : public LossOf {
 public:
  explicit LogCosh(Options options = {});
};
// The Kullback-Leibler divergence of distributions along the last axis.
class HR_API KLDivergence : public LossOf {
 public:
  explicit KLDivergence(Options options = {});
};
// The mean of y_pred - y_true * log(y_pred).
class HR_API Poisson : public LossOf {
 public:
  explicit Poisson(Options options = {});
};
// The negative cosine of the angle between labels and predictions.
class HR_API CosineSimilarity : public LossOf {
 public:
  explicit CosineSimilarity(int axis = -1, Options options = {});
};

// Squares of small differences, sizes of those above `delta`.
class HR_API Huber : public Loss {
 public:
  explicit Huber(double delta = 1, Options options = {});
  Tensor Values(const Tensor& y_true, const Tensor& y_pred) const override;

 private:
  double delta_;
};

struct CrossentropyOptions {
  // y_pred are logits; otherwise probabilities.
  bool from_logits = false;
  // In [0, 1]: labels are drawn that far towards evenness. Not for sparse ones.
  double label_smoothing = 0;
  // Labels that count nothing. For sparse ones only.
  std::optional<int64_t> ignore_class;
  Reduction reduction = Reduction::kSumOverBatchSize;
};

// Of probabilities of two classes each, the mean over the last axis; labels
// are 0 or 1.
class HR_API BinaryCrossentropy : public Loss {
 public:
  // Throws kInvalidArgument for an ignore_class.
  explicit BinaryCrossentropy(CrossentropyOptions options = {});
  Tensor Values(const Tensor& y_true, const Tensor& y_pred) const override;

 private:
  CrossentropyOptions options_;
};

struct BinaryFocalOptions {
  double alpha = 0.25;  // of label 1, with apply_class_balancing
  double gamma = 2;     // how far easy samples count less
  bool apply_class_balancing = false;
  bool from_logits = false;
  double label_smoothing = 0;
  Reduction reduction = Reduction::kSumOverBatchSize;
};
// The binary cross-entropy, less where the prediction is right already (Lin et
// al., 2017).
class HR_API BinaryFocalCrossentropy : public LossOf {
 public:
  explicit BinaryFocalCrossentropy(BinaryFocalOptions options = {});
};

// Of classes along the last axis; labels are distributions over them.
class HR_API CategoricalCrossentropy : public Loss {
 public:
  // Throws kInvalidArgument for an ignore_class.
  explicit CategoricalCrossentropy(CrossentropyOptions options = {});
  Tensor Values(const Tensor& y_true, const Tensor& y_pred) const override;

 private:
  CrossentropyOptions options_;
};

// The same with the classes' numbers as labels, of any integer or float dtype.
class HR_API SparseCategoricalCrossentropy : public Loss {
 public:
  // Throws kInvalidArgument for a label_smoothing.
  explicit SparseCategoricalCrossentropy(CrossentropyOptions options = {});
  Tensor Values(const Tensor& y_true, const Tensor& y_pred) const override;

 private:
  CrossentropyOptions options_;
};

// Keras' short names.
using MSE = MeanSquaredError;
using MAE = MeanAbsoluteError;
using MAPE = MeanAbsolutePercentageError;
using MSLE = MeanSquaredLogarithmicError;
using KLD = KLDivergence;

}  // namespace headrace::tf::losses
