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

TEST(SavedModel, ReadsGraphsOfSessions) {
  const char* folder = HR_GOLDEN_DIR "/saved_models/session";
  EXPECT_THROW(tf::SavedModel::Load(folder), tf::Error);  // which graph?
  const auto model = tf::SavedModel::Load(folder, {.tags = {"serve"}});
  EXPECT_EQ(model.signature_names(),
            (std::vector<std::string>{"serving_default", "steps"}));
  const auto text = tf::Tensor::From<std::string>({"blue", "pink"}, {2});
  auto out = model.signature()({{"text", text}});
  EXPECT_EQ(out.at("ids").vector<int64_t>(), (std::vector<int64_t>{2, -1}));
  EXPECT_EQ(out.at("score").vector<float>(), (std::vector<float>{30, 10}));
  // A loop of frames, a reference variable, and what the main op set.
  out = model.signature("steps")({{"a b", Pair(1, 2)}});
  EXPECT_EQ(out.at("y").vector<float>(), (std::vector<float>{109, 117}));

  const tf::Variable v = model.variable("scope/v");
  EXPECT_TRUE(v.trainable());
  tf::GradientTape tape;
  out = model.signature()({{"text", text}});
  const tf::Tensor slope = tape.gradient(out.at("score"), v);
  EXPECT_EQ(slope.shape().dims, (std::vector<int64_t>{3}));
  EXPECT_EQ(model.variable("shift").value().item<float>(), 1);
  EXPECT_THROW(model.variable("scope"), tf::Error);
}

TEST(SavedModel, GraphsOfSessionsAreApart) {
  const auto train = tf::SavedModel::Load(HR_GOLDEN_DIR "/saved_models/session",
                                          {.tags = {"gpu", "train"}});
  const auto again = tf::SavedModel::Load(HR_GOLDEN_DIR "/saved_models/session",
                                          {.tags = {"gpu", "train"}});
  const auto x = tf::Tensor::From<float>({1, 2, 3}, {3});
  train.variable("scope/v").assign(x);
  const auto y = [&x](const tf::SavedModel& model) {
    return model.signature("step")({{"x", x}}).at("y").vector<float>();
  };
  EXPECT_EQ(y(train), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(y(again), (std::vector<float>{11, 22, 33}));
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
