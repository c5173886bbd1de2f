// ScaleAndTranslate: images resampled by a kernel at a scale and an offset of
// each axis, and its gradient.
#include <algorithm>
#include <numbers>

#include "ops/image/taps.h"

namespace headrace {
namespace {

constexpr float kPi = std::numbers::pi_v<float>;

// A kernel of resampling: its weight at a distance from its middle.
struct SamplingKernel {
  float radius;
  float (*weight)(float distance, float radius);
};

float Lanczos(float x, float radius) {
  x = std::abs(x);
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;
  return radius * std::sin(kPi * x) * std::sin(kPi * x / radius) /
         (kPi * kPi * x * x);
}
float Gaussian(float x, float radius) {
  x = std::abs(x);
  if (x >= radius) return 0;
  const float sigma = radius / 3;
  return std::exp(-x * x / (2 * sigma * sigma));
}
float Box(float x, float) {
  x = std::abs(x);
  return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0;
}
float Triangle(float x, float) {
  x = std::abs(x);
  return x < 1 ? 1 - x : 0;
}
float KeysCubic(float x, float) {
  x = std::abs(x);
  if (x >= 2) return 0;
  if (x >= 1) return ((-0.5f * x + 2.5f) * x - 4) * x + 2;
  return (1.5f * x - 2.5f) * x * x + 1;
}
float MitchellCubic(float x, float) {
  x = std::abs(x);
  if (x >= 2) return 0;
  if (x >= 1) {
    return ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9;
  }
  return (7.0f / 6 * x - 2) * x * x + 8.0f / 9;
}

StatusOr<SamplingKernel> KernelOf(const ResolvedOp& op) {
  const std::string& type = op.string_attr("kernel_type");
  if (type == "lanczos1") return SamplingKernel{1, Lanczos};
  if (type == "lanczos3") return SamplingKernel{3, Lanczos};
  if (type == "lanczos5") return SamplingKernel{5, Lanczos};
  if (type == "gaussian") return SamplingKernel{1.5f, Gaussian};
  if (type == "box") return SamplingKernel{1, Box};
  if (type == "triangle") return SamplingKernel{1, Triangle};
  if (type == "keyscubic") return SamplingKernel{2, KeysCubic};
  if (type == "mitchellcubic") return SamplingKernel{2, MitchellCubic};
  return InvalidArgument("Unrecognized kernel type: ", type);
}

// The taps of an axis. Places outside of the image have none.
StatusOr<AxisTaps> Spans(int64_t in, int64_t out, float scale,
                         float translation, bool antialias,
                         const SamplingKernel& kernel) {
  if (!(scale > 0)) {
    return InvalidArgument("Scale must be greater than zero.");
  }
  const float inverse = 1 / scale;
  const float offset = -inverse * translation;
  const float stretch = antialias ? std::max(inverse, 1.0f) : 1.0f;
  const float reach = kernel.radius * stretch;
  const int64_t most = static_cast<int64_t>(
      std::min(2 * std::ceil(reach) + 1, static_cast<float>(in)));
  HR_ASSIGN_OR_RETURN(AxisTaps taps,
                      AxisTaps::Make(out, std::min(most + 1, in)));
  for (int64_t o = 0; o < out; ++o) {
    const float at = (static_cast<float>(o) + 0.5f) * inverse + offset;
    if (!(at >= 0 && at <= static_cast<float>(in))) continue;
    const auto last = static_cast<float>(in - 1);
    const auto begin = static_cast<int64_t>(
        std::clamp(std::ceil(at - reach - 0.5f), 0.0f, last));
    const auto end = std::min(begin + std::min(most + 1, in) - 1,
                              static_cast<int64_t>(std::clamp(
                                  std::floor(at + reach - 0.5f), 0.0f, last)));
    float sum = 0;
    for (int64_t i = begin; i <= end && i < in; ++i) {
      const float distance = static_cast<float>(i) + 0.5f - at;
      const float w = kernel.weight(distance / stretch, kernel.radius);
      sum += w;
      taps.Add(o, i, w);
    }
    if (std::abs(sum) < 1e3f * 1.17549435e-38f) continue;
    for (int64_t t = 0; t < taps.count(o); ++t) taps.weight(o)[t] *= 1 / sum;
  }
  return taps;
}

struct BothAxes {
  AxisTaps rows, columns;
};

// `first`: the input that holds the scale; the translation follows.
StatusOr<BothAxes> AxesOf(const KernelContext& c, const ResizeSizes& s,
                          int first) {
  HR_ASSIGN_OR_RETURN(SamplingKernel kernel, KernelOf(c.op()));
  const bool antialias = c.op().bool_attr("antialias");
  const float *scale = c.in<float>(first), *offset = c.in<float>(first + 1);
  BothAxes axes;
  HR_ASSIGN_OR_RETURN(axes.rows, Spans(s.in_h, s.out_h, scale[0], offset[0],
                                       antialias, kernel));
  HR_ASSIGN_OR_RETURN(axes.columns, Spans(s.in_w, s.out_w, scale[1], offset[1],
                                          antialias, kernel));
  return axes;
}

Status CheckPair(const Shape& s) {
  HR_RETURN_IF_ERROR(CheckRank(s, 1));
  if (s.known_rank() && s[0] >= 0 && s[0] != 2) {
    return InvalidArgument("t must have two elements", s);
  }
  return OkStatus();
}

Status ForwardShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(KernelOf(c.op()).status());
  HR_RETURN_IF_ERROR(CheckPair(c.input(2)));
  HR_RETURN_IF_ERROR(CheckPair(c.input(3)));
  return ResizeShape(c);
}

Status BackShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(KernelOf(c.op()).status());
  HR_RETURN_IF_ERROR(CheckPair(c.input(2)));
  HR_RETURN_IF_ERROR(CheckPair(c.input(3)));
  return ResizeGradShape(c);
}

