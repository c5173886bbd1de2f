// FusedBatchNorm, its later versions, and their gradient ops.
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "base/thread_pool.h"
#include "op/op.h"
#include "op/passes/simplify.h"
#include "op/vectorize.h"
#include "ops/nn/norm/batch_norm.h"
#include "ops/nn/norm/batch_norm_loops.h"
#include "ops/nn/norm/fused_batch_norm_gradient.h"
#include "ops/nn/window.h"

namespace headrace {
namespace {

bool ChannelsFirst(const ResolvedOp& op) {
  return absl::StartsWith(op.string_attr("data_format"), "NC");
}

Status CheckInput(const Shape& x) {
  if (!x.known_rank() || x.rank() == 4 || x.rank() == 5) return OkStatus();
  return InvalidArgument("input must be 4 or 5-dimensional", x);
}

int64_t Channels(const ResolvedOp& op, const Shape& x) {
  if (!x.known_rank()) return -1;
  return x[ChannelsFirst(op) ? 1 : x.rank() - 1];
}

Status CheckVector(StringView name, const Shape& s, int64_t* channels) {
  if (s.known_rank() && s.rank() != 1) {
    return InvalidArgument(name, " must be 1-dimensional", s);
  }
  if (!s.known_rank() || s[0] < 0) return OkStatus();
  if (*channels >= 0 && s[0] != *channels) {
    return InvalidArgument(
        name,
        " must have the same number of elements as the channels of x, "
        "got ",
        s[0], " and ", *channels);
  }
  *channels = s[0];
  return OkStatus();
}

Status NormShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckInput(c.input(0)));
  int64_t channels = Channels(c.op(), c.input(0));
  HR_RETURN_IF_ERROR(CheckVector("scale", c.input(1), &channels));
  HR_RETURN_IF_ERROR(CheckVector("offset", c.input(2), &channels));
  const bool training = c.op().bool_attr("is_training");
  // The estimates are read in inference, or for a running average.
  const bool needs =
      !training || c.op().float_attr("exponential_avg_factor") != 1.0f;
  for (int i : {3, 4}) {
    const Shape& s = c.input(i);
    const char* name = i == 3 ? "mean" : "variance";
    if (s.known_rank() && s.rank() != 1) {
      return InvalidArgument("estimated_", name, " must be 1-dimensional", s);
    }
    if (!needs || !s.known_rank() || s[0] < 0 || channels < 0) continue;
    if (s[0] != channels) {
      const std::string when =
          training ? absl::StrCat("When exponential_avg_factor != 1")
                   : "When is_training=false";
      return InvalidArgument(when, ", ", name,
                             " must have the same number of elements as the "
                             "channels of x, got ",
                             s[0], " and ", channels);
    }
  }
  c.set_output(0, c.input(0));
  for (int i = 1; i < 5; ++i) c.set_output(i, Shape{channels});
  if (c.num_outputs() == 6) c.set_output(5, Shape());
  return OkStatus();
}

Status NormGradShape(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape x, MergeShapes(c.input(0), c.input(1)));
  HR_RETURN_IF_ERROR(CheckInput(x));
  int64_t channels = Channels(c.op(), x);
  HR_RETURN_IF_ERROR(CheckVector("scale", c.input(2), &channels));
  HR_RETURN_IF_ERROR(CheckVector("saved_mean", c.input(3), &channels));
  HR_RETURN_IF_ERROR(CheckVector("saved variance", c.input(4), &channels));
  c.set_output(0, std::move(x));
  c.set_output(1, Shape{channels});
  c.set_output(2, Shape{channels});
  // Upstream's: these outputs hold nothing.
  c.set_output(3, Shape{0});
  c.set_output(4, Shape{0});
  return OkStatus();
}

// The tensor in float with its channels last.
StatusOr<Tensor> FloatRows(const ResolvedOp& op, const Tensor& t) {
  Tensor last = t;
  if (ChannelsFirst(op)) {
    HR_ASSIGN_OR_RETURN(last, ChannelsLast(t));
  }
  if (last.dtype() == DType::kFloat) return last;
  HR_ASSIGN_OR_RETURN(Tensor wide,
                      Tensor::Allocate(DType::kFloat, last.shape()));
  DispatchDType(last.dtype(), TypeList<half, bfloat16>{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::copy_n(last.data<T>(), last.num_elements(), wide.data<float>());
  });
  return wide;
}

