#include <cmath>

#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;

namespace {

float At(const tf::LearningRate& rate, int64_t step) {
  return rate(tf::Tensor(step)).item<float>();
}

TEST(Schedules, FollowTheStep) {
  EXPECT_FLOAT_EQ(At(tf::schedules::ExponentialDecay(0.1, 10, 0.5), 5),
                  0.1f * std::sqrt(0.5f));
  EXPECT_FLOAT_EQ(At(tf::schedules::ExponentialDecay(0.1, 10, 0.5, true), 19),
                  0.05f);
  const auto piecewise =
      tf::schedules::PiecewiseConstantDecay({10, 20}, {1, 0.5, 0.25});
  EXPECT_EQ(At(piecewise, 10), 1);
  EXPECT_EQ(At(piecewise, 11), 0.5);
  EXPECT_EQ(At(piecewise, 21), 0.25);
  const auto cosine = tf::schedules::CosineDecay(1, 100, 0.1);
  EXPECT_FLOAT_EQ(At(cosine, 0), 1);
  EXPECT_FLOAT_EQ(At(cosine, 50), 0.55);
  EXPECT_FLOAT_EQ(At(cosine, 200), 0.1);
  const auto warm = tf::schedules::CosineDecay(0, 100, 0, 2.0, 10);
  EXPECT_FLOAT_EQ(At(warm, 5), 1);
  EXPECT_FLOAT_EQ(At(warm, 10), 2);
  EXPECT_FLOAT_EQ(At(tf::schedules::PolynomialDecay(1, 10, 0), 5), 0.5);
  EXPECT_THROW(tf::schedules::PiecewiseConstantDecay({1}, {1}), tf::Error);
  EXPECT_THROW(tf::schedules::CosineDecay(1, 0), tf::Error);
}

TEST(Optimizers, SchedulesMoveTheRateInTracedSteps) {
  tf::Variable v(tf::Tensor(0.0f));
  tf::SGD sgd(tf::schedules::PiecewiseConstantDecay({0}, {1, 0.5}));
  auto step = tf::function<1>([&](auto& in) {
    sgd.Apply({in[0]}, {v});
    return v.value();
  });
  EXPECT_EQ(step(tf::Tensor(1.0f)).template item<float>(), -1);
  EXPECT_EQ(step(tf::Tensor(1.0f)).template item<float>(), -1.5);
  EXPECT_THROW(sgd.learning_rate(), tf::Error);
  EXPECT_EQ(sgd.iterations().value().item<int64_t>(), 2);
}

TEST(Optimizers, RatesAreVariables) {
  tf::Variable v(tf::Tensor(0.0f));
  tf::SGD sgd(1);
  auto step = tf::function<1>([&](auto& in) {
    sgd.Apply({in[0]}, {v});
    return v.value();
  });
  step(tf::Tensor(1.0f));
  sgd.learning_rate().assign(tf::Tensor(0.25f));
  EXPECT_EQ(step(tf::Tensor(1.0f)).template item<float>(), -1.25);
}

TEST(Optimizers, LimitGradients) {
  const tf::Tensor g = tf::Tensor::From<float>({3, 4});
  auto after = [&](tf::OptimizerOptions options) {
    tf::Variable v(tf::Tensor::From<float>({0, 0}));
    tf::SGD(1, 0, false, options).Apply({g}, {v});
    return v.value().vector<float>();
  };
  EXPECT_EQ(after({.clipvalue = 3.5}), (std::vector<float>{-3, -3.5}));
  EXPECT_NEAR(after({.clipnorm = 1})[1], -0.8, 1e-6);
  EXPECT_NEAR(after({.global_clipnorm = 2.5})[0], -1.5, 1e-6);
  EXPECT_THROW(after({.clipnorm = 1, .global_clipnorm = 1}), tf::Error);
}

TEST(Optimizers, FtrlTakesLookedUpRowsForTheWholeTable) {
  const tf::Tensor start = tf::Tensor::From<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  auto after = [&](const tf::Gradient& g) {
    tf::Variable v(start);
    tf::Ftrl ftrl(0.1);
    ftrl.Apply({g}, {v});
    ftrl.Apply({g}, {v});
    return v.value().vector<float>();
  };
  const tf::Gradient rows(
      tf::Tensor::From<float>({0.1f, 0.2f, 0.3f, -0.4f, 0.1f, 0.1f}, {3, 2}),
      tf::Tensor::From<int32_t>({0, 2, 0}), tf::Tensor::From<int32_t>({3, 2}));
  const std::vector<float> found = after(rows);
  EXPECT_EQ(found, after(rows.dense()));
  EXPECT_EQ(found[2], 0);
  EXPECT_EQ(found[3], 0);
}

TEST(Optimizers, DecayWeights) {
  tf::Variable v(tf::Tensor(2.0f));
  tf::SGD(0.5, 0, false, {.weight_decay = 0.1}).Apply({tf::Tensor(0.0f)}, {v});
  EXPECT_FLOAT_EQ(v.value().item<float>(), 1.9f);
}

TEST(Optimizers, RefuseGradientsThatDoNotFit) {
  tf::Variable v(tf::Tensor(2.0f));
  tf::Adam adam;
  EXPECT_THROW(adam.Apply({}, {v}), tf::Error);
  EXPECT_THROW(adam.Apply({tf::Tensor()}, {v}), tf::Error);
  EXPECT_EQ(adam.iterations().value().item<int64_t>(), 0);
  EXPECT_FALSE(adam.slot(v, "m"));
  adam.Apply({tf::Tensor(1.0f)}, {v});
  EXPECT_TRUE(adam.slot(v, "m"));
  EXPECT_THROW(tf::SGD(-1), tf::Error);
  EXPECT_THROW(tf::SGD(1, 2), tf::Error);
}

template <typename O>
void GoesOnFromACheckpoint(const std::string& name, std::function<O()> make) {
  const std::string path = testing::TempDir() + "optimizer_" + name + "/c";
  const tf::Tensor g = tf::Tensor::From<float>({0.5f, -2});
  tf::Variable v(tf::Tensor::From<float>({1, 2}));
  O optimizer = make();
  optimizer.Apply({g}, {v});
  tf::Checkpoint({{"v", v}, {"o", optimizer}}).write(path);
  optimizer.Apply({g}, {v});
  tf::Variable other(tf::Tensor::From<float>({0, 0}));
  O fresh = make();
  tf::Checkpoint checkpoint({{"v", other}, {"o", fresh}});
  checkpoint.restore(path);  // slots arrive when they are made
  fresh.Apply({g}, {other});
  EXPECT_EQ(other.value().template vector<float>(),
            v.value().template vector<float>());
}

TEST(Optimizers, GoOnFromCheckpoints) {
  GoesOnFromACheckpoint<tf::SGD>("sgd", [] { return tf::SGD(0.1, 0.9); });
  GoesOnFromACheckpoint<tf::Adam>(
      "adam", [] { return tf::Adam(0.1, 0.9, 0.999, 1e-7, true); });
  GoesOnFromACheckpoint<tf::RMSprop>(
      "rms", [] { return tf::RMSprop(0.1, 0.9, 0.5, 1e-7, true); });
  GoesOnFromACheckpoint<tf::Adagrad>("ada", [] { return tf::Adagrad(0.1); });
  GoesOnFromACheckpoint<tf::Ftrl>("ftrl", [] { return tf::Ftrl(0.1); });
}

}  // namespace
