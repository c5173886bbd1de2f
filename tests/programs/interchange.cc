// A training that C++, Python and TensorFlow do in turns
// (python/tests/train/test_with_cpp.py):
//
//   interchange MODEL OPTIMIZER FROM TO STEPS slots|lists
//
// makes a model and an optimizer of these kinds, restores FROM unless it is
// "-", trains STEPS steps and writes TO, with the optimizer in that layout.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "headrace/headrace.h"

namespace tf = headrace::tf;
namespace layers = tf::layers;
namespace init = tf::initializers;

namespace {

tf::Tensor Waves(const tf::TensorShape& shape) {
  int64_t n = 1;
  for (const int64_t d : shape.dims) n *= d;
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) {
    values.push_back(static_cast<float>(i % 7) / 8 - 0.25f);
  }
  return tf::Tensor::From(values, shape);
}

struct Case {
  Case(std::unique_ptr<layers::Layer> m, std::vector<tf::Tensor> x)
      : model(std::move(m)), inputs(std::move(x)) {}
  Case(std::unique_ptr<layers::Layer> m, const tf::Tensor& x)
      : Case(std::move(m), std::vector<tf::Tensor>{x}) {}

  std::unique_ptr<layers::Layer> model;
  std::vector<tf::Tensor> inputs;
};

tf::Tensor Words() {
  std::vector<int32_t> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(i * i % 9);
  return tf::Tensor::From(ids, {4, 5});
}

// Penalties and constraints of all kinds.
Case MakeHeld() {
  auto m = std::make_unique<layers::Sequential>();
  namespace reg = tf::regularizers;
  namespace con = tf::constraints;
  m->Add(layers::Dense(4, {.activation = "tanh",
                           .kernel_initializer = init::GlorotUniform(1),
                           .kernel_regularizer = reg::L2(0.1),
                           .bias_regularizer = "l1",
                           .kernel_constraint = con::MaxNorm(0.9)}));
  m->Add(layers::Dense(4, {.kernel_initializer = init::GlorotUniform(2),
                           .kernel_regularizer = reg::L1L2(0.01, 0.02),
                           .kernel_constraint = con::MinMaxNorm(.5, .8, .9),
                           .bias_constraint = "non_neg"}));
  m->Add(layers::Dense(2, {.kernel_initializer = init::HeNormal(3),
                           .kernel_regularizer = reg::Orthogonal(0.1),
                           .kernel_constraint = con::UnitNorm(1)}));
  return {std::move(m), Waves({10, 3})};
}

// Layers of one and of three dimensions.
Case MakeSeries() {
  auto m = std::make_unique<layers::Sequential>();
  m->Add(layers::Conv1D(4, 3,
                        {.padding = "causal",
                         .dilation_rate = 2,
                         .activation = "relu",
                         .kernel_initializer = init::GlorotUniform(1)}));
  m->Add(layers::MaxPool1D(2, {.padding = "same"}));
  m->Add(layers::Conv1D(
      4, 2, {.strides = 2, .kernel_initializer = init::GlorotUniform(2)}));
  m->Add(layers::AveragePool1D(2, {.strides = 1}));
  m->Add(layers::Flatten());
  m->Add(layers::Dense(2, {.kernel_initializer = init::GlorotUniform(3)}));
  return {std::move(m), Waves({3, 18, 2})};
}
Case MakeVolumes() {
  auto m = std::make_unique<layers::Sequential>();
  m->Add(layers::Conv3D(3, {2, 3, 3},
                        {.padding = "same",
                         .activation = "tanh",
                         .kernel_initializer = init::GlorotUniform(1)}));
  m->Add(layers::MaxPool3D(2));
  m->Add(layers::AveragePool3D({1, 2, 2}, {.strides = 1}));
  m->Add(layers::GlobalAveragePool3D());
  m->Add(layers::Dense(2, {.kernel_initializer = init::GlorotUniform(3)}));
  return {std::move(m), Waves({2, 4, 6, 6, 2})};
}

Case MakeImages() {
  auto m = std::make_unique<layers::Sequential>();
  m->Add(layers::ZeroPadding2D(1, 0, 2, 1));
  m->Add(layers::SeparableConv2D(
      4, 3,
      {.strides = 2,
       .depth_multiplier = 2,
       .activation = "relu",
       .depthwise_initializer = init::GlorotUniform(1),
       .pointwise_initializer = init::GlorotUniform(2)}));
  m->Add(layers::Conv2DTranspose(3, 3,
                                 {.strides = 2,
                                  .padding = "same",
                                  .kernel_initializer = init::GlorotUniform(3)},
                                 1));
  m->Add(layers::UpSampling2D({2, 1}));
  m->Add(layers::GlobalAveragePool2D());
  m->Add(layers::Dense(2, {.kernel_initializer = init::GlorotUniform(4)}));
  return {std::move(m), Waves({2, 8, 8, 2})};
}

