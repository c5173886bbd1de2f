// Collectives by stand-ins for MPI libraries of both ABIs (tests/stand_ins):
// the members are tasks over a network within the process, and ranks of a
// world.
#include "distributed/mpi/mpi_engine.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/cancellation.h"
#include "distributed/collective/test_tasks.h"
#include "distributed/messages.h"
#include "gtest/gtest.h"

namespace headrace::distributed {
namespace {

using std::chrono::milliseconds;
using testing::Values;

constexpr char kStandIns[] = HR_STAND_INS "/";

std::string PathOf(const std::string& name) {
  return absl::StrCat(kStandIns, name, ".so");
}

// A job of a stand-in: its functions are called by their names.
class StandIn {
 public:
  explicit StandIn(const std::string& name) {
    auto loaded = LoadMpi({PathOf(name)});
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    library_ = *std::move(loaded);
    opened_ = dlopen(PathOf(name).c_str(), RTLD_NOW);
  }
  void Begin(int size, bool incomplete = false) {
    Of<void(int, int, bool)>("stand_in_job")(size, MpiLibrary::kMultiple,
                                             incomplete);
  }
  void Break() { Of<void()>("stand_in_breaks")(); }
  std::shared_ptr<MpiWorld> World() {
    auto made = MpiWorld::Make(library_, milliseconds(5000));
    EXPECT_TRUE(made.ok()) << made.status();
    return *made;
  }
  const std::shared_ptr<MpiLibrary>& library() { return library_; }

 private:
  template <typename F>
  F* Of(const char* name) {
    return reinterpret_cast<F*>(dlsym(opened_, name));
  }
  std::shared_ptr<MpiLibrary> library_;
  void* opened_ = nullptr;
};

class MpiTest : public testing::TestWithParam<const char*> {
 protected:
  // So many tasks; ranks of the world are the other way round. `as`: who a task
  // says that it is.
  void Start(int size, milliseconds begin = milliseconds(20'000),
             const std::function<int(int)>& as = {}) {
    stand_in_.Begin(size);
    tasks_ = std::make_unique<Tasks>(size);
    engines_.resize(size);
    for (int i = size - 1; i >= 0; --i) {
      worlds_.push_back(stand_in_.World());
      MpiCollectivesOptions options;
      options.task = DeviceName::OfTask("w", as ? as(i) : i);
      options.own = tasks_->engines[i];
      options.begin = options.part = begin;
      auto made = MpiCollectives::Make(worlds_.back(), std::move(options));
      ASSERT_TRUE(made.ok()) << made.status();
      engines_[i] = *std::move(made);
    }
  }
  template <typename F>
  std::vector<StatusOr<Tensor>> All(F call) {
    std::vector<StatusOr<Tensor>> results(engines_.size(), Internal("not run"));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < engines_.size(); ++i) {
      threads.emplace_back(
          [&, i] { results[i] = engines_[i]->Run(call(static_cast<int>(i))); });
    }
    for (std::thread& t : threads) t.join();
    return results;
  }

