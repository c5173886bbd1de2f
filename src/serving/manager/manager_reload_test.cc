// The start, the end, and configs.
#include "serving/manager/test_manager.h"

namespace headrace::serving {
namespace {

TEST_F(ManagerTest, AFailureAtTheStartIsFatal) {
  AddVersion("good", "1");
  AddVersion("bad", "1");
  AddVersion("bad", "2");
  AddVersion("worse", "9");
  Fail("bad", 1);
  Fail("bad", 2);
  Fail("worse", 9);
  const std::string models =
      ModelText("good") + ModelText("worse") +
      ModelText("bad", "model_version_policy { all {} }");
  EXPECT_EQ(Start(models),
            Unknown("2 model(s) did not become available: {{name: bad version: "
                    "2} due to error: DATA_LOSS: broken}, {{name: worse "
                    "version: 9} due to error: DATA_LOSS: broken}"));
  EXPECT_FALSE(manager_->Ready());
  options_.start_with_failed_models = true;
  ASSERT_EQ(Start(models), OkStatus());
  EXPECT_EQ(Answers("name: 'good'"), 1);
  EXPECT_FALSE(manager_->Ready());
  EXPECT_EQ(LogLines("2 model(s) did not become available"), 1);
}

TEST_F(ManagerTest, OneGoodVersionIsEnoughForTheStart) {
  AddVersion("m", "1");
  AddVersion("m", "2");
  Fail("m", 2);
  ASSERT_EQ(Start(ModelText("m", "model_version_policy { all {} }")),
            OkStatus());
  EXPECT_EQ(Answers("name: 'm'"), 1);
}

TEST_F(ManagerTest, TheStartWaitsForABasePathThatIsLookedAtAgain) {
  options_.file_system_poll_wait_seconds = 1;
  std::thread later([&] {
    Eventually([&] { return LogLines("Could not find base path") == 1; });
    AddVersion("m", "4");
  });
  EXPECT_EQ(Start(ModelText("m")), OkStatus());
  later.join();
  EXPECT_EQ(Answers("name: 'm'"), 4);
}

TEST_F(ManagerTest, TheStartFailsWhereNobodyLooksAgain) {
  const Status missing = Start(ModelText("m"));
  EXPECT_EQ(missing.code(), absl::StatusCode::kUnknown);
  EXPECT_NE(missing.message().find("{{name: m} due to error: NOT_FOUND"),
            std::string::npos)
      << missing;
  AddModel("m");
  EXPECT_NE(
      Start(ModelText("m")).message().find("No wanted version under base path"),
      std::string::npos);
}

TEST_F(ManagerTest, WhatIsPreparedForAConfigIsPutInForceWithIt) {
  AddVersion("m", "1");
  int prepared = 0, in_force = 0;
  Status refusal;
  options_.prepare =
      [&](const ModelServerConfig&) -> StatusOr<std::function<void()>> {
    HR_RETURN_IF_ERROR(refusal);
    const int id = ++prepared;
    return std::function<void()>([&in_force, id] { in_force = id; });
  };
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  EXPECT_EQ(in_force, 1);
  // Wrong by itself: nothing is prepared. Wrong by its labels: not put in
  // force.
  EXPECT_TRUE(absl::IsInvalidArgument(Reload("config { name: 'm' }")));
  EXPECT_EQ(prepared, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      Reload(ModelText("m", "version_labels { key: 'l' value: 9 }"))));
  EXPECT_EQ(in_force, 1);
  refusal = InvalidArgument("no such log");
  EXPECT_EQ(Reload(ModelText("m") + ModelText("other")), refusal);
  EXPECT_EQ(manager_->Config().model_config_list().config_size(), 1);
  refusal = OkStatus();
  ASSERT_EQ(Reload(ModelText("m")), OkStatus());
  EXPECT_EQ(in_force, prepared);
}

TEST_F(ManagerTest, AnEmptyConfigIsNoError) {
  manager_ = std::make_unique<ModelManager>(options_);
  EXPECT_EQ(manager_->Start({}), OkStatus());
  EXPECT_TRUE(manager_->Ready());
  AddVersion("m", "1");
  EXPECT_EQ(Reload(ModelText("m")), OkStatus());
  EXPECT_EQ(Answers("name: 'm'"), 1);
}

TEST_F(ManagerTest, ReloadReplacesTheWholeList) {
  AddVersion("a", "1");
  AddVersion("b", "1");
  ASSERT_EQ(Start(ModelText("a")), OkStatus());
  ASSERT_EQ(Reload(ModelText("b")), OkStatus());
  EXPECT_EQ(Answers("name: 'b'"), 1);
  ASSERT_TRUE(Becomes("a", "1:END"));  // and its status is kept
  EXPECT_EQ(Answers("name: 'a'"), -5);
  EXPECT_EQ(manager_->Config().model_config_list().config(0).name(), "b");
  ASSERT_EQ(Reload(""), OkStatus());
  ASSERT_TRUE(Becomes("b", "1:END"));
}

TEST_F(ManagerTest, ReloadTellsWhichNewModelFailed) {
  AddVersion("a", "1");
  AddVersion("b", "1");
  Fail("b", 1);
  ASSERT_EQ(Start(ModelText("a")), OkStatus());
  EXPECT_EQ(Reload(ModelText("a") + ModelText("b")),
            Unknown("1 model(s) did not become available: {{name: b version: "
                    "1} due to error: DATA_LOSS: broken}"));
  EXPECT_EQ(Answers("name: 'a'"), 1);
  // It is no new one now: who reloads does not wait for it.
  EXPECT_EQ(Reload(ModelText("a") + ModelText("b")), OkStatus());
}

TEST_F(ManagerTest, ARefusedReloadChangesNothing) {
  AddVersion("a", "1");
  AddVersion("b", "1");
  ASSERT_EQ(Start(ModelText("a")), OkStatus());
  ASSERT_EQ(Reload(ModelText("a", "version_labels { key: 'x' value: 1 }")),
            OkStatus());
  const std::string before = manager_->Config().SerializeAsString();
  const struct {
    std::string models;
    absl::StatusCode code;
  } kRows[] = {
      {ModelText("b") + ModelText("b"), absl::StatusCode::kInvalidArgument},
      {ModelText("b") + "config { name: 'c' base_path: 'c' }",
       absl::StatusCode::kInvalidArgument},
      {ModelText("b") + ModelText("a", "version_labels { key: 'y' value: 2 }"),
       absl::StatusCode::kFailedPrecondition},
      {ModelText("b") +
           "config { name: 'c' base_path: 'gs://c' model_platform: "
           "'tensorflow' }",
       absl::StatusCode::kUnimplemented},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(Reload(row.models).code(), row.code) << row.models;
    EXPECT_EQ(manager_->Config().SerializeAsString(), before);
    EXPECT_EQ(Answers("name: 'a' version_label: 'x'"), 1);
    EXPECT_EQ(Answers("name: 'b'"), -5);
    EXPECT_EQ(Loads("b", 1), 0);
  }
  ModelServerConfig custom;
  custom.mutable_custom_model_config();
  for (const auto& config : {custom, ModelServerConfig()}) {
    EXPECT_EQ(manager_->Reload(config),
              InvalidArgument("ServerModelConfig type not supported by "
                              "HandleReloadConfigRequest. Only "
                              "ModelConfigList is currently supported"));
  }
}

TEST_F(ManagerTest, LabelsFollowTheConfig) {
  AddVersion("m", "1");
  AddVersion("m", "2");
  const std::string all = "model_version_policy { all {} } ";
  const std::string labels = all +
                             "version_labels { key: 'stable' value: 1 } "
                             "version_labels { key: 'canary' value: 2 }";
  // At the first start nothing is available.
  EXPECT_EQ(Start(ModelText("m", labels)).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(Start(ModelText("m", all)), OkStatus());
  ASSERT_TRUE(Becomes("m", "2:AVAILABLE 1:AVAILABLE"));
  ASSERT_EQ(Reload(ModelText("m", labels)), OkStatus());
  EXPECT_EQ(Answers("name: 'm' version_label: 'stable'"), 1);
  EXPECT_EQ(Answers("name: 'm' version_label: 'canary'"), 2);
  ASSERT_EQ(Reload(ModelText("m", all)), OkStatus());
  EXPECT_EQ(Answers("name: 'm' version_label: 'stable'"), -3);

  options_.allow_version_labels_for_unavailable_models = true;
  ASSERT_EQ(Start(ModelText("m", all + "version_labels { key: 'next' value: 3 "
                                       "}")),
            OkStatus());
  EXPECT_EQ(manager_->Find(Spec("name: 'm' version_label: 'next'")).status(),
            NotFound("Servable not found for request: Specific(m, 3)"));
}

TEST_F(ManagerTest, StopUnloadsAllAndEndsWhatWaits) {
  AddVersion("m", "1");
  AddVersion("n", "1");
  ASSERT_EQ(Start(ModelText("m") + ModelText("n")), OkStatus());
  const auto held = manager_->Find(Spec("name: 'n'"));
  ASSERT_TRUE(held.ok());
  manager_->Stop();
  EXPECT_EQ(States("m"), "1:END");
  EXPECT_EQ(States("n"), "1:UNLOADING");
  EXPECT_EQ(Answers("name: 'm'"), -5);
  EXPECT_FALSE(manager_->Ready());
  EXPECT_EQ(Reload(ModelText("m")), Unavailable("server is shutting down"));
  manager_->Stop();
  manager_.reset();
  EXPECT_EQ((*held)->id().name, "n");  // its own thread frees it
}

TEST_F(ManagerTest, StopEndsAStart) {
  AddModel("m");
  options_.file_system_poll_wait_seconds = 3600;
  manager_ = std::make_unique<ModelManager>(options_);
  std::thread stops([&] {
    Eventually([&] { return LogLines("No versions of servable m") == 1; });
    manager_->Stop();
  });
  EXPECT_EQ(manager_->Start(ConfigFromText(ModelText("m"))),
            Unavailable("server is shutting down"));
  stops.join();
}

TEST_F(ManagerTest, AReloadEndsWithItsCaller) {
  AddVersion("a", "1");
  options_.file_system_poll_wait_seconds = 3600;
  ASSERT_EQ(Start(ModelText("a")), OkStatus());
  const Deadline deadline(50);
  EXPECT_EQ(Reload(ModelText("a") + ModelText("missing")).code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ManagerTest, AConfigFileIsReadTimeAndAgain) {
  AddVersion("a", "1");
  AddVersion("b", "1");
  options_.model_config_file = root_ + "/models.config";
  options_.model_config_file_poll_wait_seconds = 1;
  const auto write = [&](const std::string& text) {
    ASSERT_TRUE(
        WriteFileAtomically(files_, LocalOf(options_.model_config_file), text)
            .ok());
  };
  write("model_config_list { " + ModelText("a") + " }");
  ASSERT_EQ(Start(ModelText("a")), OkStatus());
  write("model_config_list { nonsense }");
  ASSERT_TRUE(
      Eventually([&] { return LogLines("Invalid protobuf file") > 0; }));
  EXPECT_EQ(Answers("name: 'a'"), 1);
  write("model_config_list { " + ModelText("b") + " }");
  ASSERT_TRUE(Eventually([&] { return Answers("name: 'b'") == 1; }));
  ASSERT_TRUE(Becomes("a", "1:END"));
}

}  // namespace
}  // namespace headrace::serving
