// Pooling of windows and of everything: tf.keras.layers.
//
// Inputs are as for convolutions of as many dimensions; sizes that are not
// positive, unknown names and inputs of another rank are kInvalidArgument. No
// weights: layers of this kind may be called by several threads at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/layer/convolution.h"

namespace headrace::tf::layers {

template <int kRank>
// How windows lie. "valid" windows lie inside of the input, so that edges may
// be left out; with "same" there are ceil(size / stride) windows, and what they
// hold beyond the edges counts neither for the greatest value nor for the mean.
struct PoolOptions {
  std::optional<Sizes<kRank>> strides;  // those of the window
  std::string padding = "valid";        // or "same"
  std::string data_format = "channels_last";
};
using Pool1DOptions = PoolOptions<1>;
using Pool2DOptions = PoolOptions<2>;
using Pool3DOptions = PoolOptions<3>;

// What MaxPool and AveragePool share: the greatest or mean value of windows.
class HR_API Pooling : public Layer {
 protected:
  template <int kRank>
  Pooling(std::string name, const char* op, const Sizes<kRank>& size,
          const PoolOptions<kRank>& o)
      : Pooling(std::move(name), op, size.list(),
                o.strides.value_or(size).list(), o.padding, o.data_format) {}
  Pooling(std::string name, const char* op, std::vector<int64_t> size,
          std::vector<int64_t> strides, std::string padding,
          std::string data_format);
  Tensor Call(const Tensor& x, bool training) override;

 private:
  const char* op_;
  std::vector<int64_t> size_, strides_;
  std::string padding_, data_format_;
};

// The greatest value of each window, channel by channel: [n, steps, channels]
// to [n, steps', channels], and so on for two and three dimensions.
class HR_API MaxPooling1D : public Pooling {
 public:
  explicit MaxPooling1D(Size1 pool_size = 2, Pool1DOptions options = {});
};
class HR_API MaxPooling2D : public Pooling {
 public:
  explicit MaxPooling2D(Size2 pool_size = 2, Pool2DOptions options = {});
};
class HR_API MaxPooling3D : public Pooling {
 public:
  explicit MaxPooling3D(Size3 pool_size = 2, Pool3DOptions options = {});
};
// The mean of each window, channel by channel.
class HR_API AveragePooling1D : public Pooling {
 public:
  explicit AveragePooling1D(Size1 pool_size = 2, Pool1DOptions options = {});
};
class HR_API AveragePooling2D : public Pooling {
 public:
  explicit AveragePooling2D(Size2 pool_size = 2, Pool2DOptions options = {});
};
class HR_API AveragePooling3D : public Pooling {
 public:
  explicit AveragePooling3D(Size3 pool_size = 2, Pool3DOptions options = {});
};

// What the global poolings share: over all but batch and channels, [n, ...,
// channels] to [n, channels], or to [n, 1..., channels] with keep_dims.
class HR_API GlobalPooling : public Layer {
 protected:
  GlobalPooling(std::string name, const char* op, int rank, bool keep_dims,
                std::string data_format);
  Tensor Call(const Tensor& x, bool training) override;

 private:
  const char* op_;
  int rank_;
  bool keep_dims_;
  std::string data_format_;
};

// The greatest value of each channel.
class HR_API GlobalMaxPooling1D : public GlobalPooling {
 public:
  explicit GlobalMaxPooling1D(bool keep_dims = false,
                              std::string data_format = "channels_last");
};
class HR_API GlobalMaxPooling2D : public GlobalPooling {
 public:
  explicit GlobalMaxPooling2D(bool keep_dims = false,
                              std::string data_format = "channels_last");
};
class HR_API GlobalMaxPooling3D : public GlobalPooling {
 public:
  explicit GlobalMaxPooling3D(bool keep_dims = false,
                              std::string data_format = "channels_last");
};
// The mean over the steps that the mask shows, where there is one; NaN for a
// sample of which it shows none.
class HR_API GlobalAveragePooling1D : public GlobalPooling {
 public:
  explicit GlobalAveragePooling1D(bool keep_dims = false,
                                  std::string data_format = "channels_last");

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  bool keep_dims_, channels_first_;
};
// The mean of each channel.
class HR_API GlobalAveragePooling2D : public GlobalPooling {
 public:
  explicit GlobalAveragePooling2D(bool keep_dims = false,
                                  std::string data_format = "channels_last");
};
class HR_API GlobalAveragePooling3D : public GlobalPooling {
 public:
  explicit GlobalAveragePooling3D(bool keep_dims = false,
                                  std::string data_format = "channels_last");
};

// Keras' other names.
using MaxPool1D = MaxPooling1D;
using MaxPool2D = MaxPooling2D;
using MaxPool3D = MaxPooling3D;
using AvgPool1D = AveragePooling1D;
using AvgPool2D = AveragePooling2D;
using AvgPool3D = AveragePooling3D;
using AveragePool1D = AveragePooling1D;
using AveragePool2D = AveragePooling2D;
using AveragePool3D = AveragePooling3D;
using GlobalMaxPool1D = GlobalMaxPooling1D;
using GlobalMaxPool2D = GlobalMaxPooling2D;
using GlobalMaxPool3D = GlobalMaxPooling3D;
using GlobalAvgPool1D = GlobalAveragePooling1D;
using GlobalAvgPool2D = GlobalAveragePooling2D;
using GlobalAvgPool3D = GlobalAveragePooling3D;
using GlobalAveragePool1D = GlobalAveragePooling1D;
using GlobalAveragePool2D = GlobalAveragePooling2D;
using GlobalAveragePool3D = GlobalAveragePooling3D;

}  // namespace headrace::tf::layers
