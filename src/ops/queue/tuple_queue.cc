#include "ops/queue/tuple_queue.h"

#include <algorithm>

#include "ops/queue/await_change.h"

namespace headrace {
namespace {

// A call's place in the line of its kind, unless it was served before.
template <typename Call>
class Turn {
 public:
  Turn(std::deque<Call*>* line, Call* call) : line_(line), call_(call) {
    line_->push_back(call_);
  }
  ~Turn() { std::erase(*line_, call_); }
  Turn(const Turn&) = delete;

 private:
  std::deque<Call*>* const line_;
  Call* const call_;
};

}  // namespace

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

Status TupleQueue::Enqueue(std::vector<Tuple> tuples) {
  MutexLock lock(mutex_);
  if (closed_) return Cancelled(Named(), " is closed.");
  if (WaitingRefused() && (!putting_.empty() || IsFull())) return WouldWait();
  Putting call{std::move(tuples)};
  const Turn<Putting> turn(&putting_, &call);
  return AwaitPut(call);
}

Status TupleQueue::AwaitPut(const Putting& call) {
  Flush();
  while (!call.done()) {
    if (cancelled_) return Cancelled(Named(), " is closed.");
    const Status s = AwaitChange(mutex_, changed_);
    // What came in meanwhile is in: an error would have it put in again.
    if (!s.ok() && !call.done()) return s;
  }
  return OkStatus();
}

StatusOr<std::vector<Tuple>> TupleQueue::Dequeue(int64_t n, bool up_to) {
  MutexLock lock(mutex_);
  if (WaitingRefused() && !Ended() && (!taking_.empty() || Givable() < n)) {
    return WouldWait();
  }
  Taking call{n, {}};
  Status s;
  {
    const Turn<Taking> turn(&taking_, &call);
    s = AwaitTaken(call, up_to);
  }
  if (s.ok()) {
    Flush();  // for those behind, whose turn it is
    return std::move(call.taken);
  }
  std::vector<Tuple>& taken = call.taken;
  for (; !taken.empty(); taken.pop_back()) PutBack(std::move(taken.back()));
  Flush();
  changed_.NotifyAll();
  if (!absl::IsOutOfRange(s)) return s;
  return OutOfRange(Named(),
                    " is closed and has insufficient elements (requested ", n,
                    ", current size ", held(), ")");
}

// OutOfRange where fewer will come.
Status TupleQueue::AwaitTaken(const Taking& call, bool up_to) {
  Flush();
  while (!call.done()) {
    if (taking_.front() == &call && Ended()) {
      return up_to && !call.taken.empty() ? OkStatus() : OutOfRange("too few");
    }
    HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
    Flush();  // the queue may have been closed, or a call before have gone
  }
  return OkStatus();
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
      putting_.pop_front();
    }
    while (!taking_.empty()) {
      Taking* const call = taking_.front();
      while (!call->done() && Givable() > 0) {
        call->taken.push_back(Take());
        more = true;
      }
      if (!call->done()) break;
      taking_.pop_front();
    }
    any = any || more;
  }
  if (any) changed_.NotifyAll();
}

void TupleQueue::Close(bool cancel_pending) {
  MutexLock lock(mutex_);
  closed_ = true;
  cancelled_ |= cancel_pending;
  changed_.NotifyAll();
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
