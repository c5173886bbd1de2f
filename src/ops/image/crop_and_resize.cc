// CropAndResize: boxes of images, each resized to one size; and its gradients
// for the images and the boxes.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/thread_pool.h"
#include "op/op.h"

namespace headrace {
namespace {

// The run's operands. Boxes are [y1, x1, y2, x2], of the image's size.
struct Crops {
  int64_t batch, in_h, in_w, channels, count, out_h, out_w;
  const float* boxes;
  const int32_t* image_of;
  bool nearest;
  float extrapolation = 0;

  int64_t pixels() const { return out_h * out_w; }
};

// A place on one axis between two input indices.
struct Tap {
  bool inside;
  int64_t low, high, nearest;
  float part;
};

Tap TapOf(float begin, float end, int64_t in, int64_t out, int64_t o) {
  // A box of [0, 1] reaches from the first pixel's centre to the last one's.
  const auto last = static_cast<float>(in - 1);
  const float step = out > 1 ? (end - begin) * last / (out - 1) : 0;
  // A single pixel is taken from the middle of the box.
  const float at =
      out > 1 ? begin * last + o * step : 0.5f * (begin + end) * last;
  // Written so that a NaN lies outside.
  if (!(at >= 0 && at <= last)) return {false, 0, 0, 0, 0};
  const float low = std::floor(at);
  return {true, static_cast<int64_t>(low), static_cast<int64_t>(std::ceil(at)),
          static_cast<int64_t>(std::round(at)), at - low};
}

// The places of a box's crop.
struct RowOf {
  const Crops& c;
  int64_t box;
  Tap y(int64_t o) const {
    return TapOf(c.boxes[box * 4], c.boxes[box * 4 + 2], c.in_h, c.out_h, o);
  }
  Tap x(int64_t o) const {
    return TapOf(c.boxes[box * 4 + 1], c.boxes[box * 4 + 3], c.in_w, c.out_w,
                 o);
  }
};

// The four pixels around a place.
template <typename T>
struct Corners {
  T *top_left, *top_right, *bottom_left, *bottom_right;
  Corners(const Crops& c, T* image, const Tap& y, const Tap& x) {
    auto at = [&](int64_t row, int64_t column) {
      return image + (row * c.in_w + column) * c.channels;
    };
    top_left = at(y.low, x.low);
    top_right = at(y.low, x.high);
    bottom_left = at(y.high, x.low);
    bottom_right = at(y.high, x.high);
  }
};

Status CheckBoxValues(const Crops& c) {
  for (int64_t i = 0; i < c.count * 4; ++i) {
    if (!std::isfinite(c.boxes[i])) {
      return InvalidArgument(
          "Boxes contains at least one element that is not finite");
    }
  }
  for (int64_t i = 0; i < c.count; ++i) {
    if (c.image_of[i] < 0 || c.image_of[i] >= c.batch) {
      return OutOfRange("box_index has values outside [0, batch_size)");
    }
  }
  return OkStatus();
}

// --- Shapes.

Status CheckBoxes(const Shape& boxes, const Shape& index, int64_t* count) {
  *count = -1;
  if (boxes.known_rank()) {
    if (boxes.rank() != 2) return InvalidArgument("boxes must be 2-D", boxes);
    if (boxes[1] >= 0 && boxes[1] != 4) {
      return InvalidArgument("boxes must have 4 columns");
    }
    *count = boxes[0];
  }
  if (index.known_rank()) {
    if (index.rank() != 1) {
      return InvalidArgument("box_indices must be rank 1 but is shape ", index);
    }
    if (*count >= 0 && index[0] >= 0 && index[0] != *count) {
      return InvalidArgument("box_index has incompatible shape");
    }
    if (*count < 0) *count = index[0];
  }
  return OkStatus();
}

Status CheckImage(const Shape& image) {
  if (!image.known_rank()) return OkStatus();
  if (image.rank() != 4)
    return InvalidArgument("input image must be 4-D", image);
  if (image[1] == 0 || image[2] == 0) {
    return InvalidArgument("image dimensions must be positive");
  }
  return OkStatus();
}

Status CropShape(ShapeContext& c) {
  const Shape& image = c.input(0);
  HR_RETURN_IF_ERROR(CheckImage(image));
  int64_t count;
  HR_RETURN_IF_ERROR(CheckBoxes(c.input(1), c.input(2), &count));
  const Shape& size = c.input(3);
  if (size.known_rank() && size.rank() != 1) {
    return InvalidArgument("crop_size must be 1-D", size);
  }
  if (size.known_rank() && size[0] >= 0 && size[0] != 2) {
    return InvalidArgument("crop_size must have two elements", size);
  }
  absl::InlinedVector<int64_t, 8> sizes;
  const bool known = c.IntValues(3, &sizes);
  if (known && (sizes[0] <= 0 || sizes[1] <= 0)) {
    return InvalidArgument("crop dimensions must be positive");
  }
  HR_ASSIGN_OR_RETURN(
      Shape out,
      Shape::Make({count, known ? sizes[0] : -1, known ? sizes[1] : -1,
                   image.known_rank() ? image[3] : -1},
                  /*allow_unknown=*/true));
  c.set_output(0, std::move(out));
  return OkStatus();
}

// Gradients must look like crops of the boxes.
Status CheckGrads(const Shape& grads, int64_t count, const Shape& image) {
  if (!grads.known_rank()) return OkStatus();
  if (grads.rank() != 4)
    return InvalidArgument("grads image must be 4-D", grads);
  if (grads[1] == 0 || grads[2] == 0) {
    return InvalidArgument("grads dimensions must be positive");
  }
  if (count >= 0 && grads[0] >= 0 && grads[0] != count) {
    return InvalidArgument("boxes and grads have incompatible shape");
  }
  if (image.known_rank() && image[3] >= 0 && grads[3] >= 0 &&
      image[3] != grads[3]) {
    return InvalidArgument("image_size and grads are incompatible");
  }
  return OkStatus();
}

Status ImageGradShape(ShapeContext& c) {
  int64_t count;
  HR_RETURN_IF_ERROR(CheckBoxes(c.input(1), c.input(2), &count));
  const Shape& size = c.input(3);
  if (size.known_rank() && size.rank() != 1) {
    return InvalidArgument("image_size must be 1-D", size);
  }
  if (size.known_rank() && size[0] >= 0 && size[0] != 4) {
    return InvalidArgument("image_size must have 4 elements", size);
  }
  HR_ASSIGN_OR_RETURN(Shape image, c.ShapeValue(3));
  if (!image.known_rank()) image = Shape::UnknownOfRank(4);
  HR_RETURN_IF_ERROR(CheckImage(image));
  HR_RETURN_IF_ERROR(CheckGrads(c.input(0), count, image));
  c.set_output(0, std::move(image));
  return OkStatus();
}

Status BoxGradShape(ShapeContext& c) {
  int64_t count;
  HR_RETURN_IF_ERROR(CheckImage(c.input(1)));
  HR_RETURN_IF_ERROR(CheckBoxes(c.input(2), c.input(3), &count));
  HR_RETURN_IF_ERROR(CheckGrads(c.input(0), count, c.input(1)));
  c.set_output(0, Shape{count, 4});
  return OkStatus();
}

Crops CropsOf(const KernelContext& c, const Shape& image, const Shape& crops,
              int boxes) {
  Crops r{};
  r.batch = image[0];
  r.in_h = image[1];
  r.in_w = image[2];
  r.channels = image[3];
  r.count = crops[0];
  r.out_h = crops[1];
  r.out_w = crops[2];
  r.boxes = c.in<float>(boxes);
  r.image_of = c.in<int32_t>(boxes + 1);
  r.nearest = c.op().string_attr("method") == "nearest";
  return r;
}

// --- Forward.

template <typename T>
void Pixel(const Crops& c, const T* image, const Tap& y, const Tap& x,
           float* out) {
  if (c.nearest) {
    const T* from = image + (y.nearest * c.in_w + x.nearest) * c.channels;
    for (int64_t k = 0; k < c.channels; ++k) {
      out[k] = static_cast<float>(from[k]);
    }
    return;
  }
  const Corners<const T> p(c, image, y, x);
  for (int64_t k = 0; k < c.channels; ++k) {
    const auto tl = static_cast<float>(p.top_left[k]);
    const auto bl = static_cast<float>(p.bottom_left[k]);
    // The order of these operations is upstream's, so that results agree to the
    // last bit.
    const float top = tl + (static_cast<float>(p.top_right[k]) - tl) * x.part;
    const float bottom =
        bl + (static_cast<float>(p.bottom_right[k]) - bl) * x.part;
    out[k] = top + (bottom - top) * y.part;
  }
}

template <typename T>
Status RunCrop(KernelContext& ctx) {
  Crops c = CropsOf(ctx, ctx.input(0).shape(), ctx.output(0).shape(), 1);
  c.extrapolation = ctx.op().float_attr("extrapolation_value");
  HR_RETURN_IF_ERROR(CheckBoxValues(c));
  const T* images = ctx.in<T>(0);
  float* out = ctx.out<float>(0);
  const int64_t width = c.out_w * c.channels;
  ParallelFor(c.count * c.out_h, width * 4.0, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const RowOf row{c, r / c.out_h};
      const T* image =
          images + c.image_of[row.box] * c.in_h * c.in_w * c.channels;
      const Tap y = row.y(r % c.out_h);
      float* to = out + r * width;
      if (!y.inside) {
        std::fill_n(to, width, c.extrapolation);
        continue;
      }
      for (int64_t o = 0; o < c.out_w; ++o, to += c.channels) {
        const Tap x = row.x(o);
        if (x.inside) {
          Pixel(c, image, y, x, to);
        } else {
          std::fill_n(to, c.channels, c.extrapolation);
        }
      }
    }
  });
  return OkStatus();
}

