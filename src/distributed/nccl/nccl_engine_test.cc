// Collectives by a stand-in for NVIDIA's driver and NCCL (tests/stand_ins): the
// members are tasks over a network within the process, on a machine with a GPU
// each.
#include "distributed/nccl/nccl_engine.h"

#include <dlfcn.h>

#include <algorithm>
#include <thread>

#include "distributed/collective/test_tasks.h"
#include "gtest/gtest.h"

namespace headrace::distributed {
namespace {

using std::chrono::milliseconds;

constexpr char kCuda[] = HR_STAND_INS "/stand_in_cuda.so";

class NcclTest : public testing::Test {
 protected:
  void SetUp() override {
    opened_ = dlopen(kCuda, RTLD_NOW);
    ASSERT_NE(opened_, nullptr) << dlerror();
  }
  template <typename F>
  F* Of(const char* name) {
    return reinterpret_cast<F*>(dlsym(opened_, name));
  }
  void Machine(int gpus, int version = 22304) {
    Of<void(int, int)>("stand_in_machine")(gpus, version);
  }
  int Held() { return Of<int()>("stand_in_held")(); }

  // So many tasks; `has`: whether one has NCCL.
  void Start(int size, const std::function<bool(int)>& has = {},
             int first_instance = 1) {
    engines_.clear();
    tasks_ = std::make_unique<Tasks>(size);
    instance_ = first_instance;
    for (int i = 0; i < size; ++i) {
      NcclCollectivesOptions options;
      options.own = tasks_->engines[i];
      options.otherwise = options.own;
      options.host = "machine";
      options.patience = milliseconds(20'000);
      const bool there = !has || has(i);
      options.library = [there] {
        return there ? NcclLibrary::Load({kCuda}, {kCuda})
                     : NcclLibrary::Load({"libno_driver.so.1"}, {kCuda});
      };
      engines_.push_back(std::make_shared<NcclCollectives>(options));
    }
  }
  template <typename F>
  std::vector<StatusOr<Tensor>> All(F call) {
    std::vector<StatusOr<Tensor>> results(engines_.size(), Internal("not run"));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < engines_.size(); ++i) {
      threads.emplace_back([&, i] {
        CollectiveCall c = call(static_cast<int>(i));
        c.nccl = true;
        results[i] = engines_[i]->Run(c);
      });
    }
    for (std::thread& t : threads) t.join();
    return results;
  }
  std::vector<StatusOr<Tensor>> Sums(const Shape& shape = Shape{4}) {
    const int instance = instance_++;
    return All([&](int i) {
      return CallOfKind(CollectiveKind::kReduce,
                        static_cast<int>(engines_.size()), instance,
                        Ones(i, shape));
    });
  }
  static Tensor Ones(int rank, const Shape& shape) {
    Tensor t = *Tensor::Allocate(DType::kFloat, shape);
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      t.data<float>()[i] = static_cast<float>(i % 13 + rank);
    }
    return t;
  }