// Room for an output in float with channels last, and its way back.
StatusOr<Tensor> FloatRoom(const ResolvedOp& op, const Tensor& out) {
  if (!ChannelsFirst(op) && out.dtype() == DType::kFloat) return out;
  return Tensor::Allocate(DType::kFloat, out.shape());
}
Status FromFloat(const ResolvedOp& op, const Tensor& made, const Tensor& out) {
  // Made in place already.
  if (made.raw() == out.raw()) return OkStatus();
  Tensor narrow = made;
  if (out.dtype() != DType::kFloat) {
    HR_ASSIGN_OR_RETURN(narrow, Tensor::Allocate(out.dtype(), out.shape()));
    DispatchDType(out.dtype(), TypeList<half, bfloat16>{}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const float* from = made.data<float>();
      for (int64_t i = 0; i < out.num_elements(); ++i) {
        narrow.data<T>()[i] = static_cast<T>(from[i]);
      }
    });
  }
  if (ChannelsFirst(op)) return ChannelsFirstInto(narrow, out);
  CopyElements(narrow, const_cast<Tensor&>(out));
  return OkStatus();
}

// A vector of `channels` parameters as floats; zeros when it is empty.
StatusOr<std::vector<float>> Parameters(const Tensor& t, int64_t channels) {
  std::vector<float> v(channels, 0.0f);
  // Empty where training does not read them.
  const int64_t n = std::min(channels, t.num_elements());
  if (t.dtype() == DType::kFloat) {
    std::copy_n(t.data<float>(), n, v.data());
  } else if (t.dtype() == DType::kBfloat16) {
    std::copy_n(t.data<bfloat16>(), n, v.data());
  } else {
    return Unimplemented("batch normalisation with parameters of ",
                         DTypeName(t.dtype()));
  }
  return v;
}

void WriteVector(const std::vector<float>& v, const Tensor& out) {
  if (out.dtype() == DType::kFloat) {
    std::copy(v.begin(), v.end(), out.data<float>());
  } else {
    for (size_t i = 0; i < v.size(); ++i)
      out.data<bfloat16>()[i] = bfloat16(v[i]);
  }
}

Status RunNorm(KernelContext& c) {
  const ResolvedOp& op = c.op();
  const int64_t channels = Channels(op, c.input(0).shape());
  const int64_t rows = channels ? c.input(0).num_elements() / channels : 0;
  const float epsilon = op.float_attr("epsilon");
  const float factor = op.float_attr("exponential_avg_factor");
  const bool training = op.bool_attr("is_training");
  HR_ASSIGN_OR_RETURN(Tensor x, FloatRows(op, c.input(0)));
  HR_ASSIGN_OR_RETURN(auto scale, Parameters(c.input(1), channels));
  HR_ASSIGN_OR_RETURN(auto shift, Parameters(c.input(2), channels));
  HR_ASSIGN_OR_RETURN(auto old_mean, Parameters(c.input(3), channels));
  HR_ASSIGN_OR_RETURN(auto old_variance, Parameters(c.input(4), channels));
  std::vector<float> mean = old_mean, variance = old_variance;
  std::vector<float> new_mean = mean, new_variance = variance;
  if (training && rows > 0) {
    HR_RETURN_IF_ERROR(ColumnMoments(x.data<float>(), rows, channels,
                                     mean.data(), variance.data()));
    // Bessel's correction for the running variance; the batch itself is
    // normalised by the biased one.
    const double unbias = rows > 1 ? double(rows) / (rows - 1) : 1.0;
    for (int64_t i = 0; i < channels; ++i) {
      new_mean[i] = mean[i];
      new_variance[i] = static_cast<float>(variance[i] * unbias);
      // An average that takes the new value whole is the value: (1 - 1) times a
      // NaN would not be.
      if (factor != 1.0f) {
        new_mean[i] = (1 - factor) * old_mean[i] + factor * new_mean[i];
        new_variance[i] =
            (1 - factor) * old_variance[i] + factor * new_variance[i];
      }
    }
  } else if (training) {
    // A batch of nothing has no moments: NaN, as upstream.
    new_mean.assign(channels, NAN);
    new_variance.assign(channels, NAN);
    mean.assign(channels, 0.0f);
    variance.assign(channels, 0.0f);
  }
  for (int64_t i = 0; i < channels; ++i) {
    // Both steps become one product and one sum an element.
    scale[i] *= 1.0f / std::sqrt(variance[i] + epsilon);
    shift[i] -= mean[i] * scale[i];
  }
  HR_ASSIGN_OR_RETURN(Tensor y, FloatRoom(op, c.output(0)));
  ParallelFor(rows, channels * 0.25, [&](int64_t begin, int64_t end) {
    LoopsForBatchNorm().scale(x.data<float>() + begin * channels, end - begin,
                              channels, scale.data(), shift.data(),
                              y.data<float>() + begin * channels);
  });
  HR_RETURN_IF_ERROR(FromFloat(op, y, c.output(0)));
  WriteVector(new_mean, c.output(1));
  WriteVector(new_variance, c.output(2));
  WriteVector(mean, c.output(3));
  WriteVector(variance, c.output(4));
  // The third reserve is for GPUs.
  if (c.num_outputs() == 6) WriteVector({0.0f}, c.output(5));
  return OkStatus();
}

