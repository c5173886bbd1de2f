// Loads on demand, and the memory that they may have.
#include "serving/manager/test_manager.h"

namespace headrace::serving {
namespace {

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

TEST_F(ManagerTest, AVersionThatIsTooBigDoesNotUnseatTheOneThatServes) {
  options_.max_model_bytes = 1000;
  AddVersion("m", "1", 1000);
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  AddVersion("m", "2", 1001);
  manager_->Poll();
  EXPECT_TRUE(Becomes(
      "m",
      "2:END(Insufficient resources to load servable {name: m version: 2}: its "
      "files have 1001 bytes, and may have 1000 (--max_model_bytes)) "
      "1:AVAILABLE"));
  EXPECT_EQ(Answers("name: 'm'"), 1);
  EXPECT_EQ(Loads("m", 2), 0);
}

TEST_F(ManagerTest, ManyRequestsShareRoomForTwoModels) {
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  std::string models;
  for (const auto& m : names) {
    AddVersion(m, "1", 1000);
    models += ModelText(m);
  }
  options_.lazy_load_models = true;
  options_.total_model_memory_limit_bytes = 2500;
  ASSERT_EQ(Start(models), OkStatus());
  std::atomic<int> failures{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      for (int k = 0; k < 25; ++k) {
        const std::string& m = names[(i + k * (i + 1)) % names.size()];
        const auto found = manager_->Find(Spec("name: '" + m + "'"));
        if (!found.ok() || (*found)->id().name != m) ++failures;
        if (manager_->MemoryInUse() > 2500) ++failures;
      }
    });
  }
  for (auto& t : callers) t.join();
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(manager_->Ready());
}

TEST_F(ManagerTest, WithoutLazinessWhatIsPutOutComesBackOnDemand) {
  for (const char* m : {"a", "b", "c"}) AddVersion(m, "1", 1000);
  options_.total_model_memory_limit_bytes = 2500;
  ASSERT_EQ(Start(ModelText("a") + ModelText("b") + ModelText("c")),
            OkStatus());
  EXPECT_TRUE(manager_->Ready());
  for (const char* m : {"a", "b", "c"}) {
    EXPECT_EQ(Answers(absl::StrCat("name: '", m, "'")), 1);
    EXPECT_EQ(Loads(m, 1) > 0, true);
  }
}

TEST_F(ManagerTest, VersionsOfOneModelMakeRoomForEachOther) {
  AddVersion("m", "1", 1000);
  AddVersion("m", "2", 1000);
  options_.lazy_load_models = true;
  options_.total_model_memory_limit_bytes = 2000;
  ASSERT_EQ(Start(ModelText("m", "model_version_policy { all {} }")),
            OkStatus());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Answers("name: 'm' version { value: 1 }"), 1);
    EXPECT_EQ(Answers("name: 'm'"), 2);
  }
  EXPECT_EQ(Loads("m", 1), 2);
}

TEST_F(ManagerTest, ANewVersionDoesNotPutOutTheOneThatServes) {
  AddVersion("m", "1", 1000);
  options_.total_model_memory_limit_bytes = 2000;
  ASSERT_EQ(Start(ModelText("m")), OkStatus());
  AddVersion("m", "2", 1000);
  manager_->Poll();
  ASSERT_TRUE(Becomes("m",
                      "2:END(Insufficient resources to load servable {name: m "
                      "version: 2}: it takes about 1200 bytes, of 2000 that "
                      "all models may have) 1:AVAILABLE"));
  EXPECT_EQ(Answers("name: 'm'"), 1);
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(_GLIBCXX_TSAN)
// Megabytes.
double ResidentSize() {
  const auto text = ReadWholeFile(PosixFileSystem(), "/proc/self/status");
  const size_t line = text->find("VmRSS:");
  return std::stod(text->substr(line + 6)) / 1024;
}

TEST_F(ManagerTest, MemoryComesBackAfterAnUnload) {
  AddVersion("m", "1");
  // The model holds a large block, and many small ones.
  struct Weights {
    Tensor large = *Tensor::Allocate(DType::kFloat, Shape({12 << 20}));
    std::vector<std::string> small;
  };
  std::atomic<int> unloads{0};
  options_.on_unload = [&](const ServableId&) { ++unloads; };
  options_.servable_options =
      [](const ServableId&, const std::string&) -> StatusOr<ServableOptions> {
    auto weights = std::make_shared<Weights>();
    auto* data = static_cast<char*>(weights->large.raw());
    std::fill(data, data + (48 << 20), 'x');
    for (int i = 0; i < 400'000; ++i) weights->small.emplace_back(50, 'x');
    ServableOptions options;
    options.wrap = [weights](RunnerPtr runner, const Signature&,
                             absl::Span<const int>) { return runner; };
    return options;
  };
  options_.load = [](const ServableId& id, const std::string&,
                     const ServableOptions& options) {
    return Servable::Load(id, kGoldenModel, options);
  };
  ASSERT_EQ(Start(""), OkStatus());
  const double before = ResidentSize();
  ASSERT_EQ(Reload(ModelText("m")), OkStatus());
  EXPECT_GT(ResidentSize(), before + 64);
  ASSERT_EQ(Reload(""), OkStatus());
  ASSERT_TRUE(Eventually([&] { return unloads == 1; }));
  EXPECT_LT(ResidentSize(), before + std::max(8.0, before / 20));
}
#endif

}  // namespace
}  // namespace headrace::serving
