// Collectives of threads of one process: the last member to come does the work
// for all.
#include <chrono>
#include <map>
#include <set>

#include "absl/strings/str_join.h"
#include "base/mutex.h"
#include "op/processor.h"
#include "op/resource.h"
#include "ops/collective/collective.h"
#include "ops/queue/await_change.h"

namespace headrace {
namespace {

// Instances of one group that are remembered, to find calls that do not agree
// with earlier ones. Programs name a few, but may count on for ever.
constexpr size_t kMostInstances = 4096;
// In place of the key of one: keys are of 32 bits, or counted from 0.
constexpr int64_t kNoInstance = INT64_MIN;

using Clock = std::chrono::steady_clock;

// Calls that meet.
struct Round {
  std::map<int, Tensor> given;  // by rank; of receivers without memory
  bool done = false;
  std::vector<Tensor> results;  // by rank
};

struct Instance {
  CollectiveCall first;  // without its input
  std::shared_ptr<Round> round;
};

struct Group {
  int64_t size = 0;
  bool ranked = false;    // members are ranks, else processors
  std::set<int> members;  // in the order of ranks
  // Members that wait for the others, and for which instance.
  std::set<std::pair<int, int64_t>> joining;
  Status status;  // why no call succeeds any more
  std::map<int64_t, Instance> instances;

  bool full() const { return static_cast<int64_t>(members.size()) == size; }
  bool IsJoining(int id) const {
    const auto at = joining.lower_bound({id, INT64_MIN});
    return at != joining.end() && at->first == id;
  }
};

Clock::time_point DeadlineOf(const GroupMember& m) {
  // Beyond some years a time point overflows.
  constexpr double kLongest = 1e8;
  if (!(m.timeout_seconds > 0 && m.timeout_seconds < kLongest)) {
    return Clock::time_point::max();
  }
  return Clock::now() + std::chrono::microseconds(
                            static_cast<int64_t>(m.timeout_seconds * 1e6));
}

int Id(const GroupMember& m) { return m.rank >= 0 ? m.rank : m.processor; }
std::string NameOf(const GroupMember& m) {
  return m.rank >= 0 ? absl::StrCat("Rank ", m.rank)
                     : absl::StrCat("Device ", ProcessorName(m.processor));
}

class Local : public CollectiveEngine {
 public:
  Status Join(const GroupMember& member) override {
    MutexLock lock(mutex_);
    return JoinGroup(member, kNoInstance).status();
  }

  StatusOr<Tensor> Run(const CollectiveCall& call) override {
    MutexLock lock(mutex_);
    HR_ASSIGN_OR_RETURN(const int rank,
                        JoinGroup(call.member, call.instance_key));
    Group& group = groups_[call.member.group_key];
    HR_ASSIGN_OR_RETURN(Instance * instance, InstanceOf(group, call));
    if (!instance->round) instance->round = std::make_shared<Round>();
    const std::shared_ptr<Round> round = instance->round;
    HR_RETURN_IF_ERROR(CheckNew(group, *round, call, rank));
    round->given[rank] = call.input;
    if (static_cast<int64_t>(round->given.size()) == group.size) {
      // Whoever comes from now on begins another one.
      instance->round = nullptr;
      HR_RETURN_IF_ERROR(Finish(group, *round, call));
    } else {
      const Status s = Await(
          group, call.member, [&] { return round->done; },
          "Collective has timed out during execution.");
      if (!s.ok() && !round->done) {
        round->given.erase(rank);
        return s;
      }
    }
    return round->results[rank];
  }

  void Abort(const Status& why) override {
    MutexLock lock(mutex_);
    aborted_ = why;
    for (auto& [key, group] : groups_) group.status.Update(why);
    changed_.NotifyAll();
  }

 private:
  static Status AbortedBy(const Status& why) {
    return Status(why.code(),
                  absl::StrCat("Collective ops is aborted by: ", why.message(),
                               "\nThe error could be from a previous "
                               "operation. Restart your program to reset."));
  }
  // All who wait in the group, and all who come, get the error.
  Status Fail(Group& group, Status why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    group.status.Update(why);
    group.instances.clear();
    changed_.NotifyAll();
    return AbortedBy(group.status);
  }

  // Waits until `holds`.
  template <typename F>
  Status Await(Group& group, const GroupMember& member, F holds,
               const char* late) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Clock::time_point deadline = DeadlineOf(member);
    while (!holds()) {
      if (!group.status.ok()) return AbortedBy(group.status);
      HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
      if (holds() || Clock::now() < deadline) continue;
      Status s = absl::DeadlineExceededError(late);
      Fail(group, s).IgnoreError();
      return s;
    }
    return OkStatus();
  }

  // The member's rank, once all have joined.
  StatusOr<int> JoinGroup(const GroupMember& m, int64_t instance_key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto [at, added] = groups_.try_emplace(m.group_key);
    Group& group = at->second;
    if (added) {
      group.size = m.group_size;
      group.ranked = m.rank >= 0;
      group.status = aborted_;
    }
    if (!group.status.ok()) return AbortedBy(group.status);
    if (group.ranked != (m.rank >= 0)) {
      return InvalidArgument(
          "group_key ", m.group_key, " is that of members which ",
          group.ranked ? "have ranks of their own" : "are devices",
          "; take another one for these");
    }
    if (group.size != m.group_size) {
      return Fail(group,
                  Internal(NameOf(m), " is joining a group with size",
                           m.group_size, ", but that group has size ",
                           group.size, " (group_key=", m.group_key, ")"));
    }
    if (!group.full()) {
      HR_RETURN_IF_ERROR(AwaitMembers(group, m, instance_key));
    }
    const auto at_member = group.members.find(Id(m));
    if (at_member == group.members.end()) {
      return Fail(group, Internal(NameOf(m),
                                  " is joining a group that is already full "
                                  "(group_key=",
                                  m.group_key, ")"));
    }
    return static_cast<int>(std::distance(group.members.begin(), at_member));
  }