Status RunNormGrad(KernelContext& c) {
  const ResolvedOp& op = c.op();
  const int64_t channels = Channels(op, c.input(1).shape());
  const int64_t rows = channels ? c.input(1).num_elements() / channels : 0;
  const bool training = op.bool_attr("is_training");
  const float epsilon = op.float_attr("epsilon");
  HR_ASSIGN_OR_RETURN(Tensor dy, FloatRows(op, c.input(0)));
  HR_ASSIGN_OR_RETURN(Tensor x, FloatRows(op, c.input(1)));
  HR_ASSIGN_OR_RETURN(auto scale, Parameters(c.input(2), channels));
  HR_ASSIGN_OR_RETURN(auto mean, Parameters(c.input(3), channels));
  HR_ASSIGN_OR_RETURN(auto variance, Parameters(c.input(4), channels));
  std::vector<float> sum(channels), dot(channels), a(channels), b(channels),
      d(channels);
  HR_RETURN_IF_ERROR(BackpropSums(dy.data<float>(), x.data<float>(), rows,
                                  channels, mean.data(), sum.data(),
                                  dot.data()));
  for (int64_t i = 0; i < channels; ++i) {
    const float r = 1.0f / std::sqrt(variance[i] + epsilon);
    a[i] = scale[i] * r;
    // In inference mean and variance are constants to the gradient.
    if (training) {
      // By way of the variance, then by way of the mean.
      b[i] = -a[i] * r * r * dot[i] / rows;
      d[i] = -a[i] * sum[i] / rows;
    }
    dot[i] *= r;
  }
  HR_ASSIGN_OR_RETURN(Tensor dx, FloatRoom(op, c.output(0)));
  ParallelFor(rows, channels * 0.35, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * channels;
    LoopsForBatchNorm().back(dy.data<float>() + at, x.data<float>() + at,
                             end - begin, channels, mean.data(), a.data(),
                             b.data(), d.data(), dx.data<float>() + at);
  });
  HR_RETURN_IF_ERROR(FromFloat(op, dx, c.output(0)));
  WriteVector(dot, c.output(1));
  WriteVector(sum, c.output(2));
  return OkStatus();
}

// With given statistics, in floats, channels last: x * k + (offset - mean * k),
// where k = scale / sqrt(variance + epsilon). Along the channels, both fuse
// with what is around them.
Status AsProductAndSum(SimplifyContext& c) {
  if (c.op().bool_attr("is_training") ||
      c.op().string_attr("data_format") != "NHWC") {
    return c.status();
  }
  const Shape x = c.input_shape(0);
  if (c.input_dtype(0) != DType::kFloat || x.rank() != 4) return c.status();
  for (int i = 1; i < 5; ++i) {
    const Shape s = c.input_shape(i);
    // Somebody wants the statistics, which the product does not give.
    if (c.input_dtype(i) != DType::kFloat || s.rank() != 1 || s[0] < 0 ||
        s[0] != x[3] || c.is_read(i)) {
      return c.status();
    }
  }
  if (c.num_outputs() > 5 && c.is_read(5)) return c.status();
  const PlanValue scale = c.input(1), offset = c.input(2), mean = c.input(3);
  PlanValue epsilon = c.Constant(Tensor::Scalar(c.op().float_attr("epsilon")));
  PlanValue k = c("Rsqrt", {c("AddV2", {c.input(4), epsilon})});
  k = c("Mul", {k, scale});
  PlanValue shift = c("Sub", {offset, c("Mul", {mean, k})});
  c.Replace(0, c("AddV2", {c("Mul", {c.input(0), k}), shift}));
  return c.status();
}

