#include "serving/manager/board.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace headrace::serving {
namespace {

using tensorflow::serving::ModelServerConfig;

// A board of one model, m, whose loads end as the test says.
class TestBoard {
 public:
  explicit TestBoard(bool lazy = false) : board(lazy) {
    Configure("latest {}");
  }

  void Configure(const std::string& policy) {
    ModelServerConfig config;
    auto* model = config.mutable_model_config_list()->add_config();
    model->set_name("m");
    model->set_base_path("/m");
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        policy, model->mutable_model_version_policy()));
    board.SetModels(config);
  }
  // These versions are there now; gives the loads that begin.
  std::vector<int64_t> There(const std::set<int64_t>& versions) {
    std::map<int64_t, std::string> there;
    for (const int64_t v : versions) there[v] = absl::StrCat("/m/", v);
    board.SetListing("m", there, {});
    return Steps();
  }
  std::vector<int64_t> Steps() {
    std::deque<LoadJob> loads;
    std::vector<ServablePtr> garbage;
    board.Advance(&loads, &garbage);
    std::vector<int64_t> versions;
    for (const LoadJob& job : loads) {
      versions.push_back(job.id.version);
      jobs[job.id.version] = job;
    }
    return versions;
  }
  void Begin(int64_t version) { board.Begin(*board.Loading(jobs[version])); }
  std::vector<int64_t> Load(int64_t version) {
    Begin(version);
    board.Succeed(*board.Loading(jobs[version]), nullptr);
    return Steps();
  }
  bool Fail(int64_t version, int retries) {
    return board.Fail(*board.Loading(jobs[version]), DataLoss("bad"), retries);
  }
  std::string States() {
    GetModelStatusResponse response;
    ModelSpec spec;
    spec.set_name("m");
    if (!board.StatusOf(spec, &response).ok()) return "none";
    std::string text;
    for (const auto& v : response.model_version_status()) {
      absl::StrAppend(&text, text.empty() ? "" : " ", v.version(), ":",
                      ModelVersionStatus::State_Name(v.state()),
                      v.status().error_message().empty() ? "" : "!");
    }
    return text;
  }

  Board board;
  std::map<int64_t, LoadJob> jobs;
};
using Numbers = std::vector<int64_t>;

TEST(ModelBoard, AVersionGoesThroughItsStates) {
  TestBoard b;
  EXPECT_EQ(b.States(), "none");
  EXPECT_EQ(b.There({1}), Numbers{1});
  EXPECT_EQ(b.States(), "1:START");
  b.Begin(1);
  EXPECT_EQ(b.States(), "1:LOADING");
  b.board.Succeed(*b.board.Loading(b.jobs[1]), nullptr);
  EXPECT_EQ(b.States(), "1:LOADING");  // until requests find it
  EXPECT_EQ(b.Steps(), Numbers{});
  EXPECT_EQ(b.States(), "1:AVAILABLE");
  EXPECT_EQ(b.There({}), Numbers{});
  EXPECT_EQ(b.States(), "1:UNLOADING");
  b.board.Unloaded({"m", 1});
  EXPECT_EQ(b.States(), "1:END");
}

TEST(ModelBoard, AWishThatReturnsWhileItUnloadsIsMetAfterwards) {
  TestBoard b;
  b.There({1});
  b.Load(1);
  b.There({});
  EXPECT_EQ(b.There({1}), Numbers{});
  EXPECT_EQ(b.States(), "1:UNLOADING");
  b.board.Unloaded({"m", 1});
  EXPECT_EQ(b.States(), "1:START");
  EXPECT_EQ(b.Steps(), Numbers{1});
}

TEST(ModelBoard, AWishThatGoesBeforeALoadBeginsDropsIt) {
  TestBoard b;
  b.There({1});
  EXPECT_EQ(b.There({2}), Numbers{2});
  EXPECT_EQ(b.States(), "2:START 1:END");
  EXPECT_EQ(b.board.Loading(b.jobs[1]), nullptr);
  // A load that begins anew has another ticket.
  const LoadJob old = b.jobs[1];
  EXPECT_EQ(b.There({1}), Numbers{1});
  EXPECT_EQ(b.board.Loading(old), nullptr);
  EXPECT_NE(b.board.Loading(b.jobs[1]), nullptr);
}