Status RunForward(KernelContext& c) {
  const ResizeSizes s = SizesOfResize(c);
  HR_ASSIGN_OR_RETURN(BothAxes axes, AxesOf(c, s, 2));
  Status made;
  DispatchDType(c.input(0).dtype(),
                TypeList<float, double, half, bfloat16, int8_t, uint8_t,
                         int16_t, uint16_t, int32_t, int64_t>{},
                [&](auto tag) {
                  using T = typename decltype(tag)::type;
                  made = Resample(s, axes.rows, axes.columns, c.in<T>(0),
                                  c.out<float>(0));
                });
  return made;
}

Status RunBack(KernelContext& c) {
  const ResizeSizes s = SizesOfResizeGrad(c);
  HR_ASSIGN_OR_RETURN(BothAxes axes, AxesOf(c, s, 2));
  return ResampleBack(s, axes.rows, axes.columns, c.in<float>(0),
                      c.out<float>(0));
}

Status ScaleGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d || g.op().type_attr("T") != DType::kFloat) return g.status();
  AttrMap attrs = g.op().attrs();
  attrs.Erase("T");
  g.set(0, g("ScaleAndTranslateGrad", {d, g.input(0), g.input(2), g.input(3)},
             attrs));
  return g.status();
}

HR_OP(ScaleAndTranslate)
    .Input("images: T")
    .Input("size: int32")
    .Input("scale: float")
    .Input("translation: float")
    .Output("resized_images: float")
    .Attr(
        "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, "
        "double}")
    .Attr("kernel_type: string = 'lanczos3'")
    .Attr("antialias: bool = true")
    .Doc("Resamples images at a scale and an offset of each axis.")
    .Shape(ForwardShape)
    .Gradient(ScaleGradient)
    .GradientSkips({1}, {0})
    .Cpu(Compute<RunForward>);

HR_OP(ScaleAndTranslateGrad)
    .Input("grads: T")
    .Input("original_image: T")
    .Input("scale: float")
    .Input("translation: float")
    .Output("output: T")
    .Attr("T: {float}")
    .Attr("kernel_type: string = 'lanczos3'")
    .Attr("antialias: bool = true")
    .Doc("Gradient of ScaleAndTranslate.")
    .Shape(BackShape)
    .Cpu(Compute<RunBack>);

}  // namespace
}  // namespace headrace
