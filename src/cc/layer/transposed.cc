// Transposed convolutions.
#include "cc/layer/spatial.h"
#include "headrace/layer/convolution.h"

namespace headrace::tf::layers {

using internal::Ints;
using internal::Op;
using internal::Throw;

ConvolutionTranspose::ConvolutionTranspose(std::string name, int64_t filters,
                                           Plan given,
                                           std::vector<int64_t> output_padding)
    : Convolution(std::move(name), Checked(filters), std::move(given)),
      output_padding_(std::move(output_padding)) {
  if (plan().groups != 1) {
    Throw(ErrorCode::kInvalidArgument,
          this->name() + ": groups of transposed convolutions must be 1");
  }
  if (plan().padding == "CAUSAL") {
    Throw(ErrorCode::kInvalidArgument,
          "Causal padding is only supported for `Conv1D` and "
          "`SeparableConv1D`.");
  }
  internal::CheckSizes(output_padding_, "output_padding", /*zero=*/true);
  for (size_t i = 0; i < output_padding_.size(); ++i) {
    if (output_padding_[i] < plan().strides[i]) continue;
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Strides must be greater than output padding. Received "
                       "strides=",
                       plan().strides[i],
                       ", output_padding=", output_padding_[i], "."));
  }
}

int64_t ConvolutionTranspose::MakeKernels(int64_t channels) {
  std::vector<int64_t> shape = plan().size;
  shape.insert(shape.end(), {filters(), channels});
  set_kernel(AddWeight("kernel", shape, plan().kernel));
  return filters();
}

// [n, sizes..., filters] of the output, for channels last.
Tensor ConvolutionTranspose::OutputSizes(const Tensor& x) const {
  const Tensor given = internal::ShapeOf(x);
  const auto size_of = [&](int64_t i) {
    return Op("StridedSlice", {given, Ints({i}), Ints({i + 1}), Ints({1})});
  };
  std::vector<Tensor> sizes = {size_of(0)};
  if (rank() == 1) sizes.push_back(Ints({1}));
  for (int i = 0; i < rank(); ++i) {
    const int64_t stride = plan().strides[i];
    const int64_t reach =
        plan().size[i] + (plan().size[i] - 1) * (plan().dilations[i] - 1);
    int64_t more =
        plan().padding == "VALID" ? std::max<int64_t>(reach - stride, 0) : 0;
    if (!output_padding_.empty()) {
      const int64_t pad = plan().padding == "SAME" ? reach / 2 : 0;
      more = reach - 2 * pad + output_padding_[i] - stride;
    }
    const int64_t known = x.shape()[i + 1];
    sizes.push_back(known >= 0 ? Ints({known * stride + more})
                               : size_of(i + 1) * stride + more);
  }
  sizes.push_back(Ints({filters()}));
  const int64_t count = static_cast<int64_t>(sizes.size());
  sizes.push_back(internal::Int(0));
  return Op("ConcatV2", sizes, {{"N", count}});
}

Tensor ConvolutionTranspose::Sums(const Tensor& x) const {
  const auto sums = [&](const char* op, const Tensor& kernel, const Tensor& in,
                        const std::vector<int64_t>& strides,
                        const std::vector<int64_t>& dilations) {
    return Op(op, {OutputSizes(x), kernel, in},
              {{"strides", internal::Spread(strides)},
               {"padding", plan().padding},
               {"dilations", internal::Spread(dilations)}});
  };
  if (rank() > 1) {
    return sums(rank() == 2 ? "Conv2DBackpropInput" : "Conv3DBackpropInputV2",
                kernel(), x, plan().strides, plan().dilations);
  }
  return internal::AsImages(x, [&](const Tensor& images) {
    return sums("Conv2DBackpropInput",
                Op("ExpandDims", {kernel(), internal::Int(0)}), images,
                {1, plan().strides[0]}, {1, plan().dilations[0]});
  });
}

namespace {

template <int kRank>
std::vector<int64_t> ListOf(const std::optional<Sizes<kRank>>& sizes) {
  return sizes ? sizes->list() : std::vector<int64_t>();
}

}  // namespace

Conv1DTranspose::Conv1DTranspose(int64_t filters, Size1 kernel_size,
                                 Conv1DOptions options,
                                 std::optional<Size1> output_padding)
    : ConvolutionTranspose("conv1d_transpose", filters,
                           PlanOf(kernel_size, options),
                           ListOf(output_padding)) {}
Conv2DTranspose::Conv2DTranspose(int64_t filters, Size2 kernel_size,
                                 Conv2DOptions options,
                                 std::optional<Size2> output_padding)
    : ConvolutionTranspose("conv2d_transpose", filters,
                           PlanOf(kernel_size, options),
                           ListOf(output_padding)) {}
Conv3DTranspose::Conv3DTranspose(int64_t filters, Size3 kernel_size,
                                 Conv3DOptions options,
                                 std::optional<Size3> output_padding)
    : ConvolutionTranspose("conv3d_transpose", filters,
                           PlanOf(kernel_size, options),
                           ListOf(output_padding)) {}

}  // namespace headrace::tf::layers
