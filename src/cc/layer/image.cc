// Convolutions and pooling.
#include "cc/compose.h"
#include "headrace/layers.h"

namespace headrace::tf::layers {

using internal::Op;
using internal::Throw;

namespace {

using Sizes = std::vector<int64_t>;

Sizes Four(const Size2& s) { return {1, s.height, s.width, 1}; }

void CheckSize(const Size2& s, const char* name) {
  if (s.height > 0 && s.width > 0) return;
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("The `", name,
                     "` argument must be a tuple of 2 integers. "
                     "Received: (",
                     s.height, ", ", s.width, ")"));
}

// "VALID" or "SAME".
std::string Upper(const std::string& padding) {
  if (padding == "valid" || padding == "VALID") return "VALID";
  if (padding == "same" || padding == "SAME") return "SAME";
  Throw(ErrorCode::kInvalidArgument,
        "The `padding` argument must be a list/tuple or one of {'valid', "
        "'same'}. Received: " +
            padding);
}

bool ChannelsFirst(const std::string& format) {
  if (format == "channels_first") return true;
  if (format == "channels_last") return false;
  Throw(ErrorCode::kInvalidArgument,
        "The `data_format` argument must be one of \"channels_first\", "
        "\"channels_last\". Received: " +
            format);
}

int64_t ChannelsOf(const TensorShape& input, const std::string& format) {
  if (input.known_rank) {
    const int64_t n =
        ChannelsFirst(format) ? input[1] : input[input.rank() - 1];
    if (n >= 0) return n;
  }
  Throw(ErrorCode::kInvalidArgument,
        "The channel dimension of the inputs should be defined. The "
        "input_shape received is " +
            input.ToString());
}

// fn with channels last, whatever the layer's format is.
template <typename F>
Tensor WithChannelsLast(const Tensor& x, const std::string& format, F fn) {
  if (!ChannelsFirst(format)) return fn(x);
  return internal::Transpose(fn(internal::Transpose(x, {0, 2, 3, 1})),
                             {0, 3, 1, 2});
}

Tensor Pool(const char* op, const Tensor& x, const Size2& size,
            const PoolOptions& options) {
  return WithChannelsLast(x, options.data_format, [&](const Tensor& images) {
    return Op(op, {images},
              {{"ksize", Four(size)},
               {"strides", Four(options.strides.value_or(size))},
               {"padding", Upper(options.padding)}});
  });
}

void CheckPool(const Size2& size, const PoolOptions& options) {
  CheckSize(size, "pool_size");
  CheckSize(options.strides.value_or(size), "strides");
  Upper(options.padding);
  ChannelsFirst(options.data_format);
}

}  // namespace

Conv2D::Conv2D(int64_t filters, Size2 kernel_size, Conv2DOptions options)
    : Layer("conv2d"),
      filters_(filters),
      size_(kernel_size),
      options_(std::move(options)) {
  if (filters <= 0) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Invalid value for argument `filters`. Expected a "
                       "strictly positive value. Received filters=",
                       filters, "."));
  }
  if (options_.groups <= 0 || filters % options_.groups != 0) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("The number of filters must be evenly divisible by the "
                       "number of groups. Received: groups=",
                       options_.groups, ", filters=", filters, "."));
  }
  CheckSize(size_, "kernel_size");
  CheckSize(options_.strides, "strides");
  CheckSize(options_.dilation_rate, "dilation_rate");
  Upper(options_.padding);
  ChannelsFirst(options_.data_format);
  set_input_rank(4, /*exact=*/true);
}

void Conv2D::MakeWeights(const TensorShape& input) {
  const int64_t channels = ChannelsOf(input, options_.data_format);
  if (channels % options_.groups != 0) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("The number of input channels must be evenly divisible "
                       "by the number of groups. Received groups=",
                       options_.groups, ", but the input has ", channels,
                       " channels."));
  }
  kernel_ = AddWeight(
      "kernel",
      {size_.height, size_.width, channels / options_.groups, filters_},
      options_.kernel_initializer);
  if (options_.use_bias) {
    bias_ = AddWeight("bias", {filters_}, options_.bias_initializer);
  }
}

