#include "headrace/saved_model.h"

#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;

namespace {

constexpr char kPlain[] = HR_GOLDEN_DIR "/saved_models/plain";

tf::Tensor Pair(float a, float b) {
  return tf::Tensor::From<float>({a, b}, {2});
}

TEST(SavedModel, CallsSignatures) {
  const auto model = tf::SavedModel::Load(kPlain);
  EXPECT_EQ(model.signature_names(),
            (std::vector<std::string>{"looped", "serving_default"}));
  const auto& serve = model.signature();
  ASSERT_EQ(serve.inputs().size(), 1u);
  EXPECT_EQ(serve.inputs()[0].name, "x");
  EXPECT_EQ(serve.inputs()[0].shape.dims, (std::vector<int64_t>{-1}));
  EXPECT_EQ(serve.outputs()[1].name, "y");
  const auto out = serve({{"x", Pair(1, 2)}});
  EXPECT_EQ(out.at("y").vector<float>(), (std::vector<float>{4, 7}));
  EXPECT_EQ(out.at("twice").vector<float>(), (std::vector<float>{2, 4}));
  const auto looped = model.signature("looped")({{"n", tf::Tensor(4)}});
  EXPECT_EQ(looped.at("output_0").item<float>(), 12);
}

TEST(SavedModel, VariablesAreThoseOfItsFunctions) {
  const auto model = tf::SavedModel::Load(kPlain);
  const tf::Variable v = model.variable("v");
  EXPECT_TRUE(v.trainable());
  EXPECT_FALSE(model.variable("layers/1/k").trainable());
  v.assign(Pair(0, 0));
  const auto out = model.signature()({{"x", Pair(1, 2)}});
  EXPECT_EQ(out.at("y").vector<float>(), (std::vector<float>{3, 3}));
  tf::GradientTape tape;
  const auto again = model.signature()({{"x", Pair(1, 2)}});
  const tf::Tensor slope = tape.gradient(again.at("y"), v);
  EXPECT_EQ(slope.vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_THROW(model.variable("layers/7"), tf::Error);
}

TEST(SavedModel, RefusesWhatDoesNotFit) {
  const auto model = tf::SavedModel::Load(kPlain);
  const auto& serve = model.signature();
  EXPECT_THROW(serve({}), tf::Error);
  EXPECT_THROW(serve({{"x", tf::Tensor(1)}}), tf::Error);
  EXPECT_THROW(serve({{"x", Pair(1, 2)}, {"y", Pair(1, 2)}}), tf::Error);
  EXPECT_THROW(model.signature("none"), tf::Error);
  EXPECT_THROW(tf::SavedModel::Load("/none"), tf::Error);
  EXPECT_THROW(tf::SavedModel::Load(kPlain, {.tags = {"gpu"}}), tf::Error);
}

}  // namespace
