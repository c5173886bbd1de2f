// A training that C++, Python and TensorFlow do in turns
// (python/tests/train/test_with_cpp.py):
//
//   interchange MODEL OPTIMIZER FROM TO STEPS
//
// makes a model and an optimizer of these kinds, restores FROM unless it is
// "-", trains STEPS steps and writes TO.
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
  std::unique_ptr<layers::Sequential> model;
  tf::Tensor inputs;
};

Case MakeCase(const std::string& kind) {
  Case c{std::make_unique<layers::Sequential>(), {}};
  layers::Sequential& m = *c.model;
  if (kind == "mlp") {
    m.Add(layers::Dense(4, {.activation = "relu",
                            .kernel_initializer = init::GlorotUniform(1)}));
    m.Add(layers::BatchNormalization());
    m.Add(layers::Dropout(0));
    m.Add(layers::Dense(2, {.kernel_initializer = init::HeNormal(2)}));
    c.inputs = Waves({10, 3});
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
    c.inputs = Waves({2, 8, 8, 1});
  } else {
    m.Add(layers::Embedding(9, 4, init::RandomUniform(-.1, .1, 6)));
    m.Add(layers::LSTM(3, {.kernel_initializer = init::GlorotNormal(7),
                           .recurrent_initializer = init::Orthogonal(1, 8),
                           .return_sequences = true}));
    m.Add(layers::GRU(3, {.kernel_initializer = init::GlorotUniform(9),
                          .recurrent_initializer = init::Orthogonal(1, 10)}));
    m.Add(layers::LayerNormalization());
    m.Add(layers::Dense(2, {.kernel_initializer = init::LecunUniform(11)}));
    std::vector<int32_t> ids;
    for (int i = 0; i < 20; ++i) ids.push_back(i * i % 9);
    c.inputs = tf::Tensor::From(ids, {4, 5});
  }
  return c;
}

std::unique_ptr<tf::Optimizer> MakeOptimizer(const std::string& kind) {
  if (kind == "SGD") return std::make_unique<tf::SGD>(0.1);
  if (kind == "Momentum") return std::make_unique<tf::SGD>(0.1, 0.9, true);
  if (kind == "Adam") return std::make_unique<tf::Adam>(0.05);
  if (kind == "AdamW") return std::make_unique<tf::AdamW>(0.05);
  if (kind == "RMSprop") return std::make_unique<tf::RMSprop>(0.01);
  if (kind == "Adagrad") return std::make_unique<tf::Adagrad>(0.1);
  if (kind == "Ftrl") return std::make_unique<tf::Ftrl>(0.1);
  std::fprintf(stderr, "interchange: no optimizer %s\n", kind.c_str());
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  try {
    const Case c = MakeCase(argv[1]);
    const std::unique_ptr<tf::Optimizer> optimizer = MakeOptimizer(argv[2]);
    tf::Checkpoint checkpoint({{"net", *c.model}, {"optimizer", *optimizer}});
    // Nothing is built yet: values arrive as the weights are made.
    if (std::string(argv[3]) != "-") checkpoint.restore(argv[3], true);
    c.model->Build(c.inputs.shape());
    optimizer->Build(c.model->trainable_variables());
    auto train = tf::function<1>([&](const std::vector<tf::Tensor>& in) {
      tf::GradientTape tape;
      const tf::Tensor error = (*c.model)(in[0], true) - 1.0;
      const tf::Tensor loss =
          tf::Mean(error * error, tf::Tensor::From<int32_t>({0, 1}));
      const auto variables = c.model->trainable_variables();
      optimizer->Apply(tape.gradient(loss, variables), variables);
      return loss;
    });
    for (int i = 0; i < std::atoi(argv[5]); ++i) train(c.inputs);
    checkpoint.write(argv[4]);
  } catch (const tf::Error& e) {
    std::fprintf(stderr, "interchange: %s\n", e.what());
    return 1;
  }
  return 0;
}
