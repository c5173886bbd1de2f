// A queue of tuples of tensors that steps and threads share.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/mutex.h"
#include "op/op.h"
#include "op/resource.h"
#include "op/waiting.h"

namespace headrace {

using Tuple = std::vector<Tensor>;

// A queue of at most `capacity` tuples (negative: any number); a subclass says
// which tuple is next. Thread-safe. Calls that wait end with CheckStop; where
// waiting is refused (WaitRefusal) they end with WouldWait, and keep their
// place in line where that may be left: GoOn is then the call that is tried
// again.
class TupleQueue : public Resource,
                   public std::enable_shared_from_this<TupleQueue> {
 public:
  // `kind` ("FIFOQueue") and `name` are for messages.
  TupleQueue(StringView kind, std::string name, std::vector<DType> types,
             std::vector<Shape> shapes, int64_t capacity);
  std::string DebugString() const override;
  const std::string& kind() const { return kind_; }
  const std::vector<DType>& types() const { return types_; }
  // What tuples' shapes must be like; empty: anything.
  const std::vector<Shape>& shapes() const { return shapes_; }
  int64_t capacity() const { return capacity_; }

  // InvalidArgument when a component has the wrong dtype or shape; with `many`
  // their rows are what is queued.
  Status CheckTuple(absl::Span<const Tensor> tuple, bool many) const;
  // Puts all in, in order, as many at a time as there is room for; others that
  // put come behind. Cancelled when the queue is closed: what is in stays.
  Status Enqueue(std::vector<Tuple> tuples);
  // Takes `n` tuples as they come, so there may be more than the queue has room
  // for; others that take come behind. Once the queue is closed and has fewer,
  // OutOfRange, or, with `up_to` and at least one, those. What was taken is put
  // back where the call fails.
  StatusOr<std::vector<Tuple>> Dequeue(int64_t n, bool up_to);
  // The call of Enqueue or Dequeue which left that place: WouldWait as before.
  Status GoOnEnqueuing(WaitingPlace& place);
  StatusOr<std::vector<Tuple>> GoOnDequeuing(WaitingPlace& place);
  // Enqueuing ends; those that wait for room go on unless `cancel_pending`,
  // without which a closed queue is Cancelled.
  Status Close(bool cancel_pending);
  bool closed() const;
  int64_t size() const;

 protected:
  virtual int64_t held() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual void Put(Tuple tuple) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual Tuple Take()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;  // one is held
  // One that was taken, behind which no other was put back since.
  virtual void PutBack(Tuple tuple) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // So many tuples stay behind as long as the queue is open.
  virtual int64_t kept() const { return 0; }

  mutable Mutex mutex_;

 private:
  bool IsFull() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return capacity_ >= 0 && held() >= capacity_;
  }
  int64_t Givable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return held() - (closed_ ? 0 : kept());
  }
  // Nobody will put anything in.
  bool Ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return closed_ && (cancelled_ || putting_.empty());
  }
  // Calls under way. What one lets others do, its own thread does for them, so
  // that nobody sees the queue between.
  struct Putting {
    std::vector<Tuple> tuples;
    size_t put = 0;
    std::function<void()> ready = nullptr;  // of one that left its place
    bool done() const { return put == tuples.size(); }
  };
  struct Taking {
    int64_t n = 0;
    bool up_to = false;
    std::vector<Tuple> taken = {};
    std::function<void()> ready = nullptr;  // of one that left its place
    bool done() const { return static_cast<int64_t>(taken.size()) == n; }
  };
  // The place of such a call, which is the call.
  template <typename Call>
  class Place;
  // Holds the lock while it lives; behind it tells who waits for what changed:
  // who is woken within the lock waits for it once more.
  class ABSL_SCOPED_LOCKABLE Change;
  void Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells now, with the lock open: whether there was anything to tell.
  bool TellChanges() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FindTold() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the call need wait no longer: it is done, or fails.
  bool IsOver(const Putting& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return call.done() || cancelled_;
  }
  bool IsOver(const Taking& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return call.done() || (taking_.front() == &call && Ended());
  }
  // What a call gives that is over.
  Status ResultOf(const Putting& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<std::vector<Tuple>> ResultOf(Taking& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Out of its line; what it has taken is there again.
  void Leave(Putting& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(Taking& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits, the call being in its line.
  template <typename Call>
  Status AwaitEndOf(Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Named() const;  // "FIFOQueue 'name'"

  const std::string kind_, name_;
  const std::vector<DType> types_;
  const std::vector<Shape> shapes_;
  const int64_t capacity_;
  CondVar changed_;
  // In the order in which they came.
  std::deque<Putting*> putting_ ABSL_GUARDED_BY(mutex_);
  std::deque<Taking*> taking_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_changed_ ABSL_GUARDED_BY(mutex_) = false;  // and nobody was told
  std::vector<std::function<void()>> told_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace
