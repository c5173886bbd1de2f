#include "ops/batch/row_batcher.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

// How long a call waits before it looks whether it should stop.
constexpr std::chrono::milliseconds kPace(20);
// A year: what waits for longer waits for good.
constexpr int64_t kLongest = int64_t{365} * 24 * 3600 * 1'000'000;

Status CheckSizes(const std::vector<int64_t>& sizes, int64_t largest,
                  bool split) {
  for (size_t i = 1; i < sizes.size(); ++i) {
    if (sizes[i] > sizes[i - 1]) continue;
    return InvalidArgument(
        "allowed_batch_sizes entries must be monotonically increasing");
  }
  if (sizes.empty()) return OkStatus();
  if (sizes[0] <= 0) {
    return InvalidArgument("allowed_batch_sizes must be positive; was ",
                           sizes[0]);
  }
  if (split && sizes.back() > largest) {
    return InvalidArgument(
        "final entry in allowed_batch_sizes must be less than or equal to "
        "max_batch_size when enable_large_batch_splitting is True");
  }
  return OkStatus();
}

// Whether both may be rows of one tensor, input by input.
bool FitTogether(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].dtype() != b[i].dtype() ||
        a[i].shape().dims().subspan(1) != b[i].shape().dims().subspan(1)) {
      return false;
    }
  }
  return true;
}

}  // namespace

StatusOr<BatchRules> BatchRules::Make(const ResolvedOp& op) {
  BatchRules r;
  r.threads = op.int_attr("num_batch_threads");
  r.largest = op.int_attr("max_batch_size");
  r.enqueued = op.int_attr("max_enqueued_batches");
  r.sizes = op.attr<std::vector<int64_t>>("allowed_batch_sizes");
  const int64_t timeout = op.int_attr("batch_timeout_micros");
  if (timeout < 0) {
    return InvalidArgument("batch_timeout_micros must be non-negative; was ",
                           timeout);
  }
  if (r.largest <= 0) {
    return InvalidArgument("input_batch_size_limit must be positive; was ",
                           r.largest);
  }
  r.timeout = std::chrono::microseconds(std::min(timeout, kLongest));
  const bool* split = op.attrs().Get<bool>("enable_large_batch_splitting");
  const std::string* policy =
      op.attrs().Get<std::string>("batch_padding_policy");
  r.split = split != nullptr && *split;
  r.down = policy != nullptr && *policy == "BATCH_DOWN";
  HR_RETURN_IF_ERROR(CheckSizes(r.sizes, r.largest, r.split));
  r.most = r.split && !r.sizes.empty() ? r.sizes.back() : r.largest;
  return r;
}

int64_t BatchRules::Padded(int64_t rows) const {
  const auto at = std::lower_bound(sizes.begin(), sizes.end(), rows);
  return at == sizes.end() ? rows : *at;
}

StatusOr<std::shared_ptr<RowBatcher>> RowBatcher::Of(const KernelContext& c,
                                                     const BatchRules& rules,
                                                     StringView more) {
  std::string container = c.op().string_attr("container");
  if (container.empty()) container = "localhost";
  return c.services().resources->LookUpOrCreate<RowBatcher>(
      container, absl::StrCat(c.op().string_attr("shared_name"), "/", more),
      [&]() -> StatusOr<std::shared_ptr<RowBatcher>> {
        return std::make_shared<RowBatcher>(rules);
      });
}

// The batch that the next rows go into; null where too many wait.
RowBatcher::Waiting* RowBatcher::Open(const std::vector<Tensor>& inputs) {
  if (!waiting_.empty() && !waiting_.back()->closed) {
    Waiting& last = *waiting_.back();
    if (FitTogether(last.calls[0]->inputs, inputs)) return &last;
    last.closed = true;
  }
  if (static_cast<int64_t>(waiting_.size()) >=
      std::max<int64_t>(rules_.enqueued, 1)) {
    return nullptr;
  }
  waiting_.push_back(std::make_shared<Waiting>());
  waiting_.back()->ready = Clock::now() + rules_.timeout;
  return waiting_.back().get();
}

