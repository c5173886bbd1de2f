// Models that connect layers from inputs to outputs: tf.keras.Model.
//
//   namespace layers = tf::layers;
//   auto image = layers::Input({28, 28, 1}), size = layers::Input({2});
//   auto x = image.Then(layers::Conv2D(8, 3)).Then(layers::Flatten());
//   auto both = layers::Join(layers::Concatenate(), {x, size});
//   layers::Model model({image, size}, both.Then(layers::Dense(10)));
//   tf::Tensor logits = model({images, sizes});
//
// A layer that is called several times is shared:
//
//   auto encoder = std::make_shared<layers::LSTM>(32);
//   auto a = question.Then(encoder), b = answer.Then(encoder);
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/layer/layers.h"
#include "headrace/layer/symbolic.h"

namespace headrace::tf::layers {

// Stands for an input in a model's layers.
class HR_API InputLayer : public Layer {
 public:
  explicit InputLayer(std::string name, DType dtype);

 protected:
  Tensor Call(const Tensor& x, bool training) override;
};

// A function of one tensor, or of all inputs and whether it trains, as a layer.
// It must not make variables, and those that it reads are no weights of the
// layer. Drops masks. Throws kInvalidArgument for no function.
class HR_API Lambda : public Layer {
 public:
  using Function =
      std::function<Tensor(const std::vector<Tensor>& inputs, bool training)>;
  explicit Lambda(std::function<Tensor(const Tensor&)> function);
  explicit Lambda(Function function, std::string name = "lambda");

 protected:
  Tensor CallAll(const std::vector<Tensor>& inputs, bool training) override;

 private:
  Function function_;
};

// A functional model. Checkpoints know its layers as "layer-0", ... and those
// with weights as "layer_with_weights-0", ..., in the order of Keras: by their
// distance from the outputs, the farthest first.
//
// Called with tensors in the order of the inputs, which are cast to the
// declared dtypes; an axis of size 1 at the end that is missing is added, one
// too many dropped. Other shapes and other numbers of inputs throw
// kInvalidArgument. Several outputs come from Outputs(); operator() throws
// kInvalidArgument then. Safe to call from several threads where its layers
// are.
class HR_API Model : public Layer {
 public:
  // Throws kInvalidArgument where outputs need an input that is not among
  // `inputs`, for inputs given twice, for what is no Input, and for no inputs
  // or outputs. Layers that are not needed for the outputs are no part of it.
  Model(std::vector<Symbolic> inputs, std::vector<Symbolic> outputs,
        std::string name = "model");
  Model(const Symbolic& input, const Symbolic& output,
        std::string name = "model");
  Model(std::vector<Symbolic> inputs, const Symbolic& output,
        std::string name = "model");
  Model(Model&&) = default;
  ~Model() override;

  const std::vector<Symbolic>& inputs() const;
  const std::vector<Symbolic>& outputs() const;
  // In the order of checkpoints, inputs among them; their names there, made
  // unique by numbers, find them: "dense", "dense_1". kNotFound for others.
  const std::vector<std::shared_ptr<Layer>>& layers() const;
  const std::vector<std::string>& layer_names() const;
  Layer& layer(const std::string& name) const;

 protected:
  std::vector<Tensor> CallMany(const std::vector<Tensor>& inputs,
                               bool training) override;
  Tensor CallAll(const std::vector<Tensor>& inputs, bool training) override;
  bool HasManyOutputs() const override;
  Tensor Converted(const Tensor& x, size_t index) const override;

 private:
  friend HR_API std::string Summary(const Layer& model);
  struct Network;
  std::shared_ptr<const Network> network_;
};

// The table of layers, their outputs' shapes and numbers of weights that Keras'
// model.summary() prints. Shapes are those of the first call; layers that were
// not called yet have none.
HR_API std::string Summary(const Layer& model);

}  // namespace headrace::tf::layers
