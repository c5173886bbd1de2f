#include "serving/manager/model_manager.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <thread>

#include "base/files/files.h"
#include "serving/manager/config.h"

namespace headrace::serving {
namespace {

constexpr char kGoldenModel[] = HR_GOLDEN_DIR "/saved_models/plain";

// Waits as long as a very slow machine may need.
bool Eventually(const std::function<bool()>& is_so) {
  for (int i = 0; i < 12'000; ++i) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// Folders of versions in memory, and a load that can fail and wait. What it
// loads is one small model, whatever lies in the folder.
class ManagerTest : public ::testing::Test {
 protected:
  ManagerTest() {
    static std::atomic<int> count{0};
    root_ = absl::StrCat("ram://manager_test/", count++);
    std::string local;
    files_ = *FileSystemFor("ram://x", &local);
    options_.file_system_poll_wait_seconds = -1;  // Poll by hand
    options_.load_retry_interval_micros = -1;
    options_.max_num_load_retries = 0;
    options_.log = [this](Severity, const std::string& text) {
      MutexLock lock(mutex_);
      log_.push_back(text);
    };
    options_.load = [this](const ServableId& id, const std::string& folder,
                           const ServableOptions& options) {
      return Load(id, folder, options);
    };
  }
  ~ManagerTest() override {
    {
      MutexLock lock(mutex_);
      for (auto& [id, wait] : waits_) wait = false;
    }
    manager_.reset();
  }

  std::string Base(const std::string& model) { return root_ + "/" + model; }
  void AddModel(const std::string& model) {
    ASSERT_TRUE(CreateDirectories(files_, LocalOf(Base(model))).ok());
  }
  void AddVersion(const std::string& model, const std::string& version,
                  size_t bytes = 0) {
    const std::string folder = LocalOf(Base(model) + "/" + version);
    ASSERT_TRUE(CreateDirectories(files_, folder).ok());
    if (bytes == 0) return;
    ASSERT_TRUE(WriteFileAtomically(files_, folder + "/weights",
                                    std::string(bytes, 'x'))
                    .ok());
  }
  void RemoveVersion(const std::string& model, const std::string& version) {
    ASSERT_TRUE(
        DeleteRecursively(files_, LocalOf(Base(model) + "/" + version)).ok());
  }
  static std::string LocalOf(const std::string& path) {
    std::string local;
    EXPECT_TRUE(FileSystemFor(path, &local).ok());
    return local;
  }

  std::string ModelText(const std::string& model,
                        const std::string& rest = "") {
    return absl::StrCat("config { name: '", model, "' base_path: '",
                        Base(model), "' model_platform: 'tensorflow' ", rest,
                        " }");
  }
  static ModelServerConfig ConfigFromText(const std::string& models) {
    auto config =
        ParseModelServerConfig("model_config_list { " + models + " }", "test");
    EXPECT_TRUE(config.ok()) << config.status();
    return *config;
  }
  Status Start(const std::string& models) {
    manager_ = std::make_unique<ModelManager>(options_);
    return manager_->Start(ConfigFromText(models));
  }
  Status Reload(const std::string& models) {
    return manager_->Reload(ConfigFromText(models));
  }

  StatusOr<ServablePtr> Load(const ServableId& id, const std::string& folder,
                             const ServableOptions& options) {
    {
      MutexLock lock(mutex_);
      ++loads_[{id.name, id.version}];
      folders_[{id.name, id.version}] = folder;
      tags_ = options.tags;
    }
    const auto key = std::make_pair(id.name, id.version);
    while (true) {
      {
        MutexLock lock(mutex_);
        if (!waits_[key]) break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    {
      MutexLock lock(mutex_);
      int& left = fails_[key];
      if (left > 0) {
        --left;
        return DataLoss("broken");
      }
    }
    return Servable::Load(id, kGoldenModel, {});
  }
  void Fail(const std::string& model, int64_t version, int times = 1 << 30) {
    MutexLock lock(mutex_);
    fails_[{model, version}] = times;
  }
  void Wait(const std::string& model, int64_t version, bool wait = true) {
    MutexLock lock(mutex_);
    waits_[{model, version}] = wait;
  }
  int Loads(const std::string& model, int64_t version) {
    MutexLock lock(mutex_);
    return loads_[{model, version}];
  }
  int LogLines(const std::string& text) {
    MutexLock lock(mutex_);
    int count = 0;
    for (const auto& line : log_) count += line.find(text) != line.npos;
    return count;
  }

  static ModelSpec Spec(const std::string& text) {
    ModelSpec spec;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
    return spec;
  }
  // The version that answers; or the error's negative code.
  int64_t Answers(const std::string& spec) {
    const auto found = manager_->Find(Spec(spec));
    return found.ok() ? (*found)->id().version
                      : -static_cast<int64_t>(found.status().code());
  }
  // "2:AVAILABLE 1:END(broken)"
  std::string States(const std::string& model) {
    GetModelStatusResponse response;
    ModelSpec spec;
    spec.set_name(model);
    const Status s = manager_->StatusOf(spec, &response);
    if (!s.ok()) return std::string(s.message());
    std::string text;
    for (const auto& v : response.model_version_status()) {
      absl::StrAppend(&text, text.empty() ? "" : " ", v.version(), ":",
                      ModelVersionStatus::State_Name(v.state()));
      if (v.status().error_code() != tensorflow::error::OK) {
        absl::StrAppend(&text, "(", v.status().error_message(), ")");
      }
    }
    return text;
  }
  bool Becomes(const std::string& model, const std::string& states) {
    const bool became = Eventually([&] { return States(model) == states; });
    EXPECT_EQ(States(model), states);
    return became;
  }

  std::string root_;
  FileSystem* files_;
  ManagerOptions options_;
  std::unique_ptr<ModelManager> manager_;

  using Key = std::pair<std::string, int64_t>;
  Mutex mutex_;
  std::map<Key, int> loads_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, std::string> folders_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, int> fails_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, bool> waits_ ABSL_GUARDED_BY(mutex_);
  Tags tags_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> log_ ABSL_GUARDED_BY(mutex_);
};

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
           "config { name: 'c' base_path: 's3://c' model_platform: "
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

TEST_F(ManagerTest, LazyModelsAreLoadedByTheirFirstRequest) {
  AddVersion("m", "1");
  AddVersion("n", "1");
  options_.lazy_load_models = true;
  ASSERT_EQ(Start(ModelText("m") + ModelText("n")), OkStatus());
  EXPECT_TRUE(manager_->Ready());
  EXPECT_EQ(States("m"), "1:START");
  EXPECT_EQ(Loads("m", 1), 0);
  EXPECT_TRUE(manager_->FindWaits(Spec("name: 'm'")));
  EXPECT_EQ(Answers("name: 'm'"), 1);
  EXPECT_FALSE(manager_->FindWaits(Spec("name: 'm'")));
  EXPECT_EQ(States("m"), "1:AVAILABLE");
  EXPECT_EQ(States("n"), "1:START");
  // One in use is replaced; one that is not stays out.
  AddVersion("m", "2");
  AddVersion("n", "2");
  manager_->Poll();
  EXPECT_TRUE(Becomes("m", "2:AVAILABLE 1:END"));
  EXPECT_EQ(States("n"), "2:START 1:END");
  EXPECT_EQ(Answers("name: 'n' version { value: 1 }"), -5);
  EXPECT_EQ(Answers("name: 'n' version { value: 2 }"), 2);
  EXPECT_EQ(Loads("n", 1), 0);
}

TEST_F(ManagerTest, ARequestWaitsForALazyModelUpToItsDeadline) {
  AddVersion("m", "1");
  Wait("m", 1);
  options_.lazy_load_models = true;
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  {
    const Deadline deadline(30);
    EXPECT_EQ(Answers("name: 'm'"),
              -static_cast<int64_t>(absl::StatusCode::kDeadlineExceeded));
  }
  EXPECT_TRUE(manager_->Ready());
  EXPECT_EQ(States("m"), "1:LOADING");
  Wait("m", 1, false);
  EXPECT_EQ(Answers("name: 'm'"), 1);
  EXPECT_EQ(Loads("m", 1), 1);
}

TEST_F(ManagerTest, ALazyModelThatFailsTellsWhy) {
  AddVersion("m", "1");
  Fail("m", 1);
  options_.lazy_load_models = true;
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  EXPECT_EQ(manager_->Find(Spec("name: 'm'")).status(), DataLoss("broken"));
  EXPECT_TRUE(Becomes("m", "1:END(broken)"));
}

TEST_F(ManagerTest, TheLeastRecentlyUsedMakeRoom) {
  for (const char* m : {"a", "b", "c", "pinned"}) AddVersion(m, "1", 1000);
  options_.lazy_load_models = true;
  options_.total_model_memory_limit_bytes = 3700;  // three
  options_.pinned_models = {"pinned"};
  ASSERT_EQ(Start(ModelText("a") + ModelText("b") + ModelText("c") +
                  ModelText("pinned")),
            OkStatus());
  const auto use = [&](const std::string& m) {
    EXPECT_EQ(Answers("name: '" + m + "'"), 1) << m;
    // So that the times differ.
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  };
  for (const char* m : {"pinned", "a", "b", "a", "c"}) use(m);
  EXPECT_TRUE(Becomes("b", "1:START"));
  EXPECT_EQ(States("a"), "1:AVAILABLE");
  EXPECT_LE(manager_->MemoryInUse(), 3700u);
  use("b");
  EXPECT_TRUE(Becomes("a", "1:START"));
  EXPECT_EQ(States("pinned"), "1:AVAILABLE");
  EXPECT_EQ(Loads("pinned", 1), 1);
  EXPECT_TRUE(manager_->Ready());
}

TEST_F(ManagerTest, WhatNeverFitsIsRefusedWithBothFigures) {
  AddVersion("big", "1", 5000);
  AddVersion("small", "1", 100);
  options_.total_model_memory_limit_bytes = 3000;
  options_.lazy_load_models = true;
  const std::string both = ModelText("big") + ModelText("small");
  const Status wanted = ResourceExhausted(
      "Insufficient resources to load servable {name: big version: 1}: it "
      "takes about 6000 bytes, of 3000 that all models may have");
  ASSERT_EQ(Start(both), OkStatus());
  EXPECT_EQ(Answers("name: 'small'"), 1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(manager_->Find(Spec("name: 'big'")).status(), wanted);
  }
  EXPECT_EQ(States("small"), "1:AVAILABLE");
  options_.lazy_load_models = false;
  options_.max_num_load_retries = 5;
  options_.load_retry_interval_micros = 3600'000'000;
  EXPECT_NE(Start(both).message().find(wanted.message()), std::string::npos);
}

}  // namespace
}  // namespace headrace::serving
