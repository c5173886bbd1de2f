// Convolutions of one, two and three dimensions: tf.keras.layers.
//
// Inputs are [n, sizes..., channels], or [n, channels, sizes...] where
// data_format is "channels_first", and so are outputs. Checkpoints know the
// weights as kernel (depthwise_kernel, pointwise_kernel) and bias. Sizes that
// are not positive, unknown names, groups that do not divide filters and
// channels are kInvalidArgument, as are inputs of another rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/layer/layers.h"

namespace headrace::tf::layers {

// One number for each dimension, or one for all.
template <int kRank>
class Sizes {
 public:
  Sizes(int64_t all) { each_.fill(all); }  // NOLINT
  template <typename... More, typename = std::enable_if_t<
                                  kRank != 1 && sizeof...(More) == kRank - 1>>
  Sizes(int64_t first, More... more)
      : each_{first, static_cast<int64_t>(more)...} {}
  std::vector<int64_t> list() const { return {each_.begin(), each_.end()}; }

 private:
  std::array<int64_t, kRank> each_;
};
using Size1 = Sizes<1>;
using Size2 = Sizes<2>;  // height, width
using Size3 = Sizes<3>;  // depth, height, width

template <int kRank>
// What convolutions take, with Keras' defaults. `groups` divides both channels
// and filters: each group of filters sees a part of the channels.
struct ConvOptions {
  Sizes<kRank> strides = 1;
  // "valid" or "same"; of Conv1D also "causal": no output sees later inputs.
  std::string padding = "valid";
  std::string data_format = "channels_last";  // or "channels_first"
  Sizes<kRank> dilation_rate = 1;
  int64_t groups = 1;
  ActivationFunction activation;
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer, bias_regularizer;
  Constraint kernel_constraint, bias_constraint;
  Regularizer activity_regularizer;
};
using Conv1DOptions = ConvOptions<1>;
using Conv2DOptions = ConvOptions<2>;
using Conv3DOptions = ConvOptions<3>;

// What all convolutions share. Outputs have the size (size - reach) / stride +
// 1, rounded down, with reach = dilation * (kernel size - 1) + 1 for "valid",
// and size / stride, rounded up, for "same" and "causal". Weights: kernel
// [sizes..., channels / groups, filters] and bias [filters]; null before the
// first call, the bias also without use_bias.
class HR_API Convolution : public Layer {
 public:
  const Variable& kernel() const { return kernel_; }
  const Variable& bias() const { return bias_; }

 protected:
  // What the options of each kind come to.
  struct Plan {
    std::vector<int64_t> size, strides, dilations;
    std::string padding, data_format;
    int64_t groups = 1;
    ActivationFunction activation;
    bool use_bias = true;
    WeightOptions kernel, bias;
    Regularizer activity_regularizer;
  };
  template <int kRank>
  static Plan PlanOf(const Sizes<kRank>& size, const ConvOptions<kRank>& o) {
    return {size.list(),
            o.strides.list(),
            o.dilation_rate.list(),
            o.padding,
            o.data_format,
            o.groups,
            o.activation,
            o.use_bias,
            {o.kernel_initializer, o.kernel_regularizer, o.kernel_constraint},
            {o.bias_initializer, o.bias_regularizer, o.bias_constraint},
            o.activity_regularizer};
  }
  // kInvalidArgument unless positive.
  static int64_t Checked(int64_t filters);
  // `filters` 0: as many as MakeKernels says.
  Convolution(std::string name, int64_t filters, Plan plan);
  void MakeWeights(const TensorShape& input) override;
  Tensor Call(const Tensor& x, bool training) override;
  // Makes the kernels and gives the number of output channels.
  virtual int64_t MakeKernels(int64_t channels);
  // Without bias; channels last.
  virtual Tensor Sums(const Tensor& x) const;

  // With zeros before it where the padding is causal.
  Tensor Padded(const Tensor& x) const;

  int rank() const { return static_cast<int>(plan_.size.size()); }
  int64_t filters() const { return filters_; }
  const Plan& plan() const { return plan_; }
  void set_kernel(Variable kernel) { kernel_ = std::move(kernel); }

 private:
  int64_t filters_;
  Plan plan_;
  Variable kernel_, bias_;
};

// [n, steps, channels] to [n, steps', filters].
class HR_API Conv1D : public Convolution {
 public:
  Conv1D(int64_t filters, Size1 kernel_size, Conv1DOptions options = {});
};

// [n, height, width, channels] to [n, height', width', filters].
class HR_API Conv2D : public Convolution {
 public:
  Conv2D(int64_t filters, Size2 kernel_size, Conv2DOptions options = {});
};

// [n, depth, height, width, channels] to [n, depth', height', width', filters].
class HR_API Conv3D : public Convolution {
 public:
  Conv3D(int64_t filters, Size3 kernel_size, Conv3DOptions options = {});
};

// The transposed convolutions: from the sizes that a convolution gives to those
// that it takes (Dumoulin and Visin, 2016). Kernels are [sizes..., filters,
// channels]. `output_padding` is added at the end where several sizes of inputs
// give one of outputs; less than the strides. `groups` must be 1, the padding
// "valid" or "same"; others throw kInvalidArgument.
class HR_API ConvolutionTranspose : public Convolution {
 protected:
  ConvolutionTranspose(std::string name, int64_t filters, Plan plan,
                       std::vector<int64_t> output_padding);
  int64_t MakeKernels(int64_t channels) override;
  Tensor Sums(const Tensor& x) const override;

