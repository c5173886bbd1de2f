// Collectives of calls that ask for NCCL, by the GPUs of their members. Members
// find each other and agree by the tasks' own way (collective/engine.h); where
// none of them has a GPU, or the call does not ask, another engine runs it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "distributed/collective/engine.h"
#include "distributed/nccl/nccl_group.h"

namespace headrace::distributed {

struct NcclCollectivesOptions {
  std::shared_ptr<RemoteCollectives> own;  // which knows the groups
  std::shared_ptr<CollectiveEngine> otherwise;
  // NCCL, or why there is none; asked when a call first wants it.
  std::function<StatusOr<std::shared_ptr<NcclLibrary>>()> library =
      NcclLibrary::OfProcess;
  // Of this machine: members of one have a GPU each.
  std::string host;
  // How long, where a call does not say, members are waited for.
  std::chrono::milliseconds patience{600'000};
};

// Thread-safe. Calls of a group that go by GPUs go one after the other, in the
// order in which its first member makes them.
class NcclCollectives : public CollectiveEngine {
 public:
  explicit NcclCollectives(NcclCollectivesOptions options)
      : options_(std::move(options)) {}

  Status Join(const GroupMember& member) override {
    return options_.otherwise->Join(member);
  }
  StatusOr<Tensor> Run(const CollectiveCall& call) override;
  void TellTurn(const GroupMember& member, int64_t instance_key,
                const LoopTurn& turn) override {
    options_.otherwise->TellTurn(member, instance_key, turn);
  }
  void Abort(const Status& why) override { options_.otherwise->Abort(why); }

 private:
  // Of a member: two of one group may be here.
  struct Group {
    enum class State { kNew, kMeets, kByGpus, kOtherwise, kOver };
    uint64_t number = 0;  // of the group, by which its lives are told apart
    State state = State::kNew;
    Status why;                       // it is over
    int64_t made = 0;                 // calls, of the first member
    int64_t next = 0;                 // the place whose turn it is
    std::unique_ptr<NcclGroup> gpus;  // of whose turn it is
  };
  using GroupRef = std::shared_ptr<Group>;

  // Whether the group goes by GPUs, once its members have met.
  StatusOr<bool> Meet(const CollectiveCall& call, const GroupMembers& members,
                      const GroupRef& group);
  StatusOr<std::unique_ptr<NcclGroup>> MeetNow(const CollectiveCall& call,
                                               const GroupMembers& members);
  // Before data moves: `*source` is who gives to a broadcast.
  Status Agree(const CollectiveCall& call, const GroupMembers& members,
               int64_t made, int64_t* place, int* source);
  Status AwaitTurn(const CollectiveCall& call, const GroupMembers& members,
                   Group& group, int64_t place);
  StatusOr<Tensor> RunByGpus(const CollectiveCall& call,
                             const GroupMembers& members, Group& group);
  // What each member says, by rank.
  StatusOr<std::vector<std::string>> Told(const CollectiveCall& call,
                                          int64_t instance,
                                          const std::string& text);
  NcclGroup::Patience PatienceOf(const CollectiveCall& call,
                                 const GroupMembers& members) const;

  const NcclCollectivesOptions options_;
  Mutex mutex_;
  CondVar changed_;
  // By the group's key and the member's rank.
  std::map<std::pair<int64_t, int>, GroupRef> groups_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