// --- Gradients. Boxes may share an image, so they come one after another.

template <typename F>
void ForInside(const Crops& c, F f) {
  for (int64_t box = 0; box < c.count; ++box) {
    const RowOf row{c, box};
    for (int64_t oy = 0; oy < c.out_h; ++oy) {
      const Tap y = row.y(oy);
      if (!y.inside) continue;
      for (int64_t ox = 0; ox < c.out_w; ++ox) {
        const Tap x = row.x(ox);
        if (x.inside) f(box, oy, ox, y, x);
      }
    }
  }
}

template <typename T>
Status RunImageGrad(KernelContext& ctx) {
  // Half is summed in float: many boxes may add to one pixel.
  using W = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const Crops c = CropsOf(ctx, ctx.output(0).shape(), ctx.input(0).shape(), 1);
  HR_RETURN_IF_ERROR(CheckBoxValues(c));
  const float* grads = ctx.in<float>(0);
  const int64_t image = c.in_h * c.in_w * c.channels;
  HR_ASSIGN_OR_RETURN(Tensor room,
                      Tensor::Allocate(DTypeOf<W>, Shape{c.batch * image}));
  W* sums = room.data<W>();
  std::fill_n(sums, c.batch * image, W(0));
  ForInside(c, [&](int64_t box, int64_t oy, int64_t ox, const Tap& y,
                   const Tap& x) {
    const float* g = grads + ((box * c.out_h + oy) * c.out_w + ox) * c.channels;
    W* to = sums + c.image_of[box] * image;
    if (c.nearest) {
      to += (y.nearest * c.in_w + x.nearest) * c.channels;
      for (int64_t k = 0; k < c.channels; ++k) to[k] += g[k];
      return;
    }
    const Corners<W> p(c, to, y, x);
    for (int64_t k = 0; k < c.channels; ++k) {
      // Each corner gets the share that it had in the interpolation.
      const W top = W(1 - y.part) * g[k], bottom = W(y.part) * g[k];
      p.top_left[k] += (1 - x.part) * top;
      p.top_right[k] += x.part * top;
      p.bottom_left[k] += (1 - x.part) * bottom;
      p.bottom_right[k] += x.part * bottom;
    }
  });
  T* out = ctx.out<T>(0);
  for (int64_t i = 0; i < c.batch * image; ++i) {
    out[i] = static_cast<T>(sums[i]);
  }
  return OkStatus();
}

