#include "ops/queue/tuple_queue.h"

#include <algorithm>
#include <utility>

#include "ops/queue/await_change.h"

namespace headrace {

class ABSL_SCOPED_LOCKABLE TupleQueue::Change {
 public:
  explicit Change(TupleQueue& queue) ABSL_EXCLUSIVE_LOCK_FUNCTION(queue.mutex_)
      : queue_(queue) {
    queue_.mutex_.lock();
  }
  ~Change() ABSL_UNLOCK_FUNCTION() {
    queue_.FindTold();
    const bool changed = std::exchange(queue_.has_changed_, false);
    const auto told = std::exchange(queue_.told_, {});
    queue_.mutex_.unlock();
    if (changed) queue_.changed_.NotifyAll();
    for (const auto& ready : told) ready();
  }
  Change(const Change&) = delete;

 private:
  TupleQueue& queue_;
};

template <typename Call>
class TupleQueue::Place : public WaitingPlace {
 public:
  Place(std::shared_ptr<TupleQueue> queue, Call made)
      : call(std::move(made)), queue_(std::move(queue)) {}
  ~Place() override {
    const Change change(*queue_);
    queue_->Leave(call);
  }
  void Await(std::function<void()> ready) override {
    {
      MutexLock lock(queue_->mutex_);
      if (!queue_->IsOver(call)) {
        call.ready = std::move(ready);
        return;
      }
    }
    ready();
  }

  Call call;

 private:
  const std::shared_ptr<TupleQueue> queue_;
};

TupleQueue::TupleQueue(StringView kind, std::string name,
                       std::vector<DType> types, std::vector<Shape> shapes,
                       int64_t capacity)
    : kind_(kind),
      name_(std::move(name)),
      types_(std::move(types)),
      shapes_(std::move(shapes)),
      capacity_(capacity) {}

std::string TupleQueue::Named() const {
  return absl::StrCat(kind_, " '", name_, "'");
}

std::string TupleQueue::DebugString() const { return Named(); }

Status TupleQueue::CheckTuple(absl::Span<const Tensor> tuple, bool many) const {
  if (tuple.size() != types_.size()) {
    return InvalidArgument("Wrong number of components in tuple. Expected ",
                           types_.size(), ", got ", tuple.size());
  }
  for (size_t i = 0; i < tuple.size(); ++i) {
    const Tensor& t = tuple[i];
    if (t.dtype() != types_[i]) {
      return InvalidArgument("Type mismatch in tuple component ", i,
                             ". Expected ", DTypeName(types_[i]), ", got ",
                             DTypeName(t.dtype()));
    }
    const bool rows_differ =
        many && (t.rank() == 0 || t.dim(0) != tuple[0].dim(0));
    if (!shapes_.empty() && (!many || tuple[0].rank() > 0)) {
      const Shape want =
          many ? Shape({tuple[0].dim(0)}).Concat(shapes_[i]) : shapes_[i];
      if (!want.CompatibleWith(t.shape())) {
        return InvalidArgument("Shape mismatch in tuple component ", i,
                               ". Expected ", want, ", got ", t.shape());
      }
    }
    if (rows_differ) {
      return InvalidArgument(
          "All input tensors must have the same size in "
          "the 0th dimension. Component ",
          i, " has shape ", t.shape());
    }
  }
  return OkStatus();
}

void TupleQueue::FindTold() {
  const auto tell = [&](auto* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (call->ready) told_.push_back(std::exchange(call->ready, nullptr));
  };
  if (cancelled_) {
    for (Putting* call : putting_) tell(call);
  }
  if (!taking_.empty() && Ended()) tell(taking_.front());
}

bool TupleQueue::TellChanges() {
  FindTold();
  if (!has_changed_ && told_.empty()) return false;
  const bool changed = std::exchange(has_changed_, false);
  const auto told = std::exchange(told_, {});
  MutexUnlock open(mutex_);
  if (changed) changed_.NotifyAll();
  for (const auto& ready : told) ready();
  return true;
}

template <typename Call>
Status TupleQueue::AwaitEndOf(Call& call) {
  while (true) {
    Flush();  // the queue may have been closed, or a call before have gone
    if (IsOver(call)) return OkStatus();
    if (TellChanges()) continue;
    const Status s = AwaitChange(mutex_, changed_);
    if (s.ok()) continue;
    // What came in meanwhile is in: an error would have it put in again. What
    // was taken meanwhile goes back.
    if (std::is_same_v<Call, Taking> || !call.done()) return s;
  }
}

Status TupleQueue::ResultOf(const Putting& call) {
  if (call.done()) return OkStatus();
  return Cancelled(Named(), " is closed.");
}

StatusOr<std::vector<Tuple>> TupleQueue::ResultOf(Taking& call) {
  if (call.done() || (call.up_to && !call.taken.empty())) {
    return std::exchange(call.taken, {});
  }
  Leave(call);
  return OutOfRange(Named(),
                    " is closed and has insufficient elements (requested ",
                    call.n, ", current size ", held(), ")");
}

void TupleQueue::Leave(Putting& call) {
  // It may be another one's turn.
  has_changed_ |= std::erase(putting_, &call) > 0;
  Flush();
}

void TupleQueue::Leave(Taking& call) {
  const auto give_back = [&](std::vector<Tuple>& taken)
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                               for (; !taken.empty(); taken.pop_back())
                                 PutBack(std::move(taken.back()));
                             };
  has_changed_ |= std::erase(taking_, &call) > 0 || !call.taken.empty();
  // What the next one has by now came behind that.
  if (!call.taken.empty() && !taking_.empty()) {
    give_back(taking_.front()->taken);
  }
  give_back(call.taken);
  Flush();
}

