// Masks that pass from layer to layer, and layers of several inputs.
#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;
namespace layers = tf::layers;

namespace {

using Floats = std::vector<float>;
using Bools = std::vector<bool>;

const tf::Tensor& Words() {
  static const auto* const words =
      new tf::Tensor(tf::Tensor::From<int32_t>({1, 2, 0, 3, 0, 0}, {2, 3}));
  return *words;
}

TEST(Masks, StayWithTheHandle) {
  const tf::Tensor x(1.0f), mask = tf::Tensor::From<bool>({true});
  EXPECT_FALSE(x.mask());
  tf::Tensor masked = x.with_mask(mask);
  const tf::Tensor copy = masked, moved = std::move(masked);
  EXPECT_EQ(copy.mask().vector<bool>(), (Bools{true}));
  EXPECT_TRUE(moved.mask());
  EXPECT_FALSE((copy + 1).mask());
  EXPECT_FALSE(copy.with_mask({}).mask());
}

TEST(Masks, PassThroughLayersOfSteps) {
  layers::Sequential model(layers::Embedding(4, 2, {.mask_zero = true}),
                           layers::Dropout(0.5), layers::Dense(3),
                           layers::Activation("relu"),
                           layers::LayerNormalization());
  EXPECT_EQ(model(Words()).mask().vector<bool>(),
            (Bools{true, true, false, true, false, false}));
  EXPECT_FALSE(layers::Embedding(4, 2)(Words()).mask());
  EXPECT_FALSE(layers::Flatten()(model(Words())).mask());
  auto traced = tf::function<1>([&](auto& in) {
    return tf::Cast(model(in[0]).mask(), tf::DType::kFloat32);
  });
  EXPECT_EQ(traced(Words()).template vector<float>(),
            (Floats{1, 1, 0, 1, 0, 0}));
}

TEST(Masks, OfValues) {
  const tf::Tensor x = tf::Tensor::From<float>({1, 9, 9, 9, 9, 2}, {1, 3, 2});
  const tf::Tensor y = layers::Masking(9)(x);
  EXPECT_EQ(y.mask().vector<bool>(), (Bools{true, false, true}));
  EXPECT_EQ(y.vector<float>(), (Floats{1, 9, 0, 0, 9, 2}));
}

TEST(Masks, EndSequences) {
  const auto table = tf::Initializer([](const tf::TensorShape& s, tf::DType) {
    return tf::Tensor::From<float>({9, 1, 2, 4}, s);
  });
  layers::Embedding embed(4, 1,
                          {.embeddings_initializer = table, .mask_zero = true});
  // Sums of what the mask shows.
  const layers::RecurrentOptions plain = {.activation = "linear",
                                          .kernel_initializer = "ones",
                                          .recurrent_initializer = "ones"};
  layers::SimpleRNN sum(1, plain);
  EXPECT_EQ(sum(embed(Words())).vector<float>(), (Floats{3, 4}));
  EXPECT_FALSE(sum(embed(Words())).mask());
  EXPECT_EQ(sum.Run(embed(Words())).states[0].vector<float>(), (Floats{3, 4}));
  EXPECT_EQ(layers::GlobalAveragePool1D()(embed(Words())).vector<float>(),
            (Floats{1.5, 4}));
  layers::RecurrentOptions all = plain;
  all.return_sequences = true;
  layers::Bidirectional both(layers::SimpleRNN(1, all), "sum");
  const tf::Tensor out = both(embed(Words()));
  EXPECT_EQ(out.vector<float>(), (Floats{4, 5, 0, 8, 0, 0}));
  EXPECT_TRUE(out.mask());
  EXPECT_THROW(layers::Bidirectional(layers::LSTM(2), "max"), tf::Error);
}

// Numbers that go around, as an initializer.
tf::Initializer Around(int step, int cycle, float least) {
  return tf::Initializer([=](const tf::TensorShape& s, tf::DType) {
    int64_t count = 1;
    for (const int64_t size : s.dims) count *= size;
    Floats values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i * step % cycle) / 2 + least;
    }
    return tf::Tensor::From<float>(values, s);
  });
}

