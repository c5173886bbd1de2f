#include "ops/image/resize.h"

#include <limits>

namespace headrace {
namespace {

constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();

// Upstream's checks of what is known.
Status CheckImages(const Shape& images) {
  if (!images.known_rank()) return OkStatus();
  if (images.rank() != 4) {
    return InvalidArgument("input must be 4-dimensional", images);
  }
  if (images[1] > kMaxSize || images[2] > kMaxSize) {
    return InvalidArgument("input sizes must be between 0 and max int32");
  }
  if (images[3] == 0) {
    return InvalidArgument("image must have at least one channel");
  }
  if (images[1] == 0 || images[2] == 0) {
    return InvalidArgument("input image must be of non-zero size");
  }
  return OkStatus();
}

}  // namespace

ResizeAxis::ResizeAxis(int64_t in_size, int64_t out_size, bool align_corners,
                       bool half)
    : in(in_size), out(out_size), half_pixel(half) {
  scale = align_corners && out > 1
              ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
              : static_cast<float>(in) / static_cast<float>(out);
}

ResizeFlags::ResizeFlags(const ResolvedOp& op) {
  const bool* align = op.attrs().Get<bool>("align_corners");
  const bool* half = op.attrs().Get<bool>("half_pixel_centers");
  align_corners = align && *align;
  half_pixel = half && *half;
}

Status CheckResizeFlags(const ResizeFlags& flags) {
  if (flags.align_corners && flags.half_pixel) {
    return InvalidArgument(
        "If half_pixel_centers is True, align_corners must be False.");
  }
  return OkStatus();
}

StatusOr<Shape> ResizedShape(ShapeContext& c) {
  const Shape &images = c.input(0), &size = c.input(1);
  HR_RETURN_IF_ERROR(CheckImages(images));
  if (size.known_rank() && size.rank() != 1) {
    return InvalidArgument("shape_t must be 1-dimensional", size);
  }
  if (size.known_rank() && size[0] >= 0 && size[0] != 2) {
    return InvalidArgument(
        c.op().name() == "ScaleAndTranslate" ? "output_" : "",
        "shape_t must have two elements", size);
  }
  absl::InlinedVector<int64_t, 8> sizes;
  const bool known = c.IntValues(1, &sizes);
  if (known && (sizes[0] <= 0 || sizes[1] <= 0)) {
    return InvalidArgument(c.op().name() == "ResizeNearestNeighborGrad"
                               ? "shape_t's elements must be positive"
                               : "output dimensions must be positive");
  }
  const bool know_in = images.known_rank();
  return Shape::Make({know_in ? images[0] : -1, known ? sizes[0] : -1,
                      known ? sizes[1] : -1, know_in ? images[3] : -1},
                     /*allow_unknown=*/true);
}

Status ResizeShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckResizeFlags(ResizeFlags(c.op())));
  HR_ASSIGN_OR_RETURN(Shape out, ResizedShape(c));
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status ResizeGradShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckResizeFlags(ResizeFlags(c.op())));
  const Shape &grads = c.input(0), &original = c.input(1);
  HR_RETURN_IF_ERROR(CheckImages(grads));
  HR_RETURN_IF_ERROR(CheckImages(original));
  if (grads.known_rank() && original.known_rank()) {
    for (int i : {0, 3}) {
      if (grads[i] >= 0 && original[i] >= 0 && grads[i] != original[i]) {
        return InvalidArgument(
            "gradients and original images must agree in batch and channels: ",
            grads, " vs. ", original);
      }
    }
  }
  c.set_output(0, original.known_rank() ? original : Shape::UnknownOfRank(4));
  return OkStatus();
}

ResizeSizes SizesOfResize(const KernelContext& c) {
  const Shape &in = c.input(0).shape(), &out = c.output(0).shape();
  return {in[0], in[1], in[2], in[3], out[1], out[2]};
}

ResizeSizes SizesOfResizeGrad(const KernelContext& c) {
  const Shape &grads = c.input(0).shape(), &in = c.output(0).shape();
  return {in[0], in[1], in[2], in[3], grads[1], grads[2]};
}

}  // namespace headrace
