// Layers of networks: tf.keras.layers. A layer makes its weights when it first
// sees an input, outside of any function that is being traced, with Keras'
// defaults; checkpoints know the weights under Keras' names, so that those of
// Python's tf.keras models and of TensorFlow's tf_keras are restored, and the
// other way round.
//
//   tf::layers::Sequential model(
//       tf::layers::Conv2D(16, 3, {.padding = "same", .activation = "relu"}),
//       tf::layers::Flatten(), tf::layers::Dense(10));
//   tf::Tensor logits = model(images);                // [batch, 10]
//
// or as members of a model of one's own, by whose names they are then known:
//
//   struct Net : tf::layers::Layer {
//     tf::layers::Dense hidden{64, {.activation = "relu"}}, output{10};
//     Net() { Track("hidden", &hidden), Track("output", &output); }
//     tf::Tensor Call(const tf::Tensor& x, bool training) override {
//       return output(hidden(x), training);
//     }
//   };
//
// Errors are thrown (tf::Error): kInvalidArgument for arguments that Keras
// refuses and for inputs that do not fit. A layer is used by one thread at a
// time until its weights are made; a layer without state of its own (all but
// BatchNormalization while training) by several after that.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/initializers.h"
#include "headrace/variable.h"

namespace headrace::tf {

// A function of one tensor, or the name that Keras knows one by: "linear",
// "relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "exponential",
// "sigmoid", "hard_sigmoid", "softmax", "log_softmax", "softplus", "softsign",
// "swish" ("silu"), "tanh", "mish". None: the input itself.
class HR_API ActivationFunction {
 public:
  ActivationFunction() = default;
  ActivationFunction(const std::string& name);  // NOLINT
  ActivationFunction(const char* name)          // NOLINT
      : ActivationFunction(std::string(name)) {}
  template <typename F, typename = std::enable_if_t<
                            std::is_invocable_r_v<Tensor, F, const Tensor&>>>
  ActivationFunction(F function) : function_(std::move(function)) {}  // NOLINT

  explicit operator bool() const { return function_ != nullptr; }
  Tensor operator()(const Tensor& x) const {
    return function_ ? function_(x) : x;
  }

 private:
  std::function<Tensor(const Tensor&)> function_;
};

namespace layers {

// One number for height and width, or one each.
struct Size2 {
  Size2(int64_t both) : height(both), width(both) {}  // NOLINT
  Size2(int64_t h, int64_t w) : height(h), width(w) {}
  int64_t height, width;
};

// The base of all layers, and of models. Derive from it, make or Track in the
// constructor what it is made of, and say in Call what it computes.
class HR_API Layer : public Module {
 public:
  // `name` is for messages; `dtype` that of its weights, to which float inputs
  // are cast.
  explicit Layer(std::string name = "layer", DType dtype = DType::kFloat32);

  // The output. Layers that behave otherwise while training (Dropout,
  // BatchNormalization) do so when told to.
  Tensor operator()(const Tensor& x, bool training = false);

  // Makes the weights, and those of all layers that Call calls, for inputs of
  // that shape (-1: any size) without computing anything. Returns the output's
  // shape.
  TensorShape Build(const TensorShape& input);
  bool built() const { return built_; }
  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }

 protected:
  virtual Tensor Call(const Tensor& x, bool training) = 0;
  // Makes the layer's own weights; called once, before the first Call.
  virtual void MakeWeights(const TensorShape& input) {}
  Variable AddWeight(const std::string& name, const TensorShape& shape,
                     const Initializer& initializer, bool trainable = true);
  // Fewest axes of inputs, and whether that is their number; checked before
  // anything else.
  void set_input_rank(int rank, bool exact) {
    rank_ = rank;
    exact_rank_ = exact;
  }

 private:
  Tensor Prepared(const Tensor& x) const;

  std::string name_;
  DType dtype_;
  int rank_ = 0;
  bool exact_rank_ = false;
  bool built_ = false;
};

struct DenseOptions {
  ActivationFunction activation;
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
};
// activation(x @ kernel + bias): [..., n] to [..., units].
class HR_API Dense : public Layer {
 public:
  explicit Dense(int64_t units, DenseOptions options = {});
  const Variable& kernel() const { return kernel_; }
  const Variable& bias() const { return bias_; }

 protected:
  void MakeWeights(const TensorShape& input) override;
  Tensor Call(const Tensor& x, bool training) override;

 private:
  int64_t units_;
  DenseOptions options_;
  Variable kernel_, bias_;
};

struct Conv2DOptions {
  Size2 strides = 1;
  std::string padding = "valid";              // or "same"
  std::string data_format = "channels_last";  // or "channels_first"
  Size2 dilation_rate = 1;
  int64_t groups = 1;
  ActivationFunction activation;
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
};
// A convolution: [n, height, width, channels] to [n, h, w, filters].
class HR_API Conv2D : public Layer {
 public:
  Conv2D(int64_t filters, Size2 kernel_size, Conv2DOptions options = {});
  const Variable& kernel() const { return kernel_; }
  const Variable& bias() const { return bias_; }

 protected:
  void MakeWeights(const TensorShape& input) override;
  Tensor Call(const Tensor& x, bool training) override;

 private:
  int64_t filters_;
  Size2 size_;
  Conv2DOptions options_;
  Variable kernel_, bias_;
};

struct DepthwiseConv2DOptions {
  Size2 strides = 1;
  std::string padding = "valid";
  int64_t depth_multiplier = 1;
  std::string data_format = "channels_last";
  Size2 dilation_rate = 1;
  ActivationFunction activation;
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
};
// Each channel by kernels of its own: the output has depth_multiplier times as
// many channels.
class HR_API DepthwiseConv2D : public Layer {
 public:
  explicit DepthwiseConv2D(Size2 kernel_size,
                           DepthwiseConv2DOptions options = {});

