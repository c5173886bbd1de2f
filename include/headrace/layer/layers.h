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
// Masks pass from layer to layer on the tensors (Tensor::mask): Embedding with
// mask_zero and Masking make them, recurrent layers, attention and pooling over
// time obey them, layers that treat each step by itself hand them on; others
// drop them, as Keras' do.
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

#include "headrace/layer/initializers.h"
#include "headrace/layer/regularizers.h"
#include "headrace/layer/symbolic.h"
#include "headrace/variable.h"

namespace headrace::tf {

// A function of one tensor, or the name that Keras knows one by: "linear",
// "relu", "relu6", "leaky_relu" (slope 0.2), "elu", "selu", "gelu" (the exact
// one), "exponential", "sigmoid", "hard_sigmoid", "softmax" (kInvalidArgument
// for vectors), "log_softmax", "softplus", "softsign", "swish" ("silu"),
// "tanh", "mish"; others throw kInvalidArgument. None: the input itself. Copies
// are cheap; thread-safe where the function is.
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

// What a weight starts from, is penalized for and is held to, and whether it is
// among trainable_variables().
struct WeightOptions {
  Initializer initializer = "glorot_uniform";
  Regularizer regularizer;
  Constraint constraint;
  bool trainable = true;
};

// The base of all layers, and of models. Derive from it, make or Track in the
// constructor what it is made of, and say in Call what it computes (in CallAll
// if it takes several inputs).
class HR_API Layer : public Module, public std::enable_shared_from_this<Layer> {
 public:
  // `name` is for messages; checkpoints do not know it. `dtype` is that of its
  // weights, to which float inputs are cast (others stay as they are).
  explicit Layer(std::string name = "layer", DType dtype = DType::kFloat32);
  // Only of layers that track no members (Module); handles that were taken of
  // it before name the old place.
  Layer(Layer&& o);
  ~Layer() override;

  // The output. Layers that behave otherwise while training (Dropout,
  // BatchNormalization) do so when told to. The first call makes the weights.
  // Throws kInvalidArgument for no inputs, for several where the layer takes
  // one, and for ranks and sizes that do not fit; kUnimplemented for a class
  // that says neither Call nor CallAll.
  Tensor operator()(const Tensor& x, bool training = false);
  Tensor operator()(const std::vector<Tensor>& inputs, bool training = false);
  // All outputs: of recurrent layers the states behind the output, of models
  // what they were made with; of others the one.
  std::vector<Tensor> Outputs(const std::vector<Tensor>& inputs,
                              bool training = false);
  // What training and prediction want: all outputs of models, else the one.
  std::vector<Tensor> ModelOutputs(const std::vector<Tensor>& inputs,
                                   bool training = false);
  // The same on inputs yet to come, which makes the weights (functional.h). The
  // layer must outlive what comes of it, unless a shared_ptr owns it. For
  // temporaries: Symbolic::Then and Join.
  Symbolic operator()(const Symbolic& x) &;
  Symbolic operator()(const std::vector<Symbolic>& inputs) &;
  std::vector<Symbolic> Outputs(const std::vector<Symbolic>& inputs) &;
  Symbolic operator()(const Symbolic& x) && = delete;
  Symbolic operator()(const std::vector<Symbolic>& inputs) && = delete;

  // Makes the weights, and those of all layers that Call calls, for inputs of
  // that shape, the batch included (-1: any size), without computing anything.
  // Returns the output's shape. `input_dtype` is kInvalid for the layer's own.
  // Weights that were made stay.
  TensorShape Build(const TensorShape& input,
                    DType input_dtype = DType::kInvalid);
  TensorShape Build(const std::vector<TensorShape>& inputs,
                    DType input_dtype = DType::kInvalid);
  bool built() const { return built_; }
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  DType dtype() const { return dtype_; }
  // The shapes of all outputs at the first call; empty before.
  const std::vector<TensorShape>& output_shapes() const {
    return output_shapes_;
  }

  // What is to be added to the loss: the penalties of the weights, as they are
  // now, of this layer and of those below it, each once, and what AddLoss gave;
  // with each layer's, those of its outputs since the outermost layer was last
  // called, when that was in the same traced function. Scalars, in the order in
  // which the layers are tracked. Weights that do not train have theirs too. To
  // be asked for under the tape and in the traced function that use them.
  std::vector<Tensor> losses() const;
  // Penalizes what the layer gives: function(output) / size of the batch is
  // among losses() after each call. Then one thread at a time calls it.
  void set_activity_regularizer(Regularizer regularizer) {
    activity_regularizer_ = std::move(regularizer);
  }

