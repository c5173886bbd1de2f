#include "headrace/convolution.h"

#include "cc/layer/spatial.h"

namespace headrace::tf::layers {

using internal::Op;
using internal::PaddingOf;
using internal::Spread;
using internal::Throw;

int64_t Convolution::Checked(int64_t filters) {
  if (filters > 0) return filters;
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("Invalid value for argument `filters`. Expected a "
                     "strictly positive value. Received filters=",
                     filters, "."));
}

Convolution::Convolution(std::string name, int64_t filters, Plan plan)
    : Layer(std::move(name)), filters_(filters), plan_(std::move(plan)) {
  if (plan_.groups <= 0 || filters % plan_.groups != 0) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("The number of filters must be evenly divisible by the "
                       "number of groups. Received: groups=",
                       plan_.groups, ", filters=", filters, "."));
  }
  internal::CheckSizes(plan_.size, "kernel_size");
  internal::CheckSizes(plan_.strides, "strides");
  internal::CheckSizes(plan_.dilations, "dilation_rate");
  plan_.padding = PaddingOf(plan_.padding, /*causal=*/rank() == 1);
  internal::ChannelsFirst(plan_.data_format);
  set_input_rank(rank() + 2, /*exact=*/true);
}

void Convolution::MakeWeights(const TensorShape& input) {
  int64_t channels = -1;
  if (input.known_rank) {
    channels = internal::ChannelsFirst(plan_.data_format)
                   ? input[1]
                   : input[input.rank() - 1];
  }
  if (channels < 0) {
    Throw(ErrorCode::kInvalidArgument,
          "The channel dimension of the inputs should be defined. The "
          "input_shape received is " +
              input.ToString());
  }
  filters_ = MakeKernels(channels);
  if (plan_.use_bias) bias_ = AddWeight("bias", {filters_}, plan_.bias);
}

int64_t Convolution::MakeKernels(int64_t channels) {
  if (channels % plan_.groups != 0) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("The number of input channels must be evenly divisible "
                       "by the number of groups. Received groups=",
                       plan_.groups, ", but the input has ", channels,
                       " channels."));
  }
  std::vector<int64_t> shape = plan_.size;
  shape.insert(shape.end(), {channels / plan_.groups, filters_});
  kernel_ = AddWeight("kernel", shape, plan_.kernel);
  return filters_;
}

Tensor Convolution::Sums(const Tensor& given) const {
  const auto sums = [&](const char* op, const Tensor& x, const Tensor& kernel,
                        const char* padding, std::vector<int64_t> strides,
                        std::vector<int64_t> dilations) {
    return Op(op, {x, kernel},
              {{"strides", Spread(strides)},
               {"padding", padding},
               {"dilations", Spread(dilations)}});
  };
  const char* padding = plan_.padding == "SAME" ? "SAME" : "VALID";
  if (rank() > 1) {
    return sums(rank() == 2 ? "Conv2D" : "Conv3D", given, kernel_, padding,
                plan_.strides, plan_.dilations);
  }
  Tensor x = given;
  if (plan_.padding == "CAUSAL") {
    const int64_t before = plan_.dilations[0] * (plan_.size[0] - 1);
    x = Op("Pad", {x, internal::Reshape(internal::Ints({0, 0, before, 0, 0, 0}),
                                        {3, 2})});
  }
  return internal::AsImages(x, [&](const Tensor& images) {
    return sums("Conv2D", images, Op("ExpandDims", {kernel_, internal::Int(0)}),
                padding, {1, plan_.strides[0]}, {1, plan_.dilations[0]});
  });
}

Tensor Convolution::Call(const Tensor& x, bool training) {
  return plan_.activation(internal::WithChannelsLast(
      x, plan_.data_format, rank(), [&](const Tensor& last) {
        const Tensor sums = Sums(last);
        if (!bias_) return sums;
        return rank() == 3 ? sums + bias_ : Op("BiasAdd", {sums, bias_});
      }));
}

Conv1D::Conv1D(int64_t filters, Size1 kernel_size, Conv1DOptions options)
    : Convolution("conv1d", Checked(filters), PlanOf(kernel_size, options)) {}
