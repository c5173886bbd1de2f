// Functional models, penalties of outputs, stateful layers. The table is
// TensorFlow's, by tf_keras; layers of one kind are numbered by their place.
#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;
namespace layers = tf::layers;
namespace init = tf::initializers;

namespace {

using Floats = std::vector<float>;

tf::Tensor AllOnes(const tf::TensorShape& shape) {
  return tf::Fill(tf::Tensor::From(shape.dims), 1.0f);
}

layers::Dense Ones(int64_t units) {
  return layers::Dense(units, {.kernel_initializer = "ones"});
}

// Made and returned: all its layers belong to it.
layers::Model TwoInTwoOut() {
  const auto a = layers::Input({3}, {.name = "a"});
  const auto b = layers::Input({4}, {.name = "b"});
  const auto shared =
      std::make_shared<layers::Dense>(4, layers::DenseOptions{"tanh"});
  const auto x = layers::Join(layers::Add(),
                              {a.Then(shared), b.Then(Ones(3)).Then(shared)});
  const auto y = layers::Join(layers::Concatenate(), {x, b});
  return layers::Model({a, b}, {y.Then(Ones(2)), x.Then(Ones(1))});
}

TEST(Model, HasInputsOutputsAndLayersInKerasOrder) {
  layers::Model model = TwoInTwoOut();
  const std::vector<std::string> expected = {
      "b", "a", "dense", "dense_1", "add", "concatenate", "dense_2", "dense_3"};
  EXPECT_EQ(model.layer_names(), expected);
  EXPECT_EQ(model.layer("dense_1").variables().size(), 2u);
  EXPECT_THROW(model.layer("dense_9"), tf::Error);
  EXPECT_EQ(model.outputs()[0].shape(), (tf::TensorShape{-1, 2}));
  EXPECT_EQ(model.trainable_variables().size(), 8u);
  const tf::Tensor a = tf::Tensor::From<float>({1, 2, 3}, {1, 3});
  const tf::Tensor b = tf::Tensor::From<float>({1, 2, 3, 4}, {1, 4});
  const std::vector<tf::Tensor> out = model.Outputs({a, b});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_FLOAT_EQ(out[0].vector<float>()[0],
                  out[1].item<float>() + 10);  // x and b, summed
  EXPECT_THROW(model({a, b}), tf::Error);      // two outputs
  EXPECT_THROW(model.Outputs({a}), tf::Error);
  EXPECT_THROW(model.Outputs({b, a}), tf::Error);
}

TEST(Model, ConformsItsInputs) {
  const auto x = layers::Input({2, 1});
  layers::Model model(x, x * 2.0 - 1.0);
  const tf::Tensor whole = tf::Tensor::From<int32_t>({1, 2, 3, 4}, {2, 2});
  const tf::Tensor out = model(whole);
  EXPECT_EQ(out.shape(), (tf::TensorShape{2, 2, 1}));
  EXPECT_EQ(out.vector<float>(), (Floats{1, 3, 5, 7}));
  EXPECT_THROW(model(tf::Tensor::From<float>({1, 2, 3}, {1, 3})), tf::Error);
}

TEST(Model, RefusesWhatIsNoModel) {
  const auto a = layers::Input({3}), b = layers::Input({3});
  EXPECT_THROW(layers::Model({a}, a + b), tf::Error);  // b is missing
  EXPECT_THROW(layers::Model({a, a}, a + a), tf::Error);
  EXPECT_THROW(layers::Model({a + b}, (a + b) * 2.0), tf::Error);
  EXPECT_THROW(layers::Model({a}, std::vector<layers::Symbolic>()), tf::Error);
  EXPECT_THROW(layers::Symbolic().shape(), tf::Error);
  EXPECT_THROW(layers::Input({-3}), tf::Error);
  EXPECT_THROW(a.Then(layers::Conv2D(1, 3)), tf::Error);  // a rank of 2
}

TEST(Model, NestsAndPassesMasksAndStates) {
  const auto words = layers::Input({-1}, {.dtype = tf::DType::kInt32});
  const auto vectors = words.Then(layers::Embedding(9, 4, {.mask_zero = true}));
  EXPECT_TRUE(vectors.has_mask());
  auto encoder = std::make_shared<layers::LSTM>(3);
  const auto found = encoder->Outputs(std::vector{vectors});
  ASSERT_EQ(found.size(), 3u);  // the output and two states
  auto decoder = std::make_shared<layers::LSTM>(
      3, layers::RecurrentOptions{.return_sequences = true});
  const auto out = (*decoder)({vectors, found[1], found[2]});
  EXPECT_EQ(out.shape(), (tf::TensorShape{-1, -1, 3}));
  auto inner = std::make_shared<layers::Model>(words, out);
  layers::Model outer(words, words.Then(inner).Then(Ones(1)));
  const tf::Tensor ids = tf::Tensor::From<int32_t>({1, 2, 0, 3, 0, 0}, {2, 3});
  const tf::Tensor result = outer(ids);
  EXPECT_EQ(result.shape(), (tf::TensorShape{2, 3, 1}));
  EXPECT_TRUE(result.mask());
  EXPECT_EQ(outer.trainable_variables().size(), 9u);
}

TEST(Model, FitsSeveralOutputsAndPredicts) {
  layers::Model model = TwoInTwoOut();
  const tf::Tensor a = AllOnes({8, 3}), b = AllOnes({8, 4});
  const auto data = tf::data::Dataset::FromTensorSlices(
                        {a, b, AllOnes({8, 2}), AllOnes({8, 1})})
                        .Batch(4);
  const tf::losses::MeanSquaredError squares;
  const tf::losses::MeanAbsoluteError sizes;
  tf::train::FitOptions options{
      .inputs = 2, .more_losses = {&sizes}, .loss_weights = {1, 0.5}};
  const float before = tf::train::Evaluate(model, squares, data, options);
  tf::Adam adam(0.1);
  options.epochs = 20;
  options.verbose = false;
  tf::train::Fit(model, adam, squares, data, options);
  EXPECT_LT(tf::train::Evaluate(model, squares, data, options), before / 4);
  const auto predicted = tf::train::PredictAll(model, data, 2);
  ASSERT_EQ(predicted.size(), 2u);
  EXPECT_EQ(predicted[0].shape(), (tf::TensorShape{8, 2}));
  EXPECT_THROW(tf::train::Predict(model, data, 2), tf::Error);
  options.more_losses = {};
  options.loss_weights = {};
  EXPECT_THROW(tf::train::Evaluate(model, squares, data, options), tf::Error);
}

TEST(Summary, IsKerasTable) {
  layers::Sequential model(layers::Conv2D(4, 3), layers::MaxPooling2D(),
                           layers::Flatten(), layers::BatchNormalization(),
                           layers::Dense(10));
  model.Build({-1, 28, 28, 1});
  const std::string text = layers::Summary(model);
  const char* const lines[] = {
      " conv2d (Conv2D)             (None, 26, 26, 4)         40        \n",
      " max_pooling2d (MaxPooling2  (None, 13, 13, 4)         0         \n"
      " D)                                                              \n",
      "Total params: 9514 (37.16 KB)\n",
      "Non-trainable params: 1352 (5.28 KB)\n"};
  for (const char* line : lines) {
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
  const std::string wide = layers::Summary(TwoInTwoOut());
  EXPECT_NE(wide.find(" add (Add)                   (None, 4)                  "
                      "  0         ['dense_1[0][0]',             \n"),
            std::string::npos)
      << wide;
}

TEST(ActivityRegularizer, CountsTheLastCall) {
  layers::Dense dense(2, {.kernel_initializer = "ones",
                          .activity_regularizer = tf::regularizers::L1(1)});
  const tf::Tensor x = tf::Tensor::From<float>({1, 2, 3, 4}, {2, 2});
  dense(x);
  dense(x);  // replaces the first call's
  ASSERT_EQ(dense.losses().size(), 1u);
  EXPECT_FLOAT_EQ(dense.losses()[0].item<float>(), 10);
  tf::Function traced([&](const std::vector<tf::Tensor>& in) {
    dense(in[0]);
    return dense.losses();
  });
  EXPECT_FLOAT_EQ(traced({x})[0].item<float>(), 10);
  EXPECT_TRUE(dense.losses().empty());  // those belong to the trace
  layers::Sequential model(layers::ActivityRegularization(0, 1));
  model(x);
  EXPECT_FLOAT_EQ(model.losses()[0].item<float>(), 15);
}

TEST(Recurrent, KeepsStatesFromBatchToBatch) {
  const layers::RecurrentOptions options{
      .kernel_initializer = init::GlorotUniform(1),
      .recurrent_initializer = init::Orthogonal(1, 2)};
  auto kept = options;
  kept.stateful = true;
  layers::LSTM plain(3, options), stateful(3, kept);
  const tf::Tensor x = tf::Tensor::From<float>({1, 2, 3, 4}, {1, 4, 1});
  const auto half = [](float a, float b) {
    return tf::Tensor::From<float>({a, b}, {1, 2, 1});
  };
  EXPECT_THROW(plain.reset_states(), tf::Error);
  const Floats first = stateful(half(1, 2)).vector<float>();
  EXPECT_EQ(stateful(half(3, 4)).vector<float>(), plain(x).vector<float>());
  stateful.reset_states();
  EXPECT_EQ(stateful(half(1, 2)).vector<float>(), first);
  tf::Function traced([&](const std::vector<tf::Tensor>& in) {
    return std::vector<tf::Tensor>{stateful(in[0])};
  });
  const Floats whole = plain(x).vector<float>();
  const Floats second = traced({half(3, 4)})[0].vector<float>();
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(second[i], whole[i], 1e-6);
  EXPECT_EQ(stateful.trainable_variables().size(), 3u);
  layers::LSTM open(3, kept);
  EXPECT_THROW(open.Build({-1, 4, 1}), tf::Error);  // no size of the batch
}

TEST(Layers, WithoutPythonTwinsGiveUpstreamsValues) {
  Floats values;
  for (int i = 0; i < 12; ++i) {
    values.push_back(static_cast<float>(i % 7) / 8 - 0.25f);
  }
  const auto near = [&](layers::Layer&& layer, const tf::TensorShape& shape,
                        const Floats& expected) {
    const Floats found = layer(tf::Tensor::From(values, shape)).vector<float>();
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-6) << layer.name() << " at " << i;
    }
  };
  near(layers::Conv1DTranspose(2, 3,
                               {.strides = 2,
                                .padding = "same",
                                .kernel_initializer = init::GlorotUniform(1)}),
       {1, 4, 3},
       {-0.11336078, 0.07298717, 0.00596103, -0.02137936, 0.13910547,
        -0.02438381, -0.15317538, -0.11746576, 0.34837201, -0.20333666,
        -0.1148565, 0.36193049, 0.04364143, 0.02174338, -0.10012991,
        -0.08543696});
  near(layers::Conv3DTranspose(1, 2,
                               {.strides = {1, 2, 1},
                                .kernel_initializer = init::GlorotUniform(2)}),
       {1, 1, 2, 2, 3},
       {-0.08732511, 0.10431038,  0.05786049,  -0.05576821, 0.24536233,
        -0.20592815, 0.06466009,  0.15934956,  0.02636381,  0.01582546,
        0.17898037,  -0.12397194, -0.05531609, -0.04178636, -0.01361983,
        -0.0108833,  0.09094192,  0.13272431,  0.09290263,  0.17182909,
        -0.03373215, -0.06641518, -0.23702033, 0.10568494});
  near(layers::SeparableConv1D(
           2, 2,
           {.strides = 2,
            .padding = "causal",
            .depthwise_initializer = init::GlorotUniform(3),
            .pointwise_initializer = init::GlorotUniform(4)}),
       {1, 4, 3}, {-0.05802723, -0.09066622, -0.10091113, 0.37430894});
  near(layers::DepthwiseConv1D(
           2, {.padding = "same",
               .depth_multiplier = 2,
               .depthwise_initializer = init::GlorotUniform(5)}),
       {1, 4, 3},
       {0.16224189,  -0.10224762, 0.04667389, 0.04247063, 0.13320225,
        0.04237036,  -0.11465319, 0.16905655, 0.04503393, -0.07253452,
        -0.03835505, -0.09712783, -0.339387,  0.25690979, -0.11422479,
        0.06633115,  0.08678627,  0.05591504, 0,          0,
        0.09170783,  -0.03006389, 0.00403047, -0.05533625});
  near(layers::Cropping2D(1, 0, 0, 2), {1, 3, 4, 1},
       {values[4], values[5], values[8], values[9]});
  EXPECT_THROW(layers::DepthwiseConv1D(2, {.padding = "causal"}), tf::Error);
  EXPECT_THROW(layers::Conv1DTranspose(2, 2, {.groups = 2}), tf::Error);
}

}  // namespace