// Masks from layer to layer.
Case MakeMasked() {
  auto m = std::make_unique<layers::Sequential>();
  m->Add(layers::Embedding(
      9, 4,
      {.embeddings_initializer = init::RandomUniform(-.1, .1, 6),
       .embeddings_regularizer = "l2",
       .mask_zero = true}));
  m->Add(layers::Bidirectional(
      layers::LSTM(3, {.kernel_initializer = init::GlorotUniform(7),
                       .recurrent_initializer = init::Orthogonal(1, 8),
                       .return_sequences = true,
                       .kernel_regularizer = "l2"})));
  m->Add(layers::TimeDistributed(layers::Dense(
      3,
      {.activation = "tanh", .kernel_initializer = init::GlorotUniform(9)})));
  m->Add(layers::SimpleRNN(3, {.kernel_initializer = init::GlorotUniform(10),
                               .recurrent_initializer = init::Orthogonal(1, 11),
                               .return_sequences = true,
                               .recurrent_constraint = "unit_norm"}));
  m->Add(layers::GlobalAveragePool1D());
  m->Add(layers::Dense(2, {.kernel_initializer = init::GlorotUniform(12)}));
  return {std::move(m), Words()};
}

// A model of one's own with attention.
struct Attending : layers::Layer {
  layers::Embedding embed{
      9,
      4,
      {.embeddings_initializer = init::RandomUniform(-.5, .5, 6),
       .mask_zero = true}};
  layers::MultiHeadAttention heads{
      2, 3, {.kernel_initializer = init::GlorotUniform(7)}};
  layers::Attention dots{{.use_scale = true}};
  layers::AdditiveAttention sums{{.use_scale = false}};
  layers::Add add;
  layers::Concatenate both;
  layers::LayerNormalization norm;
  layers::GlobalAveragePool1D pool;
  layers::Dense out{2, {.kernel_initializer = init::GlorotUniform(9)}};

  Attending() {
    Track("embed", &embed), Track("heads", &heads), Track("dots", &dots);
    Track("sums", &sums), Track("norm", &norm), Track("out", &out);
  }
  tf::Tensor Call(const tf::Tensor& ids, bool training) override {
    const tf::Tensor x = embed(ids);
    const tf::Tensor y = norm(add({x, heads({x, x})}));
    return out(pool(both({dots({y, y}), sums({y, y})})));
  }
};

// Two inputs, a layer that is called twice, operators, penalized outputs.
Case MakeFunctional() {
  const auto first = layers::Input({3}), second = layers::Input({4});
  auto shared = std::make_shared<layers::Dense>(
      4,
      layers::DenseOptions{.activation = "tanh",
                           .kernel_initializer = init::GlorotUniform(1),
                           .activity_regularizer = tf::regularizers::L2(0.1)});
  const auto narrow = second.Then(
      layers::Dense(3, {.kernel_initializer = init::GlorotUniform(2)}));
  auto x = layers::Join(layers::Add(),
                        {first.Then(shared), narrow.Then(shared) * 0.5});
  x = x.Then(layers::PReLU({.alpha_initializer = init::Constant(0.2)}));
  x = layers::Join(layers::Concatenate(), {x - 0.25, second});
  const auto out =
      x.Then(layers::Dense(2, {.kernel_initializer = init::GlorotUniform(3)}));
  return {std::make_unique<layers::Model>(std::vector{first, second}, out),
          std::vector{Waves({10, 3}), Waves({10, 4})}};
}

// Layers that change what passes through.
Case MakePassing() {
  const auto dense = [](int64_t units, int64_t seed) {
    return layers::Dense(units,
                         {.kernel_initializer = init::GlorotUniform(seed)});
  };
  auto m = std::make_unique<layers::Sequential>(
      dense(4, 1), layers::LeakyReLU(0.2), dense(4, 2), layers::ELU(0.5),
      layers::RepeatVector(3), layers::Permute({2, 1}),
      layers::GroupNormalization(3), layers::UpSampling1D(2),
      layers::ZeroPadding1D(1), layers::ActivityRegularization(0.01, 0.02),
      layers::Flatten(), layers::UnitNormalization(), dense(4, 3),
      layers::ReLU(
          {.max_value = 0.5, .negative_slope = 0.1, .threshold = 0.05}),
      layers::ThresholdedReLU(0.01), dense(2, 4), layers::Softmax());
  return {std::move(m), Waves({6, 4})};
}

