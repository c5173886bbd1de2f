// Collectives whose tensors travel by MPI, between processes that its launcher
// started. Who is in a group, and when it ends, is told by the tasks' own way
// (collective/engine.h), and so is the order of each sum (collective/ways.h):
// an engine by MPI gives the same bits.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "distributed/collective/engine.h"
#include "distributed/collective/rounds.h"
#include "distributed/mpi/mpi_post.h"

namespace headrace::distributed {

struct MpiCollectivesOptions {
  DeviceName task;                         // this one
  std::shared_ptr<RemoteCollectives> own;  // which knows the groups
  // How long, where a call does not say, members are waited for to come, and
  // then from part to part.
  std::chrono::milliseconds begin{600'000}, part{60'000};
};

// Thread-safe.
class MpiCollectives : public CollectiveEngine {
 public:
  static StatusOr<std::shared_ptr<MpiCollectives>> Make(
      std::shared_ptr<MpiWorld> world, MpiCollectivesOptions options);

  Status Join(const GroupMember& member) override;
  StatusOr<Tensor> Run(const CollectiveCall& call) override;
  void TellTurn(const GroupMember& member, int64_t instance_key,
                const LoopTurn& turn) override {
    options_.own->TellTurn(member, instance_key, turn);
  }
  void Abort(const Status& why) override { options_.own->Abort(why); }

 private:
  MpiCollectives(std::unique_ptr<MpiPost> post, MpiCollectivesOptions options)
      : options_(std::move(options)), post_(std::move(post)) {}
  StatusOr<Tensor> RunIn(const CollectiveCall& call,
                         const GroupMembers& members);
  // Those of a group's members in MPI's world.
  StatusOr<std::vector<int>> RanksOf(const GroupMembers& members,
                                     std::chrono::milliseconds patience);

  const MpiCollectivesOptions options_;
  const std::unique_ptr<MpiPost> post_;
  Mutex mutex_;
  std::set<MpiPost::Spot> running_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<uint64_t, int>, Rounds> rounds_
      ABSL_GUARDED_BY(mutex_);  // by group and rank
};

}  // namespace headrace::distributed
