// QuantizedResizeBilinear: in fixed point, but for floats.
#include <algorithm>
#include <limits>

#include "base/thread_pool.h"
#include "ops/image/taps.h"
#include "ops/math/quantize/quantized.h"

namespace headrace {
namespace {

Status QuantizedResizeShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRangesAreScalars(c, 2, 4));
  HR_ASSIGN_OR_RETURN(Shape out, ResizedShape(c));
  c.set_output(0, std::move(out));
  SetRangeOutputs(c);
  return OkStatus();
}

// a + (b - a) * part, times 2^bits where `part` is; as upstream does, levels of
// 32 bits pass through floats.
template <typename I>
int64_t Between(I a, I b, int64_t part, int64_t one) {
  const auto low = static_cast<int64_t>(static_cast<float>(a));
  const auto high = static_cast<int64_t>(static_cast<float>(b));
  return low * one + (high - low) * part;
}

template <typename I, int bits>
void MixRow(const ResizeSizes& s, const AxisTaps& columns, const I* above,
            const I* below, float down, I* out) {
  constexpr int64_t kOne = int64_t{1} << bits;
  const auto y = static_cast<int64_t>(down * static_cast<float>(kOne));
  for (int64_t o = 0; o < s.out_w; ++o) {
    const int64_t left = columns.index(o)[0] * s.channels;
    const int64_t right = columns.index(o)[1] * s.channels;
    const auto x =
        static_cast<int64_t>(columns.weight(o)[1] * static_cast<float>(kOne));
    for (int64_t k = 0; k < s.channels; ++k) {
      const int64_t top = Between(above[left + k], above[right + k], x, kOne);
      const int64_t foot = Between(below[left + k], below[right + k], x, kOne);
      const int64_t v = (top + (foot - top) / kOne * y + kOne / 2) / kOne;
      *out++ = static_cast<I>(std::clamp<int64_t>(
          v, std::numeric_limits<I>::lowest(), std::numeric_limits<I>::max()));
    }
  }
}

template <typename I, int bits>
Status QuantizedResize(KernelContext& c) {
  const ResizeSizes s = SizesOfResize(c);
  const ResizeFlags f(c.op());
  SetRange(c, *c.in<float>(2), *c.in<float>(3));
  HR_ASSIGN_OR_RETURN(
      AxisTaps rows,
      BilinearTaps(ResizeAxis(s.in_h, s.out_h, f.align_corners, f.half_pixel)));
  HR_ASSIGN_OR_RETURN(
      AxisTaps columns,
      BilinearTaps(ResizeAxis(s.in_w, s.out_w, f.align_corners, f.half_pixel)));
  const int64_t in_row = s.in_w * s.channels, out_row = s.out_w * s.channels;
  ParallelFor(s.batch * s.out_h, out_row * 4.0, [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) {
      const int64_t o = r % s.out_h;
      const I* image = LevelsIn<I>(c, 0) + r / s.out_h * s.in_h * in_row;
      MixRow<I, bits>(s, columns, image + rows.index(o)[0] * in_row,
                      image + rows.index(o)[1] * in_row, rows.weight(o)[1],
                      LevelsOut<I>(c, 0) + r * out_row);
    }
  });
  return OkStatus();
}

Status FloatResize(KernelContext& c) {
  SetRange(c, *c.in<float>(2), *c.in<float>(3));
  return BilinearInto(DType::kFloat, SizesOfResize(c), ResizeFlags(c.op()),
                      c.input(0).raw(), c.out<float>(0));
}

ComputeFn PickQuantizedResize(const ResolvedOp& op) {
  const DType type = op.type_attr("T");
  return type == DType::kQuint8   ? QuantizedResize<uint8_t, 7>
         : type == DType::kQint32 ? QuantizedResize<int32_t, 30>
                                  : FloatResize;
}

HR_OP(QuantizedResizeBilinear)
    .Input("images: T")
    .Input("size: int32")
    .Input("min: float")
    .Input("max: float")
    .Output("resized_images: T")
    .Output("out_min: float")
    .Output("out_max: float")
    .Attr("T: {quint8, qint32, float}")
    .Attr("align_corners: bool = false")
    .Attr("half_pixel_centers: bool = false")
    .Doc("ResizeBilinear of quantized images.")
    .Shape(QuantizedResizeShape)
    .Cpu(ComputeFor<PickQuantizedResize>);

}  // namespace
}  // namespace headrace
