// Losses, metrics and schedules against tf_keras' values.
#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;
namespace losses = tf::losses;
namespace metrics = tf::metrics;

namespace {

const tf::Tensor& Labels() {
  static const tf::Tensor t =
      tf::Tensor::From<float>({0, 1, 0, 1, 0, 0}, {2, 3});
  return t;
}
const tf::Tensor& Predictions() {
  static const tf::Tensor t =
      tf::Tensor::From<float>({.1f, .7f, .2f, .3f, .25f, .45f}, {2, 3});
  return t;
}

TEST(Losses, HaveUpstreamsValues) {
  const auto near = [](const losses::Loss& loss, float expected,
                       float more = 0) {
    EXPECT_NEAR(loss(Labels() + more, Predictions()).item<float>(), expected,
                1e-5 * std::max(1.f, expected));
  };
  near(losses::MAPE(), 55.555557f, 0.5);
  near(losses::MSLE(), 0.07369398f);
  near(losses::Hinge(), 1.0f);
  near(losses::SquaredHinge(), 1.1491668f);
  near(losses::CategoricalHinge(), 0.82499999f);
  near(losses::LogCosh(), 0.07090122f);
  near(losses::KLD(), 0.780321f);
  near(losses::Poisson(), 0.59344125f);
  near(losses::CosineSimilarity(), -0.72804415f);
  near(losses::BinaryFocalCrossentropy(), 0.12851143f);
  near(losses::BinaryFocalCrossentropy(
           {.gamma = 3, .apply_class_balancing = true, .label_smoothing = 0.1}),
       0.02562089f);
}

void Near(metrics::Metric&& m, float plain, float weighted) {
  m.Update(Labels(), Predictions());
  EXPECT_NEAR(m.result().item<float>(), plain, 2e-6) << m.name();
  m.Reset();
  m.Update(Labels(), Predictions(), tf::Tensor::From<float>({1, 3}));
  EXPECT_NEAR(m.result().item<float>(), weighted, 2e-6) << m.name();
}

TEST(Metrics, HaveUpstreamsValues) {
  Near(metrics::TopKCategoricalAccuracy(2), 1, 1);
  Near(metrics::RootMeanSquaredError(), 0.386221f, 0.44767917f);
  Near(metrics::LogCoshError(), 0.07090122f, 0.09481841f);
  Near(metrics::CosineSimilarity(), 0.72804415f, 0.61577654f);
  Near(metrics::BinaryCrossentropy(), 0.46244493f, 0.57947099f);
  Near(metrics::CategoricalCrossentropy(), 0.78032386f, 0.99214834f);
  Near(metrics::AUC(), 0.875f, 0.71875f);
  Near(metrics::AUC({.curve = "PR"}), 0.79726744f, 0.58028817f);
  Near(
      metrics::AUC(
          {.num_thresholds = 5, .curve = "PR", .summation_method = "majoring"}),
      1, 1);
  Near(metrics::Precision(), 1, 1);
  Near(metrics::Precision({.top_k = 1}), 0.5f, 0.25f);
  Near(metrics::Recall({.thresholds = {0.25}}), 1, 1);
  Near(metrics::Recall({.class_id = 1}), 1, 1);
  Near(metrics::TruePositives(), 1, 1);
  Near(metrics::TrueNegatives(), 4, 8);
  Near(metrics::FalseNegatives(), 1, 3);
}

TEST(Metrics, OfSeveralThresholdsAndShapes) {
  metrics::FalsePositives wrong({0.2, 0.4});
  wrong.Update(Labels(), Predictions());
  EXPECT_EQ(wrong.result().vector<float>(), (std::vector<float>{2, 1}));
  metrics::SparseTopKCategoricalAccuracy top(2);
  top.Update(tf::Tensor::From<int32_t>({1, 1}), Predictions());
  EXPECT_FLOAT_EQ(top.result().item<float>(), 0.5f);
  metrics::MeanIoU iou(3);
  iou.Update(tf::Tensor::From<int32_t>({0, 1, 2, 2}),
             tf::Tensor::From<int32_t>({0, 2, 2, 1}));
  EXPECT_FLOAT_EQ(iou.result().item<float>(), 0.44444445f);
  EXPECT_THROW(iou.Update(tf::Tensor::From<int32_t>({7}),
                          tf::Tensor::From<int32_t>({0})),
               tf::Error);
  metrics::MeanTensor mean;
  EXPECT_THROW(mean.result(), tf::Error);
  mean.Update(tf::Tensor::From<float>({1, 2}));
  mean.Update(tf::Tensor::From<float>({3, 6}), tf::Tensor::From<float>({1, 3}));
  EXPECT_EQ(mean.result().vector<float>(), (std::vector<float>{2, 5}));
  EXPECT_THROW(metrics::Precision({.thresholds = {2}}), tf::Error);
  EXPECT_THROW(metrics::AUC({.curve = "roc"}), tf::Error);
  EXPECT_THROW(metrics::AUC({.num_thresholds = 1}), tf::Error);
}

TEST(Schedules, HaveUpstreamsValues) {
  const auto near = [](const tf::LearningRate& rate,
                       const std::vector<float>& expected) {
    const int64_t steps[] = {0, 7, 15, 33};
    for (int i = 0; i < 4; ++i) {
      EXPECT_NEAR(rate(tf::Tensor(steps[i])).item<float>(), expected[i], 1e-7);
    }
  };
  namespace s = tf::schedules;
  near(s::InverseTimeDecay(.1, 10, .5),
       {.1f, .07407407f, .05714286f, .0377358496f});
  near(s::InverseTimeDecay(.1, 10, .5, true), {.1f, .1f, .06666667f, .04f});
  near(s::CosineDecayRestarts(.1, 10),
       {.1f, .02061074f, .08535534f, .0986185f});
  near(s::CosineDecayRestarts(.1, 10, 1, .5, .1),
       {.1f, .02854967f, .0325f, .01893129f});
  near(s::PolynomialDecay(.1, 10, .01, 2, true),
       {.1f, .0181f, .015625f, .01275625f});
}

TEST(Gradients, OfRowsStaySlices) {
  const tf::Variable table(tf::Fill(tf::Tensor::From<int32_t>({4, 2}), 1.0f),
                           "table");
  const auto loss = [&] {
    const tf::Tensor rows =
        tf::ResourceGather(table.handle(), tf::Tensor::From<int32_t>({1, 3, 1}),
                           tf::DType::kFloat32);
    return tf::Sum(rows, tf::Tensor::From<int32_t>({0, 1}));
  };
  tf::GradientTape tape(/*persistent=*/true);
  tape.watch(table.handle());
  const tf::Tensor sum = loss();
  const tf::Gradients found = tape.gradient(sum, std::vector{table});
  ASSERT_TRUE(found[0].is_slices());
  EXPECT_EQ(found[0].values().shape(), (tf::TensorShape{3, 2}));
  EXPECT_EQ(found[0].vector<float>(),
            (std::vector<float>{0, 0, 2, 2, 0, 0, 1, 1}));
  tf::SGD(0.5).Apply(found, {table});
  EXPECT_EQ(table.value().vector<float>(),
            (std::vector<float>{1, 1, 0, 0, 1, 1, .5, .5}));
  const std::vector<tf::Tensor> dense = tape.gradient(sum, std::vector{table});
  EXPECT_EQ(dense[0].shape(), (tf::TensorShape{4, 2}));
  tf::Adagrad(0.5).Apply(tf::Gradients{dense[0]}, {table});
}

TEST(Fit, WeighsClassesAndKeepsItsHistory) {
  const auto x = tf::Tensor::From<float>({1, 1, 1, 1}, {4, 1});
  const auto y = tf::Tensor::From<int32_t>({0, 0, 0, 1});
  const auto data = tf::data::Dataset::FromTensorSlices({x, y}).Batch(4);
  tf::layers::Sequential model(tf::layers::Dense(2));
  tf::SGD sgd(1.0);
  tf::train::History history;
  int64_t steps = 0;
  tf::train::LambdaCallback counts(
      {.on_step_end = [&](tf::train::Training&, int64_t, const tf::Tensor&) {
        ++steps;
      }});
  const losses::SparseCategoricalCrossentropy loss({.from_logits = true});
  tf::train::Fit(model, sgd, loss, data,
                 {.epochs = 30,
                  .class_weights = {1, 6},
                  .verbose = false,
                  .callbacks = {&history, &counts}});
  EXPECT_EQ(steps, 30);
  EXPECT_EQ(history.history().at("loss").size(), 30u);
  const std::vector<float> logits =
      tf::train::Predict(model, x, 3).vector<float>();
  EXPECT_EQ(logits.size(), 8u);
  EXPECT_GT(logits[1], logits[0]);  // one sample of weight 6 beats three
}

}  // namespace