  StandIn stand_in_{GetParam()};
  std::unique_ptr<Tasks> tasks_;
  std::vector<std::shared_ptr<MpiWorld>> worlds_;  // by rank
  std::vector<std::shared_ptr<MpiCollectives>> engines_;
};

// Of odd values, whose sum depends on the order.
Tensor OddAt(int rank, const Shape& shape) {
  Tensor t = *Tensor::Allocate(DType::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = 0.1f * static_cast<float>((i * 7 + rank * 3) % 101) +
                         (i % 5 == rank ? 1e6f : 0.f);
  }
  return t;
}

void ExpectSameBits(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.dtype(), b.dtype());
  EXPECT_TRUE(std::equal(static_cast<const char*>(a.raw()),
                         static_cast<const char*>(a.raw()) + a.bytes(),
                         static_cast<const char*>(b.raw())));
}

void ExpectError(const Status& s, absl::StatusCode code,
                 const std::vector<std::string>& texts) {
  EXPECT_EQ(s.code(), code) << s;
  for (const std::string& text : texts) {
    EXPECT_NE(s.message().find(text), std::string::npos) << text << "\n" << s;
  }
}

CollectiveCall SumOf(int size, int64_t instance, const Shape& shape, int rank) {
  return CallOfKind(CollectiveKind::kReduce, size, instance,
                    OddAt(rank, shape));
}

// What goes at once, in streams and round a ring, twice each: the bits are
// those of the tasks' own way.
TEST_P(MpiTest, AllKindsAsTasksDo) {
  for (const int size : {2, 3, 4}) {
    Start(size);
    int64_t instance = 0;
    for (const int64_t columns : {0, 1, 40'001, 400'000}) {
      const Shape shape{size, columns};
      for (const CollectiveKind kind :
           {CollectiveKind::kReduce, CollectiveKind::kGather,
            CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
            CollectiveKind::kBroadcast}) {
        const auto call = [&](int i) {
          const bool brings = kind != CollectiveKind::kBroadcast || i == 1;
          return CallOfKind(
              kind, size, instance,
              brings ? OddAt(i, shape) : Tensor(DType::kFloat, shape));
        };
        const auto wanted = tasks_->All(call);
        const auto first = All(call);
        const auto second = All(call);
        ++instance;
        for (int i = 0; i < size; ++i) {
          ASSERT_TRUE(wanted[i].ok()) << wanted[i].status();
          ASSERT_TRUE(first[i].ok()) << first[i].status();
          ASSERT_TRUE(second[i].ok()) << second[i].status();
          ExpectSameBits(*first[i], *wanted[i]);
          ExpectSameBits(*second[i], *wanted[i]);
        }
      }
    }
    engines_.clear();
    worlds_.clear();
  }
}

// Several at once, from threads of their own, do not mix.
TEST_P(MpiTest, ManyAtOnce) {
  Start(2);
  constexpr int kCalls = 8, kTurns = 5;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    for (int k = 0; k < kCalls; ++k) {
      threads.emplace_back([this, rank, k] {
        for (int turn = 0; turn < kTurns; ++turn) {
          Tensor x = *Tensor::Allocate(DType::kInt64, Shape{k * 30'000 + 1});
          std::fill_n(x.data<int64_t>(), x.num_elements(), k * 10 + rank);
          const auto sum =
              engines_[rank]->Run(CallOfKind(CollectiveKind::kReduce, 2, k, x));
          ASSERT_TRUE(sum.ok()) << sum.status();
          for (int64_t i = 0; i < sum->num_elements(); ++i) {
            ASSERT_EQ(sum->data<int64_t>()[i], k * 20 + 1);
          }
        }
      });
    }
  }
  for (std::thread& t : threads) t.join();
}

// Of some of the tasks, which say their ranks, and of two members a task.
TEST_P(MpiTest, GroupsThatAreNotTheWorld) {
  Start(3);
  const auto of = [this](int task, GroupMember member, int64_t count) {
    CollectiveCall call = SumOf(static_cast<int>(member.group_size), 1,
                                Shape{count}, task + member.processor);
    call.member = member;
    return engines_[task]->Run(call);
  };
  for (const int64_t count : {3, 200'000}) {
    std::vector<StatusOr<Tensor>> some(2, Internal("not run"));
    std::vector<StatusOr<Tensor>> pairs(4, Internal("not run"));
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        some[i] = of(2 * i, {5, 2, /*rank=*/1 - i}, count);
      });
    }
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        pairs[i] = of(i / 2, {6, 4, -1, /*processor=*/i % 2}, count);
      });
    }
    for (std::thread& t : threads) t.join();
    const auto sum = [count](std::vector<int> of_ranks) {
      std::vector<Tensor> inputs;
      for (const int r : of_ranks) inputs.push_back(OddAt(r, Shape{count}));
      return (*CollectiveResults(SumOf(1, 1, Shape{count}, 0), inputs))[0];
    };
    const Tensor of_two = sum({2, 0}), of_four = sum({0, 1, 1, 2});
    for (const auto& [got, wanted] :
         {std::pair(&some, of_two), std::pair(&pairs, of_four)}) {
      for (const auto& result : *got) {
        ASSERT_TRUE(result.ok()) << result.status();
        ExpectSameBits(*result, *(*got)[0]);
        for (int64_t i = 0; i < count; ++i) {
          ASSERT_NEAR(result->data<float>()[i], wanted.data<float>()[i], 0.5);
        }
      }
    }
  }
}