// The numbers are those of tf_keras, and of python/tests/keras/test_masks.py.
TEST(Masks, LeaveStepsOutOfTheLoss) {
  const auto rows = tf::data::Dataset::FromTensors(
      {Words(), tf::Tensor::From<float>({1, 1, 1, 1, 1, 1}, {2, 3, 1})});
  layers::Sequential zeros(layers::Embedding(
      4, 1, {.embeddings_initializer = "zeros", .mask_zero = true}));
  EXPECT_EQ(tf::train::Evaluate(zeros, tf::losses::MeanSquaredError(), rows),
            1.0f);
  const tf::Tensor ids =
      tf::Tensor::From<int32_t>({1, 2, 0, 0, 3, 1, 2, 0}, {2, 4});
  const tf::Tensor labels =
      tf::Tensor::From<int32_t>({0, 1, 1, 1, 1, 0, 1, 0}, {2, 4});
  const tf::Tensor weights =
      tf::Tensor::From<float>({1, 2, 3, 4, .5, 1, 2, 3}, {2, 4});
  for (const bool weighted : {false, true}) {
    layers::Sequential model(
        layers::Embedding(
            5, 3,
            {.embeddings_initializer = Around(7, 5, -1), .mask_zero = true}),
        layers::Dense(2, {.activation = "softmax",
                          .kernel_initializer = Around(3, 4, -.5)}));
    tf::SGD sgd(0.5);
    tf::metrics::SparseCategoricalAccuracy accuracy;
    std::vector<tf::Tensor> row = {ids, labels};
    if (weighted) row.push_back(weights);
    const auto data = tf::data::Dataset::FromTensors(row);
    const tf::losses::SparseCategoricalCrossentropy loss;
    std::vector<double> losses;
    tf::train::FitOptions options{.epochs = 2, .verbose = false};
    options.metrics = {&accuracy};
    options.on_report = [&](const tf::train::Progress& p) {
      losses.push_back(p.logs.at("loss"));
      return true;
    };
    tf::train::Fit(model, sgd, loss, data, options);
    ASSERT_EQ(losses.size(), 2u);
    EXPECT_NEAR(losses[0], weighted ? 1.258292 : 0.682713, 1e-5);
    EXPECT_NEAR(losses[1], weighted ? 0.295825 : 0.352841, 1e-5);
  }
  const tf::Tensor p =
      tf::Tensor::From<float>({.9, .1, .6, .4, .5, .5}, {1, 3, 2})
          .with_mask(tf::Tensor::From<bool>({true, true, false}, {1, 3}));
  const tf::Tensor y = tf::Tensor::From<int32_t>({0, 1, 0}, {1, 3});
  using Sparse = tf::losses::SparseCategoricalCrossentropy;
  EXPECT_NEAR(Sparse()(y, p).item<float>(), 0.510826, 1e-5);
  EXPECT_NEAR(Sparse({.ignore_class = 1})(y, p).item<float>(), 0.105361, 1e-5);
  EXPECT_NEAR(
      Sparse({.reduction = tf::losses::Reduction::kSum})(y, p).item<float>(),
      1.021651, 1e-5);
}

TEST(Merge, JoinsInputs) {
  const tf::Tensor a = tf::Tensor::From<float>({1, 5, 3}, {1, 3});
  const tf::Tensor b = tf::Tensor::From<float>({4, 2, 3}, {1, 3});
  EXPECT_EQ(layers::Add()({a, b}).vector<float>(), (Floats{5, 7, 6}));
  EXPECT_EQ(layers::Subtract()({a, b}).vector<float>(), (Floats{-3, 3, 0}));
  EXPECT_EQ(layers::Multiply()({a, b}).vector<float>(), (Floats{4, 10, 9}));
  EXPECT_EQ(layers::Average()({a, b}).vector<float>(), (Floats{2.5, 3.5, 3}));
  EXPECT_EQ(layers::Maximum()({a, b}).vector<float>(), (Floats{4, 5, 3}));
  EXPECT_EQ(layers::Minimum()({a, b}).vector<float>(), (Floats{1, 2, 3}));
  EXPECT_EQ(layers::Concatenate()({a, b}).vector<float>(),
            (Floats{1, 5, 3, 4, 2, 3}));
  EXPECT_EQ(layers::Dot(1, 1)({a, b}).vector<float>(), (Floats{23}));
  // Axes of 1 are put behind the batch.
  const tf::Tensor wide =
      tf::Tensor::From<float>({1, 1, 1, 2, 2, 2}, {1, 2, 3});
  EXPECT_EQ(layers::Add()({a, wide}).vector<float>(),
            (Floats{2, 6, 4, 3, 7, 5}));
  EXPECT_EQ(layers::Dot(1, 2)({a, wide}).vector<float>(), (Floats{9, 18}));
}