TEST(ModelBoard, AWishThatGoesDuringALoadLetsItEnd) {
  TestBoard b;
  b.There({1});
  b.Begin(1);
  EXPECT_EQ(b.There({2}), Numbers{2});
  EXPECT_EQ(b.States(), "2:START 1:LOADING");
  b.board.Succeed(*b.board.Loading(b.jobs[1]), nullptr);
  b.Steps();
  EXPECT_EQ(b.States(), "2:START 1:AVAILABLE");  // better than nothing
  b.Load(2);
  EXPECT_EQ(b.States(), "2:AVAILABLE 1:UNLOADING");
}

TEST(ModelBoard, TriesEndWithTheWish) {
  TestBoard b;
  b.There({1});
  b.Begin(1);
  EXPECT_TRUE(b.Fail(1, 2));
  EXPECT_EQ(b.States(), "1:LOADING");
  b.Begin(1);
  EXPECT_TRUE(b.Fail(1, 2));
  b.Begin(1);
  EXPECT_FALSE(b.Fail(1, 2));
  EXPECT_EQ(b.States(), "1:END!");
  EXPECT_EQ(b.There({1}), Numbers{});
  // Between two tries.
  EXPECT_EQ(b.There({2}), Numbers{2});
  b.Begin(2);
  EXPECT_TRUE(b.Fail(2, 2));
  EXPECT_EQ(b.There({3}), Numbers{3});
  EXPECT_EQ(b.States(), "3:START 2:END! 1:END!");
  // During one.
  b.Begin(3);
  b.There({4});
  EXPECT_FALSE(b.Fail(3, 2));
  EXPECT_EQ(b.States(), "4:START 3:END! 2:END! 1:END!");
}

TEST(ModelBoard, AConfigTriesFailedVersionsAgain) {
  TestBoard b;
  b.There({1});
  b.Begin(1);
  b.Fail(1, 0);
  EXPECT_EQ(b.Steps(), Numbers{});
  b.Configure("latest {}");
  EXPECT_EQ(b.Steps(), Numbers{1});
  EXPECT_EQ(b.States(), "1:START");
}

TEST(ModelBoard, AllVersionsAreLoadedTheHighestFirst) {
  TestBoard b;
  b.Configure("all {}");
  EXPECT_EQ(b.There({1, 2, 10}), (Numbers{10, 2, 1}));
}

TEST(ModelBoard, WarningsAreSaidOnce) {
  TestBoard b;
  b.Configure("specific { versions: 7 }");
  const std::map<int64_t, std::string> there = {{1, "/m/1"}};
  EXPECT_EQ(b.board.SetListing("m", there, {}).warnings.size(), 1u);
  EXPECT_EQ(b.board.SetListing("m", there, {}).warnings.size(), 0u);
  EXPECT_EQ(b.board.SetListing("m", NotFound("x"), {}).warnings.size(), 1u);
  EXPECT_EQ(b.board.SetListing("m", there, {}).warnings.size(), 1u);
}

TEST(ModelBoard, ALoadedVersionKeepsItsFolder) {
  TestBoard b;
  b.There({1});
  b.Load(1);
  const std::map<int64_t, std::string> there = {{1, "/elsewhere/1"}};
  const auto looked = b.board.SetListing("m", there, {});
  EXPECT_FALSE(looked.changed);
  ASSERT_EQ(looked.warnings.size(), 1u);
  EXPECT_EQ(looked.warnings[0],
            "Version 1 of servable m stays the one of /m/1; that of "
            "/elsewhere/1 is not loaded");
}

