// Collectives of members that are devices of a cluster's tasks.
//
// Members find each other by the task that leads. From then on they talk with
// each other alone: who asks another for its part tells what it is about, so
// that two who do not agree know it before a byte is looked at.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/device_name.h"
#include "base/mutex.h"
#include "distributed/collective/membership.h"
#include "distributed/collective/rounds.h"
#include "distributed/collective/turn.h"
#include "distributed/group/leader.h"
#include "distributed/local_transport.h"
#include "distributed/ring/ring.h"
#include "ops/collective/collective.h"

namespace headrace::distributed {

struct RemoteCollectivesOptions {
  DeviceName task;           // this one
  uint64_t incarnation = 0;  // of its life
  DeviceName leader;
  // Null where there is no such task.
  std::function<std::shared_ptr<Channel>(const DeviceName& task)> channel_of;
  // How long, where a call does not say, members are waited for to come, and
  // then from part to part.
  std::chrono::milliseconds begin{600'000}, part{60'000};
  std::function<std::chrono::steady_clock::time_point()> now =
      std::chrono::steady_clock::now;
  // As Membership::Options has it.
  std::function<void(int64_t key)> news;
  // Whether calls that ask for it go by TensorFlow's messages (ring/ring.h),
  // with whomever is in their group: all members decide alike.
  bool rings = false;
};

// Of a group whose members have all come.
struct GroupMembers {
  uint64_t group = 0;                        // a number that only members know
  int rank = 0;                              // of the one that asks
  std::shared_ptr<const MemberNames> names;  // by rank, as their devices
  std::vector<DeviceName> devices;
  // Why what is under way fails; OK where it goes on.
  std::function<Status()> status;
  // Ends the group for all members: one fails, and others would wait for it.
  std::function<void(const Status&)> end;
};

// Thread-safe.
class RemoteCollectives
    : public CollectiveEngine,
      public std::enable_shared_from_this<RemoteCollectives> {
 public:
  static std::shared_ptr<RemoteCollectives> Make(
      RemoteCollectivesOptions options) {
    std::shared_ptr<RemoteCollectives> made(
        new RemoteCollectives(std::move(options)));
    made->StartMembership();
    made->StartRing();
    return made;
  }

  Status Join(const GroupMember& member) override;
  StatusOr<Tensor> Run(const CollectiveCall& asked) override;
  void TellTurn(const GroupMember& member, int64_t instance_key,
                const LoopTurn& turn) override;
  void Abort(const Status& why) override;

  // For engines that carry tensors otherwise (mpi, nccl): the members of a
  // group, once all have joined, as Join waits for them.
  StatusOr<GroupMembers> MembersOf(const GroupMember& member);

  // Makes the group anew with those who seek the same (membership.h): what was
  // under way in it ends. The generation that this task is in.
  StatusOr<Generation> Regroup(const GroupSearch& search);

  // The same, and Run, for who does not wait (the simulator). BeginRegroup,
  // then TryRegroup until it finds a generation or is an error, as
  // Membership::Look says.
  Status BeginRegroup(const GroupSearch& search);
  StatusOr<std::optional<Generation>> TryRegroup(const GroupSearch& search);
  // The turn of this task in a step of a collective of a group whose members it
  // knows; `came` as Turn::Options has it. Where it fails, EndByKey is due.
  StatusOr<std::shared_ptr<Turn>> BeginTurn(const CollectiveCall& call,
                                            int rank, int step,
                                            std::set<int> askers,
                                            std::function<void()> came);
  void EndByKey(int64_t key, const Status& why);
  // Why what is under way in a group fails; OK where it goes on.
  Status UnderWay(int64_t key);

  // This task takes no part in such a group any more.
  void Leave(int64_t key) { membership_->Leave(key); }
  // Why no new call of a group succeeds; OK where there is none.
  Status GroupStatus(int64_t key);

  bool rings() const { return options_.rings; }
  // Collectives by TensorFlow's messages fail from now on: a task is gone.
  void LoseRing(const Status& why) { ring_->Abort(why); }
  // Why the first of them failed that did.
  Status RingFailure() { return ring_->Failure(); }

  // By path: what other tasks call.
  std::map<std::string, Method> Methods();
  // Groups are forgotten: their members join anew.
  void Forget(const Status& why);
  // Gives peers time to take what they are to get, says that this task leaves,
  // and ends the rest.
  void Stop();
  // The same for who does not wait: gives no time.
  void StopNow();

 private:
  using Clock = std::chrono::steady_clock;
  // Behind a member's death, for what others have of it already: with the nine
  // seconds that a silent peer takes to be noticed within ten.
  static constexpr std::chrono::milliseconds kGrace{500};
  // Behind a member that left: it owed nothing to what is under way, which may
  // wait for others that share its processor. Who waits for the member itself
  // is told within ten seconds.
  static constexpr std::chrono::milliseconds kGraceOfLeft{9000};
  static constexpr std::chrono::milliseconds kNoGrace{0};
  // A peer's call that came before the member's own.
  struct Arrival {
    CollectiveHeader header;
    std::shared_ptr<ServerCall> call;
    Bytes payload;
    bool swaps = false;
    bool gone = false;  // its caller; by the engine's mutex
  };
  // Where calls of one instance meet, for one member here.
  struct Spot {
    std::deque<std::shared_ptr<Turn>> turns;  // in order
    std::deque<std::shared_ptr<Arrival>> early;
  };
  struct SpotKey {
    int rank = 0;
    int64_t instance = 0;
    int step = 0;
    bool odd_round = false;
    auto operator<=>(const SpotKey&) const = default;
  };
  struct Group {
    int64_t size = 0;
    bool ranked = false;
    bool changes = false;  // others take its place as members come and go
    uint64_t id = 0;       // 0: not all have joined
    std::shared_ptr<const MemberNames> names;
    std::vector<DeviceName> devices;
    std::set<int> joining;  // ranks that members say
    std::set<int> watching;
    Status status;  // why no call succeeds any more, from `ended` on
    Clock::time_point ended;
    std::map<SpotKey, Spot> spots;
    std::map<int, Rounds> rounds;  // by rank, of members here
    std::vector<std::shared_ptr<Arrival>> early;
    std::vector<std::shared_ptr<ServerCall>> watchers;
    std::vector<std::shared_ptr<ClientCall>> watches;
  };
  using GroupRef = std::shared_ptr<Group>;
  using Ending = std::vector<std::function<void()>>;

  explicit RemoteCollectives(RemoteCollectivesOptions options)
      : options_(std::move(options)) {}

  void StartMembership();
  void StartRing();
  StatusOr<Generation> Regrouped(const GroupRef& group,
                                 const GroupSearch& search,
                                 StatusOr<Generation> found);
  // In the place of a group that ends: one whose members are yet to be told.
  GroupRef Renew(int64_t key);
  Status Install(const GroupRef& group, int64_t key, const Generation& found,
                 int* rank);

  // The member's group, once all have joined, and its rank.
  Status JoinGroup(const GroupMember& member, GroupRef* group, int* rank);
  StatusOr<GroupRef> FindOrMake(const GroupMember& member)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status AskLeader(const GroupMember& member, JoinGroupResponse* response);
  Status Complete(Group& group, const JoinGroupResponse& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<int> RankOf(const Group& group, const GroupMember& member);
  // The next member, as one asks whether it is there.
  struct Watched {
    DeviceName next;
    std::string name;
    WatchGroupRequest request;
  };
  void Watch(const GroupRef& group, int64_t key, int rank);
  void StartWatch(const GroupRef& group, const Watched& w, bool is_first);
  void WatchEnded(const GroupRef& group, const Watched& w,
                  const Answer& answer);

  StatusOr<std::shared_ptr<Turn>> Begin(const GroupRef& group,
                                        const CollectiveCall& call, int rank,
                                        int step, std::set<int> askers,
                                        std::function<void()> came);
  // Puts a call where it belongs; what is to be done behind the lock.
  void Place(Group& group, const std::shared_ptr<Arrival>& arrival,
             Ending* then) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropIfGone(const std::shared_ptr<Arrival>& arrival);
  void Disagree(Group& group, Status why, const Arrival& arrival, Ending* then)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Settle(const GroupRef& group, const SpotKey& key);
  // The group's end. `tells`: the other members, as rank `from`; `grace`: for
  // so long what is under way may end well.
  void End(Group& group, int64_t key, const Status& why, int from, bool tells,
           std::chrono::milliseconds grace, Ending* then)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status StatusOfGroup(const Group& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(const DeviceName& task, const Bytes& bytes);
  void EndGroup(const GroupRef& group, int64_t key, const Status& why, int from,
                std::chrono::milliseconds grace);

  void AnswerAsk(std::shared_ptr<ServerCall> call, const Bytes& bytes,
                 bool swaps);
  void AnswerWatch(const std::shared_ptr<ServerCall>& call, const Bytes& bytes);
  void AnswerEnd(const std::shared_ptr<ServerCall>& call, const Bytes& bytes);
  StatusOr<GroupRef> MemberGroup(uint64_t id, int64_t key, int from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::shared_ptr<Channel> ChannelTo(const DeviceName& device);
  std::string NameOf(const GroupMember& member) const;
  std::string DeviceOf(const GroupMember& member) const;

  const RemoteCollectivesOptions options_;
  const std::shared_ptr<GroupLeader> leader_ = std::make_shared<GroupLeader>();
  std::shared_ptr<Membership> membership_;
  std::shared_ptr<RingCollectives> ring_;
  Mutex mutex_;
  CondVar changed_;
  int telling_ ABSL_GUARDED_BY(mutex_) = 0;  // ends that others do not know yet
  Status aborted_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, GroupRef> groups_ ABSL_GUARDED_BY(mutex_);
  // Those whose members BeginRegroup seeks.
  std::map<int64_t, GroupRef> sought_ ABSL_GUARDED_BY(mutex_);
  // Of members of one process with each other.
  std::shared_ptr<LocalNetwork> network_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Transport> inner_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Listener> listener_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Channel> own_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
