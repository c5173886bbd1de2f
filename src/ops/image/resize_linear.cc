// ResizeBilinear, ResizeBicubic, ResizeArea and their gradients: sums of pixels
// whose weights depend on the position alone.
#include <algorithm>
#include <array>

#include "ops/image/taps.h"

namespace headrace {

StatusOr<AxisTaps> BilinearTaps(const ResizeAxis& a) {
  HR_ASSIGN_OR_RETURN(AxisTaps taps, AxisTaps::Make(a.out, 2));
  taps.set_lerps();
  for (int64_t o = 0; o < a.out; ++o) {
    const float at = a.At(o);
    const float low = std::floor(at), part = at - low;
    const auto last = static_cast<float>(a.in - 1);
    taps.Add(o, static_cast<int64_t>(std::clamp(low, 0.0f, last)), 1 - part);
    taps.Add(o, static_cast<int64_t>(std::clamp(std::ceil(at), 0.0f, last)),
             part);
  }
  return taps;
}

namespace {

using TapsFn = StatusOr<AxisTaps> (*)(const ResizeAxis& a);

// Keys' cubic at a distance below 1 and at one above.
float CubicNear(float a, float x) {
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
float CubicFar(float a, float x) {
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

// Distances are rounded to 1024ths, as upstream's table has them.
StatusOr<AxisTaps> BicubicTaps(const ResizeAxis& a) {
  constexpr int64_t kSteps = 1024;
  HR_ASSIGN_OR_RETURN(AxisTaps taps, AxisTaps::Make(a.out, 4));
  const float k = a.half_pixel ? -0.5f : -0.75f;
  for (int64_t o = 0; o < a.out; ++o) {
    const float at = a.At(o);
    const auto base = static_cast<int64_t>(std::floor(at));
    const float step = std::rint((at - base) * kSteps) / kSteps;
    const std::array<float, 4> weights{
        CubicFar(k, step + 1), CubicNear(k, step), CubicNear(k, 1 - step),
        CubicFar(k, 2 - step)};
    float sum = 0;
    for (int i = 0; i < 4; ++i) {
      const int64_t index = base - 1 + i;
      const int64_t inside = std::clamp<int64_t>(index, 0, a.in - 1);
      // With half pixels, what lies outside counts nothing.
      const float w = a.half_pixel && inside != index ? 0 : weights[i];
      sum += w;
      taps.Add(o, inside, w);
    }
    if (!a.half_pixel || std::abs(sum) < 1e3f * 1.17549435e-38f) continue;
    for (int i = 0; i < 4; ++i) taps.weight(o)[i] *= 1 / sum;
  }
  return taps;
}

// How much of each input pixel an output pixel covers.
StatusOr<AxisTaps> AreaTaps(const ResizeAxis& a) {
  const auto most = static_cast<int64_t>(std::ceil(a.scale)) + 2;
  HR_ASSIGN_OR_RETURN(AxisTaps taps, AxisTaps::Make(a.out, most));
  for (int64_t o = 0; o < a.out; ++o) {
    if (a.scale == 0) {  // corners of one pixel: it is all that there is
      taps.Add(o, 0, 1);
      continue;
    }
    const float begin = o * a.scale, end = (o + 1) * a.scale;
    const auto first = static_cast<int64_t>(std::floor(begin));
    const auto last =
        std::min(static_cast<int64_t>(std::ceil(end)), first + most);
    for (int64_t i = first; i < last; ++i) {
      const float covered =
          std::min<float>(i + 1, end) - std::max<float>(i, begin);
      taps.Add(o, std::clamp<int64_t>(i, 0, a.in - 1), covered / a.scale);
    }
  }
  return taps;
}

template <TapsFn kTaps>
Status Forward(DType dtype, const ResizeSizes& s, const ResizeFlags& f,
               const void* images, float* out) {
  HR_ASSIGN_OR_RETURN(
      AxisTaps rows,
      kTaps(ResizeAxis(s.in_h, s.out_h, f.align_corners, f.half_pixel)));
  HR_ASSIGN_OR_RETURN(
      AxisTaps columns,
      kTaps(ResizeAxis(s.in_w, s.out_w, f.align_corners, f.half_pixel)));
  Status made;
  DispatchDType(dtype,
                TypeList<float, double, half, bfloat16, int8_t, uint8_t,
                         int16_t, uint16_t, int32_t, int64_t>{},
                [&](auto tag) {
                  using T = typename decltype(tag)::type;
                  made = Resample(s, rows, columns,
                                  static_cast<const T*>(images), out);
                });
  return made;
}

template <TapsFn kTaps>
Status RunForward(KernelContext& c) {
  return Forward<kTaps>(c.input(0).dtype(), SizesOfResize(c),
                        ResizeFlags(c.op()), c.input(0).raw(), c.out<float>(0));
}

template <TapsFn kTaps>
Status RunBack(KernelContext& c) {
  const ResizeSizes s = SizesOfResizeGrad(c);
  const ResizeFlags f(c.op());
  HR_ASSIGN_OR_RETURN(
      AxisTaps rows,
      kTaps(ResizeAxis(s.in_h, s.out_h, f.align_corners, f.half_pixel)));
  HR_ASSIGN_OR_RETURN(
      AxisTaps columns,
      kTaps(ResizeAxis(s.in_w, s.out_w, f.align_corners, f.half_pixel)));
  Status made;
  DispatchDType(c.output(0).dtype(), FloatTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    made = ResampleBack(s, rows, columns, c.in<float>(0), c.out<T>(0));
  });
  return made;
}

// By the op X's gradient op, XGrad, for the image types that it has.
Status LinearGradient(GradientContext& g) {
  Value d = g.grad();
  const DType type = g.op().type_attr("T");
  const bool cubic = g.op().name() == "ResizeBicubic";
  const bool has = cubic ? type == DType::kFloat || type == DType::kDouble
                         : IsFloating(type);
  if (!d || !has) return g.status();
  AttrMap attrs = g.op().attrs();
  attrs.Erase("T");
  g.set(0, g(g.op().name() + "Grad", {d, g.input(0)}, attrs));
  return g.status();
}

OpBuilder ResizeOp(const char* name, const char* types, const char* doc,
                   KernelFactory kernel) {
  OpBuilder b(name);
  b.Input("images: T")
      .Input("size: int32")
      .Output("resized_images: float")
      .Attr(types)
      .Attr("align_corners: bool = false")
      .Attr("half_pixel_centers: bool = false")
      .Doc(doc)
      .Shape(ResizeShape)
      .Gradient(LinearGradient)
      .GradientSkips({1}, {0})
      .Cpu(kernel);
  return b;
}
[[maybe_unused]] const OpRegistrar kResizes[] = {
    ResizeOp(
        "ResizeBilinear",
        "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, "
        "double, bfloat16}",
        "Resizes images, mixing the four nearest pixels.",
        Compute<RunForward<BilinearTaps>>),
    ResizeOp(
        "ResizeBicubic",
        "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, "
        "bfloat16}",
        "Resizes images by cubics through sixteen pixels.",
        Compute<RunForward<BicubicTaps>>),
};

HR_OP(ResizeArea)
    .Input("images: T")
    .Input("size: int32")
    .Output("resized_images: float")
    .Attr(
        "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, "
        "bfloat16}")
    .Attr("align_corners: bool = false")
    .Doc("Resizes images to the means of the areas that pixels cover.")
    .Shape(ResizeShape)
    .Cpu(Compute<RunForward<AreaTaps>>);

OpBuilder ResizeGradOp(const char* name, const char* types, const char* doc,
                       KernelFactory kernel) {
  OpBuilder b(name);
  b.Input("grads: float")
      .Input("original_image: T")
      .Output("output: T")
      .Attr(types)
      .Attr("align_corners: bool = false")
      .Attr("half_pixel_centers: bool = false")
      .Doc(doc)
      .Shape(ResizeGradShape)
      .Cpu(kernel);
  return b;
}
[[maybe_unused]] const OpRegistrar kResizeGrads[] = {
    ResizeGradOp("ResizeBilinearGrad", "T: {float, bfloat16, half, double}",
                 "Gradient of ResizeBilinear.", Compute<RunBack<BilinearTaps>>)
        .NoGradient(),
    ResizeGradOp("ResizeBicubicGrad", "T: {float, double}",
                 "Gradient of ResizeBicubic.", Compute<RunBack<BicubicTaps>>),
};

}  // namespace

Status BilinearInto(DType dtype, const ResizeSizes& s, const ResizeFlags& f,
                    const void* images, float* out) {
  return Forward<BilinearTaps>(dtype, s, f, images, out);
}

}  // namespace headrace
