// Layers that reorder, repeat, disturb and penalize what passes through:
// tf.keras.layers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headrace/layer/layers.h"

namespace headrace::tf::layers {

// The axes behind the batch in another order, counted from 1: {2, 1} swaps two.
// Others than a permutation are kInvalidArgument.
class HR_API Permute : public Layer {
 public:
  explicit Permute(std::vector<int64_t> dims);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  std::vector<int64_t> order_;
};

// [n, features] so many times: [n, count, features]. Throws kInvalidArgument
// for counts below 1.
class HR_API RepeatVector : public Layer {
 public:
  explicit RepeatVector(int64_t count);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  int64_t count_;
};

// Gives its input; its penalty, one of losses(), is l1 * sum(|x|) + l2 *
// sum(x^2) over the size of the batch. One thread at a time calls it.
class HR_API ActivityRegularization : public Layer {
 public:
  explicit ActivityRegularization(double l1 = 0, double l2 = 0);

 protected:
  Tensor Call(const Tensor& x, bool training) override;
};

// Adds normal noise of mean 0 while training, drawn anew for each call; with a
// seed in the same order in each program.
class HR_API GaussianNoise : public Layer {
 public:
  explicit GaussianNoise(double stddev, std::optional<int64_t> seed = {});

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  double stddev_;
  std::optional<int64_t> seed_;
};

// Dropout of whole channels: of [n, steps, channels], and of images, of which
// data_format says where the channels are (Tompson et al., 2015).
class HR_API SpatialDropout1D : public Dropout {
 public:
  explicit SpatialDropout1D(double rate, std::optional<int64_t> seed = {});
};
class HR_API SpatialDropout2D : public Dropout {
 public:
  explicit SpatialDropout2D(double rate, std::optional<int64_t> seed = {},
                            const std::string& data_format = "channels_last");
};

// Gives inputs an L2 norm of 1 along the axes; zeros stay zeros. Throws
// kInvalidArgument for no axis.
class HR_API UnitNormalization : public Layer {
 public:
  explicit UnitNormalization(std::vector<int64_t> axis = {-1});

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  std::vector<int64_t> axis_;
};

struct GroupNormalizationOptions {
  int axis = -1;
  double epsilon = 1e-3;
  bool center = true, scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Regularizer beta_regularizer, gamma_regularizer;
  Constraint beta_constraint, gamma_constraint;
};
// Normalizes each sample over groups of channels (Wu and He, 2018), in training
// and otherwise alike. `groups` must divide the number of channels, which must
// be known; -1: each channel is one group. Weights: gamma and beta, [channels].
// Throws kInvalidArgument for other numbers of groups, and for the batch as
// axis.
class HR_API GroupNormalization : public Layer {
 public:
  explicit GroupNormalization(int64_t groups = 32,
                              GroupNormalizationOptions options = {});

 protected:
  void MakeWeights(const TensorShape& input) override;
  Tensor Call(const Tensor& x, bool training) override;

 private:
  int64_t groups_;
  GroupNormalizationOptions options_;
  Variable gamma_, beta_;
};

}  // namespace headrace::tf::layers
