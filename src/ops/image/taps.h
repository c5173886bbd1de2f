// Images resampled by weighted sums of input pixels, rows and columns apart
// (bilinear, bicubic, area and windowed kernels), and the way back.
#pragma once

#include "ops/image/resize.h"
#include "ops/image/taps_loops.h"

namespace headrace {

// For each output index of an axis, the input indices that it is made of and
// their weights. Indices are in range.
class AxisTaps {
 public:
  // `most`: taps of an output index at most. ResourceExhausted when memory
  // ends.
  static StatusOr<AxisTaps> Make(int64_t outputs, int64_t most);

  // Adds a tap of output `o`; outputs come in order.
  void Add(int64_t o, int64_t index, float weight) {
    const int64_t at = o * most_ + count_.data<int32_t>()[o]++;
    index_.data<int32_t>()[at] = static_cast<int32_t>(index);
    weight_.data<float>()[at] = weight;
  }
  int64_t count(int64_t o) const { return count_.data<int32_t>()[o]; }
  const int32_t* index(int64_t o) const {
    return index_.data<int32_t>() + o * most_;
  }
  float* weight(int64_t o) const { return weight_.data<float>() + o * most_; }
  TapRows rows() const {
    return {count_.data<int32_t>(), index_.data<int32_t>(),
            weight_.data<float>(), most_, lerps_};
  }
  // Two taps each, a and b, whose sum is a + (b - a) * weight of b.
  bool lerps() const { return lerps_; }
  void set_lerps() { lerps_ = true; }

 private:
  Tensor count_, index_, weight_;
  int64_t most_ = 0;
  bool lerps_ = false;
};

// The taps of ResizeBilinear: the pixel below and the one above, two each.
StatusOr<AxisTaps> BilinearTaps(const ResizeAxis& a);

// out = images resampled. T is any real type. ResourceExhausted when memory
// ends, as in what follows.
template <typename T>
Status Resample(const ResizeSizes& s, const AxisTaps& rows,
                const AxisTaps& columns, const T* images, float* out);

// The kernel of ResizeBilinear, for the types that it has.
Status BilinearInto(DType dtype, const ResizeSizes& s, const ResizeFlags& f,
                    const void* images, float* out);

// The transposed map: of gradients to images. T is a floating type; the sums of
// double are double.
template <typename T>
Status ResampleBack(const ResizeSizes& s, const AxisTaps& rows,
                    const AxisTaps& columns, const float* grads, T* images);

}  // namespace headrace