 protected:
  void MakeWeights(const TensorShape& input) override;
  Tensor Call(const Tensor& x, bool training) override;

 private:
  Size2 size_;
  DepthwiseConv2DOptions options_;
  Variable kernel_, bias_;
};

struct PoolOptions {
  std::optional<Size2> strides;   // those of the window
  std::string padding = "valid";  // or "same"
  std::string data_format = "channels_last";
};
// The greatest or mean value of windows of images.
class HR_API MaxPool2D : public Layer {
 public:
  explicit MaxPool2D(Size2 pool_size = 2, PoolOptions options = {});

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  Size2 size_;
  PoolOptions options_;
};
class HR_API AveragePool2D : public Layer {
 public:
  explicit AveragePool2D(Size2 pool_size = 2, PoolOptions options = {});

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  Size2 size_;
  PoolOptions options_;
};

// Over whole images: [n, h, w, channels] to [n, channels], or [n, 1, 1,
// channels] with keep_dims.
class HR_API GlobalMaxPool2D : public Layer {
 public:
  explicit GlobalMaxPool2D(bool keep_dims = false);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  bool keep_dims_;
};
class HR_API GlobalAveragePool2D : public Layer {
 public:
  explicit GlobalAveragePool2D(bool keep_dims = false);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  bool keep_dims_;
};
// Over time: [n, steps, features] to [n, features].
class HR_API GlobalMaxPool1D : public Layer {
 public:
  explicit GlobalMaxPool1D(bool keep_dims = false);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  bool keep_dims_;
};
class HR_API GlobalAveragePool1D : public Layer {
 public:
  explicit GlobalAveragePool1D(bool keep_dims = false);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  bool keep_dims_;
};

struct BatchNormalizationOptions {
  int axis = -1;
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true, scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Initializer moving_mean_initializer = "zeros";
  Initializer moving_variance_initializer = "ones";
};
// Normalizes by the batch while training (and the layer is trainable), which
// moves the running averages; by these otherwise.
class HR_API BatchNormalization : public Layer {
 public:
  explicit BatchNormalization(BatchNormalizationOptions options = {});

 protected:
  void MakeWeights(const TensorShape& input) override;
  Tensor Call(const Tensor& x, bool training) override;

 private:
  Tensor CallFused(const Tensor& x, bool training);
  void Move(const Tensor& mean, const Tensor& variance);
  int AxisOf(int rank) const;

  BatchNormalizationOptions options_;
  Variable gamma_, beta_, moving_mean_, moving_variance_;
};

struct LayerNormalizationOptions {
  std::vector<int> axis = {-1};
  double epsilon = 1e-3;
  bool center = true, scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
};
// Normalizes each sample over some axes.
class HR_API LayerNormalization : public Layer {
 public:
  explicit LayerNormalization(LayerNormalizationOptions options = {});

 protected:
  void MakeWeights(const TensorShape& input) override;
  Tensor Call(const Tensor& x, bool training) override;

 private:
  std::vector<int> AxesOf(int rank) const;

  LayerNormalizationOptions options_;
  Variable gamma_, beta_;
};

// Sets a share `rate` of the inputs to zero while training and scales up the
// rest. Sizes of `noise_shape` that are 1 share one choice; -1 is the input's.
class HR_API Dropout : public Layer {
 public:
  explicit Dropout(double rate, std::optional<int64_t> seed = {},
                   std::vector<int64_t> noise_shape = {});

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  double rate_;
  std::optional<int64_t> seed_;
  std::vector<int64_t> noise_shape_;
};

// [n, ...] to [n, everything else].
class HR_API Flatten : public Layer {
 public:
  Flatten();

 protected:
  Tensor Call(const Tensor& x, bool training) override;
};

// Samples in another shape; one size may be -1: what is left.
class HR_API Reshape : public Layer {
 public:
  explicit Reshape(std::vector<int64_t> target_shape);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  std::vector<int64_t> target_;
};

// Rows of a table for integers: [...] to [..., output_dim].
class HR_API Embedding : public Layer {
 public:
  Embedding(int64_t input_dim, int64_t output_dim,
            Initializer embeddings_initializer = "uniform");
  const Variable& embeddings() const { return embeddings_; }

 protected:
  void MakeWeights(const TensorShape& input) override;
  Tensor Call(const Tensor& x, bool training) override;

 private:
  int64_t input_dim_, output_dim_;
  Initializer initializer_;
  Variable embeddings_;
};

// Applies a function.
class HR_API Activation : public Layer {
 public:
  explicit Activation(ActivationFunction function);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  ActivationFunction function_;
};

// Layers one after another. Checkpoints know them as "layer-0", "layer-1", ...
// and those with weights as "layer_with_weights-0", ..., as Keras'.
class HR_API Sequential : public Layer {
 public:
  Sequential();
  template <typename... Layers,
            typename = std::enable_if_t<
                (sizeof...(Layers) > 0) &&
                (std::is_base_of_v<Layer, std::remove_cvref_t<Layers>> && ...)>>
  explicit Sequential(Layers&&... layers) : Sequential() {
    (Add(std::move(layers)), ...);
  }

  // Takes a layer over and returns it where it now lives.
  template <typename L>
  L& Add(L layer) {
    auto owned = std::make_shared<L>(std::move(layer));
    L& added = *owned;
    AddLayer(std::move(owned));
    return added;
  }
  void AddLayer(std::shared_ptr<Layer> layer);

  size_t size() const { return layers_.size(); }
  Layer& operator[](size_t i) const { return *layers_.at(i); }

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  void NameLayers();

  std::vector<std::shared_ptr<Layer>> layers_;
  bool named_ = false;
};

}  // namespace layers
}  // namespace headrace::tf