Status RowBatcher::Add(const std::vector<Tensor>& inputs, Calls* pieces) {
  const int64_t rows = inputs[0].dim(0);
  if (rows > rules_.largest) {
    return InvalidArgument("Task size ", rows,
                           " is larger than maximum input batch size ",
                           rules_.largest);
  }
  for (int64_t begin = 0; begin < rows || begin == 0;) {
    Waiting* batch = Open(inputs);
    const int64_t left = rows - begin;
    if (batch != nullptr && !rules_.split && batch->rows + left > rules_.most) {
      batch->closed = true;
      batch = Open(inputs);
    }
    if (batch == nullptr) {
      return Unavailable(
          "The batch scheduling queue to which this task was submitted is "
          "full; currently ",
          waiting_.size(), " batches enqueued and max_enqueued_batches is ",
          rules_.enqueued);
    }
    auto piece = std::make_shared<BatchedCall>();
    piece->rows = std::min(left, rules_.most - batch->rows);
    for (const Tensor& t : inputs) {
      piece->inputs.push_back(
          piece->rows == rows ? t : t.Rows(begin, begin + piece->rows));
    }
    batch->calls.push_back(piece);
    batch->rows += piece->rows;
    if (batch->rows >= rules_.most) batch->closed = true;
    pieces->push_back(std::move(piece));
    begin += pieces->back()->rows;
    if (rows == 0) break;
  }
  return OkStatus();
}

// Where a batch would be filled up: lets its last calls go into one of their
// own, if it is then of a size that is allowed.
void RowBatcher::LetGo(Waiting& batch) {
  if (!rules_.down || rules_.Padded(batch.rows) == batch.rows) return;
  int64_t rows = batch.rows;
  size_t kept = batch.calls.size();
  while (kept > 1 && rules_.Padded(rows) != rows) {
    rows -= batch.calls[--kept]->rows;
  }
  if (rules_.Padded(rows) != rows || rows == 0) return;
  auto rest = std::make_shared<Waiting>();
  rest->calls.assign(batch.calls.begin() + static_cast<std::ptrdiff_t>(kept),
                     batch.calls.end());
  rest->rows = batch.rows - rows;
  rest->ready = batch.ready;
  rest->closed = !waiting_.empty();
  batch.calls.resize(kept);
  batch.rows = rows;
  waiting_.push_front(std::move(rest));
}

RowBatcher::WaitingPtr RowBatcher::Take(const Calls& mine) {
  if (rules_.threads > 0 && running_ >= rules_.threads) return nullptr;
  const auto now = Clock::now();
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    Waiting& batch = **it;
    if (!batch.closed && now < batch.ready) continue;
    const auto is_mine = [&](const BatchedCallPtr& call) {
      return std::find(mine.begin(), mine.end(), call) != mine.end();
    };
    if (!std::any_of(batch.calls.begin(), batch.calls.end(), is_mine)) continue;
    WaitingPtr taken = *it;
    waiting_.erase(it);
    LetGo(*taken);
    return taken;
  }
  return nullptr;
}

void RowBatcher::RunBatch(const Waiting& batch, const Calls& mine, Run run) {
  ++running_;
  Status status, stop;
  {
    MutexUnlock open(mutex_);
    status = run(batch.calls);
    stop = CheckStop();
  }
  --running_;
  if (!stop.ok() && !status.ok()) {
    // This caller is stopped, the others are not: one of them runs the batch.
    auto again = std::make_shared<Waiting>(batch);
    again->closed = true;
    waiting_.push_front(std::move(again));
    Forget(mine);
    return;
  }
  for (const BatchedCallPtr& call : batch.calls) {
    if (call->status.ok()) call->status = status;
    call->done = true;
  }
}