  Status AwaitMembers(Group& group, const GroupMember& m, int64_t instance_key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::pair<int, int64_t> call(Id(m), instance_key);
    if (!group.joining.insert(call).second) {
      if (instance_key != kNoInstance) return TwiceError(m);
      return Fail(group, InvalidArgument(
                             "Duplicate ranks specified for group members. "
                             "Received ranks: ",
                             absl::StrJoin(group.members, ","), ",", m.rank));
    }
    group.members.insert(Id(m));
    if (group.full()) changed_.NotifyAll();
    const Status s = Await(
        group, m, [&] { return group.full(); },
        "Collective has timed out waiting for other workers.");
    group.joining.erase(call);
    // It may come again, or another one in its place.
    if (!s.ok() && !group.full() && !group.IsJoining(Id(m))) {
      group.members.erase(Id(m));
    }
    return s;
  }
  // Of two calls at once: they would wait for each other as one member.
  static Status TwiceError(const GroupMember& m) {
    return InvalidArgument(
        NameOf(m), " takes part in group ", m.group_key,
        " by two calls at the same time; give each member a logical device of "
        "its own (tf.config.set_logical_device_configuration), or a rank");
  }

  // That of the call's key, with which the call agrees.
  StatusOr<Instance*> InstanceOf(Group& group, const CollectiveCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto [at, added] = group.instances.try_emplace(call.instance_key);
    Instance& instance = at->second;
    if (added) {
      instance.first = call;
      instance.first.input = Tensor();
      if (group.instances.size() > kMostInstances) Forget(group, &instance);
      return &instance;
    }
    const Status s = CheckAgreement(instance.first, call,
                                    ProcessorName(call.member.processor));
    if (!s.ok()) return Fail(group, s);
    return &instance;
  }
  // One in which nobody waits.
  static void Forget(Group& group, const Instance* not_this) {
    for (auto at = group.instances.begin(); at != group.instances.end(); ++at) {
      if (at->second.round || &at->second == not_this) continue;
      group.instances.erase(at);
      return;
    }
  }

  Status CheckNew(Group& group, const Round& round, const CollectiveCall& call,
                  int rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (round.given.contains(rank)) return TwiceError(call.member);
    if (call.kind != CollectiveKind::kBroadcast || !call.input.has_buffer()) {
      return OkStatus();
    }
    for (const auto& [other, input] : round.given) {
      if (!input.has_buffer()) continue;
      return Fail(group,
                  CheckSources(call.instance_key, {other, rank}, group.size));
    }
    return OkStatus();
  }

  // Does what all wait for. The lock is open meanwhile; they hold the round.
  Status Finish(Group& group, Round& round, const CollectiveCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<Tensor> inputs;
    for (auto& [rank, input] : round.given) inputs.push_back(std::move(input));
    StatusOr<std::vector<Tensor>> results = std::vector<Tensor>();
    {
      const StopHold hold;  // others wait for it
      MutexUnlock open(mutex_);
      results = CollectiveResults(call, inputs);
    }
    if (!results.ok()) return Fail(group, results.status());
    round.results = *std::move(results);
    round.done = true;
    changed_.NotifyAll();
    return OkStatus();
  }

  Mutex mutex_;
  CondVar changed_;
  std::map<int64_t, Group> groups_ ABSL_GUARDED_BY(mutex_);
  Status aborted_ ABSL_GUARDED_BY(mutex_);
};

// Where a task's resources have its engine: no name of a program's container.
constexpr char kEngineContainer[] = "/collectives", kEngineName[] = "engine";

struct GivenEngine : Resource {
  std::string DebugString() const override { return "collectives"; }
  std::shared_ptr<CollectiveEngine> engine;
};

struct Chosen {
  Mutex mutex;
  std::shared_ptr<CollectiveEngine> engine ABSL_GUARDED_BY(mutex);
};
Chosen& TheChosen() {
  static Chosen* const chosen = new Chosen;
  return *chosen;
}

}  // namespace

std::shared_ptr<CollectiveEngine> EngineOf(const RunServices& services) {
  if (services.resources == nullptr) return TheCollectiveEngine();
  const auto given =
      services.resources->LookUp<GivenEngine>(kEngineContainer, kEngineName);
  return given.ok() ? (*given)->engine : TheCollectiveEngine();
}

void GiveEngine(std::shared_ptr<CollectiveEngine> engine,
                ResourceManager& resources) {
  auto given = std::make_shared<GivenEngine>();
  given->engine = std::move(engine);
  resources.Delete(kEngineContainer, kEngineName, &typeid(GivenEngine))
      .IgnoreError();  // none there
  resources.Create(kEngineContainer, kEngineName, std::move(given))
      .IgnoreError();  // another thread gave one
}

std::unique_ptr<CollectiveEngine> LocalCollectives() {
  return std::make_unique<Local>();
}

std::shared_ptr<CollectiveEngine> TheCollectiveEngine() {
  Chosen& chosen = TheChosen();
  MutexLock lock(chosen.mutex);
  if (!chosen.engine) chosen.engine = LocalCollectives();
  return chosen.engine;
}

void UseCollectiveEngine(std::shared_ptr<CollectiveEngine> engine) {
  Chosen& chosen = TheChosen();
  MutexLock lock(chosen.mutex);
  chosen.engine = std::move(engine);
}

}  // namespace headrace
