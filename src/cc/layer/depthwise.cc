// Convolutions of each channel by itself.
#include "cc/layer/spatial.h"
#include "headrace/layer/convolution.h"

namespace headrace::tf::layers {

using internal::Op;
using internal::Spread;
using internal::Throw;

DepthwiseConvolution::DepthwiseConvolution(std::string name, int64_t filters,
                                           Plan plan, int64_t depth_multiplier)
    : Convolution(std::move(name), filters, std::move(plan)),
      multiplier_(depth_multiplier) {
  if (multiplier_ <= 0) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("depth_multiplier must be positive, but is ",
                       multiplier_));
  }
}

int64_t DepthwiseConvolution::MakeKernels(int64_t channels) {
  std::vector<int64_t> shape = plan().size;
  shape.insert(shape.end(), {channels, multiplier_});
  set_kernel(AddWeight("depthwise_kernel", shape, plan().kernel));
  return channels * multiplier_;
}

Tensor DepthwiseConvolution::Sums(const Tensor& x) const {
  const char* padding = plan().padding == "SAME" ? "SAME" : "VALID";
  const auto sums = [&](const Tensor& in, const Tensor& kernel,
                        std::vector<int64_t> strides,
                        std::vector<int64_t> dilations) {
    return Op("DepthwiseConv2dNative", {in, kernel},
              {{"strides", Spread(strides)},
               {"padding", padding},
               {"dilations", Spread(dilations)}});
  };
  if (rank() == 2) return sums(x, kernel(), plan().strides, plan().dilations);
  // The operation wants equal strides; an image of height 1 has one row anyhow.
  const int64_t stride = plan().strides[0];
  return internal::AsImages(Padded(x), [&](const Tensor& images) {
    return sums(images, Op("ExpandDims", {kernel(), internal::Int(0)}),
                {stride, stride}, {1, plan().dilations[0]});
  });
}

namespace {

// As a plain convolution's options; the depthwise kernel is its kernel.
template <int kRank, typename Options>
ConvOptions<kRank> Plain(const Options& o) {
  ConvOptions<kRank> plain{o.strides, o.padding, o.data_format,
                           o.dilation_rate};
  plain.activation = o.activation;
  plain.use_bias = o.use_bias;
  plain.kernel_initializer = o.depthwise_initializer;
  plain.kernel_regularizer = o.depthwise_regularizer;
  plain.kernel_constraint = o.depthwise_constraint;
  plain.bias_initializer = o.bias_initializer;
  plain.bias_regularizer = o.bias_regularizer;
  plain.bias_constraint = o.bias_constraint;
  plain.activity_regularizer = o.activity_regularizer;
  return plain;
}

template <typename Options>
WeightOptions PointwiseOf(const Options& o) {
  return {o.pointwise_initializer, o.pointwise_regularizer,
          o.pointwise_constraint};
}

const DepthwiseConv1DOptions& NotCausal(const DepthwiseConv1DOptions& o) {
  internal::PaddingOf(o.padding, /*causal=*/false);
  return o;
}

}  // namespace

DepthwiseConv1D::DepthwiseConv1D(Size1 kernel_size,
                                 DepthwiseConv1DOptions options)
    : DepthwiseConvolution("depthwise_conv1d", 0,
                           PlanOf(kernel_size, Plain<1>(NotCausal(options))),
                           options.depth_multiplier) {}
DepthwiseConv2D::DepthwiseConv2D(Size2 kernel_size,
                                 DepthwiseConv2DOptions options)
    : DepthwiseConvolution("depthwise_conv2d", 0,
                           PlanOf(kernel_size, Plain<2>(options)),
                           options.depth_multiplier) {}

SeparableConvolution::SeparableConvolution(std::string name, int64_t filters,
                                           Plan plan, int64_t depth_multiplier,
                                           WeightOptions pointwise)
    : DepthwiseConvolution(std::move(name), Checked(filters), std::move(plan),
                           depth_multiplier),
      pointwise_(std::move(pointwise)) {}

int64_t SeparableConvolution::MakeKernels(int64_t channels) {
  const int64_t between = DepthwiseConvolution::MakeKernels(channels);
  std::vector<int64_t> shape(rank(), 1);
  shape.insert(shape.end(), {between, filters()});
  pointwise_kernel_ = AddWeight("pointwise_kernel", shape, pointwise_);
  return filters();
}

Tensor SeparableConvolution::Sums(const Tensor& x) const {
  const auto mixed = [&](const Tensor& in, const Tensor& kernel) {
    return Op("Conv2D", {in, kernel},
              {{"strides", Spread({1, 1})}, {"padding", "VALID"}});
  };
  const Tensor each = DepthwiseConvolution::Sums(x);
  if (rank() == 2) return mixed(each, pointwise_kernel_);
  return internal::AsImages(each, [&](const Tensor& images) {
    return mixed(images,
                 Op("ExpandDims", {pointwise_kernel_, internal::Int(0)}));
  });
}

SeparableConv1D::SeparableConv1D(int64_t filters, Size1 kernel_size,
                                 SeparableConv1DOptions options)
    : SeparableConvolution("separable_conv1d", filters,
                           PlanOf(kernel_size, Plain<1>(options)),
                           options.depth_multiplier, PointwiseOf(options)) {}
SeparableConv2D::SeparableConv2D(int64_t filters, Size2 kernel_size,
                                 SeparableConv2DOptions options)
    : SeparableConvolution("separable_conv2d", filters,
                           PlanOf(kernel_size, Plain<2>(options)),
                           options.depth_multiplier, PointwiseOf(options)) {}

}  // namespace headrace::tf::layers
