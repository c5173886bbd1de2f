// Layers as a user writes them. Values are TensorFlow's, by tf_keras.
#include <cmath>

#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;
namespace layers = tf::layers;
namespace init = tf::initializers;

namespace {

using Floats = std::vector<float>;

// The first three values of a [2, 3] weight.
Floats FirstOf(const tf::Initializer& initializer) {
  Floats all = initializer({2, 3}).vector<float>();
  all.resize(3);
  return all;
}

TEST(Initializers, GiveUpstreamsValues) {
  EXPECT_EQ(FirstOf(init::GlorotUniform(1)),
            (Floats{0x1.a89054p-1f, -0x1.6722p-4f, 0x1.c20050p-3f}));
  EXPECT_EQ(FirstOf(init::RandomUniform(-.1, .1, 6)),
            (Floats{-0x1.5f3750p-6f, -0x1.3dd4c0p-5f, 0x1.28f072p-4f}));
  // Logarithms and sines of another make.
  const auto near = [](const tf::Initializer& initializer, Floats expected) {
    const Floats found = FirstOf(initializer);
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(found[i], expected[i], 3e-6);
  };
  near(init::HeNormal(2), {-0.7269335f, -0.2125970f, -0.9418271f});
  near(init::LecunNormal(3), {-0.5398685f, 1.3473307f, -0.7590529f});
  near(init::TruncatedNormal(0, .2, 4), {-0.1163697f, 0.1730718f, -0.3132375f});
  near(init::RandomNormal(0, .1, 5), {-0.2055378f, 0.1158188f, 0.0191609f});
  near(init::GlorotNormal(7), {-0.4847338f, -0.2579019f, -1.3514293f});
  near(init::Orthogonal(1, 8), {-0.2424631f, 0.6786563f, 0.6932799f});
  EXPECT_EQ(init::Identity(2)({2, 3}).vector<float>(),
            (Floats{2, 0, 0, 0, 2, 0}));
}

TEST(Initializers, RefuseWhatCannotBe) {
  EXPECT_THROW(tf::Initializer("none"), tf::Error);
  EXPECT_THROW(init::Orthogonal()({3}), tf::Error);
  EXPECT_THROW(init::GlorotUniform()({3}, tf::DType::kInt32), tf::Error);
  EXPECT_THROW(init::GlorotUniform()({-1, 3}), tf::Error);
  EXPECT_THROW(init::VarianceScaling(1, "fan_out", "none"), tf::Error);
  EXPECT_THROW(init::VarianceScaling(0), tf::Error);
}

TEST(Layers, WithoutSeedsFollowTheProgramsSeed) {
  tf::SetRandomSeed(3);
  const tf::Tensor x = tf::Tensor::From<float>({1, 1}, {1, 2});
  layers::Dense first(2), second(2);
  first(x), second(x);
  const Floats expected = {-0.005066871643066406f, -1.1857322454452515f,
                           0.7821148633956909f, -1.0022910833358765f};
  EXPECT_EQ(first.kernel().value().vector<float>(), expected);
  EXPECT_EQ(second.kernel().value().vector<float>()[0], 0.4250056743621826f);
}

std::vector<std::string> NamesOf(const tf::Module& m) {
  std::vector<std::string> names;
  for (const auto& child : m.children()) names.push_back(child.name);
  return names;
}

TEST(Layers, BuildWithoutComputing) {
  layers::Sequential model(
      layers::Conv2D(4, 3, {.padding = "same", .activation = "relu"}),
      layers::MaxPool2D(), layers::Flatten(), layers::Dense(3));
  EXPECT_EQ(model.Build({-1, 8, 8, 1}), (tf::TensorShape{-1, 3}));
  EXPECT_EQ(model.trainable_variables().size(), 4u);
  EXPECT_EQ(NamesOf(model[3]), (std::vector<std::string>{"kernel", "bias"}));
  EXPECT_EQ(model.variables()[2].shape(), (tf::TensorShape{64, 3}));
  model[0].set_trainable(false);
  EXPECT_EQ(model.trainable_variables().size(), 2u);
  EXPECT_EQ(model.variables().size(), 4u);
}

TEST(Layers, AreBuiltInsideTracedFunctions) {
  layers::Dense dense(2, {.kernel_initializer = "ones"});
  auto f = tf::function<1>([&](auto& in) { return dense(in[0]); });
  const tf::Tensor x = tf::Tensor::From<float>({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(f(x).template vector<float>(), (Floats{3, 3, 7, 7}));
  EXPECT_EQ(dense(x).vector<float>(), (Floats{3, 3, 7, 7}));
}

TEST(Layers, RefuseInputsThatDoNotFit) {
  const tf::Tensor vector = tf::Tensor::From<float>({1, 2});
  try {
    layers::Dense dense(2);
    dense(vector);
    FAIL();
  } catch (const tf::Error& e) {
    EXPECT_EQ(e.code(), tf::ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(e.what()).find("expected min_ndim=2, found ndim=1"),
              std::string::npos);
  }
  EXPECT_THROW(layers::Dense(0), tf::Error);
  EXPECT_THROW(layers::Conv2D(3, 2, {.groups = 2}), tf::Error);
  EXPECT_THROW(layers::Conv2D(4, 3, {.padding = "full"}), tf::Error);
  EXPECT_THROW(layers::Dropout(1.5), tf::Error);
  EXPECT_THROW(layers::Reshape({-1, -1}), tf::Error);
  EXPECT_THROW(layers::Activation("none"), tf::Error);
  EXPECT_THROW(layers::LSTM(0), tf::Error);
  EXPECT_THROW(layers::Sequential()(vector), tf::Error);
  EXPECT_THROW(layers::Dense(2).Build({-1, -1}), tf::Error);
}

TEST(Layers, ConvolveAndPool) {
  const tf::Tensor x = tf::Tensor::From<float>(
      {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, {1, 4, 4, 1});
  layers::Conv2D conv(1, 2, {.strides = 2, .kernel_initializer = "ones"});
  EXPECT_EQ(conv(x).vector<float>(), (Floats{14, 22, 46, 54}));
  EXPECT_EQ(layers::MaxPool2D()(x).vector<float>(), (Floats{6, 8, 14, 16}));
  EXPECT_EQ(layers::AveragePool2D({1, 4})(x).vector<float>(),
            (Floats{2.5, 6.5, 10.5, 14.5}));
  EXPECT_EQ(layers::GlobalAveragePool2D()(x).vector<float>(), (Floats{8.5}));
  EXPECT_EQ(layers::GlobalMaxPool2D(true)(x).shape(),
            (tf::TensorShape{1, 1, 1, 1}));
  layers::DepthwiseConv2D depth(
      4, {.depth_multiplier = 2, .depthwise_initializer = "ones"});
  EXPECT_EQ(depth(x).vector<float>(), (Floats{136, 136}));
  const tf::Tensor first =
      tf::Transpose(x, tf::Tensor::From<int32_t>({0, 3, 1, 2}));
  layers::Conv2D other(1, 2,
                       {.strides = 2,
                        .data_format = "channels_first",
                        .kernel_initializer = "ones"});
  EXPECT_EQ(other(first).shape(), (tf::TensorShape{1, 1, 2, 2}));
}

TEST(Layers, NormalizeByBatchesOnlyWhileTraining) {
  const tf::Tensor x = tf::Tensor::From<float>({1, 3, 5, 7}, {4, 1});
  layers::BatchNormalization norm;
  EXPECT_NEAR(norm(x).vector<float>()[3], 7 / std::sqrt(1.001f), 1e-5);
  const Floats trained = norm(x, true).vector<float>();
  EXPECT_NEAR(trained[0], -3 / std::sqrt(5.001f), 1e-5);
  const auto weights = norm.variables();
  EXPECT_EQ(weights[2].name(), "moving_mean");
  EXPECT_NEAR(weights[2].value().vector<float>()[0], 0.04, 1e-6);
  EXPECT_NEAR(weights[3].value().vector<float>()[0], 1.04, 1e-6);
  norm.set_trainable(false);
  norm(x, true);
  EXPECT_NEAR(weights[2].value().vector<float>()[0], 0.04, 1e-6);
  layers::LayerNormalization rows;
  EXPECT_NEAR(rows(tf::Tensor::From<float>({1, 3}, {1, 2})).vector<float>()[1],
              1 / std::sqrt(1.001f), 1e-5);
}

TEST(Layers, ChangeShapesAndLookUp) {
  const tf::Tensor x = tf::Tensor::From<float>({1, 2, 3, 4, 5, 6}, {1, 2, 3});
  EXPECT_EQ(layers::Flatten()(x).shape(), (tf::TensorShape{1, 6}));
  EXPECT_EQ(layers::Reshape({3, -1})(x).shape(), (tf::TensorShape{1, 3, 2}));
  layers::Embedding table(3, 2, init::Constant(2));
  EXPECT_EQ(table(tf::Tensor::From<int32_t>({2, 0}, {1, 2})).vector<float>(),
            (Floats{2, 2, 2, 2}));
  layers::Dropout dropout(0.5, 7);
  EXPECT_EQ(dropout(x).vector<float>(), x.vector<float>());
  const Floats some = dropout(x, true).vector<float>();
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(some[i] == 0 || some[i] == 2 * (i + 1));
  }
}

TEST(Recurrent, LoopsOfTheGraphGiveWhatUnrolledOnesDo) {
  constexpr int64_t kSteps = 300;  // more than are unrolled in a trace
  Floats values(kSteps * 2);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 5) / 4 - 0.5f;
  }
  const tf::Tensor x = tf::Tensor::From(values, {1, kSteps, 2});
  layers::LSTM lstm(3, {.kernel_initializer = init::GlorotUniform(1),
                        .recurrent_initializer = init::Orthogonal(1, 2),
                        .return_sequences = true});
  auto gradient = [&](const tf::Tensor& in) {
    tf::GradientTape tape;
    const tf::Tensor loss =
        tf::Sum(lstm(in), tf::Tensor::From<int32_t>({0, 1, 2}));
    return tape.gradient(loss, lstm.trainable_variables());
  };
  const std::vector<tf::Tensor> eager = gradient(x);
  tf::Function traced(
      [&](const std::vector<tf::Tensor>& in) { return gradient(in[0]); });
  const std::vector<tf::Tensor> looped = traced({x});
  ASSERT_EQ(eager.size(), 3u);
  for (size_t i = 0; i < eager.size(); ++i) {
    const Floats a = eager[i].vector<float>(), b = looped[i].vector<float>();
    for (size_t k = 0; k < a.size(); ++k) {
      EXPECT_NEAR(a[k], b[k], 1e-3 * std::max(1.f, std::abs(a[k])));
    }
  }
}

TEST(Recurrent, MasksKeepStates) {
  layers::GRU gru(2, {.kernel_initializer = init::GlorotUniform(1),
                      .recurrent_initializer = init::Orthogonal(1, 2)});
  const tf::Tensor x = tf::Tensor::From<float>({1, 2, 3}, {1, 3, 1});
  const tf::Tensor shown =
      tf::Tensor::From(std::vector<bool>{true, true, false}, {1, 3});
  const auto masked = gru.Run(x, {}, shown);
  const tf::Tensor two = tf::Tensor::From<float>({1, 2}, {1, 2, 1});
  const auto plain = gru.Run(two);
  EXPECT_EQ(masked.output.vector<float>(), plain.output.vector<float>());
  EXPECT_EQ(masked.states[0].vector<float>(), plain.states[0].vector<float>());
  const auto next =
      gru.Run(tf::Tensor::From<float>({3}, {1, 1, 1}), plain.states);
  EXPECT_EQ(next.output.vector<float>(), gru(x).vector<float>());
  EXPECT_THROW(gru.Run(x, {x, x}), tf::Error);
}

struct Net : layers::Layer {
  layers::Dense hidden{3, {.activation = "relu"}}, output{2};
  Net() { Track("hidden", &hidden), Track("output", &output); }
  tf::Tensor Call(const tf::Tensor& x, bool training) override {
    return output(hidden(x), training);
  }
};

TEST(Layers, ValuesOfACheckpointArriveAsWeightsAreMade) {
  const std::string path = testing::TempDir() + "layers_deferred/c";
  const tf::Tensor x = tf::Tensor::From<float>({1, 2}, {1, 2});
  Net net;
  const Floats expected = net(x).vector<float>();
  tf::Checkpoint({{"net", net}}).write(path);
  Net other;
  tf::Checkpoint checkpoint({{"net", other}});
  checkpoint.restore(path, /*partial=*/true);
  EXPECT_EQ(other(x).vector<float>(), expected);
  EXPECT_THROW(Net moved(std::move(other)), tf::Error);
}

}  // namespace
