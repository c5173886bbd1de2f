// Rows of calls that come at the same time, put together.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/mutex.h"
#include "base/timed_cond_var.h"
#include "op/op.h"
#include "op/resource.h"

namespace headrace {

// What the attributes of Batch and BatchFunction say.
struct BatchRules {
  int64_t threads = 0;   // batches that run at the same time; 0: any number
  int64_t largest = 0;   // rows of a call
  int64_t most = 0;      // rows of a batch
  int64_t enqueued = 0;  // batches that wait
  std::chrono::microseconds timeout{0};
  std::vector<int64_t> sizes;  // what batches are filled up to; empty: nothing
  bool split = false;          // calls are cut
  // A batch lets calls go that would have it filled up.
  bool down = false;

  // InvalidArgument, with upstream's texts, where they make no sense.
  static StatusOr<BatchRules> Make(const ResolvedOp& op);
  // The size that a batch of so many rows is filled up to.
  int64_t Padded(int64_t rows) const;
};

// A call, or a piece of one, on its way.
struct BatchedCall {
  std::vector<Tensor> inputs;  // all of so many rows; nobody else writes them
  int64_t rows = 0;
  // Set when it is done.
  std::vector<Tensor> results;
  Status status;
  bool done = false;
};
using BatchedCallPtr = std::shared_ptr<BatchedCall>;

// No threads of its own: of the calls that wait, the first that sees that a
// batch is full, or has waited for long enough, runs it for all. Thread-safe.
class RowBatcher : public Resource {
 public:
  using Calls = std::vector<BatchedCallPtr>;
  // Sets the results of all calls, or gives the error of all.
  using Run = absl::FunctionRef<Status(const Calls& calls)>;

  explicit RowBatcher(BatchRules rules) : rules_(std::move(rules)) {}
  std::string DebugString() const override { return "RowBatcher"; }
  const BatchRules& rules() const { return rules_; }

  // Runs the call, or its pieces, with others; `run` may run others' calls,
  // too, and others may run these. The pieces in their order, all done. Errors:
  // the call's, InvalidArgument for too many rows, Unavailable where too many
  // batches wait, what CheckStop says.
  StatusOr<Calls> Join(std::vector<Tensor> inputs, Run run);

  // The batcher of the op's container and name, made where there is none.
  // `more` tells apart those of one name.
  static StatusOr<std::shared_ptr<RowBatcher>> Of(const KernelContext& c,
                                                  const BatchRules& rules,
                                                  StringView more);

 private:
  struct Waiting {
    Calls calls;
    int64_t rows = 0;
    std::chrono::steady_clock::time_point ready;
    bool closed = false;
  };
  using WaitingPtr = std::shared_ptr<Waiting>;

  Status Add(const std::vector<Tensor>& inputs, Calls* pieces)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Waiting* Open(const std::vector<Tensor>& inputs)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the first batch that may run and holds one of these calls.
  WaitingPtr Take(const Calls& mine) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LetGo(Waiting& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunBatch(const Waiting& batch, const Calls& mine, Run run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const Calls& mine) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BatchRules rules_;
  Mutex mutex_;
  TimedCondVar changed_;
  std::deque<WaitingPtr> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Rows of the calls' inputs `i`, one behind the other, filled up to `size` with
// copies of the first.
StatusOr<Tensor> JoinRows(const RowBatcher::Calls& calls, size_t i,
                          int64_t size);
// InvalidArgument, with upstream's text, unless all have as many rows.
Status CheckRows(const std::vector<Tensor>& inputs);
// Inputs [begin, end), which may be kept.
StatusOr<std::vector<Tensor>> KeptInputs(const KernelContext& c, int begin,
                                         int end);

}  // namespace headrace
