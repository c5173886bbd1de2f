// What processes of one MPI world tell each other beside the tensors' parts:
// which task of the cluster each is, and what members ask each other for.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/device_name.h"
#include "distributed/mpi/mpi_world.h"
#include "headrace/collective.pb.h"

namespace headrace::distributed {

// Thread-safe.
class MpiPost {
 public:
  // Where a member's side in a step of a collective meets those of others.
  struct Spot {
    uint64_t group = 0;
    int rank = 0;  // whose side it is
    int64_t instance = 0;
    int step = 0;
    auto operator<=>(const Spot&) const = default;
  };
  // A member asks for parts.
  struct Ask {
    CollectiveHeader header;
    int source = 0;  // its rank in MPI's world
    int tag = 0;     // of the messages that it waits for
    bool swaps = false;
    Bytes payload;
  };

  // Tells all others that this process is that task.
  static StatusOr<std::unique_ptr<MpiPost>> Make(
      std::shared_ptr<MpiWorld> world, const DeviceName& task);
  ~MpiPost();

  MpiWorld& world() { return *world_; }
  // Takes what has come. Its error is for good: nothing more comes then.
  Status Poll();
  // The rank of a task in MPI's world; none while some are yet to say who they
  // are. InvalidArgument where all others are other tasks.
  StatusOr<std::optional<int>> RankOf(const DeviceName& task);
  // "rank 1, rank 3": those that are yet to say who they are.
  std::string Unknown();

  // What was asked of a side: looked at from the first on until `takes` says
  // so, and then it is no longer there.
  std::optional<Ask> Find(const Spot& spot,
                          const std::function<bool(const Ask&)>& takes);
  Status Tell(int to, const MpiMessage& message);
  // What was asked in a group is of no use any more.
  void Forget(uint64_t group);

  // A tag of messages from that rank, until it is returned. ResourceExhausted
  // where none is left.
  StatusOr<int> TakeTag(int from);
  void ReturnTag(int from, int tag);

 private:
  struct Coming {
    int source = 0;
    MpiWorld::TransferPtr transfer;
  };

  MpiPost(std::shared_ptr<MpiWorld> world, std::string task);
  Status PollLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Read(int source, const Bytes& bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Introduce(int source, const std::string& task)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepMoving();

  const std::shared_ptr<MpiWorld> world_;
  const std::string task_;
  Mutex mutex_;
  CondVar changed_;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  Status failure_ ABSL_GUARDED_BY(mutex_);
  std::map<int, std::string> tasks_ ABSL_GUARDED_BY(mutex_);  // by rank
  std::list<Coming> coming_ ABSL_GUARDED_BY(mutex_);
  std::list<MpiWorld::TransferPtr> told_ ABSL_GUARDED_BY(mutex_);
  std::multimap<Spot, Ask> asks_ ABSL_GUARDED_BY(mutex_);
  std::map<int, std::set<int>> tags_ ABSL_GUARDED_BY(mutex_);  // taken
  std::map<int, int> last_tags_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace headrace::distributed