Conv2D::Conv2D(int64_t filters, Size2 kernel_size, Conv2DOptions options)
    : Convolution("conv2d", Checked(filters), PlanOf(kernel_size, options)) {}
Conv3D::Conv3D(int64_t filters, Size3 kernel_size, Conv3DOptions options)
    : Convolution("conv3d", Checked(filters), PlanOf(kernel_size, options)) {}

Conv2DTranspose::Conv2DTranspose(int64_t filters, Size2 kernel_size,
                                 Conv2DOptions options,
                                 std::optional<Size2> output_padding)
    : Convolution("conv2d_transpose", Checked(filters),
                  PlanOf(kernel_size, options)),
      output_padding_(output_padding) {
  if (options.groups != 1) {
    Throw(ErrorCode::kInvalidArgument, "Conv2DTranspose: groups must be 1");
  }
  if (!output_padding) return;
  internal::CheckSizes(output_padding->list(), "output_padding", true);
  for (int i = 0; i < 2; ++i) {
    const int64_t pad = output_padding->list()[i];
    if (pad < plan().strides[i]) continue;
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Strides must be greater than output padding. Received "
                       "strides=",
                       plan().strides[i], ", output_padding=", pad, "."));
  }
}

int64_t Conv2DTranspose::MakeKernels(int64_t channels) {
  const std::vector<int64_t>& size = plan().size;
  set_kernel(AddWeight("kernel", {size[0], size[1], filters(), channels},
                       plan().kernel));
  return filters();
}

Tensor Conv2DTranspose::Sums(const Tensor& x) const {
  const Tensor given = internal::ShapeOf(x);
  const auto size_of = [&](int64_t i) {
    return Op("StridedSlice", {given, internal::Ints({i}),
                               internal::Ints({i + 1}), internal::Ints({1})});
  };
  std::vector<Tensor> sizes = {size_of(0)};
  for (int i = 0; i < 2; ++i) {
    const int64_t stride = plan().strides[i];
    const int64_t reach =
        plan().size[i] + (plan().size[i] - 1) * (plan().dilations[i] - 1);
    int64_t more =
        plan().padding == "VALID" ? std::max<int64_t>(reach - stride, 0) : 0;
    if (output_padding_) {
      const int64_t pad = plan().padding == "SAME" ? reach / 2 : 0;
      more = reach - 2 * pad + output_padding_->list()[i] - stride;
    }
    const int64_t known = x.shape()[i + 1];
    sizes.push_back(known >= 0 ? internal::Ints({known * stride + more})
                               : size_of(i + 1) * stride + more);
  }
  sizes.push_back(internal::Ints({filters()}));
  sizes.push_back(internal::Int(0));
  return Op("Conv2DBackpropInput",
            {Op("ConcatV2", sizes, {{"N", 4}}), kernel(), x},
            {{"strides", Spread(plan().strides)},
             {"padding", plan().padding},
             {"dilations", Spread(plan().dilations)}});
}

namespace {

Conv2DOptions Plain(const DepthwiseConv2DOptions& o) {
  Conv2DOptions plain{o.strides, o.padding, o.data_format, o.dilation_rate};
  plain.activation = o.activation;
  plain.use_bias = o.use_bias;
  plain.kernel_initializer = o.depthwise_initializer;
  plain.kernel_regularizer = o.depthwise_regularizer;
  plain.kernel_constraint = o.depthwise_constraint;
  plain.bias_initializer = o.bias_initializer;
  plain.bias_regularizer = o.bias_regularizer;
  plain.bias_constraint = o.bias_constraint;
  return plain;
}

}  // namespace

DepthwiseConv2D::DepthwiseConv2D(std::string name, int64_t filters,
                                 Size2 kernel_size,
                                 DepthwiseConv2DOptions options)
    : Convolution(std::move(name), filters,
                  PlanOf(kernel_size, Plain(options))),
      multiplier_(options.depth_multiplier) {
  if (multiplier_ <= 0) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("depth_multiplier must be positive, but is ",
                       multiplier_));
  }
}
DepthwiseConv2D::DepthwiseConv2D(Size2 kernel_size,
                                 DepthwiseConv2DOptions options)
    : DepthwiseConv2D("depthwise_conv2d", 0, kernel_size, std::move(options)) {}