 protected:
  // One of the two computes the output; the second calls the first when there
  // is one input.
  virtual Tensor Call(const Tensor& x, bool training);
  virtual Tensor CallAll(const std::vector<Tensor>& inputs, bool training);
  // All outputs, by default the one of CallAll; asked for by Outputs(), and
  // by calls with symbolic tensors where HasManyOutputs says so.
  virtual std::vector<Tensor> CallMany(const std::vector<Tensor>& inputs,
                                       bool training);
  virtual bool HasManyOutputs() const { return false; }
  // Makes the layer's own weights; called once, before the first Call, outside
  // of functions that are being traced. `input` is the whole shape, the batch
  // first. The second calls the first with the first input's shape.
  virtual void MakeWeights(const TensorShape& input) {}
  virtual void MakeAllWeights(const std::vector<TensorShape>& inputs);
  // The output's mask, where Call gives none: by default that of the first
  // input if set_supports_masking was called, else none.
  virtual Tensor MaskFor(const std::vector<Tensor>& inputs) const;

  // Makes a weight of this layer, or of a part of it (`owner`), in the layer's
  // dtype, and tracks it as `name`: the key of checkpoints, for which Keras'
  // names are to be taken. Its regularizer joins losses(). Throws what the
  // initializer throws.
  Variable AddWeight(const std::string& name, const TensorShape& shape,
                     const WeightOptions& options, Module* owner = nullptr);
  Variable AddWeight(const std::string& name, const TensorShape& shape,
                     const Initializer& initializer, bool trainable = true);
  // A scalar of losses(), made each time it is asked for.
  void AddLoss(std::function<Tensor()> loss);
  // A scalar of losses() until the outermost layer is called again; from Call.
  void AddLoss(const Tensor& loss);
  // Fewest axes of inputs, and whether that is their number; checked before
  // anything else.
  void set_input_rank(int rank, bool exact) {
    rank_ = rank;
    exact_rank_ = exact;
  }
  void set_supports_masking() { supports_masking_ = true; }
  void set_output_shapes(std::vector<TensorShape> shapes) {
    output_shapes_ = std::move(shapes);
  }
  // How many inputs, from the first, set_input_rank speaks of: all by default.
  void set_checked_inputs(size_t count) { checked_inputs_ = count; }
  // Inputs as CallAll gets them, with the weights made; for further ways to
  // call a layer.
  std::vector<Tensor> Ready(const std::vector<Tensor>& inputs);
  // The inputs as the layer wants them: floats in its dtype.
  virtual Tensor Converted(const Tensor& x, size_t index) const;
  // While one lives the layer is being called; the outermost begins anew what
  // calls add to losses().
  class HR_API Entered {
   public:
    explicit Entered(Layer* layer);
    ~Entered();
    Entered(const Entered&) = delete;
  };
  // What checkpoints of models call their layers: "layer-0", ... and, before
  // that where there are weights, "layer_with_weights-0", ....
  void NameLayers(const std::vector<std::shared_ptr<Layer>>& layers);
  // What every call ends with: penalties of the outputs, and masks.
  std::vector<Tensor> Finished(const std::vector<Tensor>& inputs,
                               std::vector<Tensor> outputs);

 private:
  void CheckInputRank(const Tensor& x, size_t index) const;
  std::vector<Symbolic> Described(const std::vector<Symbolic>& inputs,
                                  bool all);
  void ClearCallLosses();

  std::string name_;
  DType dtype_;
  int rank_ = 0;
  bool exact_rank_ = false, supports_masking_ = false, built_ = false;
  size_t checked_inputs_ = static_cast<size_t>(-1);
  std::vector<std::function<Tensor()>> losses_;
  std::vector<Tensor> call_losses_;
  Regularizer activity_regularizer_;
  std::vector<TensorShape> output_shapes_;
};

struct DenseOptions {
  ActivationFunction activation;
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer, bias_regularizer;
  Constraint kernel_constraint, bias_constraint;
  Regularizer activity_regularizer;
};
// activation(x @ kernel + bias): [..., n] to [..., units], for inputs of two or
// more axes. Weights: kernel [n, units], bias [units]. Throws kInvalidArgument
// for units below 1 and where n is not known.
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

// `momentum` is the share that the running averages keep in each step;
// `epsilon` is added to variances, so that constant features do not divide by
// 0.
struct BatchNormalizationOptions {
  int axis = -1;
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true, scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Initializer moving_mean_initializer = "zeros";
  Initializer moving_variance_initializer = "ones";
  Regularizer beta_regularizer, gamma_regularizer;
  Constraint beta_constraint, gamma_constraint;
};
// Normalizes by the batch while training (and the layer is trainable), which
// moves the running averages; by these otherwise (Ioffe and Szegedy, 2015).
// Features lie along `axis`, whose size must be known. Of images the running
// variance is moved by the unbiased one, as upstream's fused kernel does.
// Weights: gamma, beta, moving_mean, moving_variance, [features] each, the last
// two not trainable. Steps of a mask are counted in.
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
  Regularizer beta_regularizer, gamma_regularizer;
  Constraint beta_constraint, gamma_constraint;
};
// Normalizes each sample over some axes, of known sizes, in training and
// otherwise alike (Ba et al., 2016). Weights: gamma and beta, of the axes'
// sizes. Throws kInvalidArgument for no axis, for one that is not there and for
// one twice.
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
// rest by 1 / (1 - rate), so that means stay (Srivastava et al., 2014). Sizes
// of `noise_shape` that are 1 share one choice; -1 is the input's. With a seed
// each program draws the same choices; each call draws new ones. Throws
// kInvalidArgument for rates outside of [0, 1).
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

