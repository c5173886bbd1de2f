// Activations that are layers because they have options or weights:
// tf.keras.layers. Inputs and outputs have one shape; float dtypes. All hand
// masks on. Those without weights may be called by several threads at once.
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
// The input above a threshold, at most max_value; below it negative_slope * (x
// - threshold). A negative slope throws kInvalidArgument.
class HR_API ReLU : public Layer {
 public:
  explicit ReLU(ReLUOptions options = {});

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  ReLUOptions options_;
};

// x above 0, alpha * x below (Maas et al., 2013). The activation "leaky_relu"
// has a slope of 0.2, as Keras'.
class HR_API LeakyReLU : public Layer {
 public:
  explicit LeakyReLU(double alpha = 0.3);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  double alpha_;
};

// x above 0, alpha * (exp(x) - 1) below (Clevert et al., 2016).
class HR_API ELU : public Layer {
 public:
  explicit ELU(double alpha = 1);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  double alpha_;
};

// x above theta, else 0 (Konda et al., 2015).
class HR_API ThresholdedReLU : public Layer {
 public:
  explicit ThresholdedReLU(double theta = 1);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  double theta_;
};

// Probabilities along some axes: they sum up to 1 over all of them together. A
// second input is a mask of the shape of the first: false hides; without it the
// input's own mask does. Throws kInvalidArgument for no axis, for one that
// inputs do not have and for more than two inputs.
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
// A leaky ReLU whose slopes are learned (He et al., 2015): weight alpha, of the
// input's shape without the batch, 1 along shared_axes. Sizes of axes that are
// not shared must be known. Throws kInvalidArgument for shared axes that inputs
// do not have, the batch among them.
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
