#include "ops/queue/tuple_queue.h"

#include "ops/queue/await_change.h"

namespace headrace {

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
    if (many && (t.rank() == 0 || t.dim(0) != tuple[0].dim(0))) {
      return InvalidArgument(
          "All input tensors must have the same size in "
          "the 0th dimension. Component ",
          i, " has shape ", t.shape());
    }
    if (shapes_.empty()) continue;
    const Shape have = many ? t.shape().Sub(1, t.rank()) : t.shape();
    if (!shapes_[i].CompatibleWith(have)) {
      return InvalidArgument("Shape mismatch in tuple component ", i,
                             ". Expected ", shapes_[i], ", got ", have);
    }
  }
  return OkStatus();
}

Status TupleQueue::Enqueue(Tuple tuple) {
  MutexLock lock(mutex_);
  if (closed_) return Cancelled(Named(), " is closed.");
  while (!cancelled_ && capacity_ >= 0 && held() >= capacity_) {
    HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
  }
  if (cancelled_) return Cancelled(Named(), " is closed.");
  Put(std::move(tuple));
  changed_.NotifyAll();
  return OkStatus();
}

StatusOr<std::vector<Tuple>> TupleQueue::Dequeue(int64_t n, bool up_to) {
  MutexLock lock(mutex_);
  while (!closed_ && held() - kept() < n)
    HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
  int64_t taken = n;
  if (held() < n) {
    if (!up_to || held() == 0) {
      return OutOfRange(Named(),
                        " is closed and has insufficient elements (requested ",
                        n, ", current size ", held(), ")");
    }
    taken = held();
  }
  std::vector<Tuple> out;
  for (int64_t i = 0; i < taken; ++i) out.push_back(Take());
  changed_.NotifyAll();
  return out;
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
