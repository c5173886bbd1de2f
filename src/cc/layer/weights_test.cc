// Penalties and constraints of weights. Values are TensorFlow's, by tf_keras.
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;
namespace layers = tf::layers;
namespace reg = tf::regularizers;
namespace con = tf::constraints;

namespace {

using Floats = std::vector<float>;

tf::Tensor Weight() { return tf::Tensor::From<float>({3, -4, 0, 2}, {2, 2}); }

void ExpectNear(const tf::Tensor& found, const Floats& expected) {
  const Floats values = found.vector<float>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], 1e-5) << i;
  }
}

TEST(Regularizers, GiveScalars) {
  EXPECT_FLOAT_EQ(reg::L1(0.5)(Weight()).item<float>(), 4.5);
  EXPECT_FLOAT_EQ(reg::L2(0.5)(Weight()).item<float>(), 14.5);
  EXPECT_FLOAT_EQ(reg::L1L2(1, 1)(Weight()).item<float>(), 38);
  EXPECT_FLOAT_EQ(tf::Regularizer("l2")(Weight()).item<float>(), 0.29);
  // The cosine of the two rows is -0.8, of the columns -12 / (3 sqrt(20)).
  EXPECT_NEAR(reg::Orthogonal(1)(Weight()).item<float>(), 0.8, 1e-6);
  EXPECT_NEAR(reg::Orthogonal(1, "columns")(Weight()).item<float>(), 0.894427,
              1e-6);
}

TEST(Regularizers, RefuseWhatCannotBe) {
  EXPECT_THROW(tf::Regularizer("none"), tf::Error);
  EXPECT_THROW(reg::L1(std::numeric_limits<double>::infinity()), tf::Error);
  EXPECT_THROW(reg::Orthogonal(1, "both"), tf::Error);
  EXPECT_THROW(reg::Orthogonal()(tf::Tensor::From<float>({1})), tf::Error);
}

TEST(Constraints, HoldWeights) {
  ExpectNear(con::NonNeg()(Weight()), {3, 0, 0, 2});
  ExpectNear(con::UnitNorm(1)(Weight()), {.6f, -.8f, 0, 1});
  ExpectNear(con::MaxNorm(2.5, -1)(Weight()), {1.5f, -2, 0, 2});
  ExpectNear(con::MinMaxNorm(2.5, 4, 0.5, 1)(Weight()),
             {2.7f, -3.6f, 0, 2.25f});
  EXPECT_THROW(tf::Constraint("none"), tf::Error);
  EXPECT_THROW(con::MaxNorm(std::nan("")), tf::Error);
}

TEST(Constraints, AreAppliedAfterUpdates) {
  const tf::Variable v(Weight(), "v", true, con::NonNeg());
  tf::SGD sgd(1);
  sgd.Apply({tf::Tensor::From<float>({4, 0, 0, 1}, {2, 2})}, {v});
  EXPECT_EQ(v.value().vector<float>(), (Floats{-0.f, -0.f, 0, 1}));
}

TEST(Layers, AddUpPenalties) {
  layers::Sequential inner(layers::Dense(1, {.kernel_initializer = "ones",
                                             .bias_initializer = "ones",
                                             .kernel_regularizer = reg::L1(1),
                                             .bias_regularizer = reg::L2(3)}));
  layers::Sequential model;
  layers::Sequential& held = model.Add(std::move(inner));
  EXPECT_TRUE(model.losses().empty());
  model.Build({-1, 4});
  std::vector<tf::Tensor> losses = model.losses();
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0].item<float>(), 4);
  EXPECT_EQ(losses[1].item<float>(), 3);
  held.set_trainable(false);
  EXPECT_EQ(model.losses().size(), 2u);
}

// A layer that adds a loss of its own, and says nothing else.
struct Adding : layers::Layer {
  Adding() {
    AddLoss([] { return tf::Tensor(2.0f); });
  }
};

TEST(Layers, AddLossesOfTheirOwn) {
  Adding adding;
  EXPECT_EQ(adding.losses().at(0).item<float>(), 2);
  try {
    adding(Weight());
    FAIL();
  } catch (const tf::Error& e) {
    EXPECT_EQ(e.code(), tf::ErrorCode::kUnimplemented);
  }
}

}  // namespace
