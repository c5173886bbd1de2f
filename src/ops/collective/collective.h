// What all members of a group do together, each by a call of its own: sums,
// gathers, broadcasts. The ops here check their arguments and ask an engine,
// which knows how members reach each other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "op/kernel.h"

namespace headrace {

// Upstream's numbers, which messages show.
enum class CollectiveKind : int {
  kReduce = 0,
  kBroadcast = 1,
  kGather = 2,
  kAllToAll = 4,
  kReduceScatter = 5,
};

// Who takes part.
struct GroupMember {
  int64_t group_key = 0;
  int64_t group_size = 0;  // positive
  // Its place among the members, below group_size; -1: by the numbers of the
  // processors that they stand for.
  int rank = -1;
  int processor = 0;
  double timeout_seconds = 0;  // 0: none
};

// What one member brings.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kReduce;
  GroupMember member;
  // Members whose calls have this in common meet.
  int64_t instance_key = 0;
  DType dtype = DType::kInvalid;
  Shape shape;           // on which all must agree
  std::string merge_op;  // of reductions: "Add", "Mul", "Min", "Max"
  std::string final_op;  // "Id", or "Div": by the size of the group
  Tensor input;          // none: it receives a broadcast
  // CommunicationImplementation.RING: an engine may take TensorFlow's way.
  bool ring = false;
  // CommunicationImplementation.NCCL: it goes by GPUs where members have them.
  bool nccl = false;
  // Which of the calls of its instance it is, as an engine counts them.
  bool odd_round = false;
};

// A turn of a loop of the function that is called.
struct LoopTurn {
  std::string loop;  // the name of its operation
  int64_t number = 0;
};

// Thread-safe. Calls wait for the other members, end with CheckStop, and once
// one of a group has failed, all further calls of that group fail with its
// error: some members would wait for ever else.
class CollectiveEngine {
 public:
  virtual ~CollectiveEngine() = default;
  // Waits until all members of the group have joined it. InvalidArgument when
  // two have one rank.
  virtual Status Join(const GroupMember& member) = 0;
  // What the call gives this member, once all others made theirs.
  // InvalidArgument and Internal when they do not agree, DeadlineExceeded
  // beyond the timeout.
  virtual StatusOr<Tensor> Run(const CollectiveCall& call) = 0;
  // In which turn of a loop a processor's next call of that instance is made,
  // of an engine that tells other members so. Others make their calls in order.
  virtual void TellTurn(const GroupMember&, int64_t /*instance_key*/,
                        const LoopTurn&) {}
  // All calls of all groups fail with `why` from now on.
  virtual void Abort(const Status& why) = 0;
};

// Of members that are threads of this process.
std::unique_ptr<CollectiveEngine> LocalCollectives();

// The one that ops ask: LocalCollectives() unless another took its place.
std::shared_ptr<CollectiveEngine> TheCollectiveEngine();
// Null: LocalCollectives(), anew.
void UseCollectiveEngine(std::shared_ptr<CollectiveEngine> engine);

// The one that a run's resources have, else TheCollectiveEngine().
std::shared_ptr<CollectiveEngine> EngineOf(const RunServices& services);
// Runs with these resources have that engine from now on, in the place of
// another one.
void GiveEngine(std::shared_ptr<CollectiveEngine> engine,
                ResourceManager& resources);

// Why two calls that meet do not agree; OK where they do. `device` is that of
// `call`.
Status CheckAgreement(const CollectiveCall& first, const CollectiveCall& call,
                      const std::string& device);
// Internal unless one member of a broadcast, by rank, gives the tensor.
Status CheckSources(int64_t instance_key, absl::Span<const int> sources,
                    int64_t size);
// InvalidArgument unless the input has one row for each member.
Status CheckAllToAll(const CollectiveCall& call);

// What each member gets of what all bring, in order of ranks: the bits do not
// depend on who came first.
StatusOr<std::vector<Tensor>> CollectiveResults(
    const CollectiveCall& call, absl::Span<const Tensor> inputs);

// Of a reduction: to[i] is a[i] merged with b[i], for n elements; `to` may be
// either. `size` members have been merged where they are finished.
void MergeElements(const CollectiveCall& call, const void* a, const void* b,
                   void* to, int64_t n);
void FinishElements(const CollectiveCall& call, int64_t size, void* at,
                    int64_t n);

}  // namespace headrace