Status TupleQueue::Enqueue(std::vector<Tuple> tuples) {
  const Change change(*this);
  if (closed_) return Cancelled(Named(), " is closed.");
  const auto count = static_cast<int64_t>(tuples.size());
  const bool fits =
      putting_.empty() && (capacity_ < 0 || held() + count <= capacity_);
  if (WaitingRefused() && !fits) {
    auto* const left = WaitRefusal::Place();
    if (left == nullptr) return WouldWait();
    auto made = std::make_shared<Place<Putting>>(shared_from_this(),
                                                 Putting{std::move(tuples)});
    putting_.push_back(&made->call);
    *left = std::move(made);
    Flush();  // of many some may fit
    return WouldWait();
  }
  Putting call{std::move(tuples)};
  putting_.push_back(&call);
  const Status s = AwaitEndOf(call);
  Leave(call);
  return s.ok() ? ResultOf(call) : s;
}

Status TupleQueue::GoOnEnqueuing(WaitingPlace& place) {
  auto& call = dynamic_cast<Place<Putting>&>(place).call;
  const Change change(*this);
  Flush();
  return IsOver(call) ? ResultOf(call) : WouldWait();
}

StatusOr<std::vector<Tuple>> TupleQueue::Dequeue(int64_t n, bool up_to) {
  const Change change(*this);
  if (WaitingRefused() && !Ended() && (!taking_.empty() || Givable() < n)) {
    auto* const left = WaitRefusal::Place();
    if (left == nullptr) return WouldWait();
    auto made =
        std::make_shared<Place<Taking>>(shared_from_this(), Taking{n, up_to});
    taking_.push_back(&made->call);
    *left = std::move(made);
    Flush();  // what is there is taken, so that others may put in more
    return WouldWait();
  }
  Taking call{n, up_to};
  taking_.push_back(&call);
  if (const Status s = AwaitEndOf(call); !s.ok()) {
    Leave(call);
    return s;
  }
  auto result = ResultOf(call);
  std::erase(taking_, &call);
  Flush();  // for those behind, whose turn it is
  return result;
}

StatusOr<std::vector<Tuple>> TupleQueue::GoOnDequeuing(WaitingPlace& place) {
  auto& call = dynamic_cast<Place<Taking>&>(place).call;
  const Change change(*this);
  Flush();
  if (!IsOver(call)) return WouldWait();
  auto result = ResultOf(call);
  std::erase(taking_, &call);
  Flush();
  return result;
}

void TupleQueue::Flush() {
  bool any = false, more = true;
  while (more) {
    more = false;
    while (!putting_.empty()) {
      Putting* const call = putting_.front();
      while (!call->done() && !cancelled_ && !IsFull()) {
        Put(std::move(call->tuples[call->put++]));
        more = true;
      }
      if (!call->done()) break;
      if (call->ready) told_.push_back(std::exchange(call->ready, nullptr));
      putting_.pop_front();
    }
    while (!taking_.empty()) {
      Taking* const call = taking_.front();
      while (!call->done() && Givable() > 0) {
        call->taken.push_back(Take());
        more = true;
      }
      if (!call->done()) break;
      if (call->ready) told_.push_back(std::exchange(call->ready, nullptr));
      taking_.pop_front();
    }
    any = any || more;
  }
  has_changed_ |= any;
}

Status TupleQueue::Close(bool cancel_pending) {
  const Change change(*this);
  if (closed_ && !cancel_pending) {
    return Cancelled("Queue '", name_, "' is already closed.");
  }
  closed_ = true;
  cancelled_ |= cancel_pending;
  has_changed_ = true;
  return OkStatus();
}

bool TupleQueue::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

int64_t TupleQueue::size() const {
  MutexLock lock(mutex_);
  return held();
}

}  // namespace headrace
