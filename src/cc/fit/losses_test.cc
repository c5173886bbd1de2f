// Losses and metrics. Values are those of tf_keras.
#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;
namespace losses = tf::losses;
namespace metrics = tf::metrics;

namespace {

tf::Tensor Floats(const std::vector<float>& v, const tf::TensorShape& s) {
  return tf::Tensor::From(v, s);
}

const tf::Tensor& Logits() {
  static const auto* const t =
      new tf::Tensor(Floats({1, 2, 3, 1, 1, 5}, {2, 3}));
  return *t;
}

TEST(Losses, OfClasses) {
  const tf::Tensor ids = tf::Tensor::From<int32_t>({2, 0});
  const tf::Tensor one_hot = Floats({0, 0, 1, 1, 0, 0}, {2, 3});
  losses::SparseCategoricalCrossentropy sparse({.from_logits = true});
  EXPECT_NEAR(sparse(ids, Logits()).item<float>(), 2.22180, 1e-4);
  losses::CategoricalCrossentropy dense({.from_logits = true});
  EXPECT_NEAR(dense(one_hot, Logits()).item<float>(), 2.22180, 1e-4);
  const tf::Tensor probabilities = tf::Softmax(Logits());
  EXPECT_NEAR(
      losses::SparseCategoricalCrossentropy()(ids, probabilities).item<float>(),
      2.22180, 1e-4);
  EXPECT_NEAR(
      losses::CategoricalCrossentropy()(one_hot, probabilities).item<float>(),
      2.22180, 1e-4);
  losses::SparseCategoricalCrossentropy ignoring(
      {.from_logits = true, .ignore_class = 0});
  EXPECT_NEAR(ignoring(ids, Logits()).item<float>(), 0.40761, 1e-4);
  losses::SparseCategoricalCrossentropy sum(
      {.from_logits = true, .reduction = losses::Reduction::kSum});
  EXPECT_NEAR(sum(ids, Logits()).item<float>(), 4.4436, 1e-3);
  EXPECT_EQ(sum.Values(ids, Logits()).shape(), (tf::TensorShape{2}));
  // Labels with a last axis of 1, and weights.
  const tf::Tensor column = tf::Tensor::From<int32_t>({2, 0}, {2, 1});
  const tf::Tensor weights = Floats({1, 0}, {2});
  EXPECT_NEAR(sparse(column, Logits(), weights).item<float>(), 0.20380, 1e-4);
  EXPECT_THROW(dense(ids, Logits()), tf::Error);
  EXPECT_THROW(losses::CategoricalCrossentropy({.ignore_class = 1}), tf::Error);
  EXPECT_THROW(losses::SparseCategoricalCrossentropy({.label_smoothing = .1}),
               tf::Error);
}

TEST(Losses, OfSequences) {
  const tf::Tensor ids = tf::Tensor::From<int32_t>({2, 0}, {1, 2});
  const tf::Tensor logits =
      tf::Reshape(Logits(), tf::Tensor::From<int32_t>({1, 2, 3}));
  losses::SparseCategoricalCrossentropy sparse({.from_logits = true});
  EXPECT_EQ(sparse.Values(ids, logits).shape(), (tf::TensorShape{1, 2}));
  EXPECT_NEAR(sparse(ids, logits).item<float>(), 2.22180, 1e-4);
}

TEST(Losses, OfTwoClassesAndNumbers) {
  const tf::Tensor y = Floats({0, 1}, {2, 1});
  const tf::Tensor p = Floats({0.25, 0.5}, {2, 1});
  EXPECT_NEAR(losses::BinaryCrossentropy()(y, p).item<float>(), 0.49041, 1e-4);
  losses::BinaryCrossentropy logits({.from_logits = true});
  EXPECT_NEAR(logits(y, Floats({-2, 3}, {2, 1})).item<float>(), 0.08776, 1e-4);
  losses::BinaryCrossentropy smooth({.label_smoothing = 0.2});
  EXPECT_NEAR(smooth(y, p).item<float>(), 0.54534, 1e-4);
  const tf::Tensor a = Floats({0, 1, 2}, {3}), b = Floats({0, 3, -2}, {3, 1});
  EXPECT_NEAR(losses::MeanSquaredError()(a, b).item<float>(), 20.0 / 3, 1e-5);
  EXPECT_NEAR(losses::MeanAbsoluteError()(a, b).item<float>(), 2, 1e-6);
  EXPECT_NEAR(losses::Huber()(a, b).item<float>(), 5.0 / 3, 1e-5);
}

TEST(Losses, ReadLogitsBehindProbabilitiesOfATrace) {
  const tf::Tensor ids = tf::Tensor::From<int32_t>({2, 0});
  auto f = tf::function<1>([&](auto& in) {
    return losses::SparseCategoricalCrossentropy()(ids, tf::Softmax(in[0]));
  });
  // Probabilities alone end at 1e-7.
  EXPECT_NEAR(f(Floats({0, 0, -90, -90, 0, 0}, {2, 3})).template item<float>(),
              90.69, 1e-2);
}

TEST(Metrics, KeepTheirState) {
  metrics::SparseCategoricalAccuracy accuracy;
  const tf::Tensor ids = tf::Tensor::From<int32_t>({2, 0});
  accuracy.Update(ids, Logits());
  EXPECT_EQ(accuracy.result().item<float>(), 0.5);
  accuracy.Update(ids, Logits(), Floats({1, 0}, {2}));
  EXPECT_NEAR(accuracy.result().item<float>(), 2.0 / 3, 1e-6);
  accuracy.Reset();
  EXPECT_EQ(accuracy.result().item<float>(), 0);
  auto traced = tf::function<1>([&](auto& in) {
    accuracy.Update(ids, in[0]);
    return accuracy.result();
  });
  EXPECT_EQ(traced(Logits()).template item<float>(), 0.5);
  EXPECT_EQ(accuracy.variables().size(), 2u);
}

TEST(Metrics, OfEachKind) {
  metrics::Mean mean;
  mean.Update(Floats({1, 2, 6}, {3}));
  EXPECT_EQ(mean.result().item<float>(), 3);
  mean.Update(Floats({9}, {1}), Floats({2}, {1}));
  EXPECT_FLOAT_EQ(mean.result().item<float>(), 27.0 / 5);
  metrics::Sum sum;
  sum.Update(Floats({1, 2}, {2}));
  sum.Update(tf::Tensor(4.0f));
  EXPECT_EQ(sum.result().item<float>(), 7);
  metrics::BinaryAccuracy binary;
  binary.Update(Floats({0, 1, 1}, {3, 1}), Floats({0.2, 0.7, 0.1}, {3, 1}));
  EXPECT_NEAR(binary.result().item<float>(), 2.0 / 3, 1e-6);
  metrics::CategoricalAccuracy classes;
  classes.Update(Floats({0, 0, 1, 1, 0, 0}, {2, 3}), Logits());
  EXPECT_EQ(classes.result().item<float>(), 0.5);
  metrics::Accuracy equal;
  equal.Update(tf::Tensor::From<int32_t>({1, 2}), Floats({1, 3}, {2}));
  EXPECT_EQ(equal.result().item<float>(), 0.5);
  metrics::MeanSquaredError squares;
  squares.Update(Floats({0, 0}, {2, 1}), Floats({1, 3}, {2, 1}));
  EXPECT_EQ(squares.result().item<float>(), 5);
}

}  // namespace
