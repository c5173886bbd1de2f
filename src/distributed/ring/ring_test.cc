// Groups by TensorFlow's messages, whose members are tasks of their own over a
// network within the process.
#include "distributed/ring/ring.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "base/cancellation.h"
#include "distributed/call_and_wait.h"
#include "distributed/collective/test_tasks.h"
#include "distributed/messages.h"
#include "distributed/wire/buf_codec.h"
#include "distributed/wire/methods.h"
#include "gtest/gtest.h"

namespace headrace::distributed {
namespace {

using std::chrono::milliseconds;

class Rings : public Tasks {
 public:
  explicit Rings(int count, milliseconds begin = milliseconds(20'000))
      : Tasks(count, {}, begin, /*rings=*/true) {}
  template <typename F>
  std::vector<StatusOr<Tensor>> Run(F call) {
    return All([&](int i) {
      CollectiveCall c = call(i);
      c.ring = true;
      return c;
    });
  }
};

template <typename T>
Tensor Counted(DType dtype, const Shape& shape, int rank) {
  Tensor t = *Tensor::Allocate(dtype, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<T>()[i] = static_cast<T>(static_cast<float>(i % 97 + rank));
  }
  return t;
}

void ExpectSame(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.dtype(), b.dtype());
  EXPECT_TRUE(std::equal(static_cast<const char*>(a.raw()),
                         static_cast<const char*>(a.raw()) + a.bytes(),
                         static_cast<const char*>(b.raw())));
}

// Numbers whose sums are whole: what all get is what one would compute.
void CompareKinds(int size) {
  Rings tasks(size);
  int64_t instance = 0;
  for (const int64_t columns : {0, 1, 33, 40'001, 400'000}) {
    const Shape shape{size, columns};
    for (const CollectiveKind kind :
         {CollectiveKind::kReduce, CollectiveKind::kGather,
          CollectiveKind::kAllToAll, CollectiveKind::kBroadcast}) {
      const bool broadcasts = kind == CollectiveKind::kBroadcast;
      for (int source = 0; source < (broadcasts ? size : 1); ++source) {
        std::vector<Tensor> inputs;
        for (int i = 0; i < size; ++i) {
          inputs.push_back(!broadcasts || i == source
                               ? Counted<float>(DType::kFloat, shape, i)
                               : Tensor(DType::kFloat, shape));
        }
        const auto call = [&](int i) {
          return CallOfKind(kind, size, instance, inputs[i]);
        };
        const auto wanted = CollectiveResults(call(0), inputs);
        ASSERT_TRUE(wanted.ok()) << wanted.status();
        // The same once more goes without asking who sends.
        for (int round = 0; round < 2; ++round) {
          const auto got = tasks.Run(call);
          for (int i = 0; i < size; ++i) {
            ASSERT_TRUE(got[i].ok()) << got[i].status();
            ExpectSame(*got[i], (*wanted)[i]);
          }
        }
        ++instance;
      }
    }
  }
}

TEST(RingTest, AllKindsOfTwo) { CompareKinds(2); }
TEST(RingTest, AllKindsOfThree) { CompareKinds(3); }
TEST(RingTest, AllKindsOfSix) { CompareKinds(6); }

TEST(RingTest, MeansAndOtherTypes) {
  Rings tasks(3);
  int64_t instance = 0;
  const auto check = [&](auto one, DType dtype) {
    using T = decltype(one);
    for (const int64_t n : {1, 7, 1000, 100'003}) {
      ++instance;
      const auto got = tasks.Run([&](int i) {
        CollectiveCall call = CallOfKind(CollectiveKind::kReduce, 3, instance,
                                         Counted<T>(dtype, Shape{n}, i));
        call.final_op = "Div";
        return call;
      });
      for (const auto& mean : got) {
        ASSERT_TRUE(mean.ok()) << mean.status();
        ExpectSame(*mean, Counted<T>(dtype, Shape{n}, 1));
      }
    }
  };
  check(float(), DType::kFloat);
  check(double(), DType::kDouble);
  check(int32_t(), DType::kInt32);
  check(half(), DType::kHalf);
}

TEST(RingTest, BroadcastTreesAreTensorFlows) {
  using Targets = std::vector<int>;
  // As 2.21's workers ask each other.
  EXPECT_EQ(BroadcastTargets(0, 5, 0), Targets({1, 2}));
  EXPECT_EQ(BroadcastTargets(1, 5, 0), Targets({3, 4}));
  EXPECT_EQ(BroadcastTargets(3, 5, 3), Targets({0, 1}));
  EXPECT_EQ(BroadcastTargets(0, 5, 3), Targets({2}));
  EXPECT_EQ(BroadcastTargets(1, 5, 3), Targets({4}));
  EXPECT_EQ(BroadcastTargets(0, 5, 4), Targets({2, 3}));
  for (int size = 1; size < 40; ++size) {
    for (int source = 0; source < size; ++source) {
      std::vector<int> got(size);
      for (int q = 0; q < size; ++q) {
        for (const int to : BroadcastTargets(q, size, source)) ++got[to];
      }
      for (int q = 0; q < size; ++q) EXPECT_EQ(got[q], q == source ? 0 : 1);
    }
  }
}

TEST(RingTest, FramesOfLoopsAreTensorFlows) {
  // As 2.21's workers name parts of collectives in loops of these names.
  EXPECT_EQ(LoopFrame("while"), 6315961604705615773u);
  EXPECT_EQ(LoopFrame("while_1"), 1798623155223039322u);
}

TEST(RingTest, TurnsOfLoopsMeet) {
  Rings tasks(2);
  for (const int64_t turn : {0, 1, 5}) {
    const auto got = tasks.Run([&](int i) {
      CollectiveCall call =
          CallOfKind(CollectiveKind::kReduce, 2, 1,
                     Counted<float>(DType::kFloat, Shape{3}, i));
      tasks.engines[i]->TellTurn(call.member, 1, {"while", turn});
      return call;
    });
    for (const auto& sum : got) {
      ASSERT_TRUE(sum.ok()) << sum.status();
      EXPECT_EQ(sum->data<float>()[1], 3);
    }
  }
}

TEST(RingTest, ThoseWhoDisagreeAreTold) {
  const auto run = [](auto change) {
    Rings tasks(2);
    return tasks.Run([&](int i) {
      CollectiveCall call =
          CallOfKind(CollectiveKind::kReduce, 2, 5,
                     Counted<float>(DType::kFloat, Shape{4}, i));
      if (i == 1) change(call);
      return call;
    });
  };
  for (const auto& r : run([](CollectiveCall& call) {
         call.input = Counted<float>(DType::kFloat, Shape{5}, 1);
         call.shape = Shape{5};
       })) {
    EXPECT_TRUE(absl::IsInvalidArgument(r.status())) << r.status();
  }
  for (const auto& r : run([](CollectiveCall& call) {
         call.input = Counted<double>(DType::kDouble, Shape{4}, 1);
         call.dtype = DType::kDouble;
       })) {
    EXPECT_TRUE(absl::IsInternal(r.status())) << r.status();
  }
  for (const auto& r :
       run([](CollectiveCall& call) { call.member.group_size = 3; })) {
    EXPECT_TRUE(absl::IsInternal(r.status())) << r.status();
  }
  // One speaks TensorFlow's messages, the other does not.
  Tasks mixed(2, {}, milliseconds(20'000), true);
  for (const auto& r : mixed.All([&](int i) {
         CollectiveCall call =
             CallOfKind(CollectiveKind::kReduce, 2, 5,
                        Counted<float>(DType::kFloat, Shape{4}, i));
         call.ring = i == 1;
         return call;
       })) {
    EXPECT_TRUE(absl::IsInvalidArgument(r.status())) << r.status();
  }
}

// Who sends waits for nobody: of two, the later one is told.
TEST(RingTest, BroadcastsHaveOneSource) {
  for (const int sources : {0, 2}) {
    Rings tasks(2);
    int told = 0;
    for (const auto& r : tasks.Run([&](int i) {
           return CallOfKind(CollectiveKind::kBroadcast, 2, 5,
                             sources == 2
                                 ? Counted<float>(DType::kFloat, Shape{4}, i)
                                 : Tensor(DType::kFloat, Shape{4}));
         })) {
      EXPECT_TRUE(r.ok() ? sources == 2 : absl::IsInternal(r.status()))
          << r.status();
      told += r.ok() ? 0 : 1;
    }
    EXPECT_EQ(told, sources == 2 ? 1 : 2);
    // Nobody comes for what the first has sent.
    for (auto& engine : tasks.engines) engine->Abort(Cancelled("it is over"));
  }
}

TEST(RingTest, ScattersAreRefused) {
  Rings tasks(2);
  for (const auto& r : tasks.Run([&](int i) {
         return CallOfKind(CollectiveKind::kReduceScatter, 2, 5,
                           Counted<float>(DType::kFloat, Shape{4}, i));
       })) {
    EXPECT_TRUE(absl::IsInternal(r.status())) << r.status();
  }
}

// The members that live get Unavailable, and all that follows fails.
TEST(RingTest, AMemberThatDies) {
  Rings tasks(3);
  const auto sum = [&](int i) {
    CollectiveCall call =
        CallOfKind(CollectiveKind::kReduce, 3, 5,
                   Counted<float>(DType::kFloat, Shape{1000}, i));
    call.ring = true;
    return call;
  };
  for (const auto& r : tasks.Run(sum)) ASSERT_TRUE(r.ok()) << r.status();
  std::vector<StatusOr<Tensor>> results(2, Internal("not run"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back(
        [&, i] { results[i] = tasks.engines[i]->Run(sum(i)); });
  }
  std::this_thread::sleep_for(milliseconds(50));
  tasks.End(2);
  for (std::thread& t : threads) t.join();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(absl::IsUnavailable(results[i].status()))
        << results[i].status();
    const auto later = tasks.engines[i]->Run(sum(i));
    EXPECT_NE(std::string(later.status().message()).find("aborted"),
              std::string::npos)
        << later.status();
  }
}

// A program that went on behind a failure does not end by it, and its end must
// not end what others still take of the last sums.
TEST(RingTest, AFailureIsOverWhenALaterCallSucceeds) {
  Rings tasks(2);
  const Tensor rows = Counted<float>(DType::kFloat, Shape{4}, 0);
  const auto results = [&](CollectiveKind kind, int64_t group_key) {
    return tasks.Run([&](int) {
      CollectiveCall call = CallOfKind(kind, 2, 5, rows);
      call.member.group_key = group_key;
      return call;
    });
  };
  for (const auto& r : results(CollectiveKind::kReduceScatter, 7)) {
    EXPECT_TRUE(absl::IsInternal(r.status())) << r.status();
  }
  for (auto& e : tasks.engines) {
    EXPECT_TRUE(absl::IsInternal(e->RingFailure())) << e->RingFailure();
  }
  for (const auto& r : results(CollectiveKind::kReduce, 8)) {
    EXPECT_TRUE(r.ok()) << r.status();
  }
  for (auto& e : tasks.engines) EXPECT_TRUE(e->RingFailure().ok());
}

TEST(RingTest, ThoseWhoDoNotComeAreWaitedForSoLong) {
  Rings tasks(2, milliseconds(200));
  CollectiveCall call = CallOfKind(CollectiveKind::kReduce, 2, 5,
                                   Counted<float>(DType::kFloat, Shape{4}, 0));
  call.ring = true;
  EXPECT_TRUE(absl::IsDeadlineExceeded(tasks.engines[0]->Run(call).status()));
  // It has joined: now a part does not come.
  std::thread joins([&] {
    CollectiveCall other = call;
    other.instance_key = 6;
    EXPECT_FALSE(tasks.engines[1]->Run(other).ok());
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(tasks.engines[0]->Run(call).status()) ||
              absl::IsDeadlineExceeded(tasks.engines[0]->Run(call).status()));
  joins.join();
}

TEST(RingTest, AStopEndsTheWait) {
  Rings tasks(2);
  CollectiveCall call = CallOfKind(CollectiveKind::kReduce, 2, 5,
                                   Counted<float>(DType::kFloat, Shape{4}, 0));
  call.ring = true;
  CancellationToken token;
  std::thread stops([&] {
    std::this_thread::sleep_for(milliseconds(50));
    token.Cancel();
  });
  const StopScope scope(&token);
  EXPECT_TRUE(absl::IsCancelled(tasks.engines[0]->Run(call).status()));
  stops.join();
}

// What strangers send: errors, and nothing is left of them.
TEST(RingTest, StrangersGetErrors) {
  Rings tasks(1);
  const auto channel = tasks.To(0);
  const auto ask = [&](const char* path,
                       const google::protobuf::MessageLite& request) {
    CallOptions options;
    options.deadline = Clock::now() + milliseconds(100);
    return StatusOf(
        CallAndWait(*channel, path, WriteMessage(request), options));
  };
  tensorflow::RecvBufRequest part;
  EXPECT_TRUE(absl::IsInvalidArgument(ask(worker::kRecvBuf.path, part)));
  part.set_buf_rendezvous_key("1:5:0:0:0:0:0");
  EXPECT_TRUE(absl::IsDeadlineExceeded(ask(worker::kRecvBuf.path, part)));
  part.set_src_incarnation(7);
  EXPECT_TRUE(absl::IsFailedPrecondition(ask(worker::kRecvBuf.path, part)));
  tensorflow::CompleteGroupRequest group;
  EXPECT_TRUE(absl::IsInvalidArgument(ask(worker::kCompleteGroup.path, group)));
  group.set_device_type("CPU");
  group.mutable_device_attributes()->set_name(
      "/job:w/replica:0/task:0/device:CPU:0");
  EXPECT_TRUE(absl::IsInvalidArgument(ask(worker::kCompleteGroup.path, group)));
  tensorflow::CompleteInstanceRequest instance;
  instance.set_group_key(1);
  EXPECT_EQ(ask(worker::kCompleteInstance.path, instance),
            FailedPrecondition("group 1 not found. This normally means the "
                               "server has restarted"));
  EXPECT_TRUE(absl::IsUnimplemented(ask(worker::kGetStepSequence.path,
                                        tensorflow::GetStepSequenceRequest())));
  for (const char* path : {worker::kRecvBuf.path, worker::kCompleteGroup.path,
                           worker::kCompleteInstance.path}) {
    CallOptions options;
    EXPECT_TRUE(absl::IsInternal(StatusOf(
        CallAndWait(*channel, path, Bytes(std::string("\x0f")), options))));
  }
}

TEST(RingTest, APartOfAnotherSizeIsRefused) {
  const auto exchange = std::make_shared<BufExchange>();
  exchange->Give(1, "1:5:0:0:0:0:0", Bytes(std::string("abcd")));
  EXPECT_TRUE(exchange->Owes());
  exchange->End(1, Unavailable("it is over"));
  EXPECT_FALSE(exchange->Owes());
}

}  // namespace
}  // namespace headrace::distributed
