// Max and average pooling of channels-last tensors, over two or three
// dimensions or over channels.
#pragma once

#include "ops/nn/window.h"

namespace headrace {

// Leading windows are of size 1 where there are fewer than three spatial
// dimensions. Pooling over channels is pooling over the last window of a
// tensor with one channel.
struct PoolGeometry {
  int64_t batch = 0, channels = 0;
  Window windows[3];
  int64_t in_pixels() const {
    return windows[0].in * windows[1].in * windows[2].in;
  }
  int64_t out_pixels() const {
    return windows[0].out * windows[1].out * windows[2].out;
  }
};

// A pooling op's attributes, with the windows' sizes.
struct PoolAttrs {
  WindowAttrs window;
  absl::InlinedVector<int64_t, 3> sizes;
  int64_t batch_size = 1, channel_size = 1;

  // From attributes; ksize and strides may come later, by Set (the V2 ops).
  static StatusOr<PoolAttrs> Make(const ResolvedOp& op);
  Status Set(const std::vector<int64_t>& ksize,
             const std::vector<int64_t>& strides);

  // The pooled shape; unknown where x is.
  StatusOr<Shape> Output(const Shape& x) const;
  // Of a fully known x.
  StatusOr<PoolGeometry> Geometry(const Shape& x) const;

 private:
  Status Check() const;
  Status CheckSizes() const;
  Status CheckPaddings() const;
};

// Each runs on T's of channels-last layout; T is any real number type.
Status MaxPoolForward(DType dtype, const PoolGeometry& g, const void* x,
                      void* y);
// Where the maxima are: pixel of the image, -1 where the window is empty;
// [batch, out_pixels, channels].
Status MaxPoolPlaces(DType dtype, const PoolGeometry& g, const void* x,
                     int64_t* places);
// The gradient goes to the first of several equal maxima.
Status MaxPoolBackward(DType dtype, const PoolGeometry& g, const void* x,
                       const void* dy, void* dx);
Status AvgPoolForward(DType dtype, const PoolGeometry& g, const void* x,
                      void* y);
Status AvgPoolBackward(DType dtype, const PoolGeometry& g, const void* dy,
                       void* dx);

// dx[place] += dy, and y = x[place], for every output.
Status ScatterPlaces(DType dtype, const PoolGeometry& g, const int64_t* places,
                     const void* dy, void* dx);
Status GatherPlaces(DType dtype, const PoolGeometry& g, const int64_t* places,
                    const void* x, void* y);

}  // namespace headrace
