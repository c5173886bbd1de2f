// Losses: tf.keras.losses.
//
//   tf::losses::SparseCategoricalCrossentropy loss({.from_logits = true});
//   tf::Tensor mean = loss(labels, model(images));
#pragma once

#include <cstdint>
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
  // reduced.
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

}  // namespace headrace::tf::losses
