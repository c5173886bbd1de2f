#include "headrace/layer/convolution.h"

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
  set_activity_regularizer(plan_.activity_regularizer);
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

Tensor Convolution::Padded(const Tensor& x) const {
  if (plan_.padding != "CAUSAL") return x;
  const int64_t before = plan_.dilations[0] * (plan_.size[0] - 1);
  return Op("Pad", {x, internal::Reshape(
                           internal::Ints({0, 0, before, 0, 0, 0}), {3, 2})});
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
  return internal::AsImages(Padded(given), [&](const Tensor& images) {
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

}  // namespace headrace::tf::layers
