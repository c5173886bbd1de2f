// What the ops that resize images share.
#pragma once

#include <cmath>

#include "op/op.h"

namespace headrace {

// A resize of [batch, in_h, in_w, channels] to [batch, out_h, out_w, channels].
struct ResizeSizes {
  int64_t batch = 0, in_h = 0, in_w = 0, channels = 0, out_h = 0, out_w = 0;
};

// Where an output index lies among the inputs of one axis.
struct ResizeAxis {
  int64_t in = 0, out = 0;
  float scale = 1;
  bool half_pixel = false;
  ResizeAxis(int64_t in, int64_t out, bool align_corners, bool half_pixel);
  float At(int64_t o) const {
    const float x = static_cast<float>(o);
    return half_pixel ? (x + 0.5f) * scale - 0.5f : x * scale;
  }
};

// Shape rule: images, size. Its errors are upstream's.
Status ResizeShape(ShapeContext& c);
// The same without the attributes: the resized images' shape.
StatusOr<Shape> ResizedShape(ShapeContext& c);
// Shape rule of a gradient: grads, original image.
Status ResizeGradShape(ShapeContext& c);

// The sizes of a run of a forward op, or of a gradient op whose second input is
// the original image.
ResizeSizes SizesOfResize(const KernelContext& c);
ResizeSizes SizesOfResizeGrad(const KernelContext& c);

// The attributes align_corners and half_pixel_centers, where the op has them.
struct ResizeFlags {
  bool align_corners = false, half_pixel = false;
  ResizeFlags() = default;
  explicit ResizeFlags(const ResolvedOp& op);
};
// InvalidArgument when both are set.
Status CheckResizeFlags(const ResizeFlags& flags);

}  // namespace headrace
