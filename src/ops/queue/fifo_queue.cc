#include "ops/queue/fifo_queue.h"

#include <chrono>

namespace headrace {

FifoQueue::FifoQueue(std::string name, std::vector<DType> types,
                     std::vector<Shape> shapes, int64_t capacity)
    : name_(std::move(name)),
      types_(std::move(types)),
      shapes_(std::move(shapes)),
      capacity_(capacity) {}

std::string FifoQueue::DebugString() const {
  return absl::StrCat("FIFOQueue '", name_, "'");
}

Status FifoQueue::CheckTuple(absl::Span<const Tensor> tuple, bool many) const {
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
    if (have != shapes_[i]) {
      return InvalidArgument("Shape mismatch in tuple component ", i,
                             ". Expected ", shapes_[i], ", got ", have);
    }
  }
  return OkStatus();
}

// A run's deadline or cancelling is looked at now and then.
template <typename F>
Status FifoQueue::Wait(std::unique_lock<std::mutex>& lock,
                       const CancellationToken* cancel, F&& ready) {
  while (!ready()) {
    if (cancel) HR_RETURN_IF_ERROR(cancel->status());
    changed_.wait_for(lock, std::chrono::milliseconds(20));
  }
  return OkStatus();
}

Status FifoQueue::Enqueue(Tuple tuple, const CancellationToken* cancel) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (closed_) return Cancelled("FIFOQueue '", name_, "' is closed.");
  HR_RETURN_IF_ERROR(Wait(lock, cancel, [&] {
    return cancelled_ || capacity_ < 0 ||
           static_cast<int64_t>(tuples_.size()) < capacity_;
  }));
  if (cancelled_) return Cancelled("FIFOQueue '", name_, "' is closed.");
  tuples_.push_back(std::move(tuple));
  changed_.notify_all();
  return OkStatus();
}

StatusOr<std::vector<Tuple>> FifoQueue::Dequeue(
    int64_t n, bool up_to, const CancellationToken* cancel) {
  std::unique_lock<std::mutex> lock(mutex_);
  auto held = [&] { return static_cast<int64_t>(tuples_.size()); };
  HR_RETURN_IF_ERROR(
      Wait(lock, cancel, [&] { return closed_ || held() >= n; }));
  int64_t taken = n;
  if (held() < n) {
    if (!up_to || held() == 0) {
      return OutOfRange("FIFOQueue '", name_,
                        "' is closed and has insufficient elements "
                        "(requested ",
                        n, ", current size ", held(), ")");
    }
    taken = held();
  }
  std::vector<Tuple> out;
  for (int64_t i = 0; i < taken; ++i) {
    out.push_back(std::move(tuples_.front()));
    tuples_.pop_front();
  }
  changed_.notify_all();
  return out;
}

void FifoQueue::Close(bool cancel_pending) {
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  cancelled_ |= cancel_pending;
  changed_.notify_all();
}

bool FifoQueue::closed() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

int64_t FifoQueue::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(tuples_.size());
}

}  // namespace headrace