int64_t DepthwiseConv2D::MakeKernels(int64_t channels) {
  const std::vector<int64_t>& size = plan().size;
  set_kernel(AddWeight("depthwise_kernel",
                       {size[0], size[1], channels, multiplier_},
                       plan().kernel));
  return channels * multiplier_;
}

Tensor DepthwiseConv2D::Sums(const Tensor& x) const {
  return Op("DepthwiseConv2dNative", {x, kernel()},
            {{"strides", Spread(plan().strides)},
             {"padding", plan().padding},
             {"dilations", Spread(plan().dilations)}});
}

namespace {

DepthwiseConv2DOptions DepthwisePart(const SeparableConv2DOptions& o) {
  return {o.strides,          o.padding,
          o.depth_multiplier, o.data_format,
          o.dilation_rate,    o.activation,
          o.use_bias,         o.depthwise_initializer,
          o.bias_initializer, o.depthwise_regularizer,
          o.bias_regularizer, o.depthwise_constraint,
          o.bias_constraint};
}

}  // namespace

SeparableConv2D::SeparableConv2D(int64_t filters, Size2 kernel_size,
                                 SeparableConv2DOptions options)
    : DepthwiseConv2D("separable_conv2d", Checked(filters), kernel_size,
                      DepthwisePart(options)),
      pointwise_{options.pointwise_initializer, options.pointwise_regularizer,
                 options.pointwise_constraint} {}

int64_t SeparableConv2D::MakeKernels(int64_t channels) {
  const int64_t between = DepthwiseConv2D::MakeKernels(channels);
  pointwise_kernel_ =
      AddWeight("pointwise_kernel", {1, 1, between, filters()}, pointwise_);
  return filters();
}

Tensor SeparableConv2D::Sums(const Tensor& x) const {
  return Op("Conv2D", {DepthwiseConv2D::Sums(x), pointwise_kernel_},
            {{"strides", Spread({1, 1})}, {"padding", "VALID"}});
}

ZeroPadding2D::ZeroPadding2D(Size2 padding, std::string data_format)
    : ZeroPadding2D(padding.list()[0], padding.list()[0], padding.list()[1],
                    padding.list()[1], std::move(data_format)) {}
ZeroPadding2D::ZeroPadding2D(int64_t top, int64_t bottom, int64_t left,
                             int64_t right, std::string data_format)
    : Layer("zero_padding2d"),
      sides_{top, bottom, left, right},
      data_format_(std::move(data_format)) {
  internal::CheckSizes(sides_, "padding", /*zero=*/true);
  internal::ChannelsFirst(data_format_);
  set_input_rank(4, /*exact=*/true);
}
Tensor ZeroPadding2D::Call(const Tensor& x, bool training) {
  std::vector<int64_t> all(8, 0);
  std::copy(sides_.begin(), sides_.end(),
            all.begin() + (internal::ChannelsFirst(data_format_) ? 4 : 2));
  return Op("Pad", {x, internal::Reshape(internal::Ints(all), {4, 2})});
}

UpSampling2D::UpSampling2D(Size2 size, std::string data_format)
    : Layer("up_sampling2d"),
      size_(size.list()),
      data_format_(std::move(data_format)) {
  internal::CheckSizes(size_, "size");
  internal::ChannelsFirst(data_format_);
  set_input_rank(4, /*exact=*/true);
}
Tensor UpSampling2D::Call(const Tensor& x, bool training) {
  return internal::WithChannelsLast(x, data_format_, 2, [&](const Tensor& t) {
    const TensorShape shape = t.shape();
    Tensor size;
    if (shape.known_rank && shape[1] >= 0 && shape[2] >= 0) {
      size = internal::Ints({shape[1] * size_[0], shape[2] * size_[1]});
    } else {
      size = Op("StridedSlice", {internal::ShapeOf(t), internal::Ints({1}),
                                 internal::Ints({3}), internal::Ints({1})}) *
             internal::Ints(size_);
    }
    return Op("ResizeNearestNeighbor", {t, size},
              {{"half_pixel_centers", true}});
  });
}

}  // namespace headrace::tf::layers