Tensor Conv2D::Call(const Tensor& x, bool training) {
  const Tensor out =
      WithChannelsLast(x, options_.data_format, [&](const Tensor& images) {
        const Tensor sums = Op("Conv2D", {images, kernel_},
                               {{"strides", Four(options_.strides)},
                                {"padding", Upper(options_.padding)},
                                {"dilations", Four(options_.dilation_rate)}});
        return bias_ ? Op("BiasAdd", {sums, bias_}) : sums;
      });
  return options_.activation(out);
}

DepthwiseConv2D::DepthwiseConv2D(Size2 kernel_size,
                                 DepthwiseConv2DOptions options)
    : Layer("depthwise_conv2d"),
      size_(kernel_size),
      options_(std::move(options)) {
  if (options_.depth_multiplier <= 0) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("DepthwiseConv2D: depth_multiplier=",
                       options_.depth_multiplier));
  }
  CheckSize(size_, "kernel_size");
  CheckSize(options_.strides, "strides");
  CheckSize(options_.dilation_rate, "dilation_rate");
  Upper(options_.padding);
  ChannelsFirst(options_.data_format);
  set_input_rank(4, /*exact=*/true);
}

void DepthwiseConv2D::MakeWeights(const TensorShape& input) {
  const int64_t channels = ChannelsOf(input, options_.data_format);
  kernel_ = AddWeight(
      "depthwise_kernel",
      {size_.height, size_.width, channels, options_.depth_multiplier},
      options_.depthwise_initializer);
  if (options_.use_bias) {
    bias_ = AddWeight("bias", {channels * options_.depth_multiplier},
                      options_.bias_initializer);
  }
}

Tensor DepthwiseConv2D::Call(const Tensor& x, bool training) {
  const Tensor out =
      WithChannelsLast(x, options_.data_format, [&](const Tensor& images) {
        const Tensor sums = Op("DepthwiseConv2dNative", {images, kernel_},
                               {{"strides", Four(options_.strides)},
                                {"padding", Upper(options_.padding)},
                                {"dilations", Four(options_.dilation_rate)}});
        return bias_ ? Op("BiasAdd", {sums, bias_}) : sums;
      });
  return options_.activation(out);
}

MaxPool2D::MaxPool2D(Size2 pool_size, PoolOptions options)
    : Layer("max_pooling2d"), size_(pool_size), options_(std::move(options)) {
  CheckPool(size_, options_);
  set_input_rank(4, /*exact=*/true);
}
Tensor MaxPool2D::Call(const Tensor& x, bool training) {
  return Pool("MaxPool", x, size_, options_);
}

AveragePool2D::AveragePool2D(Size2 pool_size, PoolOptions options)
    : Layer("average_pooling2d"),
      size_(pool_size),
      options_(std::move(options)) {
  CheckPool(size_, options_);
  set_input_rank(4, /*exact=*/true);
}
Tensor AveragePool2D::Call(const Tensor& x, bool training) {
  return Pool("AvgPool", x, size_, options_);
}

GlobalMaxPool2D::GlobalMaxPool2D(bool keep_dims)
    : Layer("global_max_pooling2d"), keep_dims_(keep_dims) {
  set_input_rank(4, /*exact=*/true);
}
Tensor GlobalMaxPool2D::Call(const Tensor& x, bool training) {
  return internal::Reduce("Max", x, {1, 2}, keep_dims_);
}

GlobalAveragePool2D::GlobalAveragePool2D(bool keep_dims)
    : Layer("global_average_pooling2d"), keep_dims_(keep_dims) {
  set_input_rank(4, /*exact=*/true);
}
Tensor GlobalAveragePool2D::Call(const Tensor& x, bool training) {
  return internal::Reduce("Mean", x, {1, 2}, keep_dims_);
}

GlobalMaxPool1D::GlobalMaxPool1D(bool keep_dims)
    : Layer("global_max_pooling1d"), keep_dims_(keep_dims) {
  set_input_rank(3, /*exact=*/true);
}
Tensor GlobalMaxPool1D::Call(const Tensor& x, bool training) {
  return internal::Reduce("Max", x, {1}, keep_dims_);
}

GlobalAveragePool1D::GlobalAveragePool1D(bool keep_dims)
    : Layer("global_average_pooling1d"), keep_dims_(keep_dims) {
  set_input_rank(3, /*exact=*/true);
}
Tensor GlobalAveragePool1D::Call(const Tensor& x, bool training) {
  return internal::Reduce("Mean", x, {1}, keep_dims_);
}

}  // namespace headrace::tf::layers