template <typename T>
Status RunBoxGrad(KernelContext& ctx) {
  const Crops c = CropsOf(ctx, ctx.input(1).shape(), ctx.input(0).shape(), 2);
  HR_RETURN_IF_ERROR(CheckBoxValues(c));
  const float* grads = ctx.in<float>(0);
  const T* images = ctx.in<T>(1);
  float* out = ctx.out<float>(0);
  std::fill_n(out, c.count * 4, 0.0f);
  // How far the box's end moves a place at `o`, in input pixels.
  auto share = [](int64_t in, int64_t count, int64_t o) {
    return count > 1 ? 1.0f * o / (count - 1) * (in - 1) : 0.5f * (in - 1);
  };
  ForInside(c, [&](int64_t box, int64_t oy, int64_t ox, const Tap& y,
                   const Tap& x) {
    const float* g = grads + ((box * c.out_h + oy) * c.out_w + ox) * c.channels;
    const Corners<const T> p(
        c, images + c.image_of[box] * c.in_h * c.in_w * c.channels, y, x);
    float dy = 0, dx = 0;
    for (int64_t k = 0; k < c.channels; ++k) {
      const auto tl = static_cast<float>(p.top_left[k]);
      const auto tr = static_cast<float>(p.top_right[k]);
      const auto bl = static_cast<float>(p.bottom_left[k]);
      const auto br = static_cast<float>(p.bottom_right[k]);
      // The derivative of the bilinear surface along each axis, at this place.
      dy += g[k] * ((1 - x.part) * (bl - tl) + x.part * (br - tr));
      dx += g[k] * ((1 - y.part) * (tr - tl) + y.part * (br - bl));
    }
    const float to_y2 = share(c.in_h, c.out_h, oy);
    const float to_x2 = share(c.in_w, c.out_w, ox);
    float* d = out + box * 4;
    // A place is (1 - o / (n - 1)) of the box's begin and o / (n - 1) of its
    // end.
    d[0] += dy * (c.in_h - 1 - to_y2);
    d[1] += dx * (c.in_w - 1 - to_x2);
    d[2] += dy * to_y2;
    d[3] += dx * to_x2;
  });
  return OkStatus();
}

