#include "headrace/safe_mode.h"

#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;

namespace {

constexpr char kPlainModel[] = HR_GOLDEN_DIR "/saved_models/plain";
constexpr char kTablesModel[] = HR_GOLDEN_DIR "/saved_models/tables";

template <typename F>
tf::ErrorCode CodeOf(F f, std::string* text = nullptr) {
  try {
    f();
  } catch (const tf::Error& e) {
    if (text != nullptr) *text = e.what();
    return e.code();
  }
  return tf::ErrorCode{};
}

tf::Tensor Zeros(int32_t count) {
  return tf::Fill(tf::Tensor::From<int32_t>({count}, {1}), tf::Tensor(0.0f));
}

TEST(SafeModeTest, HonestModelsRun) {
  tf::SafeMode mode;
  mode.memory = 16 << 20;
  const auto model = tf::SavedModel::Load(kPlainModel, {.safe_mode = mode});
  const auto x = tf::Tensor::From<float>({1, 2}, {2});
  EXPECT_EQ(model.signature()({{"x", x}}).at("y").vector<float>(),
            (std::vector<float>{4, 7}));
  // Tables are filled from the model's own files.
  tf::SavedModel::Load(kTablesModel, {.safe_mode = tf::SafeMode()});
}

TEST(SafeModeTest, LimitsAreThoseOfTheModel) {
  tf::SafeMode mode;
  mode.nodes = 3;
  std::string text;
  EXPECT_EQ(
      CodeOf([&] { tf::SavedModel::Load(kPlainModel, {.safe_mode = mode}); },
             &text),
      tf::ErrorCode::kResourceExhausted);
  EXPECT_NE(text.find("`nodes`"), std::string::npos) << text;
  // Its variables have eight bytes.
  mode = {};
  mode.output = 4;
  EXPECT_EQ(
      CodeOf([&] { tf::SavedModel::Load(kPlainModel, {.safe_mode = mode}); }),
      tf::ErrorCode::kResourceExhausted);
}

TEST(SafeModeTest, DeniedOps) {
  tf::SafeMode mode;
  mode.only = {"NoOp"};
  std::string text;
  EXPECT_EQ(
      CodeOf([&] { tf::SavedModel::Load(kPlainModel, {.safe_mode = mode}); },
             &text),
      tf::ErrorCode::kPermissionDenied);
  EXPECT_NE(text.find("in function"), std::string::npos) << text;
  mode.only = {"NoSuchOp"};
  EXPECT_EQ(CodeOf([&] { const tf::SafeMode::Scope scope(mode); }),
            tf::ErrorCode::kInvalidArgument);
}

TEST(SafeModeTest, Scopes) {
  tf::SafeMode mode;
  mode.output = 1000;
  {
    const tf::SafeMode::Scope scope(mode);
    EXPECT_EQ(CodeOf([] { Zeros(1000); }), tf::ErrorCode::kResourceExhausted);
    const auto kept = Zeros(100);
    EXPECT_GE(scope.memory_in_use(), 400);
  }
  Zeros(1000);
}

TEST(SafeModeTest, Texts) {
  tf::SafeMode mode;
  mode.allow = {"prints", "ReadFile"};
  mode.seconds = 2.5;
  mode.output = 0;
  const auto again = tf::SafeMode::FromText(mode.ToText());
  EXPECT_EQ(again.ToText(), mode.ToText());
  EXPECT_EQ(again.seconds, 2.5);
  EXPECT_EQ(CodeOf([] { tf::SafeMode::FromText("memory: much"); }),
            tf::ErrorCode::kInvalidArgument);
  mode.memory = -1;
  EXPECT_EQ(CodeOf([&] { mode.ToText(); }), tf::ErrorCode::kInvalidArgument);
}

}  // namespace
