// Members of groups that are tasks of their own, over a network within the
// process.
#include "distributed/collective/engine.h"

#include <algorithm>
#include <map>
#include <thread>

#include "base/cancellation.h"
#include "distributed/call_and_wait.h"
#include "distributed/collective/test_tasks.h"
#include "distributed/group/awaited.h"
#include "distributed/messages.h"
#include "distributed/wire/methods.h"
#include "gtest/gtest.h"

namespace headrace::distributed {
namespace {

using std::chrono::milliseconds;

// Of odd values, whose sum depends on the order.
Tensor Odd(int rank, const Shape& shape) {
  Tensor t = *Tensor::Allocate(DType::kFloat, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = 0.1f * static_cast<float>((i * 7 + rank * 3) % 101) +
                         (i % 5 == rank ? 1e6f : 0.f);
  }
  return t;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::equal(static_cast<const char*>(a.raw()),
                    static_cast<const char*>(a.raw()) + a.bytes(),
                    static_cast<const char*>(b.raw()));
}
bool Near(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return false;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const float x = a.data<float>()[i], y = b.data<float>()[i];
    if (std::abs(x - y) > 1e-5f * std::max(1.f, std::abs(x))) return false;
  }
  return true;
}

// Of rows that one and several parts hold, and of rows that do not divide.
void CompareKinds(int size) {
  Tasks tasks(size);
  int64_t instance = 0;
  for (const int64_t columns : {1, 33, 40'001}) {
    const Shape shape{size, columns};
    std::vector<Tensor> inputs;
    for (int i = 0; i < size; ++i) inputs.push_back(Odd(i, shape));
    for (const CollectiveKind kind :
         {CollectiveKind::kReduce, CollectiveKind::kGather,
          CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
          CollectiveKind::kBroadcast}) {
      std::vector<Tensor> brought = inputs;
      if (kind == CollectiveKind::kBroadcast) {
        for (int i = 0; i < size; ++i) {
          if (i != 1) brought[i] = Tensor(DType::kFloat, shape);
        }
      }
      const auto call = [&](int i) {
        return CallOfKind(kind, size, instance, brought[i]);
      };
      const auto wanted = CollectiveResults(call(0), brought);
      ASSERT_TRUE(wanted.ok()) << wanted.status();
      const auto first = tasks.All(call);
      const auto second = tasks.All(call);
      ++instance;
      for (int i = 0; i < size; ++i) {
        ASSERT_TRUE(first[i].ok()) << first[i].status();
        ASSERT_TRUE(second[i].ok()) << second[i].status();
        EXPECT_TRUE(SameBits(*first[i], *second[i]));
        EXPECT_TRUE(Near(*first[i], (*wanted)[i]))
            << static_cast<int>(kind) << " " << columns << " rank " << i;
        const bool same = kind == CollectiveKind::kReduce ||
                          kind == CollectiveKind::kGather ||
                          kind == CollectiveKind::kBroadcast;
        if (same) {
          EXPECT_TRUE(SameBits(*first[i], *first[0]));
        }
      }
    }
  }
}

TEST(RemoteCollectives, AllKindsOfTwo) { CompareKinds(2); }
TEST(RemoteCollectives, AllKindsOfThree) { CompareKinds(3); }
TEST(RemoteCollectives, AllKindsOfFive) { CompareKinds(5); }

TEST(RemoteCollectives, MeansAndOtherTypes) {
  Tasks tasks(3);
  for (const int64_t n : {4, 100'003}) {
    const auto sums = tasks.All([&](int i) {
      Tensor x = *Tensor::Allocate(DType::kInt64, Shape{n});
      for (int64_t k = 0; k < n; ++k) x.data<int64_t>()[k] = k * (i + 1);
      CollectiveCall call = CallOfKind(CollectiveKind::kReduce, 3, n, x);
      call.final_op = "Div";
      return call;
    });
    for (const auto& sum : sums) {
      ASSERT_TRUE(sum.ok()) << sum.status();
      for (int64_t k = 0; k < n; ++k) {
        ASSERT_EQ(sum->data<int64_t>()[k], 2 * k);
      }
    }
  }
}

// Claim S003-C34: round a ring each sends 2 (P - 1) / P of the data, and none
// is special.
TEST(RemoteCollectives, S003C34AllSendAlike) {
  struct Sent {
    Mutex mutex;
    std::map<std::string, int64_t> bytes;
  };
  // The network's thread may be behind the end of the test.
  const auto sent = std::make_shared<Sent>();
  LocalOptions options;
  options.travel = [sent](const std::string& from, const std::string&,
                          size_t bytes) {
    MutexLock lock(sent->mutex);
    sent->bytes[from] += static_cast<int64_t>(bytes);
    return std::optional<Clock::duration>(Clock::duration(0));
  };
  constexpr int kSize = 3;
  constexpr int64_t kElements = 300'000;
  Tasks tasks(kSize, options);
  const auto sums = tasks.All([&](int i) {
    Tensor x = *Tensor::Allocate(DType::kFloat, Shape{kElements});
    std::fill_n(x.data<float>(), kElements, static_cast<float>(i + 1));
    return CallOfKind(CollectiveKind::kReduce, kSize, 1, x);
  });
  for (const auto& sum : sums) {
    ASSERT_TRUE(sum.ok()) << sum.status();
    EXPECT_EQ(
        std::count(sum->data<float>(), sum->data<float>() + kElements, 6.f),
        kElements);
  }
  MutexLock lock(sent->mutex);
  const double wanted = 2.0 * (kSize - 1) / kSize * kElements * sizeof(float);
  for (int i = 0; i < kSize; ++i) {
    EXPECT_NEAR(sent->bytes[Tasks::Address(i)] / wanted, 1, 0.01) << i;
  }
}

// Links that are late by chance change nothing.
TEST(RemoteCollectives, LateLinks) {
  const auto seed = std::make_shared<std::atomic<uint32_t>>(7);
  LocalOptions options;
  options.travel = [seed](const std::string&, const std::string&, size_t) {
    const uint32_t x = seed->fetch_add(0x9e3779b9) >> 20;
    return std::optional<Clock::duration>(std::chrono::microseconds(x % 3000));
  };
  Tasks tasks(3, options);
  for (int64_t turn = 0; turn < 10; ++turn) {
    const auto sums = tasks.All([&](int i) {
      return CallOfKind(CollectiveKind::kReduce, 3, 4, Odd(i, Shape{7}));
    });
    const auto large = tasks.All([&](int i) {
      return CallOfKind(CollectiveKind::kReduce, 3, 5, Odd(i, Shape{90'000}));
    });
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(sums[i].ok()) << sums[i].status();
      ASSERT_TRUE(large[i].ok()) << large[i].status();
      EXPECT_TRUE(SameBits(*sums[i], *sums[0]));
      EXPECT_TRUE(SameBits(*large[i], *large[0]));
    }
  }
}

TEST(RemoteCollectives, MembersThatDoNotAgreeAreNamed) {
  struct Row {
    std::function<void(CollectiveCall&)> change;
    const char* text;
  };
  const Row rows[] = {
      {[](CollectiveCall& c) {
         c.input = Odd(1, Shape{3});
         c.shape = Shape{3};
       },
       "Shape mismatch"},
      {[](CollectiveCall& c) { c.merge_op = "Max"; }, "merge_op"},
      {[](CollectiveCall& c) { c.kind = CollectiveKind::kReduceScatter; },
       "expected type"},
      {[](CollectiveCall& c) {
         c.input = Tensor::Vector<double>({1, 2});
         c.dtype = DType::kDouble;
       },
       "data_type"},
      {[](CollectiveCall& c) {
         c.input = Odd(1, Shape{100'000});
         c.shape = Shape{100'000};
       },
       "Shape mismatch"},
  };
  for (const Row& row : rows) {
    Tasks tasks(2);
    const auto results = tasks.All([&](int i) {
      CollectiveCall call =
          CallOfKind(CollectiveKind::kReduce, 2, 1, Odd(i, Shape{2}));
      if (i == 1) row.change(call);
      return call;
    });
    for (const auto& r : results) {
      ASSERT_FALSE(r.ok()) << row.text;
      const StringView text = r.status().message();
      EXPECT_NE(text.find(row.text), StringView::npos) << text;
      EXPECT_NE(text.find("rank 0 (/job:w/replica:0/task:0/device:CPU:0)"),
                StringView::npos)
          << text;
      EXPECT_NE(text.find("rank 1 (/job:w/replica:0/task:1/device:CPU:0)"),
                StringView::npos)
          << text;
    }
  }
}

// Sums of these sizes go different ways, in which others are asked: members
// that are a call ahead ask those that are still in the last one.
TEST(RemoteCollectives, SizesMayChangeFromCallToCall) {
  constexpr int kSize = 5, kRounds = 60;
  Tasks tasks(kSize);
  std::vector<std::thread> threads;
  std::vector<Status> ends(kSize);
  for (int i = 0; i < kSize; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds && ends[i].ok(); ++round) {
        const Shape shape{round % 2 ? 2 : 100'000};
        ends[i] = tasks.engines[i]
                      ->Run(CallOfKind(CollectiveKind::kReduce, kSize, 1,
                                       Odd(i, shape)))
                      .status();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const Status& s : ends) EXPECT_EQ(s, OkStatus());
}

// As above, where members go different ways: one of those that meet says so.
TEST(RemoteCollectives, ManyThatDoNotAgree) {
  for (const int other : {0, 2, 4}) {
    for (const int64_t length : {2, 100'000}) {
      Tasks tasks(5);
      const auto results = tasks.All([&](int i) {
        const Shape shape{i == other ? 100'002 - length : length};
        return CallOfKind(CollectiveKind::kReduce, 5, 1, Odd(i, shape));
      });
      for (const auto& r : results) {
        ASSERT_FALSE(r.ok());
        EXPECT_NE(r.status().message().find("Shape mismatch"),
                  std::string::npos)
            << r.status();
      }
    }
  }
}

TEST(RemoteCollectives, GroupsThatDoNotAgree) {
  Tasks tasks(2);
  const auto results = tasks.All([&](int i) {
    return CallOfKind(CollectiveKind::kReduce, 2 + i, 1, Odd(i, Shape{2}));
  });
  int refused = 0;
  for (const auto& r : results) {
    ASSERT_FALSE(r.ok());
    refused += r.status().message().find("joining a group with size") !=
               StringView::npos;
  }
  EXPECT_EQ(refused, 2);
}

TEST(RemoteCollectives, AMemberThatDoesNotComeIsNamed) {
  Tasks tasks(2, {}, milliseconds(300));
  const auto call = [](int i) {
    return CallOfKind(CollectiveKind::kReduce, 2, 1, Odd(i, Shape{2}));
  };
  for (const auto& r : tasks.All(call)) ASSERT_TRUE(r.ok()) << r.status();
  const auto late = tasks.engines[1]->Run(call(1));
  ASSERT_TRUE(absl::IsDeadlineExceeded(late.status())) << late.status();
  for (const char* part : {"rank 1 (/job:w/replica:0/task:1/device:CPU:0)",
                           "waited 0.3 s for rank 0", "all-reduce of float[2]",
                           "group 1, instance 1"}) {
    EXPECT_NE(late.status().message().find(part), StringView::npos)
        << late.status();
  }
  // The others are told.
  const auto next = tasks.engines[0]->Run(call(0));
  EXPECT_TRUE(absl::IsDeadlineExceeded(next.status())) << next.status();
}

TEST(RemoteCollectives, LostLinksEndAtTheDeadline) {
  const auto cut = std::make_shared<std::atomic<bool>>(false);
  LocalOptions options;
  options.travel = [cut](const std::string& from, const std::string&, size_t) {
    return *cut && from == Tasks::Address(1)
               ? std::nullopt
               : std::optional<Clock::duration>(Clock::duration(0));
  };
  Tasks tasks(2, options, milliseconds(500));
  const auto call = [](int i) {
    return CallOfKind(CollectiveKind::kReduce, 2, 1, Odd(i, Shape{80'000}));
  };
  for (const auto& r : tasks.All(call)) ASSERT_TRUE(r.ok()) << r.status();
  *cut = true;
  for (const auto& r : tasks.All(call)) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(r.status())) << r.status();
  }
}

TEST(RemoteCollectives, ADeathEndsTheWaitsOfAll) {
  Tasks tasks(3);
  const auto call = [](int i) {
    return CallOfKind(CollectiveKind::kReduce, 3, 1, Odd(i, Shape{2}));
  };
  for (const auto& r : tasks.All(call)) ASSERT_TRUE(r.ok()) << r.status();
  std::thread dies([&] {
    std::this_thread::sleep_for(milliseconds(100));
    tasks.listeners[2] = nullptr;
  });
  const auto since = Clock::now();
  std::vector<StatusOr<Tensor>> results(2, Internal("not run"));
  std::thread other([&] { results[1] = tasks.engines[1]->Run(call(1)); });
  results[0] = tasks.engines[0]->Run(call(0));
  other.join();
  dies.join();
  EXPECT_LT(Clock::now() - since, std::chrono::seconds(5));
  for (const auto& r : results) {
    EXPECT_TRUE(absl::IsUnavailable(r.status()) ||
                absl::IsCancelled(r.status()))
        << r.status();
    EXPECT_NE(r.status().message().find("rank 2"), StringView::npos)
        << r.status();
  }
}

TEST(RemoteCollectives, AbortAndCancellation) {
  for (const bool aborts : {false, true}) {
    Tasks tasks(2);
    const auto call = [](int i) {
      return CallOfKind(CollectiveKind::kReduce, 2, 1, Odd(i, Shape{2}));
    };
    for (const auto& r : tasks.All(call)) ASSERT_TRUE(r.ok()) << r.status();
    CancellationToken token;
    StatusOr<Tensor> waits = Internal("not run");
    std::thread thread([&] {
      const StopScope scope(&token);
      waits = tasks.engines[0]->Run(call(0));
    });
    std::this_thread::sleep_for(milliseconds(50));
    if (aborts) {
      tasks.engines[0]->Abort(Unavailable("peer down"));
    } else {
      token.Cancel();
    }
    thread.join();
    const auto code =
        aborts ? absl::StatusCode::kUnavailable : absl::StatusCode::kCancelled;
    EXPECT_EQ(waits.status().code(), code) << waits.status();
    // What the other one had brought may still be taken.
    StatusOr<Tensor> other = tasks.engines[1]->Run(call(1));
    if (other.ok()) other = tasks.engines[1]->Run(call(1));
    EXPECT_EQ(other.status().code(), code);
  }
}

TEST(RemoteCollectives, StrangersAreRefused) {
  Tasks tasks(2);
  const auto call = [](int i) {
    return CallOfKind(CollectiveKind::kReduce, 2, 1, Odd(i, Shape{2}));
  };
  for (const auto& r : tasks.All(call)) ASSERT_TRUE(r.ok()) << r.status();
  const auto channel = tasks.To(1);
  CollectiveHeader header;
  header.set_group(5);
  header.set_group_key(1);
  header.set_to(1);
  const auto ask = [&](const char* path, Bytes bytes) {
    CallOptions options;
    options.deadline = Clock::now() + std::chrono::seconds(5);
    options.on_part = [](Bytes, const std::function<void()>& next) { next(); };
    return StatusOf(CallAndWait(*channel, path, std::move(bytes), options));
  };
  for (const char* path : {worker::kSwapParts.path, worker::kPullParts.path}) {
    EXPECT_TRUE(absl::IsAborted(ask(path, WithHeader(header, {}))));
    CollectiveHeader other = header;
    other.set_group_key(9);
    EXPECT_TRUE(absl::IsInvalidArgument(ask(path, WithHeader(other, {}))));
    for (const char* bytes : {"", "x", "\xff\xff\xff\xff\xff", "\x05zz"}) {
      EXPECT_TRUE(absl::IsInvalidArgument(ask(path, Bytes(bytes)))) << bytes;
    }
  }
  for (const char* path : {worker::kWatchGroup.path, worker::kEndGroup.path,
                           worker::kJoinGroup.path}) {
    EXPECT_FALSE(ask(path, Bytes("\xff\xff")).ok());
  }
  // The group goes on.
  for (const auto& r : tasks.All(call)) EXPECT_TRUE(r.ok()) << r.status();
}

// The group of task 0, in the name of which a stranger asks the leader.
uint64_t NumberOfGroup(Tasks& tasks) {
  JoinGroupRequest request;
  request.set_group_key(1);
  request.set_group_size(2);
  request.set_rank(-1);
  request.set_device("/job:w/replica:0/task:0/device:CPU:0");
  request.set_incarnation(100);
  JoinGroupResponse response;
  CallOptions options;
  options.deadline = Clock::now() + std::chrono::seconds(20);
  EXPECT_EQ(CallAndWait(*tasks.To(0), worker::kJoinGroup.path, request,
                        &response, options),
            OkStatus());
  return response.group();
}

TEST(RemoteCollectives, CallersThatGoLeaveNothingBehind) {
  Tasks tasks(2);
  const auto joins = [](int i) {
    return CallOfKind(CollectiveKind::kReduce, 2, 1, Odd(i, Shape{2}));
  };
  for (const auto& r : tasks.All(joins)) ASSERT_TRUE(r.ok()) << r.status();
  CollectiveHeader header;
  header.set_group(NumberOfGroup(tasks));
  header.set_group_key(1);
  header.set_to(1);
  const auto channel = tasks.To(1);
  const auto ask = [&](int64_t instance, Bytes payload) {
    header.set_instance_key(instance);
    const auto ended = std::make_shared<Awaited>();
    CallOptions options;
    auto call = channel->Start(worker::kSwapParts.path,
                               WithHeader(header, std::move(payload)), options,
                               Awaited::Taker(ended));
    return std::pair(std::move(call), ended);
  };
  std::vector<decltype(ask(0, {}))> calls;
  const int most = 1 << 16;  // collectives of one group
  for (int i = 0; i < most + 10; ++i) calls.push_back(ask(1'000 + i, {}));
  const auto last = calls.back().second->Wait();
  ASSERT_TRUE(last.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(StatusOf(*last))) << StatusOf(*last);
  const auto large = ask(1, Bytes(std::string(300'000, 'a'))).second->Wait();
  EXPECT_TRUE(absl::IsInvalidArgument(StatusOf(*large))) << StatusOf(*large);
  for (const auto& [call, ended] : calls) call->Cancel();
  for (const auto& r : tasks.All(joins)) EXPECT_TRUE(r.ok()) << r.status();
  // A task that owes something stops late.
  const auto since = Clock::now();
  tasks.engines[1]->Stop();
  EXPECT_LT(Clock::now() - since, std::chrono::seconds(5));
}

// Of a stranger that knows what members know.
TEST(RemoteCollectives, PartsOfWrongSizes) {
  Tasks tasks(2);
  const CollectiveCall call =
      CallOfKind(CollectiveKind::kReduce, 2, 1, Odd(1, Shape{2}));
  StatusOr<Tensor> waits = Internal("not run");
  std::thread thread([&] { waits = tasks.engines[1]->Run(call); });
  ASSERT_EQ(tasks.engines[0]->Join(call.member), OkStatus());
  CallOptions options;
  options.deadline = Clock::now() + std::chrono::seconds(20);
  CollectiveHeader header;
  header.set_group(NumberOfGroup(tasks));
  header.set_group_key(1);
  header.set_to(1);
  header.set_instance_key(1);
  header.set_dtype(static_cast<int>(DType::kFloat));
  header.add_dims(2);
  header.set_merge_op("Add");
  header.set_final_op("Id");
  const Answer answer =
      CallAndWait(*tasks.To(1), worker::kSwapParts.path,
                  WithHeader(header, Bytes(std::string("abc"))), options);
  thread.join();
  ASSERT_FALSE(waits.ok());
  EXPECT_NE(waits.status().message().find("3 bytes where 8"), StringView::npos)
      << waits.status();
}

TEST(RemoteCollectives, MembersOfOneTask) {
  Tasks tasks(2);
  std::vector<StatusOr<Tensor>> results(4, Internal("not run"));
  for (const int64_t n : {2, 60'000}) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        CollectiveCall call =
            CallOfKind(CollectiveKind::kReduce, 4, n, Odd(i, Shape{n}));
        call.member.rank = i;
        results[i] = tasks.engines[i / 2]->Run(call);
      });
    }
    for (std::thread& t : threads) t.join();
    for (const auto& r : results) {
      ASSERT_TRUE(r.ok()) << r.status();
      EXPECT_TRUE(SameBits(*r, *results[0]));
    }
  }
}

}  // namespace
}  // namespace headrace::distributed
