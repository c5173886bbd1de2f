// Activations that are layers because they have options or weights:
// tf.keras.layers. All hand masks on.
#pragma once

#include <optional>
#include <vector>

#include "headrace/layer/layers.h"

namespace headrace::tf::layers {

struct ReLUOptions {
  std::optional<double> max_value;  // none: no ceiling
  double negative_slope = 0;        // below the threshold; not negative
  double threshold = 0;
};
// The input above a threshold, a slope below it.
class HR_API ReLU : public Layer {
 public:
  explicit ReLU(ReLUOptions options = {});

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  ReLUOptions options_;
};

// x above 0, alpha * x below.
class HR_API LeakyReLU : public Layer {
 public:
  explicit LeakyReLU(double alpha = 0.3);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  double alpha_;
};

// x above 0, alpha * (exp(x) - 1) below.
class HR_API ELU : public Layer {
 public:
  explicit ELU(double alpha = 1);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  double alpha_;
};

// x above theta, else 0.
class HR_API ThresholdedReLU : public Layer {
 public:
  explicit ThresholdedReLU(double theta = 1);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  double theta_;
};

// Probabilities along some axes. A second input is a mask of the shape of the
// first: false hides.
class HR_API Softmax : public Layer {
 public:
  explicit Softmax(std::vector<int64_t> axis = {-1});

 protected:
  Tensor CallAll(const std::vector<Tensor>& inputs, bool training) override;

 private:
  std::vector<int64_t> axis_;
};

struct PReLUOptions {
  Initializer alpha_initializer = "zeros";
  Regularizer alpha_regularizer;
  Constraint alpha_constraint;
  // Axes (the batch is 0) along which there is one slope.
  std::vector<int> shared_axes;
};
// A leaky ReLU whose slopes are learned, `alpha`. Sizes of axes that are not
// shared must be known.
class HR_API PReLU : public Layer {
 public:
  explicit PReLU(PReLUOptions options = {});
  const Variable& alpha() const { return alpha_; }

 protected:
  void MakeWeights(const TensorShape& input) override;
  Tensor Call(const Tensor& x, bool training) override;

 private:
  PReLUOptions options_;
  Variable alpha_;
};

}  // namespace headrace::tf::layers