TEST(Merge, RefusesInputsThatDoNotFit) {
  const tf::Tensor a = tf::Tensor::From<float>({1, 5, 3}, {1, 3});
  const tf::Tensor b = tf::Tensor::From<float>({4, 2}, {1, 2});
  EXPECT_THROW(layers::Add()({a, b}), tf::Error);
  EXPECT_THROW(layers::Subtract()(a), tf::Error);
  EXPECT_THROW(layers::Concatenate(0)({a, b}), tf::Error);
  EXPECT_THROW(layers::Concatenate(7)({a, a}), tf::Error);
  EXPECT_THROW(layers::Dot(1, 1)({a, b}), tf::Error);
  EXPECT_THROW(layers::Dot(0, 1)({a, a}), tf::Error);
  EXPECT_THROW(layers::Dense(2)({a, a}), tf::Error);
  EXPECT_THROW(layers::Dense(2)(std::vector<tf::Tensor>()), tf::Error);
}

TEST(Attention, LooksAtWhatTheMaskShows) {
  const tf::Tensor query = tf::Tensor::From<float>({1, 0}, {1, 1, 2});
  const tf::Tensor value = tf::Tensor::From<float>({1, 2, 3, 4}, {1, 2, 2});
  const tf::Tensor first = tf::Tensor::From<bool>({true, false}, {1, 2});
  const auto seen = layers::Attention().Run({query, value.with_mask(first)});
  EXPECT_EQ(seen.output.vector<float>(), (Floats{1, 2}));
  EXPECT_EQ(seen.scores.vector<float>(), (Floats{1, 0}));
  // The first step sees itself only.
  layers::Attention causal({.use_causal_mask = true});
  EXPECT_EQ(causal({value, value}).vector<float>()[0], 1);
  layers::MultiHeadAttention heads(
      1, 2, {.use_causal_mask = true, .kernel_initializer = "identity"});
  EXPECT_THROW(heads(value), tf::Error);  // identity is of two axes
  layers::MultiHeadAttention more(3, 2, {.output_size = 5});
  const auto run =
      more.Run({value, value},
               tf::Tensor::From<bool>({true, false, true, true}, {1, 2, 2}));
  EXPECT_EQ(run.output.shape(), (tf::TensorShape{1, 2, 5}));
  EXPECT_EQ(run.scores.shape(), (tf::TensorShape{1, 3, 2, 2}));
  EXPECT_EQ(run.scores.vector<float>()[1], 0);
  EXPECT_THROW(layers::MultiHeadAttention(0, 2), tf::Error);
  EXPECT_THROW(layers::Attention()(value), tf::Error);
  EXPECT_THROW(layers::Attention({.score_mode = "sum"}), tf::Error);
}

TEST(TimeDistributed, TreatsEachStep) {
  layers::TimeDistributed each(
      layers::Dense(1, {.kernel_initializer = "ones"}));
  const tf::Tensor x = tf::Tensor::From<float>({1, 2, 3, 4}, {1, 2, 2});
  EXPECT_EQ(each(x).vector<float>(), (Floats{3, 7}));
  EXPECT_EQ(each.Build({-1, 5, 2}), (tf::TensorShape{-1, 5, 1}));
}

}  // namespace
