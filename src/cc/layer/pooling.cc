#include "headrace/layer/pooling.h"

#include "cc/layer/spatial.h"

namespace headrace::tf::layers {

using internal::Op;
using internal::Spread;

Pooling::Pooling(std::string name, const char* op, std::vector<int64_t> size,
                 std::vector<int64_t> strides, std::string padding,
                 std::string data_format)
    : Layer(std::move(name)),
      op_(op),
      size_(std::move(size)),
      strides_(std::move(strides)),
      padding_(internal::PaddingOf(padding)),
      data_format_(std::move(data_format)) {
  internal::CheckSizes(size_, "pool_size");
  internal::CheckSizes(strides_, "strides");
  internal::ChannelsFirst(data_format_);
  set_input_rank(static_cast<int>(size_.size()) + 2, /*exact=*/true);
}

Tensor Pooling::Call(const Tensor& x, bool training) {
  const int rank = static_cast<int>(size_.size());
  const auto pooled = [&](const Tensor& t, std::vector<int64_t> size,
                          std::vector<int64_t> strides) {
    return Op(op_, {t},
              {{"ksize", Spread(size)},
               {"strides", Spread(strides)},
               {"padding", padding_}});
  };
  return internal::WithChannelsLast(
      x, data_format_, rank, [&](const Tensor& last) {
        if (rank > 1) return pooled(last, size_, strides_);
        return internal::AsImages(last, [&](const Tensor& images) {
          return pooled(images, {1, size_[0]}, {1, strides_[0]});
        });
      });
}

MaxPooling1D::MaxPooling1D(Size1 pool_size, Pool1DOptions options)
    : Pooling("max_pooling1d", "MaxPool", pool_size, options) {}
MaxPooling2D::MaxPooling2D(Size2 pool_size, Pool2DOptions options)
    : Pooling("max_pooling2d", "MaxPool", pool_size, options) {}
MaxPooling3D::MaxPooling3D(Size3 pool_size, Pool3DOptions options)
    : Pooling("max_pooling3d", "MaxPool3D", pool_size, options) {}
AveragePooling1D::AveragePooling1D(Size1 pool_size, Pool1DOptions options)
    : Pooling("average_pooling1d", "AvgPool", pool_size, options) {}
AveragePooling2D::AveragePooling2D(Size2 pool_size, Pool2DOptions options)
    : Pooling("average_pooling2d", "AvgPool", pool_size, options) {}
AveragePooling3D::AveragePooling3D(Size3 pool_size, Pool3DOptions options)
    : Pooling("average_pooling3d", "AvgPool3D", pool_size, options) {}

GlobalPooling::GlobalPooling(std::string name, const char* op, int rank,
                             bool keep_dims, std::string data_format)
    : Layer(std::move(name)),
      op_(op),
      rank_(rank),
      keep_dims_(keep_dims),
      data_format_(std::move(data_format)) {
  internal::ChannelsFirst(data_format_);
  set_input_rank(rank + 2, /*exact=*/true);
}

Tensor GlobalPooling::Call(const Tensor& x, bool training) {
  std::vector<int64_t> axes;
  const int first = internal::ChannelsFirst(data_format_) ? 2 : 1;
  for (int i = 0; i < rank_; ++i) axes.push_back(first + i);
  return internal::Reduce(op_, x, axes, keep_dims_);
}

GlobalMaxPooling1D::GlobalMaxPooling1D(bool keep_dims, std::string data_format)
    : GlobalPooling("global_max_pooling1d", "Max", 1, keep_dims,
                    std::move(data_format)) {}
GlobalMaxPooling2D::GlobalMaxPooling2D(bool keep_dims, std::string data_format)
    : GlobalPooling("global_max_pooling2d", "Max", 2, keep_dims,
                    std::move(data_format)) {}
GlobalMaxPooling3D::GlobalMaxPooling3D(bool keep_dims, std::string data_format)
    : GlobalPooling("global_max_pooling3d", "Max", 3, keep_dims,
                    std::move(data_format)) {}
GlobalAveragePooling2D::GlobalAveragePooling2D(bool keep_dims,
                                               std::string data_format)
    : GlobalPooling("global_average_pooling2d", "Mean", 2, keep_dims,
                    std::move(data_format)) {}
GlobalAveragePooling3D::GlobalAveragePooling3D(bool keep_dims,
                                               std::string data_format)
    : GlobalPooling("global_average_pooling3d", "Mean", 3, keep_dims,
                    std::move(data_format)) {}

GlobalAveragePooling1D::GlobalAveragePooling1D(bool keep_dims,
                                               std::string data_format)
    : GlobalPooling("global_average_pooling1d", "Mean", 1, keep_dims,
                    data_format),
      keep_dims_(keep_dims),
      channels_first_(internal::ChannelsFirst(data_format)) {}

Tensor GlobalAveragePooling1D::Call(const Tensor& x, bool training) {
  const Tensor mask = x.mask();
  if (!mask) return GlobalPooling::Call(x, training);
  const int64_t axis = channels_first_ ? 2 : 1;
  const Tensor shown = Op(
      "ExpandDims", {internal::Cast(mask, x.dtype()), internal::Int(3 - axis)});
  return internal::Reduce("Sum", x * shown, {axis}, keep_dims_) /
         internal::Reduce("Sum", shown, {axis}, keep_dims_);
}

}  // namespace headrace::tf::layers
