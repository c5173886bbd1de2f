// Convolutions of channels-last tensors and their two gradients.
#pragma once

#include <memory>

#include "op/passes/product_kernel.h"
#include "ops/nn/window.h"

namespace headrace {

// One convolution over up to three spatial dimensions (leading ones of size 1
// where there are fewer). Filters are [windows..., in_channels / groups,
// out_channels].
struct ConvGeometry {
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  Window windows[3];
  int64_t in_pixels() const {
    return windows[0].in * windows[1].in * windows[2].in;
  }
  int64_t out_pixels() const {
    return windows[0].out * windows[1].out * windows[2].out;
  }
  int64_t filter_pixels() const {
    return windows[0].size * windows[1].size * windows[2].size;
  }
  // Elements of the filter.
  int64_t filter_elements() const {
    return filter_pixels() * (in_channels / groups) * out_channels;
  }
  double multiplications() const {
    return 1.0 * batch * out_pixels() * filter_elements();
  }
};

// Each computes its last argument; dtype is half, bfloat16, float, double or
// int32. Sums are made in an order that the sizes alone decide.
Status ConvForward(DType dtype, const ConvGeometry& g, const void* x,
                   const void* filter, void* y);
Status ConvBackwardInput(DType dtype, const ConvGeometry& g, const void* filter,
                         const void* dy, void* dx);
Status ConvBackwardFilter(DType dtype, const ConvGeometry& g, const void* x,
                          const void* dy, void* dfilter);

// Called for pixels [begin, end) of all images' outputs once they are made;
// `pixels`: the first of them.
using ConvPixelsDone =
    absl::FunctionRef<void(int64_t begin, int64_t end, const float* pixels)>;

// A forward convolution by oneDNN of float with its filter prepared, for many
// runs, and perhaps steps behind it. Immutable.
class PreparedConv {
 public:
  virtual ~PreparedConv() = default;
  // Null when oneDNN has no such convolution.
  static StatusOr<std::shared_ptr<const PreparedConv>> Make(
      const ConvGeometry& g, const float* filter,
      const FinishSteps& steps = {});
  // Whether it reads the filter that is given to each run.
  virtual bool reads_filter() const = 0;
  // False when `g` is not what it was made for or oneDNN failed. `filter`: as
  // in Make. Without `y`, pixels are made in memory that holds them only until
  // `done` returns.
  virtual bool Run(const ConvGeometry& g, const float* x, const float* filter,
                   float* y, const ConvPixelsDone* done) const = 0;
  // With the steps, whose rows are given in their order (null where one has
  // none). False, with nothing done, when `g` is not what it was made for.
  virtual StatusOr<bool> RunFinished(
      const ConvGeometry& g, const float* x, const float* filter, float* y,
      absl::Span<const float* const> rows) const = 0;
};

// The same by oneDNN, for float. False when it has no such convolution. Forward
// as PreparedConv::Run.
StatusOr<bool> DnnlConvForward(const ConvGeometry& g, const float* x,
                               const float* filter, float* y,
                               const ConvPixelsDone* done);
StatusOr<bool> DnnlConvBackwardInput(const ConvGeometry& g, const float* filter,
                                     const float* dy, float* dx);
StatusOr<bool> DnnlConvBackwardFilter(const ConvGeometry& g, const float* x,
                                      const float* dy, float* dfilter);

}  // namespace headrace
