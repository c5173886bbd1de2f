#include "serving/manager/model_manager.h"

#include "serving/manager/test_manager.h"

namespace headrace::serving {
namespace {

TEST_F(ManagerTest, StartServesTheLatestVersion) {
  AddVersion("m", "1");
  AddVersion("m", "00000123");
  options_.saved_model_tags = {"serve", "gpu"};
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  EXPECT_TRUE(manager_->Ready());
  EXPECT_EQ(Answers("name: 'm'"), 123);
  EXPECT_EQ(Answers("name: 'm' version { value: 123 }"), 123);
  EXPECT_EQ(States("m"), "123:AVAILABLE");
  EXPECT_EQ(manager_->Config().model_config_list().config(0).name(), "m");
  MutexLock lock(mutex_);
  EXPECT_EQ((folders_[{"m", 123}]), Base("m") + "/00000123");
  EXPECT_EQ(tags_, (Tags{"serve", "gpu"}));
}

TEST_F(ManagerTest, FindErrorsAreTheStockOnes) {
  AddVersion("m", "1");
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  const struct {
    const char* spec;
    Status status;
  } kRows[] = {
      {"", InvalidArgument("ModelSpec has no name specified.")},
      {"name: 'x'", NotFound("Servable not found for request: Latest(x)")},
      {"name: 'x' version { value: 2 }",
       NotFound("Servable not found for request: Specific(x, 2)")},
      {"name: 'm' version { value: 2 }",
       NotFound("Servable not found for request: Specific(m, 2)")},
      {"name: 'm' version { value: -1 }",
       NotFound("Servable not found for request: Specific(m, -1)")},
      {"name: 'm' version_label: 'a'",
       InvalidArgument("Unrecognized servable version label: a")},
      {"name: 'm' version_label: ''",
       InvalidArgument("Unrecognized servable version label: ")},
      {"name: 'x' version_label: 'a'",
       InvalidArgument("Unrecognized servable version label: a")},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(manager_->Find(Spec(row.spec)).status(), row.status) << row.spec;
  }
  GetModelStatusResponse response;
  EXPECT_EQ(
      manager_->StatusOf(Spec("name: 'm' version { value: 7 }"), &response),
      NotFound("Could not find version 7 of model m"));
  EXPECT_EQ(manager_->StatusOf(Spec("name: 'x'"), &response),
            NotFound("Could not find any versions of model x"));
  // Labels are not looked at.
  EXPECT_EQ(
      manager_->StatusOf(Spec("name: 'm' version_label: 'no'"), &response),
      OkStatus());
  EXPECT_EQ(response.model_version_status_size(), 1);
}

TEST_F(ManagerTest, PoliciesChooseVersions) {
  for (const char* v : {"1", "2", "3"}) AddVersion("m", v);
  ASSERT_EQ(Start(ModelText("m", "model_version_policy { all {} }")),
            OkStatus());
  ASSERT_TRUE(Becomes("m", "3:AVAILABLE 2:AVAILABLE 1:AVAILABLE"));
  ASSERT_EQ(Reload(ModelText(
                "m", "model_version_policy { specific { versions: 2 } }")),
            OkStatus());
  ASSERT_TRUE(Becomes("m", "3:END 2:AVAILABLE 1:END"));
  EXPECT_EQ(Answers("name: 'm'"), 2);
  ASSERT_EQ(Reload(ModelText("m",
                             "model_version_policy { latest { "
                             "num_versions: 2 } }")),
            OkStatus());
  ASSERT_TRUE(Becomes("m", "3:AVAILABLE 2:AVAILABLE 1:END"));
}

TEST_F(ManagerTest, ANewVersionTakesOverWhenItIsLoaded) {
  AddVersion("m", "1");
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  Wait("m", 2);
  AddVersion("m", "2");
  manager_->Poll();
  ASSERT_TRUE(Becomes("m", "2:LOADING 1:AVAILABLE"));
  EXPECT_EQ(Answers("name: 'm'"), 1);
  Wait("m", 2, false);
  ASSERT_TRUE(Becomes("m", "2:AVAILABLE 1:END"));
  EXPECT_EQ(Answers("name: 'm'"), 2);
  // And back, where the new one goes.
  RemoveVersion("m", "2");
  manager_->Poll();
  ASSERT_TRUE(Becomes("m", "2:END 1:AVAILABLE"));
  EXPECT_EQ(Loads("m", 1), 2);
}

TEST_F(ManagerTest, AMissingBasePathChangesNothingAnEmptyOneUnloads) {
  AddVersion("m", "1");
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  const std::string folder = LocalOf(Base("m"));
  ASSERT_TRUE(DeleteRecursively(files_, folder).ok());
  manager_->Poll();
  manager_->Poll();
  EXPECT_EQ(States("m"), "1:AVAILABLE");
  EXPECT_EQ(LogLines("Could not find base path"), 1);  // said once
  AddModel("m");
  manager_->Poll();
  ASSERT_TRUE(Becomes("m", "1:END"));
  EXPECT_EQ(LogLines("No versions of servable m found"), 1);
  EXPECT_FALSE(manager_->Ready());
  EXPECT_EQ(Answers("name: 'm'"), -5);
}

TEST_F(ManagerTest, ABrokenVersionNeverUnseatsTheGoodOne) {
  AddVersion("m", "1");
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  Fail("m", 2);
  AddVersion("m", "2");
  manager_->Poll();
  ASSERT_TRUE(Becomes("m", "2:END(broken) 1:AVAILABLE"));
  EXPECT_EQ(Answers("name: 'm'"), 1);
  // Not tried again while it is wanted.
  manager_->Poll();
  EXPECT_EQ(Loads("m", 2), 1);
  // The wish goes away and returns.
  RemoveVersion("m", "2");
  manager_->Poll();
  EXPECT_EQ(States("m"), "2:END(broken) 1:AVAILABLE");
  AddVersion("m", "2");
  manager_->Poll();
  ASSERT_TRUE(Eventually([&] { return Loads("m", 2) == 2; }));
  ASSERT_TRUE(Becomes("m", "2:END(broken) 1:AVAILABLE"));
  // A config equal to the present one tries again, too.
  Fail("m", 2, 0);
  ASSERT_EQ(Reload(ModelText("m")), OkStatus());
  ASSERT_TRUE(Becomes("m", "2:AVAILABLE 1:END"));
}

TEST_F(ManagerTest, LoadsAreTriedAgain) {
  AddVersion("m", "1");
  options_.max_num_load_retries = 3;
  options_.load_retry_interval_micros = 1000;
  Fail("m", 1, 3);
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  EXPECT_EQ(Loads("m", 1), 4);
  Fail("m", 2, 4);
  AddVersion("m", "2");
  manager_->Poll();
  ASSERT_TRUE(Becomes("m", "2:END(broken) 1:AVAILABLE"));
  EXPECT_EQ(Loads("m", 2), 4);
}

TEST_F(ManagerTest, RetriesOfOneModelDoNotHoldUpAnother) {
  AddVersion("good", "1");
  AddVersion("bad", "1");
  ASSERT_EQ(Start(ModelText("good") + ModelText("bad")), OkStatus());
  manager_.reset();
  options_.max_num_load_retries = 5;
  options_.load_retry_interval_micros = 3600'000'000;
  ASSERT_EQ(Start(ModelText("good") + ModelText("bad")), OkStatus());
  Fail("bad", 2);
  AddVersion("bad", "2");
  manager_->Poll();
  ASSERT_TRUE(Eventually([&] { return LogLines("it is tried again") == 1; }));
  AddVersion("good", "2");
  manager_->Poll();
  ASSERT_TRUE(Becomes("good", "2:AVAILABLE 1:END"));
  EXPECT_EQ(States("bad"), "2:LOADING 1:AVAILABLE");
  // Where it is not wanted any more, there is nothing to wait for.
  RemoveVersion("bad", "2");
  manager_->Poll();
  EXPECT_EQ(States("bad"), "2:END(broken) 1:AVAILABLE");
}

TEST_F(ManagerTest, RequestsThatHoldAVersionFinishOnIt) {
  AddVersion("m", "1");
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  auto held = manager_->Find(Spec("name: 'm'"));
  ASSERT_TRUE(held.ok());
  AddVersion("m", "2");
  manager_->Poll();
  ASSERT_TRUE(Becomes("m", "2:AVAILABLE 1:UNLOADING"));
  EXPECT_EQ((*held)->id().version, 1);
  EXPECT_NE((*held)->signature(""), nullptr);
  EXPECT_EQ(Answers("name: 'm' version { value: 1 }"), -5);
  *held = nullptr;
  ASSERT_TRUE(Becomes("m", "2:AVAILABLE 1:END"));
}

TEST_F(ManagerTest, StatusKeepsAllVersionsNewestFirst) {
  AddVersion("m", "1");
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  for (int v = 2; v <= 4; ++v) {
    if (v == 3) Fail("m", 3);
    AddVersion("m", std::to_string(v));
    manager_->Poll();
    ASSERT_TRUE(Eventually([&] {
      return States("m").find(absl::StrCat(v, v == 3 ? ":END" : ":AVAIL")) !=
             std::string::npos;
    }));
  }
  EXPECT_TRUE(Becomes("m", "4:AVAILABLE 3:END(broken) 2:END 1:END"));
}

TEST_F(ManagerTest, AWarmUpThatFailsFailsTheLoad) {
  AddVersion("m", "1");
  std::atomic<int> warmed{0};
  options_.warm_up = [&](const ServablePtr& servable) {
    ++warmed;
    return servable->id().version == 1 ? OkStatus() : DataLoss("cold");
  };
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  AddVersion("m", "2");
  manager_->Poll();
  EXPECT_TRUE(Becomes("m", "2:END(cold) 1:AVAILABLE"));
  EXPECT_EQ(warmed, 2);
}

TEST_F(ManagerTest, OptionsAreOfModelVersionAndFolder) {
  AddVersion("m", "1");
  options_.servable_options =
      [](const ServableId& id,
         const std::string& folder) -> StatusOr<ServableOptions> {
    return Internal("options of ", id.name, " ", id.version, " ", folder);
  };
  EXPECT_NE(Start(ModelText("m"))
                .message()
                .find("options of m 1 " + Base("m") + "/1"),
            std::string::npos);
}

TEST_F(ManagerTest, EventsTellOfLoadsAndUnloads) {
  AddVersion("m", "1", 1000);
  std::vector<LoadEvent> loads;
  std::atomic<int> unloads{0};
  options_.max_num_load_retries = 1;
  options_.on_load = [&](const LoadEvent& e) { loads.push_back(e); };
  options_.on_unload = [&](const ServableId& id) {
    unloads += id.name == "m" && id.version == 1;
  };
  Fail("m", 1, 1);
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  EXPECT_EQ(manager_->MemoryInUse(), 1200u);
  ASSERT_EQ(Reload(""), OkStatus());
  ASSERT_TRUE(Eventually([&] { return unloads == 1; }));
  EXPECT_EQ(manager_->MemoryInUse(), 0u);
  manager_->Stop();
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_EQ(loads[0].status, DataLoss("broken"));
  EXPECT_EQ(loads[1].status, OkStatus());
  EXPECT_EQ(loads[1].tries, 2);
  EXPECT_EQ(loads[1].bytes, 1200u);
}

TEST_F(ManagerTest, NoRequestFailsWhileVersionsChange) {
  AddVersion("m", "1");
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  std::atomic<bool> done{false};
  std::atomic<int> failures{0}, requests{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      int64_t last = 0;
      while (!done) {
        // The machine is left to the loads, which come last, now and then.
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        const auto found = manager_->Find(Spec("name: 'm'"));
        ++requests;
        if (!found.ok() || (*found)->signature("") == nullptr ||
            (*found)->id().version < last) {
          ++failures;
        } else {
          last = (*found)->id().version;
        }
      }
    });
  }
  for (int v = 2; v <= 201; ++v) {
    AddVersion("m", std::to_string(v));
    RemoveVersion("m", std::to_string(v - 1));
    manager_->Poll();
    ASSERT_TRUE(Eventually([&] { return Answers("name: 'm'") == v; }));
  }
  done = true;
  for (auto& t : callers) t.join();
  EXPECT_EQ(failures, 0) << "of " << requests;
  EXPECT_TRUE(Eventually(
      [&] { return States("m").find("UNLOADING") == std::string::npos; }));
}

}  // namespace
}  // namespace headrace::serving
