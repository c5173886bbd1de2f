#include "simulator/recovery.h"

#include <algorithm>
#include <random>

#include "simulator/collective.h"
#include "simulator/member_task.h"

namespace headrace::simulator {
namespace {

using distributed::GroupSearch;

constexpr int kMostTasks = 1 << 12;
// gRPC asks a silent peer every four seconds whether it is there, and waits
// five (grpc/channel.cc).
constexpr double kSilence = 9;
// For the breaks of a silent task's connections to be told of.
constexpr double kTold = 0.05;
// Programs that are started together begin within so many seconds.
constexpr double kSpread = 0.05;
constexpr double kMostSeconds = 3600;

// All tasks, and what is waited for of them.
class Cluster {
 public:
  Cluster(World& world, const RecoveryRun& run) : world_(world), run_(run) {
    search_.group_key = 1;
    for (int i = 0; i < run.members; ++i) {
      search_.tasks.push_back(DeviceName::OfTask("worker", i));
    }
    search_.fewest = static_cast<size_t>(run.members / 2 + 1);
    search_.all_within = search_.timeout = std::chrono::seconds(600);
    tasks_.resize(run.members);
  }
  ~Cluster() {
    for (const auto* some : {&tasks_, &dead_}) {
      for (const auto& task : *some) {
        if (task) task->End();
      }
    }
    world_.Drain();
  }

  Status Start(int i, double at) {
    tasks_[i] = std::make_unique<MemberTask>(world_, i, ++lives_, search_);
    HR_RETURN_IF_ERROR(tasks_[i]->Listen());
    world_.In(at, [task = tasks_[i].get()] { task->Seek(); });
    return OkStatus();
  }
  Status StartAll() {
    std::mt19937_64 random(run_.seed);
    std::uniform_real_distribution<double> spread(0, kSpread);
    for (int i = 0; i < run_.members; ++i) {
      HR_RETURN_IF_ERROR(Start(i, spread(random)));
    }
    return OkStatus();
  }
  void Kill() {
    const std::string name = MemberTask::AddressOf(run_.dies);
    MemberTask* const task = tasks_[run_.dies].get();
    if (!run_.silent) return task->Die();
    world_.links().Cut(name);
    world_.In(kSilence, [this, name, task] {
      world_.links().Mend(name);
      task->Die();
      world_.In(kTold, [this, name] { world_.links().Cut(name); });
    });
  }
  Status Restart() {
    world_.links().Mend(MemberTask::AddressOf(run_.dies));
    // Events of the one that died may be under way.
    dead_.push_back(std::move(tasks_[run_.dies]));
    dead_.back()->Die();
    return Start(run_.dies, 0);
  }

  // Until all, but for who died where it counts no more, satisfy f.
  template <typename F>
  Status Until(bool without_dead, F f) {
    size_t over = 0;
    HR_RETURN_IF_ERROR(world_.RunUntil(
        [&] {
          for (; over < tasks_.size(); ++over) {
            if (without_dead && static_cast<int>(over) == run_.dies) continue;
            if (!tasks_[over]->status().ok()) return true;
            if (!f(*tasks_[over])) return false;
          }
          return true;
        },
        kMostSeconds));
    return over == tasks_.size() ? OkStatus() : tasks_[over]->status();
  }
  Status UntilGeneration(bool without_dead, int size, int64_t behind) {
    return Until(without_dead, [=](const MemberTask& t) {
      return t.generation() != nullptr && t.generation()->number() > behind &&
             t.generation()->devices_size() == size;
    });
  }
  int64_t Number() const {
    const int of = run_.dies == 0 ? 1 : 0;
    return tasks_[of]->generation()->number();
  }
  int64_t Messages() {
    int64_t messages = 0;
    for (int i = 0; i < run_.members; ++i) {
      messages += world_.links().Of(MemberTask::AddressOf(i)).messages;
    }
    return messages;
  }

 private:
  World& world_;
  const RecoveryRun run_;
  GroupSearch search_;
  uint64_t lives_ = 0;
  std::vector<std::unique_ptr<MemberTask>> tasks_, dead_;
};

Status CheckRecovery(const RecoveryRun& run) {
  if (run.members < 3 || run.members > kMostTasks) {
    return InvalidArgument("a group of ", run.members, " members, of 3 to ",
                           kMostTasks, ": more than half are to live on");
  }
  if (run.dies < 0 || run.dies >= run.members) {
    return InvalidArgument("member ", run.dies, " of ", run.members, " dies");
  }
  if (run.restarts < 0 || run.state_bytes < 0) {
    return InvalidArgument("a time and a size are not below 0");
  }
  return OkStatus();
}

}  // namespace

StatusOr<RecoveryTimes> SimulateRecovery(const LinkModel& link,
                                         const RecoveryRun& run) {
  HR_RETURN_IF_ERROR(CheckRecovery(run));
  HR_ASSIGN_OR_RETURN(const auto world, World::Make(link, run.seed));
  Cluster cluster(*world, run);
  RecoveryTimes times;
  const Clock::time_point began = world->Now();
  HR_RETURN_IF_ERROR(cluster.StartAll());
  HR_RETURN_IF_ERROR(cluster.UntilGeneration(false, run.members, 0));
  times.formed = Seconds(world->Now() - began);
  // They are at work for a while.
  HR_RETURN_IF_ERROR(world->Pass(1));
  const int64_t first = cluster.Number(), before = cluster.Messages();
  const Clock::time_point death = world->Now();
  cluster.Kill();
  HR_RETURN_IF_ERROR(cluster.Until(true, [first](const MemberTask& t) {
    return t.generation() == nullptr || t.generation()->number() > first;
  }));
  times.noticed = Seconds(world->Now() - death);
  HR_RETURN_IF_ERROR(cluster.UntilGeneration(true, run.members - 1, first));
  times.agreed = Seconds(world->Now() - death);
  times.messages = cluster.Messages() - before;
  if (run.restarts <= 0) return times;
  const Clock::time_point back = death + InClock(run.restarts);
  HR_RETURN_IF_ERROR(world->Pass(std::max(0.0, Seconds(back - world->Now()))));
  const Clock::time_point again = world->Now();
  const int64_t second = cluster.Number();
  HR_RETURN_IF_ERROR(cluster.Restart());
  HR_RETURN_IF_ERROR(cluster.UntilGeneration(false, run.members, second));
  times.joined = Seconds(world->Now() - again);
  if (run.state_bytes == 0) return times;
  CollectiveRun sends;
  sends.kind = CollectiveKind::kBroadcast;
  sends.members = run.members;
  sends.bytes = run.state_bytes;
  sends.seed = run.seed;
  HR_ASSIGN_OR_RETURN(const CollectiveTimes sent,
                      SimulateCollective(link, sends));
  times.state = sent.seconds;
  return times;
}

}  // namespace headrace::simulator