TEST(ModelBoard, SettlesWhenItServesOrAllFailed) {
  const auto kind = [](const TestBoard& b, bool looks, bool tries) {
    return b.board.SettledOf("m", looks, tries).kind;
  };
  TestBoard b;
  EXPECT_EQ(kind(b, true, true), Settled::kNotYet);
  EXPECT_EQ(kind(b, false, true), Settled::kNotYet);  // not looked at
  b.There({});
  EXPECT_EQ(kind(b, true, true), Settled::kNotYet);
  EXPECT_EQ(kind(b, false, true), Settled::kFailed);
  b.Configure("all {}");
  b.There({1, 2});
  EXPECT_EQ(kind(b, false, false), Settled::kNotYet);
  b.Begin(2);
  b.Fail(2, 1);
  b.Begin(1);
  b.Fail(1, 0);
  EXPECT_EQ(kind(b, true, true), Settled::kNotYet);
  EXPECT_EQ(kind(b, true, false), Settled::kFailed);
  b.Begin(2);
  b.Fail(2, 1);
  EXPECT_EQ(b.board.SettledOf("m", true, true).error,
            "{name: m version: 2} due to error: DATA_LOSS: bad");
  EXPECT_FALSE(b.board.Ready());
  b.There({1, 2, 3});
  b.Load(3);
  EXPECT_EQ(kind(b, true, true), Settled::kServes);
  EXPECT_TRUE(b.board.Ready());
  EXPECT_EQ(b.board.SettledOf("unknown", true, true).kind, Settled::kServes);
}

TEST(ModelBoard, OnDemandTheLatestIsTheHighestThatIsWanted) {
  TestBoard b(true);
  b.Configure("all {}");
  EXPECT_EQ(b.There({1, 2}), Numbers{});
  EXPECT_TRUE(b.board.Ready());
  EXPECT_TRUE(b.board.Available("m", 2));
  EXPECT_TRUE(b.board.Ask({"m", 1}));
  EXPECT_EQ(b.Steps(), Numbers{1});
  EXPECT_TRUE(b.board.Ready());
  b.Load(1);
  const auto table = b.board.Table(false);
  EXPECT_EQ(table->at("m").versions.size(), 1u);
  EXPECT_TRUE(table->at("m").latest_on_demand);
  EXPECT_FALSE(b.board.Ask({"m", 3}));
  EXPECT_FALSE(b.board.Ask({"x", 1}));
}

TEST(ModelBoard, WhatFindsNoRoomStaysOnDemand) {
  TestBoard b(true);
  b.There({1});
  b.board.Ask({"m", 1});
  EXPECT_EQ(b.Steps(), Numbers{1});
  b.Begin(1);
  b.board.Refuse(*b.board.Loading(b.jobs[1]), ResourceExhausted("full"));
  EXPECT_EQ(b.Steps(), Numbers{});
  EXPECT_EQ(b.States(), "1:START");
  EXPECT_TRUE(b.board.Ready());
  b.board.Ask({"m", 1});
  EXPECT_EQ(b.Steps(), Numbers{1});
}

TEST(ModelBoard, OldVersionsAreForgotten) {
  TestBoard b;
  const auto told = [&](int64_t version) {
    GetModelStatusResponse response;
    ModelSpec spec;
    spec.set_name("m");
    spec.mutable_version()->set_value(version);
    return b.board.StatusOf(spec, &response).ok();
  };
  // The first one serves on, as none takes its place.
  constexpr int64_t kMost = kMostPastVersions;
  for (int64_t v = 1; v <= kMost + 5; ++v) {
    b.There({v});
    b.Begin(v);
    if (v == 1) b.board.Succeed(*b.board.Loading(b.jobs[v]), nullptr);
    if (v > 1) b.Fail(v, 0);
    b.Steps();
  }
  EXPECT_TRUE(told(1));
  EXPECT_FALSE(told(2));
  EXPECT_FALSE(told(4));
  EXPECT_TRUE(told(5));
  EXPECT_TRUE(told(kMost + 5));
  EXPECT_EQ(b.board.models().at("m").versions.size(), kMostPastVersions + 2);
  b.There({2});  // seen anew
  b.Load(2);
  EXPECT_TRUE(told(1));  // until its memory is freed
  b.board.Unloaded({"m", 1});
  b.Steps();
  EXPECT_FALSE(told(1));
  EXPECT_TRUE(b.board.Available("m", 2));
}

TEST(ModelBoard, TheEndLeavesNothing) {
  TestBoard b;
  b.Configure("all {}");
  b.There({1, 2, 3});
  b.Begin(3);
  b.Begin(2);
  b.Fail(2, 5);
  std::vector<ServablePtr> garbage;
  b.board.End(&garbage);
  EXPECT_EQ(b.States(), "3:END 2:END! 1:END");
  EXPECT_EQ(b.board.Loading(b.jobs[3]), nullptr);
  EXPECT_EQ(b.Steps(), Numbers{});
}

}  // namespace
}  // namespace headrace::serving
