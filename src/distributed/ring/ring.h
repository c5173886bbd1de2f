// Collectives by TensorFlow's messages, for groups in which some tasks are
// TensorFlow's: the task that leads tells who is in a group and whether all
// agree (CompleteGroup, CompleteInstance), and neighbours fetch each other's
// parts (RecvBuf).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/device_name.h"
#include "base/mutex.h"
#include "distributed/group/leader.h"
#include "distributed/ring/exchange.h"
#include "distributed/ring/instances.h"
#include "distributed/ring/ring_ways.h"

namespace headrace::distributed {

struct RingOptions {
  DeviceName task;           // this one
  uint64_t incarnation = 0;  // of its life
  DeviceName leader;
  // Null where there is no such task. Also of this one.
  std::function<std::shared_ptr<Channel>(const DeviceName& task)> channel_of;
  std::shared_ptr<GroupLeader> groups;
  // How long others are waited for where a call does not say.
  std::chrono::milliseconds patience{600'000};
  // Whether TensorFlow's tasks may ask for parts.
  bool speaks = false;
};

// Thread-safe.
class RingCollectives : public std::enable_shared_from_this<RingCollectives> {
 public:
  explicit RingCollectives(RingOptions options)
      : options_(std::move(options)) {}

  // As CollectiveEngine's.
  Status Join(const GroupMember& member);
  StatusOr<Tensor> Run(const CollectiveCall& call);
  void TellTurn(const GroupMember& member, int64_t instance_key,
                const LoopTurn& turn);
  void Abort(const Status& why);
  // Groups are forgotten: their members join anew.
  void Forget(const Status& why);
  // Why the first group ended since the last call that began later and
  // succeeded; OK where none has. A program that went on did not end by that
  // failure.
  Status Failure();
  // Whether a neighbour is yet to ask for its part.
  bool Owes() { return exchange_->Owes(); }

  // By path: what other tasks call.
  std::map<std::string, Method> Methods();

 private:
  struct Instance {
    CollectiveCall call;  // without its input
    int source = -1;
  };
  struct Group {
    int64_t size = 0;
    std::vector<tensorflow::DeviceAttributes> devices;  // by rank
    std::vector<DeviceName> names;
    std::set<int> joined;  // ranks of members here
    Status status;         // why no call succeeds any more
    std::map<std::pair<int, int64_t>, Instance> instances;  // by rank and key
    std::set<std::pair<int, int64_t>> running;
    std::set<std::shared_ptr<ClientCall>> calls;  // under way
  };
  using GroupRef = std::shared_ptr<Group>;

  // What a processor was told of its next call: by group, instance, processor.
  using CallKey = std::tuple<int64_t, int64_t, int>;
  std::string TurnOf(const CollectiveCall& call);

  DeviceName DeviceOf(const GroupMember& member) const;
  Status JoinGroup(const GroupMember& member, GroupRef* group, int* rank);
  StatusOr<int> RankOf(const GroupMember& member, Group& group);
  StatusOr<int> SourceOf(const GroupRef& group, int rank,
                         const CollectiveCall& call);
  StatusOr<Tensor> RunIn(const GroupRef& group, int rank,
                         const CollectiveCall& call);
  StatusOr<RingMeeting::Take> AskForPart(const GroupRef& group, int rank,
                                         const CollectiveCall& call, int from,
                                         const std::string& key, int64_t size);
  // One call, which ends early where the group does.
  StatusOr<std::function<StatusOr<Answer>()>> Start(
      const GroupRef& group, const DeviceName& task, const char* path,
      const google::protobuf::MessageLite& request, const GroupMember& member);
  void End(int64_t group_key, Group& group, const Status& why);
  Status StatusOfGroup(const Group& group);
  Status CheckSpeaks() const;

  const RingOptions options_;
  const std::shared_ptr<BufExchange> exchange_ =
      std::make_shared<BufExchange>();
  const std::shared_ptr<InstanceLeader> instances_ =
      std::make_shared<InstanceLeader>();
  Mutex mutex_;
  Status aborted_ ABSL_GUARDED_BY(mutex_);
  Status failed_ ABSL_GUARDED_BY(mutex_);
  int64_t failures_ ABSL_GUARDED_BY(mutex_) = 0;  // groups that ended, ever
  std::map<int64_t, GroupRef> groups_ ABSL_GUARDED_BY(mutex_);
  std::map<CallKey, std::string> turns_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