  void* opened_ = nullptr;
  int instance_ = 1;
  std::unique_ptr<Tasks> tasks_;
  std::vector<std::shared_ptr<NcclCollectives>> engines_;
};

void ExpectTold(const Status& s, absl::StatusCode code,
                const std::vector<std::string>& texts) {
  EXPECT_EQ(s.code(), code) << s;
  for (const std::string& text : texts) {
    EXPECT_NE(s.message().find(text), std::string::npos) << text << "\n" << s;
  }
}

// Whole numbers, whose sums have no order: what all get is what one would
// compute.
TEST_F(NcclTest, AllKinds) {
  for (const int size : {2, 3}) {
    Machine(size);
    Start(size);
    int64_t instance = 0;
    for (const int64_t columns : {0, 1, 50'000}) {
      const Shape shape{size, columns};
      for (const CollectiveKind kind :
           {CollectiveKind::kReduce, CollectiveKind::kGather,
            CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
            CollectiveKind::kBroadcast}) {
        for (const char* op : {"Add", "Max", "Min", "Mul"}) {
          ++instance;
          std::vector<Tensor> brought;
          for (int i = 0; i < size; ++i) {
            const bool brings = kind != CollectiveKind::kBroadcast || i == 1;
            brought.push_back(brings ? Ones(i, shape)
                                     : Tensor(DType::kFloat, shape));
          }
          const auto call = [&](int i) {
            CollectiveCall c = CallOfKind(kind, size, instance, brought[i]);
            c.merge_op = op;
            c.final_op = StringView(op) == "Add" ? "Div" : "Id";
            return c;
          };
          const auto wanted = CollectiveResults(call(0), brought);
          ASSERT_TRUE(wanted.ok()) << wanted.status();
          const auto got = All(call);
          for (int i = 0; i < size; ++i) {
            ASSERT_TRUE(got[i].ok()) << got[i].status();
            ASSERT_EQ(got[i]->shape(), (*wanted)[i].shape());
            for (int64_t k = 0; k < got[i]->num_elements(); ++k) {
              ASSERT_EQ(got[i]->data<float>()[k], (*wanted)[i].data<float>()[k])
                  << static_cast<int>(kind) << " " << op << " rank " << i;
            }
          }
        }
      }
    }
  }
  engines_.clear();
  EXPECT_EQ(Held(), 0);
}

// Calls that members make in different orders, and at the same time, meet.
TEST_F(NcclTest, InTheOrderOfTheFirst) {
  Machine(2);
  Start(2);
  constexpr int kCalls = 6;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    for (int k = 0; k < kCalls; ++k) {
      threads.emplace_back([this, rank, k] {
        std::this_thread::sleep_for(
            milliseconds(3 * (rank == 0 ? k : kCalls - k)));
        Tensor x = *Tensor::Allocate(DType::kInt64, Shape{k + 1});
        std::fill_n(x.data<int64_t>(), k + 1, 10 * k + rank);
        CollectiveCall call = CallOfKind(CollectiveKind::kReduce, 2, k, x);
        call.nccl = true;
        const auto sum = engines_[rank]->Run(call);
        ASSERT_TRUE(sum.ok()) << sum.status();
        for (int64_t i = 0; i <= k; ++i) {
          ASSERT_EQ(sum->data<int64_t>()[i], 20 * k + 1);
        }
      });
    }
  }
  for (std::thread& t : threads) t.join();
}

TEST_F(NcclTest, MembersWithoutGpusGoOtherwise) {
  Machine(2);
  Start(2, [](int) { return false; });
  for (const auto& r : Sums()) {
    ASSERT_TRUE(r.ok()) << r.status();
    EXPECT_EQ(r->data<float>()[3], 7.0f);
  }
  EXPECT_EQ(Held(), 0);
}

TEST_F(NcclTest, OneMemberWithout) {
  Machine(2);
  Start(2, [](int i) { return i == 0; });
  for (const auto& r : Sums()) {
    ExpectTold(r.status(), absl::StatusCode::kFailedPrecondition,
               {"rank 1 (/job:w/replica:0/task:1/device:CPU:0) has no NCCL "
                "(NVIDIA's driver cannot be loaded (libno_driver.so.1",
                "which 1 of the 2 members have"});
  }
}

TEST_F(NcclTest, MoreMembersThanGpus) {
  Machine(1);
  Start(2);
  const auto results = Sums();
  ExpectTold(
      results[1].status(), absl::StatusCode::kFailedPrecondition,
      {"rank 1", "is member 2 of the group on machine, which has 1 GPUs"});
  EXPECT_FALSE(results[0].ok());
  engines_.clear();
  EXPECT_EQ(Held(), 0);
}

TEST_F(NcclTest, MembersThatDisagree) {
  Machine(2);
  Start(2);
  const auto results = All([](int i) {
    return CallOfKind(CollectiveKind::kReduce, 2, 1, Ones(i, Shape{4 + i}));
  });
  for (const auto& r : results) {
    ExpectTold(r.status(), absl::StatusCode::kInvalidArgument,
               {"Shape mismatch", "rank 0 (/job:w/replica:0/task:0",
                "rank 1 (/job:w/replica:0/task:1", "do not agree"});
  }
  EXPECT_FALSE(Sums()[0].ok());
}

TEST_F(NcclTest, TwoThatGive) {
  Machine(2);
  Start(2);
  for (const auto& r : All([](int i) {
         return CallOfKind(CollectiveKind::kBroadcast, 2, 1, Ones(i, Shape{4}));
       })) {
    ExpectTold(r.status(), absl::StatusCode::kInternal,
               {"already has source 0, received second claim from 1"});
  }
}

TEST_F(NcclTest, AMemberThatDoesNotCome) {
  Machine(2);
  Start(2);
  for (const auto& r : Sums()) ASSERT_TRUE(r.ok()) << r.status();
  CollectiveCall call =
      CallOfKind(CollectiveKind::kReduce, 2, 9, Ones(0, Shape{4}));
  call.nccl = true;
  call.member.timeout_seconds = 0.3;
  const Status s = engines_[0]->Run(call).status();
  ExpectTold(s, absl::StatusCode::kDeadlineExceeded, {"rank 0", "rank 1"});
  engines_.clear();
  EXPECT_EQ(Held(), 0);
}

// The GPUs' own: members agree, and one's never begins.
TEST_F(NcclTest, AGpuThatDoesNotCome) {
  Machine(2);
  const auto library = *NcclLibrary::Load({kCuda}, {kCuda});
  NcclGroup::Options options;
  options.library = library;
  options.size = 2;
  options.id = *library->NewId();
  options.over = [] { return OkStatus(); };
  NcclGroup::Patience patience;
  patience.time = milliseconds(50);
  patience.late = [](auto) { return DeadlineExceeded("nobody came"); };
  ExpectTold(NcclGroup::Make(options, patience).status(),
             absl::StatusCode::kDeadlineExceeded, {"nobody came"});
  options.over = [] { return Unavailable("the group is over"); };
  options.id = *library->NewId();
  ExpectTold(NcclGroup::Make(options, patience).status(),
             absl::StatusCode::kUnavailable, {"the group is over"});
  EXPECT_EQ(Held(), 0);
}

TEST_F(NcclTest, ACommunicatorThatFails) {
  Machine(2);
  Start(2);
  for (const auto& r : Sums()) ASSERT_TRUE(r.ok()) << r.status();
  Of<void()>("stand_in_fails")();
  for (const auto& r : Sums()) {
    ExpectTold(r.status(), absl::StatusCode::kUnavailable,
               {"remote process exited (6)"});
  }
  engines_.clear();
  EXPECT_EQ(Held(), 0);
}

TEST_F(NcclTest, WhatIsMissingIsSaid) {
  Machine(2);
  const auto told = [](const char* driver, const char* nccl) {
    return NcclLibrary::Load({driver}, {nccl}).status();
  };
  constexpr auto kCode = absl::StatusCode::kFailedPrecondition;
  ExpectTold(told("libno_driver.so.1", kCuda), kCode,
             {"NVIDIA's driver cannot be loaded (libno_driver.so.1"});
  ExpectTold(told("libz.so.1", kCuda), kCode,
             {"NVIDIA's driver has no cuInit, "});
  ExpectTold(told(kCuda, "libno_nccl.so.2"), kCode,
             {"NCCL cannot be loaded (libno_nccl.so.2",
              "HEADRACE_NCCL_LIBRARY=/path/to/libnccl.so.2"});
  ExpectTold(told(kCuda, "libz.so.1"), kCode, {"NCCL has no ncclGetVersion, "});
  Machine(0);
  ExpectTold(told(kCuda, kCuda), kCode,
             {"there is no GPU (the driver counts 0)"});
  Machine(-1);
  ExpectTold(told(kCuda, kCuda), kCode,
             {"there is no GPU (cuInit: no CUDA-capable device is detected"});
  Machine(2, 21399);
  ExpectTold(told(kCuda, kCuda), kCode, {"NCCL is of version 21399; 21400"});
}

}  // namespace
}  // namespace headrace::distributed
