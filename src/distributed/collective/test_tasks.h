// Members of groups for tests: tasks over a network within the process.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "distributed/collective/engine.h"
#include "gtest/gtest.h"

namespace headrace::distributed {

// Tasks "w:0", "w:1" and so on, with an engine each.
class Tasks {
 public:
  using Methods = std::map<std::string, Method>;
  // `rings`: as RemoteCollectivesOptions has it. `last_has`: what is other
  // about the methods of the last task.
  explicit Tasks(
      int count, LocalOptions options = {},
      std::chrono::milliseconds begin = std::chrono::milliseconds(20'000),
      bool rings = false, const std::function<void(Methods&)>& last_has = {})
      : network_(*LocalNetwork::Create(std::move(options))), rings_(rings) {
    for (int i = 0; i < count; ++i) {
      Start(i, begin, i + 1 == count ? last_has : nullptr);
    }
  }
  // Begins a task, or begins it again in the place of one that was ended.
  void Start(int i, std::chrono::milliseconds begin,
             const std::function<void(Methods&)>& changes = {}) {
    engines.resize(std::max<size_t>(engines.size(), i + 1));
    listeners.resize(engines.size());
    // Shared, as the network's thread may be in an engine that is stopped.
    const std::shared_ptr<Transport> transport = network_->Of(Address(i));
    RemoteCollectivesOptions o;
    o.task = DeviceName::OfTask("w", i);
    o.incarnation = 100 + lives_++;
    o.leader = DeviceName::OfTask("w", 0);
    o.begin = o.part = begin;
    o.rings = rings_;
    o.channel_of = [transport](const DeviceName& task) {
      return transport->Connect(Address(*task.task), {});
    };
    engines[i] = RemoteCollectives::Make(std::move(o));
    ListenOptions listen;
    listen.address = Address(i);
    listen.methods = engines[i]->Methods();
    if (changes) changes(listen.methods);
    std::string error;
    listeners[i] = transport->Listen(std::move(listen), &error);
    EXPECT_NE(listeners[i], nullptr) << error;
  }
  // As a death: who is connected to it sees that break.
  void End(int i) {
    listeners[i]->Stop(Clock::now());
    listeners[i] = nullptr;
  }
  ~Tasks() {
    for (auto& e : engines) e->Stop();
    listeners.clear();
  }

  static std::string Address(int i) { return absl::StrCat("w:", i + 1); }
  // What call(i) gives on the thread of each task.
  template <typename F>
  std::vector<StatusOr<Tensor>> All(F call) {
    std::vector<StatusOr<Tensor>> results(engines.size(), Internal("not run"));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < engines.size(); ++i) {
      threads.emplace_back(
          [&, i] { results[i] = engines[i]->Run(call(static_cast<int>(i))); });
    }
    for (std::thread& t : threads) t.join();
    return results;
  }
  std::shared_ptr<Channel> To(int i) {
    strangers_.push_back(network_->Of("stranger:1"));
    return strangers_.back()->Connect(Address(i), {});
  }

  std::vector<std::shared_ptr<RemoteCollectives>> engines;
  std::vector<std::unique_ptr<Listener>> listeners;

 private:
  const std::shared_ptr<LocalNetwork> network_;
  const bool rings_;
  int lives_ = 0;  // of tasks, those that were begun again counted
  std::vector<std::unique_ptr<Transport>> strangers_;
};

inline CollectiveCall CallOfKind(CollectiveKind kind, int size,
                                 int64_t instance, Tensor input) {
  CollectiveCall call;
  call.kind = kind;
  call.member = {.group_key = 1, .group_size = size};
  call.instance_key = instance;
  call.dtype = input.dtype();
  call.shape = input.shape();
  call.merge_op = "Add";
  call.final_op = "Id";
  call.input = std::move(input);
  if (kind == CollectiveKind::kGather) {
    call.shape.set_dim(0, call.shape[0] * size);
  }
  return call;
}

}  // namespace headrace::distributed