// The first `images` inputs are images, as is output 0; the others have an
// element a channel, or none.
Status VectorizeNorm(VectorizeContext& c) {
  if (c.op().string_attr("data_format")[1] == 'C') {
    return c.Refuse("its channels are not last.");
  }
  const bool gradient = c.op().output_range(0).size() == 1 &&
                        c.op().def().inputs[0].name == "y_backprop";
  const int images = gradient ? 2 : 1;
  for (int i = 0; i < images; ++i) HR_RETURN_IF_ERROR(c.WantRank(i));
  Value like;
  std::vector<Value> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) {
    // Space that versions reserve beside the moments stays empty.
    if (i == 5) {
      inputs.push_back(c.input(i));
      continue;
    }
    Value x = c.Stacked(i);
    HR_RETURN_IF_ERROR(c.status());
    if (i < images) {
      like = x;
      inputs.push_back(c.RowsAsChannels(x));
      continue;
    }
    // Moments that are to be found are given as vectors of no elements.
    inputs.push_back(c.row_shape(i).rank() == 1 && c.row_shape(i)[0] == 0
                         ? c.Reshape(x, c.Int32s({0}))
                         : c.Fold(x));
  }
  ValueList y = c.Again(inputs);
  HR_RETURN_IF_ERROR(c.status());
  Value channels = c.Sizes(like, like.rank() - 1);
  c.set(0, c.ChannelsAsRows(y[0], channels));
  for (size_t i = 1; i < y.size(); ++i) {
    const int at = static_cast<int>(i);
    if (i == 5 || (gradient && i > 2)) {
      c.set(at, y[i], Stacking::kShared);
    } else {
      c.set(at, c.Reshape(y[i], c.Join({c.CountSizes(), channels})));
    }
  }
  return c.status();
}

constexpr char kTwo[] = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
constexpr char kFour[] =
    "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'";

// One version: the parameters' type is T, U (float), or in V3's forward U with
// bfloat16.
void RegisterVersion(int version) {
  const bool first = version == 1, third = version == 3;
  const std::string suffix = first ? "" : absl::StrCat("V", version);
  const std::string u = first ? ": T" : ": U";
  const char* formats = third ? kFour : kTwo;
  const char* t = first ? "T: {float}" : "T: {half, bfloat16, float}";

  const std::string name = "FusedBatchNorm" + suffix;
  OpBuilder norm(name.c_str());
  norm.Input("x: T");
  for (const char* in : {"scale", "offset", "mean", "variance"}) {
    norm.Input((in + u).c_str());
  }
  norm.Output("y: T");
  for (const char* out :
       {"batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}) {
    norm.Output((out + u).c_str());
  }
  if (third) norm.Output("reserve_space_3: U");
  norm.Attr(t);
  if (!first) norm.Attr(third ? "U: {bfloat16, float}" : "U: {float}");
  norm.Attr("epsilon: float = 0.0001")
      .Attr("exponential_avg_factor: float = 1.0")
      .Attr(formats)
      .Attr("is_training: bool = true")
      .Doc("Normalises every channel over the batch, or by given moments.")
      .Shape(NormShape)
      .Gradient(FusedBatchNormGradient)
      .GradientSkips({2}, {0, 1, 2})
      .Simplify(AsProductAndSum)
      .Vectorize(VectorizeNorm)
      .Cpu(Compute<RunNorm>)
      .Register();

  const std::string grad_name = "FusedBatchNormGrad" + suffix;
  OpBuilder grad(grad_name.c_str());
  grad.Input("y_backprop: T").Input("x: T");
  grad.Input(first ? "scale: T" : "scale: float");
  grad.Input(("reserve_space_1" + u).c_str());
  grad.Input(("reserve_space_2" + u).c_str());
  if (third) grad.Input("reserve_space_3: U");
  grad.Output("x_backprop: T");
  const int reserve = third ? 4 : 3;
  for (const std::string& out :
       {std::string("scale_backprop"), std::string("offset_backprop"),
        absl::StrCat("reserve_space_", reserve),
        absl::StrCat("reserve_space_", reserve + 1)}) {
    grad.Output((out + u).c_str());
  }
  grad.Attr(t);
  if (!first) grad.Attr("U: {float}");
  grad.Attr("epsilon: float = 0.0001")
      .Attr(formats)
      .Attr("is_training: bool = true")
      .Doc("Gradient of batch normalisation.")
      .Shape(NormGradShape)
      .Gradient(FusedBatchNormGradGradient)
      .Vectorize(VectorizeNorm)
      .Cpu(Compute<RunNormGrad>)
      .Register();
}

const bool fused_batch_norms_registered = [] {
  for (int version : {1, 2, 3}) RegisterVersion(version);
  return true;
}();

}  // namespace
}  // namespace headrace
