#include "headrace/layer/padding.h"

#include "cc/layer/spatial.h"

namespace headrace::tf::layers {

using internal::Op;
using internal::Throw;

ZeroPadding1D::ZeroPadding1D(int64_t padding)
    : ZeroPadding1D(padding, padding) {}
ZeroPadding1D::ZeroPadding1D(int64_t before, int64_t behind)
    : Layer("zero_padding1d"), sides_{before, behind} {
  internal::CheckSizes(sides_, "padding", /*zero=*/true);
  set_input_rank(3, /*exact=*/true);
}
Tensor ZeroPadding1D::Call(const Tensor& x, bool training) {
  const std::vector<int64_t> all = {0, 0, sides_[0], sides_[1], 0, 0};
  return Op("Pad", {x, internal::Reshape(internal::Ints(all), {3, 2})});
}

ZeroPadding2D::ZeroPadding2D(Size2 padding, std::string data_format)
    : ZeroPadding2D(padding.list()[0], padding.list()[0], padding.list()[1],
                    padding.list()[1], std::move(data_format)) {}
ZeroPadding2D::ZeroPadding2D(int64_t top, int64_t bottom, int64_t left,
                             int64_t right, std::string data_format)
    : Layer("zero_padding2d"),
      sides_{top, bottom, left, right},
      data_format_(std::move(data_format)) {
  internal::CheckSizes(sides_, "padding", /*zero=*/true);
  internal::ChannelsFirst(data_format_);
  set_input_rank(4, /*exact=*/true);
}
Tensor ZeroPadding2D::Call(const Tensor& x, bool training) {
  std::vector<int64_t> all(8, 0);
  std::copy(sides_.begin(), sides_.end(),
            all.begin() + (internal::ChannelsFirst(data_format_) ? 4 : 2));
  return Op("Pad", {x, internal::Reshape(internal::Ints(all), {4, 2})});
}

Cropping2D::Cropping2D(Size2 cropping, std::string data_format)
    : Cropping2D(cropping.list()[0], cropping.list()[0], cropping.list()[1],
                 cropping.list()[1], std::move(data_format)) {}
Cropping2D::Cropping2D(int64_t top, int64_t bottom, int64_t left, int64_t right,
                       std::string data_format)
    : Layer("cropping2d"),
      sides_{top, bottom, left, right},
      data_format_(std::move(data_format)) {
  internal::CheckSizes(sides_, "cropping", /*zero=*/true);
  internal::ChannelsFirst(data_format_);
  set_input_rank(4, /*exact=*/true);
}
Tensor Cropping2D::Call(const Tensor& x, bool training) {
  const size_t first = internal::ChannelsFirst(data_format_) ? 2 : 1;
  std::vector<int64_t> begin(4, 0), end(4, 0);
  int64_t open = 0b1111;  // axes that are taken to their end
  for (size_t i = 0; i < 2; ++i) {
    const int64_t before = sides_[2 * i], behind = sides_[2 * i + 1];
    const int64_t size = x.shape()[first + i];
    if (size >= 0 && before + behind >= size) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("Cropping2D: ", before, " and ", behind,
                         " of a size of ", size, " leave nothing"));
    }
    begin[first + i] = before;
    end[first + i] = -behind;
    if (behind > 0) open &= ~(int64_t{1} << (first + i));
  }
  return Op("StridedSlice",
            {x, internal::Ints(begin), internal::Ints(end),
             internal::Ints({1, 1, 1, 1})},
            {{"end_mask", open}});
}

UpSampling1D::UpSampling1D(int64_t size) : Layer("up_sampling1d"), size_(size) {
  internal::CheckSizes({size}, "size");
  set_input_rank(3, /*exact=*/true);
}
Tensor UpSampling1D::Call(const Tensor& x, bool training) {
  const Tensor each = Op("ExpandDims", {x, internal::Int(2)});
  const Tensor many = Op("Tile", {each, internal::Ints({1, 1, size_, 1})});
  const TensorShape shape = x.shape();
  const int64_t steps = shape[1] < 0 ? -1 : shape[1] * size_;
  if (steps >= 0 && shape[2] >= 0) {
    return internal::Reshape(many, {-1, steps, shape[2]});
  }
  const Tensor sizes = internal::ShapeOf(x) * internal::Ints({1, size_, 1});
  return Op("Reshape", {many, sizes});
}

UpSampling2D::UpSampling2D(Size2 size, std::string data_format)
    : Layer("up_sampling2d"),
      size_(size.list()),
      data_format_(std::move(data_format)) {
  internal::CheckSizes(size_, "size");
  internal::ChannelsFirst(data_format_);
  set_input_rank(4, /*exact=*/true);
}
Tensor UpSampling2D::Call(const Tensor& x, bool training) {
  return internal::WithChannelsLast(x, data_format_, 2, [&](const Tensor& t) {
    const TensorShape shape = t.shape();
    Tensor size;
    if (shape.known_rank && shape[1] >= 0 && shape[2] >= 0) {
      size = internal::Ints({shape[1] * size_[0], shape[2] * size_[1]});
    } else {
      size = Op("StridedSlice", {internal::ShapeOf(t), internal::Ints({1}),
                                 internal::Ints({3}), internal::Ints({1})}) *
             internal::Ints(size_);
    }
    return Op("ResizeNearestNeighbor", {t, size},
              {{"half_pixel_centers", true}});
  });
}

}  // namespace headrace::tf::layers