TEST_P(MpiTest, MembersThatDoNotAgree) {
  Start(3);
  const auto results = All(
      [](int i) { return SumOf(3, 1, i == 1 ? Shape{90'000} : Shape{4}, i); });
  bool told = false;
  for (const auto& r : results) {
    ASSERT_FALSE(r.ok());
    EXPECT_TRUE(absl::IsInvalidArgument(r.status())) << r.status();
    told = told ||
           (r.status().message().find("rank 1 (/job:w/replica:0/task:1") !=
                std::string::npos &&
            r.status().message().find("do not agree") != std::string::npos);
  }
  EXPECT_TRUE(told) << results[0].status();
  // The group is over for all.
  EXPECT_FALSE(engines_[0]->Run(SumOf(3, 2, Shape{4}, 0)).ok());
}

TEST_P(MpiTest, ALateMemberIsNamed) {
  Start(2);
  // Both are in the group, and one does not come to the next call.
  for (const auto& r : All([](int i) { return SumOf(2, 1, Shape{4}, i); })) {
    ASSERT_TRUE(r.ok()) << r.status();
  }
  CollectiveCall call = SumOf(2, 7, Shape{3}, 0);
  call.member.timeout_seconds = 0.3;
  ExpectError(engines_[0]->Run(call).status(),
              absl::StatusCode::kDeadlineExceeded,
              {"rank 0 (/job:w/replica:0/task:0/device:CPU:0) waited ",
               " s for rank 1 (/job:w/replica:0/task:1/device:CPU:0)",
               "all-reduce of float[3], group 1, instance 7"});
  EXPECT_FALSE(engines_[1]->Run(SumOf(2, 8, Shape{3}, 1)).ok());
}

TEST_P(MpiTest, ADeadMemberEndsWhatWaitsForIt) {
  Start(2);
  for (const auto& r : All([](int i) { return SumOf(2, 1, Shape{4}, i); })) {
    ASSERT_TRUE(r.ok()) << r.status();
  }
  StatusOr<Tensor> result = Internal("not run");
  std::thread waits(
      [&] { result = engines_[0]->Run(SumOf(2, 2, Shape{500'000}, 0)); });
  tasks_->End(1);
  waits.join();
  EXPECT_TRUE(absl::IsUnavailable(result.status())) << result.status();
}

TEST_P(MpiTest, AStopEndsAWait) {
  Start(2);
  for (const auto& r : All([](int i) { return SumOf(2, 1, Shape{4}, i); })) {
    ASSERT_TRUE(r.ok()) << r.status();
  }
  CancellationToken token;
  std::thread stops([&] {
    std::this_thread::sleep_for(milliseconds(100));
    token.Cancel();
  });
  const StopScope scope(&token);
  const auto r = engines_[0]->Run(SumOf(2, 2, Shape{4}, 0));
  EXPECT_TRUE(absl::IsCancelled(r.status())) << r.status();
  stops.join();
}

TEST_P(MpiTest, OneTaskTwice) {
  Start(3, milliseconds(20'000), [](int i) { return i == 2 ? 1 : i; });
  for (const auto& r : All([](int i) { return SumOf(3, 1, Shape{4}, i); })) {
    EXPECT_TRUE(absl::IsInvalidArgument(r.status())) << r.status();
  }
  ExpectError(
      engines_[0]->Run(SumOf(3, 2, Shape{4}, 0)).status(),
      absl::StatusCode::kInvalidArgument,
      {"of MPI's world both say that they are /job:w/replica:0/task:1"});
}

TEST_P(MpiTest, NoSuchTask) {
  Start(2, milliseconds(20'000), [](int i) { return i == 1 ? 5 : i; });
  const auto results = All([](int i) { return SumOf(2, 1, Shape{4}, i); });
  ExpectError(results[0].status(), absl::StatusCode::kInvalidArgument,
              {"no process of MPI's world is /job:w/replica:0/task:1",
               "0 /job:w/replica:0/task:5, 1 /job:w/replica:0/task:0"});
}

TEST_P(MpiTest, TwoTasksOfOneProcess) {
  Start(2);
  MpiCollectivesOptions options;
  options.task = DeviceName::OfTask("w", 1);
  options.own = tasks_->engines[1];
  const auto second = [&] {
    return MpiCollectives::Make(worlds_[1], options).status();
  };
  ExpectError(second(), absl::StatusCode::kFailedPrecondition,
              {"another task of this process is rank 1 of MPI's world: "
               "/job:w/replica:0/task:1 needs a process of its own"});
  engines_[0] = nullptr;  // which was of that world
  EXPECT_TRUE(second().ok());
}

// Of a world in which a rank never says who it is.
TEST_P(MpiTest, AnUnknownRank) {
  stand_in_.Begin(3);
  tasks_ = std::make_unique<Tasks>(2);
  for (int i = 0; i < 2; ++i) {
    MpiCollectivesOptions options;
    options.task = DeviceName::OfTask("w", i == 0 ? 0 : 4);
    options.own = tasks_->engines[i];
    options.begin = milliseconds(300);
    engines_.push_back(
        *MpiCollectives::Make(stand_in_.World(), std::move(options)));
  }
  const auto results = All([](int i) { return SumOf(2, 1, Shape{4}, i); });
  ExpectError(results[0].status(), absl::StatusCode::kDeadlineExceeded,
              {"to say which rank of MPI's world it is", "rank 2",
               "rank 1 (/job:w/replica:0/task:1/device:CPU:0)"});
}

TEST_P(MpiTest, WhatIsNoMessage) {
  for (const bool long_one : {false, true}) {
    Start(2);
    const auto sent = worlds_[0]->Send(
        1, 0, Bytes(std::string(long_one ? 10 << 20 : 9, '\xff')));
    ASSERT_TRUE(sent.ok());
    // Rank 0 of the world is task 1.
    const auto results = All([](int i) { return SumOf(2, 1, Shape{4}, i); });
    ExpectError(results[0].status(), absl::StatusCode::kInvalidArgument,
                {"rank 0 of MPI's world sent", long_one ? "bytes" : "message"});
    // The other one may have had all that it waited for.
    EXPECT_FALSE(engines_[0]->Run(SumOf(2, 2, Shape{4}, 0)).ok());
    EXPECT_FALSE(engines_[1]->Run(SumOf(2, 2, Shape{4}, 1)).ok());
    engines_.clear();
    worlds_.clear();
  }
}

// A message that asks as another rank than it comes from.
TEST_P(MpiTest, AForgedAsk) {
  Start(3);
  for (const auto& r : All([](int i) { return SumOf(3, 1, Shape{4}, i); })) {
    ASSERT_TRUE(r.ok()) << r.status();
  }
  const GroupMembers members = *tasks_->engines[0]->MembersOf({1, 3});
  const CollectiveCall call = SumOf(3, 2, Shape{4}, 0);
  MpiMessage message;
  *message.mutable_ask() =
      HeaderOf(call, members.group, /*from=*/1, /*to=*/2, 0);
  message.set_tag(9);
  // Rank 2 of the world, which is task 0, to rank 0, which is task 2.
  ASSERT_TRUE(worlds_[2]->Send(0, 0, WriteMessage(message)).ok());
  ExpectError(engines_[2]->Run(SumOf(3, 2, Shape{4}, 2)).status(),
              absl::StatusCode::kInvalidArgument,
              {"rank 2 of MPI's world asks as rank 1"});
}

TEST_P(MpiTest, ACallOfMpiThatFails) {
  Start(2);
  for (const auto& r : All([](int i) { return SumOf(2, 1, Shape{4}, i); })) {
    ASSERT_TRUE(r.ok()) << r.status();
  }
  stand_in_.Break();
  ExpectError(engines_[0]->Run(SumOf(2, 2, Shape{4}, 0)).status(),
              absl::StatusCode::kUnavailable,
              {"MPI_Isend: stand-in's error 12"});
}

TEST_P(MpiTest, AWorldThatIsNotComplete) {
  stand_in_.Begin(2, /*incomplete=*/true);
  ExpectError(MpiWorld::Make(stand_in_.library(), milliseconds(100)).status(),
              absl::StatusCode::kDeadlineExceeded,
              {"not all processes of MPI's world"});
}

TEST_P(MpiTest, AllLeaveTogether) {
  stand_in_.Begin(2);
  const auto a = stand_in_.World(), b = stand_in_.World();
  ExpectError(a->Leave(milliseconds(100)), absl::StatusCode::kDeadlineExceeded,
              {"rank 0 of MPI's world waited 0.1 s for ranks 1 to end"});
  EXPECT_TRUE(b->Leave(milliseconds(5000)).ok());
  a->Close();
  EXPECT_TRUE(absl::IsUnavailable(a->Send(1, 0, {}).status()));
}

// As a program does that has begun it itself.
TEST_P(MpiTest, SomebodyEndsMpi) {
  Start(2);
  for (const auto& r : All([](int i) { return SumOf(2, 1, Shape{4}, i); })) {
    ASSERT_TRUE(r.ok()) << r.status();
  }
  ASSERT_TRUE(stand_in_.library()->End().ok());
  EXPECT_TRUE(stand_in_.library()->Ended());
  ExpectError(engines_[0]->Run(SumOf(2, 2, Shape{4}, 0)).status(),
              absl::StatusCode::kUnavailable,
              {"MPI has ended in this process"});
  stand_in_.Begin(2);  // for the tests behind
}

INSTANTIATE_TEST_SUITE_P(BothAbis, MpiTest,
                         Values("stand_in_open_mpi", "stand_in_mpich"),
                         [](const auto& of) {
                           return std::string(of.param).substr(9);
                         });

TEST(MpiLibrary, WhatCannotBeLoaded) {
  ExpectError(
      LoadMpi({"libno_such_mpi.so.1", "libz.so.1"}).status(),
      absl::StatusCode::kFailedPrecondition,
      {"no MPI library can be loaded (", "libno_such_mpi.so.1",
       "libz.so.1: it is neither of Open MPI's ABI", "HEADRACE_MPI_LIBRARY"});
}

// What the launchers that this test itself may run under have set.
class MpiEnvironment : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kNames) {
      if (const char* value = std::getenv(name)) kept_[name] = value;
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (const char* name : kNames) unsetenv(name);
    for (const auto& [name, value] : kept_) {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  static constexpr const char* kNames[] = {"OMPI_COMM_WORLD_SIZE",
                                           "PMIX_RANK",
                                           "PMI_SIZE",
                                           "PMI_RANK",
                                           "PMI_FD",
                                           "HYDI_CONTROL_FD",
                                           "HEADRACE_MPI_LIBRARY"};
  std::map<std::string, std::string> kept_;
};

TEST_F(MpiEnvironment, LaunchersSayWhichLibrary) {
  const auto before = [](const char* a, const char* b) {
    const std::vector<std::string> places = MpiPlaces();
    return std::find(places.begin(), places.end(), a) <
           std::find(places.begin(), places.end(), b);
  };
  std::string looked_for;
  EXPECT_EQ(MpiLauncher(&looked_for), "");
  EXPECT_NE(looked_for.find("OMPI_COMM_WORLD_SIZE, "), std::string::npos);
  setenv("PMI_SIZE", "2", 1);
  EXPECT_EQ(MpiLauncher(&looked_for), "PMI_SIZE");
  EXPECT_TRUE(before("libmpich.so.12", "libmpi.so.40"));
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  EXPECT_TRUE(before("libmpi.so.40", "libmpich.so.12"));
  setenv("HEADRACE_MPI_LIBRARY", "/x/libmpi.so", 1);
  EXPECT_EQ(MpiPlaces(), std::vector<std::string>({"/x/libmpi.so"}));
}

TEST_F(MpiEnvironment, WithoutALauncherOrALibrary) {
  setenv("HEADRACE_MPI_LIBRARY", "/no/such/libmpi.so", 1);
  ExpectError(MpiWorld::OfProcess(milliseconds(1000)).status(),
              absl::StatusCode::kFailedPrecondition, {"/no/such/libmpi.so"});
  setenv("HEADRACE_MPI_LIBRARY", PathOf("stand_in_mpich").c_str(), 1);
  ExpectError(MpiWorld::OfProcess(milliseconds(1000)).status(),
              absl::StatusCode::kFailedPrecondition,
              {"was not started by an MPI launcher", "OMPI_COMM_WORLD_SIZE",
               "PMI_RANK"});
}

}  // namespace
}  // namespace headrace::distributed
