#include "serving/manager/test_manager.h"

namespace headrace::serving {
namespace {

TEST_F(ManagerTest, AModelGoesAndComesBackByName) {
  AddVersion("m", "1");
  AddVersion("other", "1");
  const std::string both = ModelText("m") + ModelText("other");
  ASSERT_EQ(Start(both), OkStatus());
  ASSERT_EQ(manager_->UnloadModel("m"), OkStatus());
  EXPECT_EQ(Answers("name: 'm'"), -5);
  EXPECT_TRUE(Becomes("m", "1:END"));
  EXPECT_TRUE(manager_->Ready());
  EXPECT_EQ(Answers("name: 'other'"), 1);
  // Neither a look at the files nor the same config brings it back.
  AddVersion("m", "2");
  manager_->Poll();
  EXPECT_EQ(States("m"), "1:END");
  EXPECT_EQ(Reload(both), OkStatus());
  EXPECT_EQ(States("m"), "1:END");
  ASSERT_EQ(manager_->LoadModel("m"), OkStatus());
  EXPECT_EQ(Answers("name: 'm'"), 2);
  // Of one that is loaded nothing changes.
  ASSERT_EQ(manager_->LoadModel("m"), OkStatus());
  EXPECT_EQ(Loads("m", 2), 1);
}

TEST_F(ManagerTest, AConfigWithoutTheModelForgetsThatItWasUnloaded) {
  AddVersion("m", "1");
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  ASSERT_EQ(manager_->UnloadModel("m"), OkStatus());
  ASSERT_EQ(Reload(""), OkStatus());
  ASSERT_EQ(Reload(ModelText("m")), OkStatus());
  EXPECT_EQ(Answers("name: 'm'"), 1);
}

TEST_F(ManagerTest, LoadByNameTriesAgainWhatFailed) {
  AddVersion("m", "1");
  options_.start_with_failed_models = true;
  Fail("m", 1, 2);
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  EXPECT_TRUE(Becomes("m", "1:END(broken)"));
  const Status s = manager_->LoadModel("m");
  EXPECT_EQ(s.code(), absl::StatusCode::kUnknown);
  EXPECT_NE(s.message().find("broken"), std::string::npos) << s;
  EXPECT_EQ(manager_->LoadModel("m"), OkStatus());
  EXPECT_EQ(Answers("name: 'm'"), 1);
}

TEST_F(ManagerTest, LoadByNameLoadsWhatWaitsForARequest) {
  AddVersion("m", "1");
  options_.lazy_load_models = true;
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  EXPECT_EQ(Loads("m", 1), 0);
  ASSERT_EQ(manager_->LoadModel("m"), OkStatus());
  EXPECT_EQ(Loads("m", 1), 1);
}

TEST_F(ManagerTest, ModelsThatNoConfigHasAreNoneByName) {
  AddVersion("m", "1");
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  EXPECT_EQ(manager_->LoadModel("n").message(),
            "failed to load 'n', the config has no such model");
  EXPECT_EQ(manager_->UnloadModel("n").message(),
            "failed to unload 'n', the config has no such model");
}

}  // namespace
}  // namespace headrace::serving
