// One member's side of a step of a collective whose parts are messages of MPI.
//
// Who asks for parts tells what it is about, and by which tag it waits for
// them; who is asked compares that with its own call before it sends a byte.
#pragma once

#include <deque>
#include <map>
#include <set>

#include "distributed/collective/engine.h"
#include "distributed/collective/ways.h"
#include "distributed/mpi/mpi_post.h"

namespace headrace::distributed {

class MpiTurn : public Side {
 public:
  struct Options {
    CollectiveCall call;  // without its input
    int step = 0;
    GroupMembers members;
    std::vector<int> ranks;  // of members in MPI's world, by their own
    std::set<int> askers;    // the ranks that will ask for what it gives
    // How long a peer may take to begin, and then from part to part.
    std::chrono::milliseconds begin{0}, part{0};
  };
  MpiTurn(MpiPost& post, Options options)
      : post_(post), options_(std::move(options)) {}
  ~MpiTurn() override;

  void Give(int to, Bytes part, bool last) override;
  void Ask(int from, bool swaps, Bytes payload) override;
  StatusOr<Bytes> Take(int from) override;
  // What is given goes on its way in Settle.
  void Leave() override {}
  // Waits until all that was given has been sent.
  Status Settle();

 private:
  struct Outgoing {
    bool asked = false;
    int tag = 0;
    std::deque<Bytes> parts;  // until they are asked for
    std::deque<MpiWorld::TransferPtr> sent;
  };
  struct Incoming {
    int tag = 0;  // 0: not asked
    std::deque<Bytes> swapped;
    std::deque<MpiWorld::TransferPtr> coming;
    int64_t taken = 0;
  };

  Status AskFor(int from, bool swaps, Bytes payload);
  // Does what can be done now.
  Status Step();
  Status TakeAsks();
  StatusOr<std::optional<Bytes>> TryTake(Incoming& in);
  // A rank that what was given has not reached yet; none: all has.
  std::optional<int> Owed() const;
  int rank() const { return options_.members.rank; }

  MpiPost& post_;
  const Options options_;
  Status status_;         // why it cannot go on
  bool settled_ = false;  // all was sent and taken
  std::map<int, Outgoing> out_;
  std::map<int, Incoming> in_;
};

}  // namespace headrace::distributed
