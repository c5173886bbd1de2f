#include "distributed/collective/membership.h"

#include <atomic>
#include <thread>

#include "distributed/call_and_wait.h"
#include "distributed/collective/test_tasks.h"
#include "distributed/messages.h"
#include "distributed/wire/methods.h"

namespace headrace::distributed {
namespace {

using std::chrono::milliseconds;

GroupSearch SearchOf(int tasks, size_t fewest) {
  GroupSearch search;
  search.group_key = 1;
  for (int i = 0; i < tasks; ++i) {
    search.tasks.push_back(DeviceName::OfTask("w", i));
  }
  search.fewest = fewest;
  search.all_within = search.timeout = milliseconds(20'000);
  return search;
}

// What each of these tasks finds, each on a thread of its own.
std::vector<StatusOr<Generation>> SeekAll(Tasks& tasks,
                                          const std::vector<int>& which,
                                          const GroupSearch& search) {
  std::vector<StatusOr<Generation>> found(which.size(), Internal("not run"));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < which.size(); ++i) {
    threads.emplace_back(
        [&, i] { found[i] = tasks.engines[which[i]]->Regroup(search); });
  }
  for (std::thread& t : threads) t.join();
  return found;
}

void ExpectGeneration(const std::vector<StatusOr<Generation>>& found,
                      const std::vector<int>& members, int64_t at_least) {
  for (const auto& one : found) {
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_GE(one->number(), at_least);
    EXPECT_EQ(one->group(), found[0]->group());
    ASSERT_EQ(one->devices_size(), static_cast<int>(members.size()));
    for (size_t i = 0; i < members.size(); ++i) {
      EXPECT_EQ(
          one->devices(static_cast<int>(i)),
          absl::StrCat("/job:w/replica:0/task:", members[i], "/device:CPU:0"));
    }
  }
}

// The sum of one and a large tensor of so many members.
void ExpectSums(Tasks& tasks, const std::vector<int>& which) {
  for (const int64_t n : {1, 200'000}) {
    std::vector<std::thread> threads;
    for (const int i : which) {
      threads.emplace_back([&, i] {
        Tensor x = *Tensor::Allocate(DType::kFloat, Shape{n});
        std::fill_n(x.data<float>(), n, 1.f + static_cast<float>(i));
        float wanted = 0;
        for (const int k : which) wanted += 1.f + static_cast<float>(k);
        const auto sum = tasks.engines[i]->Run(
            CallOfKind(CollectiveKind::kReduce, static_cast<int>(which.size()),
                       n, std::move(x)));
        ASSERT_TRUE(sum.ok()) << sum.status();
        EXPECT_EQ(sum->data<float>()[n - 1], wanted);
      });
    }
    for (std::thread& t : threads) t.join();
  }
}

Status StatusSoon(Tasks& tasks, int of) {
  const auto end = Clock::now() + std::chrono::seconds(20);
  Status s;
  while (s.ok() && Clock::now() < end) {
    s = tasks.engines[of]->GroupStatus(1);
    std::this_thread::sleep_for(milliseconds(5));
  }
  return s;
}

TEST(Membership, MembersGoAndComeBack) {
  Tasks tasks(4);
  const GroupSearch search = SearchOf(4, 3);
  ExpectGeneration(SeekAll(tasks, {0, 1, 2, 3}, search), {0, 1, 2, 3}, 1);
  ExpectSums(tasks, {0, 1, 2, 3});
  for (const int dies : {3, 0}) {
    tasks.End(dies);
    std::vector<int> left;
    for (int i = 0; i < 4; ++i) {
      if (i != dies) left.push_back(i);
    }
    for (const int i : left) EXPECT_FALSE(StatusSoon(tasks, i).ok());
    ExpectGeneration(SeekAll(tasks, left, search), left, 2);
    ExpectSums(tasks, left);
    // It comes back, and the others hear of it.
    tasks.engines[dies]->Stop();
    tasks.Start(dies, milliseconds(20'000));
    std::thread comes([&] {
      const auto found = tasks.engines[dies]->Regroup(search);
      EXPECT_TRUE(found.ok()) << found.status();
    });
    const Status why = StatusSoon(tasks, left[0]);
    EXPECT_TRUE(absl::IsAborted(why)) << why;
    EXPECT_NE(why.message().find("joins group 1"), std::string::npos) << why;
    ExpectGeneration(SeekAll(tasks, left, search), {0, 1, 2, 3}, 3);
    comes.join();
    ExpectSums(tasks, {0, 1, 2, 3});
  }
}

TEST(Membership, FewerBeginWhenTheTimeIsOver) {
  Tasks tasks(3);
  GroupSearch search = SearchOf(3, 2);
  search.all_within = milliseconds(300);
  ExpectGeneration(SeekAll(tasks, {1, 2}, search), {1, 2}, 1);
  ExpectSums(tasks, {1, 2});
}

TEST(Membership, WhoIsNotThereIsTold) {
  Tasks tasks(3);
  tasks.End(2);
  GroupSearch search = SearchOf(3, 2);
  search.timeout = milliseconds(500);
  const Status s = tasks.engines[0]->Regroup(search).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(s)) << s;
  for (const char* part :
       {"task:0/device:CPU:0 waited 0.5 s for 2 of 3 tasks to make group 1",
        "task:1/device:CPU:0 does not seek a group",
        "task:2/device:CPU:0 is not there ("}) {
    EXPECT_NE(s.message().find(part), std::string::npos) << s;
  }
  EXPECT_FALSE(tasks.engines[0]->GroupStatus(1).ok());
}

TEST(Membership, WhoLeftIsNotWaitedFor) {
  Tasks tasks(2);
  const GroupSearch search = SearchOf(2, 2);
  ExpectGeneration(SeekAll(tasks, {0, 1}, search), {0, 1}, 1);
  tasks.engines[1]->Leave(1);
  const Status s = tasks.engines[0]->Regroup(search).status();
  EXPECT_TRUE(absl::IsOutOfRange(s)) << s;
}

TEST(Membership, SearchesThatCannotBe) {
  Tasks tasks(2);
  for (const size_t fewest : {0, 3}) {
    const Status s = tasks.engines[0]->Regroup(SearchOf(2, fewest)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  }
  GroupSearch others = SearchOf(2, 1);
  others.tasks.erase(others.tasks.begin());
  EXPECT_TRUE(
      absl::IsInvalidArgument(tasks.engines[0]->Regroup(others).status()));
}

TEST(Membership, StrangersEndNothing) {
  Tasks tasks(2);
  const GroupSearch search = SearchOf(2, 2);
  ExpectGeneration(SeekAll(tasks, {0, 1}, search), {0, 1}, 1);
  CallOptions options;
  options.deadline = Clock::now() + std::chrono::seconds(20);
  GroupTask stranger, answer;
  stranger.set_group_key(1);
  stranger.set_device("/job:w/replica:0/task:7/device:CPU:0");
  stranger.set_seeks(true);
  const Status s = CallAndWait(*tasks.To(0), worker::kSeekGroup.path, stranger,
                               &answer, options);
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  EXPECT_FALSE(CallAndWait(*tasks.To(0), worker::kSeekGroup.path,
                           Bytes("\xff\xff"), options)
                   .ok());
  // A group that this task does not know.
  stranger.set_group_key(9);
  EXPECT_TRUE(CallAndWait(*tasks.To(0), worker::kSeekGroup.path, stranger,
                          &answer, options)
                  .ok());
  EXPECT_TRUE(tasks.engines[0]->GroupStatus(1).ok());
  ExpectSums(tasks, {0, 1});
}

TEST(Membership, MembersAreToldToWhoHasNotGotThem) {
  Tasks tasks(3);
  GroupSearch search = SearchOf(3, 2);
  search.all_within = milliseconds(300);
  const auto found = SeekAll(tasks, {0, 1}, search);
  ExpectGeneration(found, {0, 1}, 1);
  // What a task answers to that one, which knows the generation of that number.
  const auto told = [&](int task, int asker, uint64_t incarnation,
                        int64_t number) {
    GroupTask ask, answer;
    ask.set_group_key(1);
    ask.set_device(
        absl::StrCat("/job:w/replica:0/task:", asker, "/device:CPU:0"));
    ask.set_incarnation(incarnation);
    ask.set_seeks(true);
    ask.mutable_generation()->set_number(number);
    CallOptions options;
    options.deadline = Clock::now() + std::chrono::seconds(20);
    const Status s = CallAndWait(*tasks.To(task), worker::kSeekGroup.path, ask,
                                 &answer, options);
    EXPECT_TRUE(s.ok()) << s;
    EXPECT_EQ(answer.generation().number(), found[0]->number());
    return answer.generation();
  };
  const uint64_t life = found[0]->incarnations(1);
  const int64_t number = found[0]->number();
  const Generation whole = told(0, 1, life, number - 1);
  EXPECT_EQ(whole.group(), found[0]->group());
  EXPECT_EQ(whole.devices_size(), 2);
  EXPECT_EQ(whole.incarnations_size(), 2);
  // Another life of it is no member, nor is the third task.
  EXPECT_EQ(told(1, 0, life + 100, number - 1).devices_size(), 0);
  EXPECT_EQ(told(1, 2, life, number - 1).devices_size(), 0);
  EXPECT_TRUE(tasks.engines[1]->GroupStatus(1).ok());
  EXPECT_EQ(told(0, 1, life, number).devices_size(), 0);
  EXPECT_FALSE(tasks.engines[0]->GroupStatus(1).ok());
}

// As where channels to a task that comes again have failed and wait before they
// try again: one generation takes it in, not the third or fourth.
TEST(Membership, WhoAsksIsThereBeforeItIsReached) {
  Tasks tasks(3);
  const GroupSearch search = SearchOf(3, 2);
  ExpectGeneration(SeekAll(tasks, {0, 1, 2}, search), {0, 1, 2}, 1);
  tasks.End(2);
  for (const int i : {0, 1}) EXPECT_FALSE(StatusSoon(tasks, i).ok());
  const auto two = SeekAll(tasks, {0, 1}, search);
  ExpectGeneration(two, {0, 1}, 2);
  tasks.engines[2]->Stop();
  const auto reached = Clock::now() + milliseconds(400);
  tasks.Start(2, milliseconds(20'000), [reached](auto& methods) {
    Method& seeks = methods[worker::kSeekGroup.path];
    seeks = [reached, seeks](std::shared_ptr<ServerCall> call,
                             const Bytes& bytes) {
      if (Clock::now() < reached) return call->Finish({14, "not reached"});
      seeks(std::move(call), bytes);
    };
  });
  StatusOr<Generation> third = Internal("not run");
  std::thread joins([&] { third = tasks.engines[2]->Regroup(search); });
  for (const int i : {0, 1}) EXPECT_FALSE(StatusSoon(tasks, i).ok());
  auto all = SeekAll(tasks, {0, 1}, search);
  joins.join();
  all.push_back(std::move(third));
  ExpectGeneration(all, {0, 1, 2}, 3);
  EXPECT_EQ(all[0]->number(), two[0]->number() + 1);
}

// How many calls each of so many tasks that wait for others makes in 250 ms,
// what it waits between two questions, behind the first rounds.
double CallsOf(int count) {
  const auto messages = std::make_shared<std::atomic<int64_t>>(0);
  LocalOptions options;
  options.travel = [messages](const std::string&, const std::string&,
                              size_t) -> std::optional<Clock::duration> {
    ++*messages;
    return Clock::duration(0);
  };
  Tasks tasks(count, options);
  GroupSearch search = SearchOf(count, 1);
  std::vector<int> which;  // all but the last one
  for (int i = 0; i + 1 < count; ++i) which.push_back(i);
  std::vector<StatusOr<Generation>> found;
  std::thread seeks([&] { found = SeekAll(tasks, which, search); });
  std::this_thread::sleep_for(milliseconds(4'000));
  const int64_t before = *messages;
  const auto since = Clock::now();
  std::this_thread::sleep_for(milliseconds(2'000));
  const int64_t calls = (*messages - before) / 2;  // there and back
  const std::chrono::duration<double> took = Clock::now() - since;
  const auto found_last = tasks.engines[count - 1]->Regroup(search);
  seeks.join();
  found.push_back(found_last);
  which.push_back(count - 1);
  ExpectGeneration(found, which, 1);
  return static_cast<double>(calls) / (took.count() / 0.25) / count;
}

// The first task asks all, each other one two.
TEST(Membership, WhatIsAskedGrowsAsTheTasks) {
  const double of_16 = CallsOf(16), of_64 = CallsOf(64);
  EXPECT_GT(of_16, 0);
  EXPECT_GT(of_64, 0);
  // Three questions, and what a call says besides; 63 where each asks all.
  EXPECT_LE(of_16, 6);
  EXPECT_LE(of_64, 6);
}

TEST(Membership, AsManyGenerationsAsMembersAsk) {
  Tasks tasks(3);
  const GroupSearch search = SearchOf(3, 2);
  ExpectGeneration(SeekAll(tasks, {0, 1, 2}, search), {0, 1, 2}, 1);
  for (int i = 0; i < 10; ++i) {
    tasks.End(2);
    for (const int k : {0, 1}) EXPECT_FALSE(StatusSoon(tasks, k).ok());
    const auto two = SeekAll(tasks, {0, 1}, search);
    ExpectGeneration(two, {0, 1}, 2 + 2 * i);
    tasks.engines[2]->Stop();
    tasks.Start(2, milliseconds(20'000));
    // The others seek when the third one has asked to be let in: before that
    // they would not wait for it.
    StatusOr<Generation> third = Internal("not run");
    std::thread joins([&] { third = tasks.engines[2]->Regroup(search); });
    for (const int k : {0, 1}) EXPECT_FALSE(StatusSoon(tasks, k).ok());
    auto all = SeekAll(tasks, {0, 1}, search);
    joins.join();
    all.push_back(std::move(third));
    ExpectGeneration(all, {0, 1, 2}, 3 + 2 * i);
  }
  ExpectSums(tasks, {0, 1, 2});
}

// Tasks that come one by one make one generation, which stays.
TEST(Membership, OneGenerationAtTheStart) {
  constexpr int kTasks = 8;
  Tasks tasks(kTasks);
  std::vector<StatusOr<Generation>> found(kTasks, Internal("not run"));
  std::vector<std::thread> threads;
  for (int i = 0; i < kTasks; ++i) {
    threads.emplace_back([&, i] {
      std::this_thread::sleep_for(milliseconds(40 * ((i * 3) % kTasks)));
      found[i] = tasks.engines[i]->Regroup(SearchOf(kTasks, kTasks));
    });
  }
  for (std::thread& t : threads) t.join();
  ExpectGeneration(found, {0, 1, 2, 3, 4, 5, 6, 7}, 1);
  EXPECT_EQ(found[0]->number(), 1);
  std::this_thread::sleep_for(milliseconds(500));
  for (const auto& engine : tasks.engines) {
    EXPECT_EQ(engine->GroupStatus(1), OkStatus());
  }
}

// The first one knows at once who left, the others by their turns.
TEST(Membership, AllHearThatMembersLeft) {
  Tasks tasks(8);
  ExpectGeneration(SeekAll(tasks, {0, 1, 2, 3, 4, 5, 6, 7}, SearchOf(8, 8)),
                   {0, 1, 2, 3, 4, 5, 6, 7}, 1);
  tasks.engines[7]->Leave(1);
  const auto found = SeekAll(tasks, {0, 1, 2, 3, 4, 5, 6}, SearchOf(8, 8));
  for (const auto& one : found) {
    EXPECT_TRUE(absl::IsOutOfRange(one.status())) << one.status();
  }
}

// A peer that answers what it likes.
TEST(Membership, AnswersThatCannotBe) {
  const std::string own = "/job:w/replica:0/task:0/device:CPU:0";
  const std::string peer = "/job:w/replica:0/task:1/device:CPU:0";
  const auto found = [&](milliseconds timeout,
                         const std::function<void(GroupTask*)>& changes) {
    GroupTask told;
    told.set_group_key(1);
    told.set_device(peer);
    told.set_incarnation(5);
    auto* made = told.mutable_generation();
    made->set_number(3);
    made->set_group(77);
    for (const auto& device : {own, peer}) made->add_devices(device);
    for (const int of : {100, 5}) made->add_incarnations(of);
    changes(&told);
    Tasks tasks(2, {}, milliseconds(20'000), false, [told](auto& methods) {
      methods[worker::kSeekGroup.path] =
          [told](std::shared_ptr<ServerCall> call, const Bytes&) {
            call->Finish(AnswerOf(OkStatus(), WriteMessage(told)));
          };
    });
    GroupSearch search = SearchOf(2, 2);
    search.timeout = timeout;
    return tasks.engines[0]->Regroup(search).status();
  };
  const Status good = found(milliseconds(20'000), [](GroupTask*) {});
  EXPECT_TRUE(good.ok()) << good;
  const std::vector<std::function<void(GroupTask*)>> changes = {
      [](GroupTask* t) {
        t->set_device("/job:w/replica:0/task:0/device:CPU:0");
      },
      [](GroupTask* t) { t->set_device(std::string(1'000, 'a')); },
      [](GroupTask* t) { t->mutable_generation()->set_number(INT64_MAX); },
      [](GroupTask* t) { t->mutable_generation()->set_number(-1); },
      [](GroupTask* t) { t->mutable_generation()->set_number(0); },
      [](GroupTask* t) { t->mutable_generation()->clear_devices(); },
      [](GroupTask* t) { t->mutable_generation()->clear_incarnations(); },
      [](GroupTask* t) {
        t->mutable_generation()->set_devices(1, t->generation().devices(0));
      },
      [](GroupTask* t) {
        t->mutable_generation()->add_devices("/job:x/replica:0/task:0");
        t->mutable_generation()->add_incarnations(1);
      },
      [](GroupTask* t) { t->add_gone("nobody"); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    const Status s = found(milliseconds(100), changes[i]);
    EXPECT_TRUE(absl::IsDeadlineExceeded(s)) << i << ": " << s;
    EXPECT_NE(s.message().find("task:1/device:CPU:0 is not there (/job:w"),
              std::string::npos)
        << i << ": " << s;
  }
}

TEST(Membership, ASilentTaskIsPassedOver) {
  struct Silent {
    Mutex mutex;
    std::string task;
  };
  const auto silent = std::make_shared<Silent>();
  LocalOptions options;
  options.travel = [silent](const std::string& from, const std::string& to,
                            size_t) -> std::optional<Clock::duration> {
    MutexLock lock(silent->mutex);
    if (from == silent->task || to == silent->task) return std::nullopt;
    return Clock::duration(0);
  };
  Tasks tasks(3, options);
  const GroupSearch search = SearchOf(3, 2);
  ExpectGeneration(SeekAll(tasks, {0, 1, 2}, search), {0, 1, 2}, 1);
  {
    MutexLock lock(silent->mutex);
    silent->task = Tasks::Address(0);
  }
  const auto since = Clock::now();
  ExpectGeneration(SeekAll(tasks, {1, 2}, search), {1, 2}, 2);
  EXPECT_LT(Clock::now() - since, std::chrono::seconds(8));
  ExpectSums(tasks, {1, 2});
}

}  // namespace
}  // namespace headrace::distributed