Case MakeCase(const std::string& kind) {
  if (kind == "functional") return MakeFunctional();
  if (kind == "passing") return MakePassing();
  if (kind == "held") return MakeHeld();
  if (kind == "series") return MakeSeries();
  if (kind == "volumes") return MakeVolumes();
  if (kind == "images") return MakeImages();
  if (kind == "masked") return MakeMasked();
  if (kind == "attention") return {std::make_unique<Attending>(), Words()};
  auto owned = std::make_unique<layers::Sequential>();
  layers::Sequential& m = *owned;
  Case c{std::move(owned), std::vector<tf::Tensor>()};
  if (kind == "mlp") {
    m.Add(layers::Dense(4, {.activation = "relu",
                            .kernel_initializer = init::GlorotUniform(1)}));
    m.Add(layers::BatchNormalization());
    m.Add(layers::Dropout(0));
    m.Add(layers::Dense(2, {.kernel_initializer = init::HeNormal(2)}));
    c.inputs = {Waves({10, 3})};
  } else if (kind == "cnn") {
    m.Add(layers::Conv2D(4, 3,
                         {.padding = "same",
                          .activation = "relu",
                          .kernel_initializer = init::LecunNormal(3)}));
    m.Add(layers::BatchNormalization());
    m.Add(layers::MaxPool2D());
    m.Add(layers::DepthwiseConv2D(
        2, {.activation = "tanh",
            .depthwise_initializer = init::TruncatedNormal(0, 0.2, 4)}));
    m.Add(layers::AveragePool2D(2, {.strides = 1}));
    m.Add(layers::Flatten());
    m.Add(
        layers::Dense(2, {.kernel_initializer = init::RandomNormal(0, .1, 5)}));
    c.inputs = {Waves({2, 8, 8, 1})};
  } else {
    m.Add(layers::Embedding(9, 4, init::RandomUniform(-.1, .1, 6)));
    m.Add(layers::LSTM(3, {.kernel_initializer = init::GlorotNormal(7),
                           .recurrent_initializer = init::Orthogonal(1, 8),
                           .return_sequences = true}));
    m.Add(layers::GRU(3, {.kernel_initializer = init::GlorotUniform(9),
                          .recurrent_initializer = init::Orthogonal(1, 10)}));
    m.Add(layers::LayerNormalization());
    m.Add(layers::Dense(2, {.kernel_initializer = init::LecunUniform(11)}));
    c.inputs = {Words()};
  }
  return c;
}

std::unique_ptr<tf::Optimizer> MakeOptimizer(const std::string& kind,
                                             tf::OptimizerLayout layout) {
  tf::OptimizerOptions o;
  o.layout = layout;
  if (kind == "SGD") return std::make_unique<tf::SGD>(0.1, 0, false, o);
  if (kind == "Momentum") return std::make_unique<tf::SGD>(0.1, 0.9, true, o);
  if (kind == "Adam") {
    return std::make_unique<tf::Adam>(0.05, 0.9, 0.999, 1e-7, false, o);
  }
  if (kind == "Scheduled") {
    return std::make_unique<tf::Adam>(
        tf::schedules::InverseTimeDecay(0.05, 2, 0.5), 0.9, 0.999, 1e-7, true,
        o);
  }
  if (kind == "AdamW") {
    return std::make_unique<tf::AdamW>(0.05, 0.004, 0.9, 0.999, 1e-7, false, o);
  }
  if (kind == "RMSprop") {
    return std::make_unique<tf::RMSprop>(0.01, 0.9, 0, 1e-7, false, o);
  }
  if (kind == "Centered") {
    return std::make_unique<tf::RMSprop>(0.01, 0.9, 0.5, 1e-7, true, o);
  }
  if (kind == "Adagrad") {
    return std::make_unique<tf::Adagrad>(0.1, 0.1, 1e-7, o);
  }
  if (kind == "Ftrl") {
    return std::make_unique<tf::Ftrl>(0.1, tf::FtrlOptions(), o);
  }
  if (kind == "Adadelta") {
    return std::make_unique<tf::Adadelta>(0.5, 0.95, 1e-7, o);
  }
  if (kind == "Nadam")
    return std::make_unique<tf::Nadam>(0.05, .9, .999, 1e-7, o);
  if (kind == "Adamax")
    return std::make_unique<tf::Adamax>(0.05, .9, .999, 1e-7, o);
  std::fprintf(stderr, "interchange: no optimizer %s\n", kind.c_str());
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  try {
    const Case c = MakeCase(argv[1]);
    const std::unique_ptr<tf::Optimizer> optimizer = MakeOptimizer(
        argv[2], std::string(argv[6]) == "lists" ? tf::OptimizerLayout::kLists
                                                 : tf::OptimizerLayout::kSlots);
    tf::Checkpoint checkpoint({{"net", *c.model}, {"optimizer", *optimizer}});
    // Nothing is built yet: values arrive as the weights are made.
    if (std::string(argv[3]) != "-") checkpoint.restore(argv[3], true);
    std::vector<tf::TensorShape> shapes;
    for (const tf::Tensor& x : c.inputs) shapes.push_back(x.shape());
    c.model->Build(shapes, c.inputs[0].dtype());
    optimizer->Build(c.model->trainable_variables());
    tf::Function train([&](const std::vector<tf::Tensor>& in) {
      tf::GradientTape tape;
      const tf::Tensor error = (*c.model)(in, true) - 1.0;
      std::vector<tf::Tensor> parts = c.model->losses();
      parts.insert(parts.begin(),
                   tf::Mean(error * error, tf::Tensor::From<int32_t>({0, 1})));
      const tf::Tensor loss = tf::AddN(parts);
      const auto variables = c.model->trainable_variables();
      optimizer->Apply(tape.gradient(loss, variables), variables);
      return std::vector<tf::Tensor>{loss};
    });
    for (int i = 0; i < std::atoi(argv[5]); ++i) train(c.inputs);
    checkpoint.write(argv[4]);
  } catch (const tf::Error& e) {
    std::fprintf(stderr, "interchange: %s\n", e.what());
    return 1;
  }
  return 0;
}
