// Pooling of windows and of everything: tf.keras.layers.
//
// Inputs are as for convolutions of as many dimensions; sizes that are not
// positive, unknown names and inputs of another rank are kInvalidArgument.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/convolution.h"

namespace headrace::tf::layers {

template <int kRank>
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

class HR_API MaxPool1D : public Pooling {
 public:
  explicit MaxPool1D(Size1 pool_size = 2, Pool1DOptions options = {});
};
class HR_API MaxPool2D : public Pooling {
 public:
  explicit MaxPool2D(Size2 pool_size = 2, Pool2DOptions options = {});
};
class HR_API MaxPool3D : public Pooling {
 public:
  explicit MaxPool3D(Size3 pool_size = 2, Pool3DOptions options = {});
};
class HR_API AveragePool1D : public Pooling {
 public:
  explicit AveragePool1D(Size1 pool_size = 2, Pool1DOptions options = {});
};
class HR_API AveragePool2D : public Pooling {
 public:
  explicit AveragePool2D(Size2 pool_size = 2, Pool2DOptions options = {});
};
class HR_API AveragePool3D : public Pooling {
 public:
  explicit AveragePool3D(Size3 pool_size = 2, Pool3DOptions options = {});
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

class HR_API GlobalMaxPool1D : public GlobalPooling {
 public:
  explicit GlobalMaxPool1D(bool keep_dims = false,
                           std::string data_format = "channels_last");
};
class HR_API GlobalMaxPool2D : public GlobalPooling {
 public:
  explicit GlobalMaxPool2D(bool keep_dims = false,
                           std::string data_format = "channels_last");
};
class HR_API GlobalMaxPool3D : public GlobalPooling {
 public:
  explicit GlobalMaxPool3D(bool keep_dims = false,
                           std::string data_format = "channels_last");
};
// The mean over the steps that the mask shows, where there is one.
class HR_API GlobalAveragePool1D : public GlobalPooling {
 public:
  explicit GlobalAveragePool1D(bool keep_dims = false,
                               std::string data_format = "channels_last");

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  bool keep_dims_, channels_first_;
};
class HR_API GlobalAveragePool2D : public GlobalPooling {
 public:
  explicit GlobalAveragePool2D(bool keep_dims = false,
                               std::string data_format = "channels_last");
};
class HR_API GlobalAveragePool3D : public GlobalPooling {
 public:
  explicit GlobalAveragePool3D(bool keep_dims = false,
                               std::string data_format = "channels_last");
};

}  // namespace headrace::tf::layers
