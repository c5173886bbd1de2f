// Layers that pad, cut and enlarge: tf.keras.layers.
//
// Inputs are as for convolutions of as many dimensions; sizes that are negative
// (of enlargements: not positive), unknown names and inputs of another rank are
// kInvalidArgument.
#pragma once

#include <string>
#include <vector>

#include "headrace/layer/convolution.h"

namespace headrace::tf::layers {

// Zeros before and behind the steps of [n, steps, channels], to [n, before +
// steps + behind, channels].
class HR_API ZeroPadding1D : public Layer {
 public:
  explicit ZeroPadding1D(int64_t padding = 1);
  ZeroPadding1D(int64_t before, int64_t behind);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  std::vector<int64_t> sides_;
};

// Zeros around images: above, below, left and right.
class HR_API ZeroPadding2D : public Layer {
 public:
  // One for all sides, or (rows, columns).
  explicit ZeroPadding2D(Size2 padding = 1,
                         std::string data_format = "channels_last");
  ZeroPadding2D(int64_t top, int64_t bottom, int64_t left, int64_t right,
                std::string data_format = "channels_last");

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  std::vector<int64_t> sides_;
  std::string data_format_;
};

// Images without so many rows above and below and columns left and right.
// kInvalidArgument where that leaves nothing.
class HR_API Cropping2D : public Layer {
 public:
  // One for all sides, or (rows, columns).
  explicit Cropping2D(Size2 cropping,
                      std::string data_format = "channels_last");
  Cropping2D(int64_t top, int64_t bottom, int64_t left, int64_t right,
             std::string data_format = "channels_last");

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  std::vector<int64_t> sides_;
  std::string data_format_;
};

// Each step of [n, steps, channels] `size` times: [n, size * steps, channels].
class HR_API UpSampling1D : public Layer {
 public:
  explicit UpSampling1D(int64_t size = 2);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  int64_t size_;
};

// Each pixel repeated size[0] times down and size[1] times across. There is no
// interpolation but this one (tf::ResizeBilinear and its like are ops).
class HR_API UpSampling2D : public Layer {
 public:
  explicit UpSampling2D(Size2 size = 2,
                        std::string data_format = "channels_last");

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  std::vector<int64_t> size_;
  std::string data_format_;
};

}  // namespace headrace::tf::layers
