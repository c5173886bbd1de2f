// A queue of tuples of tensors that steps and threads share.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "op/op.h"
#include "op/resource.h"

namespace headrace {

using Tuple = std::vector<Tensor>;

// First in, first out; at most `capacity` tuples (negative: any number).
// Thread-safe. Calls that wait stop with Cancelled when `cancel` (may be null)
// is cancelled.
class FifoQueue : public Resource {
 public:
  FifoQueue(std::string name, std::vector<DType> types,
            std::vector<Shape> shapes, int64_t capacity);
  std::string DebugString() const override;
  const std::vector<DType>& types() const { return types_; }
  // What tuples' shapes must be; empty: anything.
  const std::vector<Shape>& shapes() const { return shapes_; }

  // InvalidArgument when a component has the wrong dtype or shape; with `many`
  // their rows are what is queued.
  Status CheckTuple(absl::Span<const Tensor> tuple, bool many) const;
  // Waits for room. Cancelled when the queue is closed.
  Status Enqueue(Tuple tuple, const CancellationToken* cancel);
  // Waits for `n` tuples and takes them; once the queue is closed and has
  // fewer, OutOfRange, or, with `up_to` and at least one, those.
  StatusOr<std::vector<Tuple>> Dequeue(int64_t n, bool up_to,
                                       const CancellationToken* cancel);
  // Enqueuing ends; those that wait for room go on unless `cancel_pending`.
  void Close(bool cancel_pending);
  bool closed() const;
  int64_t size() const;

 private:
  template <typename F>
  Status Wait(std::unique_lock<std::mutex>& lock,
              const CancellationToken* cancel, F&& ready);

  const std::string name_;
  const std::vector<DType> types_;
  const std::vector<Shape> shapes_;
  const int64_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Tuple> tuples_;
  bool closed_ = false, cancelled_ = false;
};

}  // namespace headrace
