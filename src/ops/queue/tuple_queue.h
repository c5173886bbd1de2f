// A queue of tuples of tensors that steps and threads share.
#pragma once

#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/mutex.h"
#include "op/op.h"
#include "op/resource.h"

namespace headrace {

using Tuple = std::vector<Tensor>;

// A queue of at most `capacity` tuples (negative: any number); a subclass says
// which tuple is next. Thread-safe. Calls that wait end with CheckStop.
class TupleQueue : public Resource {
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
  // Waits for room. Cancelled when the queue is closed.
  Status Enqueue(Tuple tuple);
  // Waits for `n` tuples and takes them; once the queue is closed and has
  // fewer, OutOfRange, or, with `up_to` and at least one, those.
  StatusOr<std::vector<Tuple>> Dequeue(int64_t n, bool up_to);
  // Enqueuing ends; those that wait for room go on unless `cancel_pending`.
  void Close(bool cancel_pending);
  bool closed() const;
  int64_t size() const;

 protected:
  virtual int64_t held() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual void Put(Tuple tuple) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual Tuple Take()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;  // one is held
  // So many tuples stay behind as long as the queue is open.
  virtual int64_t kept() const { return 0; }

  mutable Mutex mutex_;

 private:
  // Something may have changed, or it is time to stop.
  std::string Named() const;  // "FIFOQueue 'name'"

  const std::string kind_, name_;
  const std::vector<DType> types_;
  const std::vector<Shape> shapes_;
  const int64_t capacity_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace headrace
