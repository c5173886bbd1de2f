// DrawBoundingBoxes and DrawBoundingBoxesV2: outlines of boxes, one pixel wide.
#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "op/op.h"

namespace headrace {
namespace {

constexpr float kColors[10][4] = {
    {1, 1, 0, 1},       {0, 0, 1, 1},       {1, 0, 0, 1},    {0, 1, 0, 1},
    {0.5f, 0, 0.5f, 1}, {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1},
    {0, 1, 1, 1},       {1, 0, 1, 1}};

Status DrawShape(ShapeContext& c) {
  const Shape &images = c.input(0), &boxes = c.input(1);
  int64_t depth = -1;
  if (images.known_rank()) {
    if (images.rank() != 4) {
      return InvalidArgument("The rank of the images should be 4");
    }
    depth = images[3];
    if (depth >= 0 && depth != 1 && depth != 3 && depth != 4) {
      return InvalidArgument(
          "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)");
    }
  }
  if (boxes.known_rank()) {
    if (boxes.rank() != 3) {
      return InvalidArgument("The rank of the boxes tensor should be 3");
    }
    if (boxes[2] >= 0 && boxes[2] != 4) {
      return InvalidArgument(
          "The size of the third dimension of the box must be 4. Received: ",
          boxes[2]);
    }
    if (images.known_rank() && images[0] >= 0 && boxes[0] >= 0 &&
        images[0] != boxes[0]) {
      return InvalidArgument("The batch sizes should be the same");
    }
  }
  if (c.num_inputs() > 2 && c.input(2).known_rank()) {
    const Shape& colors = c.input(2);
    if (colors.rank() != 2) {
      return InvalidArgument("colors must be a 2-D matrix", colors);
    }
    if (colors[1] >= 0 && depth >= 0 && colors[1] < depth) {
      return InvalidArgument(
          "colors must have equal or more channels than the image provided: ",
          colors);
    }
  }
  c.set_output(0, images);
  return OkStatus();
}

// One image to draw on.
template <typename T>
struct Canvas {
  T* pixels;
  int64_t height, width, depth;

  void Fill(int64_t y0, int64_t y1, int64_t x0, int64_t x1,
            const float* color) const {
    for (int64_t y = y0; y <= y1; ++y) {
      for (int64_t x = x0; x <= x1; ++x) {
        T* to = pixels + (y * width + x) * depth;
        for (int64_t k = 0; k < depth; ++k) to[k] = static_cast<T>(color[k]);
      }
    }
  }
};

// The pixel that a coordinate, a part of `size`, lies in; far ones are cut.
int64_t PixelOf(float at, int64_t size) {
  const float x = at * static_cast<float>(size - 1);
  // A conversion of a number beyond int64 would be undefined.
  return static_cast<int64_t>(std::clamp(x, -1e9f, 1e9f));
}

template <typename T>
void Outline(const Canvas<T>& c, const float* box, const float* color) {
  for (int i = 0; i < 4; ++i) {
    if (std::isnan(box[i])) return;
  }
  const int64_t top = PixelOf(box[0], c.height);
  const int64_t left = PixelOf(box[1], c.width);
  const int64_t bottom = PixelOf(box[2], c.height);
  const int64_t right = PixelOf(box[3], c.width);
  if (top > bottom || left > right || top >= c.height || bottom < 0 ||
      left >= c.width || right < 0) {
    return;
  }
  const int64_t y0 = std::max<int64_t>(top, 0);
  const int64_t y1 = std::min(bottom, c.height - 1);
  const int64_t x0 = std::max<int64_t>(left, 0);
  const int64_t x1 = std::min(right, c.width - 1);
  // A side that lies outside is not drawn, though the box may reach inside.
  if (top >= 0) c.Fill(top, top, x0, x1, color);
  if (bottom < c.height) c.Fill(bottom, bottom, x0, x1, color);
  if (left >= 0) c.Fill(y0, y1, left, left, color);
  if (right < c.width) c.Fill(y0, y1, right, right, color);
}

template <typename T>
Status RunDraw(KernelContext& c) {
  const Shape& s = c.output(0).shape();
  const int64_t image = s[1] * s[2] * s[3], boxes = c.input(1).dim(1);
  const bool gray = s[3] == 1;
  constexpr float kWhite[4] = {1, 1, 1, 1};
  const Tensor* colors =
      c.num_inputs() > 2 && c.input(2).dim(0) > 0 ? &c.input(2) : nullptr;
  std::copy_n(c.in<T>(0), c.output(0).num_elements(), c.out<T>(0));
  ParallelFor(s[0], image * 1.0, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const Canvas<T> canvas{c.out<T>(0) + b * image, s[1], s[2], s[3]};
      for (int64_t i = 0; i < boxes; ++i) {
        const float* color = gray ? kWhite : kColors[i % 10];
        if (colors) {
          // Colours are taken in turn.
          color = colors->data<float>() + i % colors->dim(0) * colors->dim(1);
        }
        Outline(canvas, c.in<float>(1) + (b * boxes + i) * 4, color);
      }
    }
  });
  return OkStatus();
}

ComputeFn Pick(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), TypeList<float, half>{},
                [&](auto tag) { fn = RunDraw<typename decltype(tag)::type>; });
  return fn;
}

HR_OP(DrawBoundingBoxes)
    .Input("images: T")
    .Input("boxes: float")
    .Output("output: T")
    .Attr("T: {float, half} = float")
    .Doc("Draws the outlines of boxes on images.")
    .Shape(DrawShape)
    .NoGradient()
    .Cpu(ComputeFor<Pick>);

HR_OP(DrawBoundingBoxesV2)
    .Input("images: T")
    .Input("boxes: float")
    .Input("colors: float")
    .Output("output: T")
    .Attr("T: {float, half} = float")
    .Doc("Draws the outlines of boxes on images, in colours of a table.")
    .Shape(DrawShape)
    .Cpu(ComputeFor<Pick>);

}  // namespace
}  // namespace headrace