// [n, ...] to [n, everything else], row-major; [n] to [n, 1]. No weights.
class HR_API Flatten : public Layer {
 public:
  Flatten();

 protected:
  Tensor Call(const Tensor& x, bool training) override;
};

// Samples in another shape (without the batch); one size may be -1: what is
// left. kInvalidArgument for two of them, and where counts differ.
class HR_API Reshape : public Layer {
 public:
  explicit Reshape(std::vector<int64_t> target_shape);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  std::vector<int64_t> target_;
};

struct EmbeddingOptions {
  Initializer embeddings_initializer = "uniform";
  Regularizer embeddings_regularizer;
  Constraint embeddings_constraint;
  // 0 only fills up: the output's mask is false there.
  bool mask_zero = false;
  Regularizer activity_regularizer;
};
// Rows of a table for integers: [...] to [..., output_dim]. Inputs of other
// dtypes are cast to int32; numbers outside of [0, input_dim) throw
// kInvalidArgument where the lookup runs. Weight: embeddings [input_dim,
// output_dim]; its gradient is slices. Throws kInvalidArgument for sizes below
// 1.
class HR_API Embedding : public Layer {
 public:
  Embedding(int64_t input_dim, int64_t output_dim,
            EmbeddingOptions options = {});
  Embedding(int64_t input_dim, int64_t output_dim,
            Initializer embeddings_initializer)
      : Embedding(input_dim, output_dim,
                  EmbeddingOptions{std::move(embeddings_initializer)}) {}
  const Variable& embeddings() const { return embeddings_; }

 protected:
  void MakeWeights(const TensorShape& input) override;
  Tensor Call(const Tensor& x, bool training) override;
  Tensor MaskFor(const std::vector<Tensor>& inputs) const override;

 private:
  int64_t input_dim_, output_dim_;
  EmbeddingOptions options_;
  Variable embeddings_;
};

// Steps of [n, steps, features] whose features all equal mask_value are masked,
// and zero; the others are unchanged.
class HR_API Masking : public Layer {
 public:
  explicit Masking(double mask_value = 0);

 protected:
  Tensor Call(const Tensor& x, bool training) override;
  Tensor MaskFor(const std::vector<Tensor>& inputs) const override;

 private:
  Tensor Shown(const Tensor& x, bool keep_dims) const;

  double mask_value_;
};

// Applies a function to each input; hands masks on.
class HR_API Activation : public Layer {
 public:
  explicit Activation(ActivationFunction function);

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  ActivationFunction function_;
};

// Layers one after another; the mask of each output goes on to the next.
// Checkpoints know them as "layer-0", "layer-1", ... and those with weights as
// "layer_with_weights-0", ..., as Keras'. A call without layers throws
// kFailedPrecondition.
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
  // Takes a layer over and returns it where it now lives. Layers that were
  // built may be added, also behind the first call.
  L& Add(L layer) {
    auto owned = std::make_shared<L>(std::move(layer));
    L& added = *owned;
    AddLayer(std::move(owned));
    return added;
  }
  // The same of a shared layer; null throws kInvalidArgument.
  void AddLayer(std::shared_ptr<Layer> layer);

  // How many there are; operator[] throws std::out_of_range for others.
  size_t size() const { return layers_.size(); }
  Layer& operator[](size_t i) const { return *layers_.at(i); }

 protected:
  Tensor Call(const Tensor& x, bool training) override;

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
  bool named_ = false;
};

}  // namespace layers
}  // namespace headrace::tf