 private:
  Tensor OutputSizes(const Tensor& x) const;

  std::vector<int64_t> output_padding_;  // or empty
};
class HR_API Conv1DTranspose : public ConvolutionTranspose {
 public:
  Conv1DTranspose(int64_t filters, Size1 kernel_size,
                  Conv1DOptions options = {},
                  std::optional<Size1> output_padding = {});
};
class HR_API Conv2DTranspose : public ConvolutionTranspose {
 public:
  Conv2DTranspose(int64_t filters, Size2 kernel_size,
                  Conv2DOptions options = {},
                  std::optional<Size2> output_padding = {});
};
class HR_API Conv3DTranspose : public ConvolutionTranspose {
 public:
  Conv3DTranspose(int64_t filters, Size3 kernel_size,
                  Conv3DOptions options = {},
                  std::optional<Size3> output_padding = {});
};
// Keras' other names.
using Convolution1D = Conv1D;
using Convolution2D = Conv2D;
using Convolution3D = Conv3D;

template <int kRank>
struct DepthwiseConvOptions {
  Sizes<kRank> strides = 1;
  std::string padding = "valid";
  int64_t depth_multiplier = 1;
  std::string data_format = "channels_last";
  Sizes<kRank> dilation_rate = 1;
  ActivationFunction activation;
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer depthwise_regularizer, bias_regularizer;
  Constraint depthwise_constraint, bias_constraint;
  Regularizer activity_regularizer;
};
using DepthwiseConv1DOptions = DepthwiseConvOptions<1>;
using DepthwiseConv2DOptions = DepthwiseConvOptions<2>;

// Each channel by kernels of its own: the output has depth_multiplier times as
// many channels, those of one input channel side by side. Weight:
// depthwise_kernel [sizes..., channels, depth_multiplier]. Of images both
// strides must be equal. Throws kInvalidArgument for a depth_multiplier below
// 1.
class HR_API DepthwiseConvolution : public Convolution {
 protected:
  DepthwiseConvolution(std::string name, int64_t filters, Plan plan,
                       int64_t depth_multiplier);
  int64_t MakeKernels(int64_t channels) override;
  Tensor Sums(const Tensor& x) const override;

 private:
  int64_t multiplier_;
};
class HR_API DepthwiseConv1D : public DepthwiseConvolution {
 public:
  explicit DepthwiseConv1D(Size1 kernel_size,
                           DepthwiseConv1DOptions options = {});
};
class HR_API DepthwiseConv2D : public DepthwiseConvolution {
 public:
  explicit DepthwiseConv2D(Size2 kernel_size,
                           DepthwiseConv2DOptions options = {});
};

template <int kRank>
struct SeparableConvOptions {
  Sizes<kRank> strides = 1;
  std::string padding = "valid";  // of SeparableConv1D also "causal"
  std::string data_format = "channels_last";
  Sizes<kRank> dilation_rate = 1;
  int64_t depth_multiplier = 1;
  ActivationFunction activation;
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer pointwise_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer depthwise_regularizer, pointwise_regularizer, bias_regularizer;
  Constraint depthwise_constraint, pointwise_constraint, bias_constraint;
  Regularizer activity_regularizer;
};
using SeparableConv1DOptions = SeparableConvOptions<1>;
using SeparableConv2DOptions = SeparableConvOptions<2>;

// A depthwise convolution, then one of size 1 that mixes channels: few weights
// in place of a full kernel (Chollet, 2017). Weights: depthwise_kernel and
// pointwise_kernel [1..., channels * depth_multiplier, filters].
class HR_API SeparableConvolution : public DepthwiseConvolution {
 protected:
  SeparableConvolution(std::string name, int64_t filters, Plan plan,
                       int64_t depth_multiplier, WeightOptions pointwise);
  int64_t MakeKernels(int64_t channels) override;
  Tensor Sums(const Tensor& x) const override;

 private:
  WeightOptions pointwise_;
  Variable pointwise_kernel_;
};
class HR_API SeparableConv1D : public SeparableConvolution {
 public:
  SeparableConv1D(int64_t filters, Size1 kernel_size,
                  SeparableConv1DOptions options = {});
};
class HR_API SeparableConv2D : public SeparableConvolution {
 public:
  SeparableConv2D(int64_t filters, Size2 kernel_size,
                  SeparableConv2DOptions options = {});
};

}  // namespace headrace::tf::layers
