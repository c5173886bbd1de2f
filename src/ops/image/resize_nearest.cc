// ResizeNearestNeighbor and its gradient.
#include <algorithm>
#include <type_traits>

#include "base/thread_pool.h"
#include "ops/image/taps.h"

namespace headrace {
namespace {

// The input index that each output index shows, as one tap.
StatusOr<AxisTaps> Nearest(int64_t in, int64_t out, const ResizeFlags& f) {
  HR_ASSIGN_OR_RETURN(AxisTaps taps, AxisTaps::Make(out, 1));
  const ResizeAxis axis(in, out, f.align_corners, f.half_pixel);
  for (int64_t o = 0; o < out; ++o) {
    const float x = static_cast<float>(o) + (f.half_pixel ? 0.5f : 0.0f);
    const float scaled = x * axis.scale;
    const float at = f.align_corners ? std::round(scaled) : std::floor(scaled);
    taps.Add(o, std::clamp<int64_t>(static_cast<int64_t>(at), 0, in - 1), 1);
  }
  return taps;
}

template <typename T>
Status RunForward(KernelContext& c) {
  const ResizeSizes s = SizesOfResize(c);
  const ResizeFlags f(c.op());
  HR_ASSIGN_OR_RETURN(const AxisTaps rows, Nearest(s.in_h, s.out_h, f));
  HR_ASSIGN_OR_RETURN(const AxisTaps columns, Nearest(s.in_w, s.out_w, f));
  const T* in = c.in<T>(0);
  T* out = c.out<T>(0);
  const int64_t width = s.out_w * s.channels;
  ParallelFor(s.batch * s.out_h, width * 1.0, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t row = r / s.out_h * s.in_h + *rows.index(r % s.out_h);
      const T* from = in + row * s.in_w * s.channels;
      T* to = out + r * width;
      for (int64_t x = 0; x < s.out_w; ++x, to += s.channels) {
        std::copy_n(from + *columns.index(x) * s.channels, s.channels, to);
      }
    }
  });
  return OkStatus();
}

// Narrow floating types are summed in float.
template <typename T>
Status RunBack(KernelContext& c) {
  const ResizeSizes s = SizesOfResizeGrad(c);
  const ResizeFlags f(c.op());
  HR_ASSIGN_OR_RETURN(const AxisTaps rows, Nearest(s.in_h, s.out_h, f));
  HR_ASSIGN_OR_RETURN(const AxisTaps columns, Nearest(s.in_w, s.out_w, f));
  const int64_t image = s.in_h * s.in_w * s.channels;
  const T* grads = c.in<T>(0);
  T* out = c.out<T>(0);
  HR_ASSIGN_OR_RETURN(Tensor room, Tensor::Allocate(DTypeOf<ComputeType<T>>,
                                                    Shape{s.batch, image}));
  const double cost = 1.0 * image + 1.0 * s.out_h * s.out_w * s.channels;
  ParallelFor(s.batch, cost, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      ComputeType<T>* sums = room.data<ComputeType<T>>() + b * image;
      std::fill_n(sums, image, ComputeType<T>(0));
      const T* g = grads + b * s.out_h * s.out_w * s.channels;
      for (int64_t y = 0; y < s.out_h; ++y) {
        for (int64_t x = 0; x < s.out_w; ++x, g += s.channels) {
          ComputeType<T>* to =
              sums + (*rows.index(y) * s.in_w + *columns.index(x)) * s.channels;
          for (int64_t k = 0; k < s.channels; ++k) {
            to[k] = static_cast<ComputeType<T>>(
                to[k] + static_cast<ComputeType<T>>(g[k]));
          }
        }
      }
      for (int64_t i = 0; i < image; ++i) {
        out[b * image + i] = static_cast<T>(sums[i]);
      }
    }
  });
  return OkStatus();
}

template <bool kBack>
ComputeFn Pick(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"),
                TypeList<float, double, half, bfloat16, int8_t, uint8_t,
                         int16_t, uint16_t, int32_t, int64_t>{},
                [&](auto tag) {
                  using T = typename decltype(tag)::type;
                  fn = kBack ? RunBack<T> : RunForward<T>;
                });
  return fn;
}

Status NearestGradient(GradientContext& g) {
  Value d = g.grad();
  const DType type = g.op().type_attr("T");
  if (!d || !IsFloating(type)) return g.status();
  AttrMap attrs = g.op().attrs();
  attrs.Erase("T");
  Value size = g("StridedSlice", {g.ShapeOf(g.input(0)), g.Int32s({1}),
                                  g.Int32s({3}), g.Int32s({1})});
  g.set(0, g("ResizeNearestNeighborGrad", {d, size}, attrs));
  return g.status();
}

HR_OP(ResizeNearestNeighbor)
    .Input("images: T")
    .Input("size: int32")
    .Output("resized_images: T")
    .Attr(
        "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, "
        "bfloat16}")
    .Attr("align_corners: bool = false")
    .Attr("half_pixel_centers: bool = false")
    .Doc("Resizes images to the nearest pixels.")
    .Shape(ResizeShape)
    .Gradient(NearestGradient)
    .GradientSkips({1}, {0})
    .Cpu(ComputeFor<Pick<false>>);

HR_OP(ResizeNearestNeighborGrad)
    .Input("grads: T")
    .Input("size: int32")
    .Output("output: T")
    .Attr("T: {uint8, int8, int32, half, float, double, bfloat16}")
    .Attr("align_corners: bool = false")
    .Attr("half_pixel_centers: bool = false")
    .Doc("Gradient of ResizeNearestNeighbor.")
    .Shape(ResizeShape)
    .Cpu(ComputeFor<Pick<true>>);

}  // namespace
}  // namespace headrace
