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

// What a loss makes of the values of a batch: their sum over their number (the
// number of all values, not only of the batch's samples), their sum (both
// scalars), or themselves.
enum class Reduction { kSumOverBatchSize, kSum, kNone };

// Base of losses. Labels are cast to the predictions' dtype (but for sparse
// ones); where one of the two has a last axis of 1 too many, it is dropped.
// Labels and predictions then have one shape, or shapes that broadcast.
// Immutable and thread-safe; works eagerly and in traced functions. Throws
// kInvalidArgument for shapes that do not fit.
class HR_API Loss {
 public:
  virtual ~Loss() = default;

  // One value a sample, times its weight where `sample_weight` is given,
  // reduced. `sample_weight` is a scalar or one weight a value, of any number
  // dtype; axes that it lacks at the end are added. What the mask of y_pred, or
  // of the values, hides counts neither in the sum nor in the mean's divisor.
  // The result has the dtype of y_pred.
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight = {}) const;
  // One value a sample, neither weighted nor reduced: the shape is that of
  // y_pred without its last axis.
  virtual Tensor Values(const Tensor& y_true, const Tensor& y_pred) const = 0;
  // How the values become one.
  Reduction reduction() const { return reduction_; }

 protected:
  // For losses of one's own: only Values is to be said.
  explicit Loss(Reduction reduction) : reduction_(reduction) {}

 private:
  Reduction reduction_;
};

struct Options {
  Reduction reduction = Reduction::kSumOverBatchSize;
};

// The mean over the last axis of (y_true - y_pred)^2, and of |y_true - y_pred|.
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
// predictions' dtype when it is called. Throws kInvalidArgument for no
// function.
class HR_API LossOf : public Loss {
 public:
  using Function =
      std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;
  explicit LossOf(Function function, Options options = {});
  Tensor Values(const Tensor& y_true, const Tensor& y_pred) const override;

 private:
  Function function_;
};

// 100 times the mean of |y_true - y_pred| / |y_true|, with 1e-7 for smaller
// labels.
class HR_API MeanAbsolutePercentageError : public LossOf {
 public:
  explicit MeanAbsolutePercentageError(Options options = {});
};
// The mean of squared differences of log(1 + x), negative numbers taken for 0.
class HR_API MeanSquaredLogarithmicError : public LossOf {
 public:
  explicit MeanSquaredLogarithmicError(Options options = {});
};
// The mean of max(1 - y_true * y_pred, 0), and of its square; labels are -1 and
// 1 (0 and 1 are taken for them, where the batch has no others).
class HR_API Hinge : public LossOf {
 public:
  explicit Hinge(Options options = {});
};
class HR_API SquaredHinge : public LossOf {
 public:
  explicit SquaredHinge(Options options = {});
};
// max(0, 1 + the greatest wrong prediction - the right one), with labels as
// distributions along the last axis.
class HR_API CategoricalHinge : public LossOf {
 public:
  explicit CategoricalHinge(Options options = {});
};
// The mean of log(cosh(y_pred - y_true)): like squares for small differences,
// like sizes for large ones. Computed so that it does not overflow.
class HR_API LogCosh : public LossOf {
 public:
  explicit LogCosh(Options options = {});
};
// The Kullback-Leibler divergence of distributions along the last axis, the sum
// of y_true * log(y_true / y_pred), both clipped to [1e-7, 1].
class HR_API KLDivergence : public LossOf {
 public:
  explicit KLDivergence(Options options = {});
};
// The mean of y_pred - y_true * log(y_pred + 1e-7); predictions are rates, not
// negative.
class HR_API Poisson : public LossOf {
 public:
  explicit Poisson(Options options = {});
};
// The negative cosine of the angle between labels and predictions along `axis`:
// -1 where they point the same way.
class HR_API CosineSimilarity : public LossOf {
 public:
  explicit CosineSimilarity(int axis = -1, Options options = {});
};

// The mean over the last axis of e^2 / 2 for differences e of at most `delta`,
// of delta * |e| - delta^2 / 2 for larger ones (Huber, 1964).
class HR_API Huber : public Loss {
 public:
  explicit Huber(double delta = 1, Options options = {});
  Tensor Values(const Tensor& y_true, const Tensor& y_pred) const override;

 private:
  double delta_;
};

struct CrossentropyOptions {
  // y_pred are logits; otherwise probabilities. In a traced function
  // probabilities that come right out of a sigmoid or softmax are taken as the
  // logits behind them, as Keras does: that is exact where a probability rounds
  // to 0 or 1.
  bool from_logits = false;
  // In [0, 1]: labels are drawn that far towards evenness (Szegedy et al.,
  // 2016). Not for sparse ones.
  double label_smoothing = 0;
  // Labels that count nothing, also not in the mean's divisor. For sparse ones
  // only.
  std::optional<int64_t> ignore_class;
  Reduction reduction = Reduction::kSumOverBatchSize;
};

// Of probabilities of two classes each, the mean over the last axis; labels are
// 0 or 1. Probabilities are clipped to [1e-7, 1 - 1e-7], logits are not.
class HR_API BinaryCrossentropy : public Loss {
 public:
  // Throws kInvalidArgument for an ignore_class. The same for a label_smoothing
  // outside of [0, 1].
  explicit BinaryCrossentropy(CrossentropyOptions options = {});
  Tensor Values(const Tensor& y_true, const Tensor& y_pred) const override;

 private:
  CrossentropyOptions options_;
};

// Alpha and gamma as in the paper.
struct BinaryFocalOptions {
  double alpha = 0.25;  // of label 1, with apply_class_balancing
  double gamma = 2;     // how far easy samples count less
  bool apply_class_balancing = false;
  bool from_logits = false;
  double label_smoothing = 0;
  Reduction reduction = Reduction::kSumOverBatchSize;
};
// The binary cross-entropy times (1 - p)^gamma, p the probability that the
// right class got: less where the prediction is right already (Lin et al.,
// 2017).
class HR_API BinaryFocalCrossentropy : public LossOf {
 public:
  explicit BinaryFocalCrossentropy(BinaryFocalOptions options = {});
};

// Of classes along the last axis; labels are distributions over them, of the
// same shape. Probabilities are scaled to a sum of 1 first.
class HR_API CategoricalCrossentropy : public Loss {
 public:
  // Throws kInvalidArgument for an ignore_class. The same for a label_smoothing
  // outside of [0, 1].
  explicit CategoricalCrossentropy(CrossentropyOptions options = {});
  Tensor Values(const Tensor& y_true, const Tensor& y_pred) const override;

 private:
  CrossentropyOptions options_;
};

// The same with the classes' numbers as labels, of any integer or float dtype,
// of the shape of y_pred without its last axis, or with 1 for it. A number that
// is no class is kInvalidArgument where the loss runs.
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