using ImageTypes = TypeList<float, double, half, int8_t, uint8_t, int16_t,
                            uint16_t, int32_t, int64_t>;

ComputeFn PickCrop(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), ImageTypes{},
                [&](auto tag) { fn = RunCrop<typename decltype(tag)::type>; });
  return fn;
}
ComputeFn PickImageGrad(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(
      op.type_attr("T"), TypeList<float, double, half>{},
      [&](auto tag) { fn = RunImageGrad<typename decltype(tag)::type>; });
  return fn;
}
ComputeFn PickBoxGrad(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), ImageTypes{}, [&](auto tag) {
    fn = RunBoxGrad<typename decltype(tag)::type>;
  });
  return fn;
}

Status CropGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const Value &image = g.input(0), &boxes = g.input(1), &index = g.input(2);
  const DType type = g.op().type_attr("T");
  // Upstream has an image gradient for floating-point images only.
  if (g.wants(0) && (type == DType::kHalf || type == DType::kFloat ||
                     type == DType::kDouble)) {
    g.set(0, g("CropAndResizeGradImage", {d, boxes, index, g.ShapeOf(image)},
               {{"T", type}, {"method", g.op().string_attr("method")}}));
  }
  if (g.wants(1))
    g.set(1, g("CropAndResizeGradBoxes", {d, image, boxes, index}));
  return g.status();
}

HR_OP(CropAndResize)
    .Input("image: T")
    .Input("boxes: float")
    .Input("box_ind: int32")
    .Input("crop_size: int32")
    .Output("crops: float")
    .Attr("T: {uint8, uint16, int8, int16, int32, int64, half, float, double}")
    .Attr("method: {'bilinear', 'nearest'} = 'bilinear'")
    .Attr("extrapolation_value: float = 0")
    .Doc("Crops boxes from images and resizes them to one size.")
    .Shape(CropShape)
    .Gradient(CropGradient)
    .GradientSkips({3}, {0})
    .Cpu(ComputeFor<PickCrop>);

HR_OP(CropAndResizeGradImage)
    .Input("grads: float")
    .Input("boxes: float")
    .Input("box_ind: int32")
    .Input("image_size: int32")
    .Output("output: T")
    .Attr("T: {float, half, double}")
    .Attr("method: {'bilinear', 'nearest'} = 'bilinear'")
    .Doc("Gradient of CropAndResize for its images.")
    .Shape(ImageGradShape)
    .Cpu(ComputeFor<PickImageGrad>);

HR_OP(CropAndResizeGradBoxes)
    .Input("grads: float")
    .Input("image: T")
    .Input("boxes: float")
    .Input("box_ind: int32")
    .Output("output: float")
    .Attr("T: {uint8, uint16, int8, int16, int32, int64, half, float, double}")
    .Attr("method: {'bilinear'} = 'bilinear'")
    .Doc("Gradient of CropAndResize for its boxes.")
    .Shape(BoxGradShape)
    .Cpu(ComputeFor<PickBoxGrad>);

}  // namespace
}  // namespace headrace