// Takes these calls out of the batches that wait.
void RowBatcher::Forget(const Calls& mine) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Waiting& batch = **it;
    std::erase_if(batch.calls, [&](const BatchedCallPtr& call) {
      return std::find(mine.begin(), mine.end(), call) != mine.end();
    });
    batch.rows = 0;
    for (const BatchedCallPtr& call : batch.calls) batch.rows += call->rows;
    it = batch.calls.empty() ? waiting_.erase(it) : it + 1;
  }
}

StatusOr<RowBatcher::Calls> RowBatcher::Join(std::vector<Tensor> inputs,
                                             Run run) {
  Calls mine;
  MutexLock lock(mutex_);
  Status status = Add(inputs, &mine);
  changed_.NotifyAll();
  while (status.ok()) {
    const auto waits = [](const BatchedCallPtr& call) { return !call->done; };
    if (std::none_of(mine.begin(), mine.end(), waits)) break;
    if (const WaitingPtr batch = Take(mine)) {
      RunBatch(*batch, mine, run);
      changed_.NotifyAll();
    } else {
      auto until = Clock::now() + kPace;
      for (const WaitingPtr& b : waiting_) until = std::min(until, b->ready);
      // Ready ones wait for a thread, or for their own callers.
      until = std::max(until, Clock::now() + std::chrono::microseconds(200));
      changed_.WaitUntil(mutex_, until);
    }
    MutexUnlock open(mutex_);
    status = CheckStop();
  }
  if (!status.ok()) {
    Forget(mine);
    changed_.NotifyAll();
    return status;
  }
  for (const BatchedCallPtr& call : mine) HR_RETURN_IF_ERROR(call->status);
  return mine;
}

StatusOr<Tensor> JoinRows(const RowBatcher::Calls& calls, size_t i,
                          int64_t size) {
  const Tensor& first = calls[0]->inputs[i];
  if (calls.size() == 1 && first.dim(0) == size) return first;
  Shape shape = first.shape();
  shape.set_dim(0, size);
  HR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(first.dtype(), shape));
  const int64_t row = shape.Product(1, shape.rank());
  int64_t at = 0;
  for (const BatchedCallPtr& call : calls) {
    const Tensor& t = call->inputs[i];
    CopyRun(t.dtype(), t.raw(), At(out, at), t.num_elements());
    at += t.num_elements();
  }
  for (; at < out.num_elements(); at += row) {
    CopyRun(first.dtype(), first.raw(), At(out, at), row);
  }
  return out;
}

Status CheckRows(const std::vector<Tensor>& inputs) {
  const char* wrong = nullptr;
  for (const Tensor& t : inputs) {
    if (t.rank() == 0) {
      wrong = "Batching input tensors must have at least one dimension.";
    } else if (wrong == nullptr && inputs[0].rank() > 0 &&
               t.dim(0) != inputs[0].dim(0)) {
      wrong =
          "Batching input tensors supplied in a given op invocation must have "
          "equal 0th-dimension size.";
    }
  }
  if (wrong == nullptr) return OkStatus();
  std::string text = wrong;
  absl::StrAppend(&text, "\nBelow are the input tensors: \n");
  for (size_t i = 0; i < inputs.size(); ++i) {
    absl::StrAppend(&text, " - in__tensors_", i, " has shape ",
                    inputs[i].shape().ToString(), "\n");
  }
  return InvalidArgument(text);
}

StatusOr<std::vector<Tensor>> KeptInputs(const KernelContext& c, int begin,
                                         int end) {
  std::vector<Tensor> inputs;
  for (int i = begin; i < end; ++i) {
    const Tensor& t = c.input(i);
    if (t.counted()) {
      inputs.push_back(t);
    } else {
      HR_ASSIGN_OR_RETURN(inputs.emplace_back(), t.Clone());
    }
  }
  return inputs;
}

}  // namespace headrace
