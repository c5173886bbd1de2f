// What one member does in one collective with others, part by part: parts that
// it gives leave when a peer asks for them, parts that it asks for come.
//
// Streams between two members have an order, and nobody's memory grows beyond
// some parts: a peer that is ahead is held up.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "distributed/transport.h"
#include "headrace/collective.pb.h"
#include "ops/collective/collective.h"

namespace headrace::distributed {

// Of a group: what its members are called, by rank.
using MemberNames = std::vector<std::string>;

// Thread-safe; Give, Ask, Take, TryTake and Leave are for the member's own
// thread.
class Turn : public std::enable_shared_from_this<Turn> {
 public:
  struct Options {
    CollectiveCall call;  // without its input
    int step = 0;
    uint64_t group = 0;
    int rank = 0;
    std::shared_ptr<const MemberNames> names;
    std::set<int> askers;  // the ranks that will ask for what it gives
    // How long a peer may take to begin, and then from part to part.
    std::chrono::milliseconds begin{0}, part{0};
    // Why nobody need be waited for any more, of the group.
    std::function<Status()> over;
    // Called once, when it has left and nobody will ask any more.
    std::function<void()> settled;
    // Where somebody uses TryTake: called when there may be something for it,
    // on any thread. May be empty.
    std::function<void()> came;
  };
  explicit Turn(Options options) : options_(std::move(options)) {}

  const CollectiveCall& call() const { return options_.call; }
  int step() const { return options_.step; }

  // `last`: there are no more for that rank.
  void Give(int to, Bytes part, bool last);
  // What it has to do with `from` is told to that one, behind it `payload`.
  // With `swaps` the answer is the one part that comes, else parts come until
  // there are enough.
  void Ask(int from, Channel& channel, bool swaps, Bytes payload);
  // Waits for the next part.
  StatusOr<Bytes> Take(int from);
  // The next part, where it is there.
  StatusOr<std::optional<Bytes>> TryTake(int from);
  // The member waits for nothing more: what it has given may still be asked
  // for.
  void Leave();
  // Ends it for all, who get the error.
  void Fail(const Status& why);
  bool left() const;
  bool settled() const;

  // Whether that rank is to ask, and whether it has.
  bool Expects(int from) const { return options_.askers.contains(from); }
  bool HasAsked(int from) const;
  // Whether it is to ask, and has not; from now on it has.
  bool Claim(int from);
  // It asks, and brings a part where it swaps.
  void Arrive(int from, std::shared_ptr<ServerCall> call, Bytes payload,
              bool swaps);

 private:
  struct Outgoing {
    std::deque<Bytes> parts;
    bool closed = false;  // no more come
    bool sends = false;   // a part is on its way
    bool ended = false;
    bool swaps = false;
    std::shared_ptr<ServerCall> call;
  };
  struct Incoming {
    std::deque<Bytes> parts;
    std::deque<std::function<void()>> next;  // that hold the peer up
    int64_t taken = 0;
    bool ended = false;
    std::shared_ptr<ClientCall> call;
  };

  void Pump(int to);
  void Sent(int to, bool goes_on);
  void Came(int from, Bytes part, std::function<void()> next);
  void Ended(int from, const Answer& answer, bool swaps);
  // The next part of one from which there is one, and behind the lock *next.
  Bytes TakeFirst(Incoming& in, std::function<void()>* next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status OverLocked(int from, const Incoming& in) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellCame() {
    if (options_.came) options_.came();
  }
  void TellSettled();
  bool SettledLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Late(int from, Clock::time_point since) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  CondVar changed_;
  Status status_ ABSL_GUARDED_BY(mutex_);
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  bool told_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<int> arrived_ ABSL_GUARDED_BY(mutex_);
  std::map<int, Outgoing> out_ ABSL_GUARDED_BY(mutex_);
  std::map<int, Incoming> in_ ABSL_GUARDED_BY(mutex_);
};

// "rank 1 (/job:worker/replica:0/task:1/device:CPU:0)".
std::string MemberText(const MemberNames& names, int rank);
// "all-reduce of float[2,3], group 1, instance 4".
std::string CallText(const CollectiveCall& call);

// DeadlineExceeded of a member that waited for another's part; `parts` came
// before it.
Status LateError(const MemberNames& names, const CollectiveCall& call, int rank,
                 int from, std::chrono::duration<double> waited, int64_t parts);

// Why two members' calls that meet do not agree, as CheckAgreement says it,
// with both members.
Status DisagreeError(const Status& why, const MemberNames& names, int one,
                     int other);

// What rank `from` tells rank `to` of its call, in a group of that number.
CollectiveHeader HeaderOf(const CollectiveCall& call, uint64_t group, int from,
                          int to, int step);
// As much of a call as a peer tells of its own.
StatusOr<CollectiveCall> CallOf(const CollectiveHeader& header);

// Who asks whom for what, and the bytes behind it.
Bytes WithHeader(const CollectiveHeader& header, Bytes payload);
// InvalidArgument where there is none.
Status SplitHeader(const Bytes& bytes, CollectiveHeader* header,
                   Bytes* payload);

}  // namespace headrace::distributed
