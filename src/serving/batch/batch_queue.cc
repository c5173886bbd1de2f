#include "serving/batch/batch_queue.h"

#include <algorithm>
#include <utility>

#include "base/guard.h"
#include "serving/batch/split_task.h"

namespace headrace::serving {
namespace {

// Waits beyond 30 years are as good as for ever, and a time_point cannot hold
// the longest that a file can ask for.
constexpr int64_t kLongestWaitMicros = int64_t{1'000'000'000'000'000};

bool SameRowShape(const Tensor& a, const Tensor& b) {
  const auto x = a.shape().dims(), y = b.shape().dims();
  return x.size() == y.size() &&
         std::equal(x.begin() + 1, x.end(), y.begin() + 1);
}

}  // namespace

void BatchTask::Finish(StatusOr<Tensors> result) {
  if (!done) return;
  // What the function holds may be the last of its version.
  const RunDone last = std::exchange(done, nullptr);
  last(std::move(result));
}

Status WaitStatus(const BatchTask& task) {
  return Guarded("a request", [&] {
    Status s = task.call->stop().status();
    if (!absl::IsDeadlineExceeded(s)) return s;
    return DeadlineExceeded(
        "Run() timeout exceeded while waiting in batching queue");
  });
}

bool BatchQueue::SharesBatch(const BatchTask& a, const BatchTask& b) const {
  if (a.inputs.size() != b.inputs.size()) return false;
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    const Tensor& x = a.inputs[i];
    const Tensor& y = b.inputs[i];
    if (x.dtype() != y.dtype() || x.rank() != y.rank()) return false;
    if (!options_.pad_variable_length_inputs && !SameRowShape(x, y)) {
      return false;
    }
  }
  return true;
}

Batch* BatchQueue::OpenBatchFor(const BatchTask& task) const {
  // The latest first: of those that fit it alone may be open.
  for (auto it = batches_.rbegin(); it != batches_.rend(); ++it) {
    Batch& batch = **it;
    if (!SharesBatch(batch.tasks.front(), task)) continue;
    return batch.closed || batch.rows >= options_.max_execution_batch_size
               ? nullptr
               : &batch;
  }
  return nullptr;
}

int64_t BatchQueue::CountLike(const BatchTask& task) const {
  return std::count_if(batches_.begin(), batches_.end(), [&](const auto& b) {
    return SharesBatch(b->tasks.front(), task);
  });
}

// A queue is full by the batches that the task might have joined, as if all
// tasks were of its kind, and by the rows that as many full batches have: many
// kinds of tasks do not fill it sooner than one.
Status BatchQueue::CheckRoom(const BatchTask& task, int64_t new_batches) const {
  const int64_t most = options_.max_enqueued_batches;
  const int64_t present = static_cast<int64_t>(batches_.size());
  if (present + new_batches <= most) return OkStatus();
  int64_t most_rows;
  if (!MultiplyChecked(most, options_.max_execution_batch_size, &most_rows)) {
    most_rows = INT64_MAX;
  }
  if (CountLike(task) + new_batches <= most && task.rows <= most_rows - rows_) {
    return OkStatus();
  }
  return Unavailable(
      "The batch scheduling queue to which this task was submitted is full; "
      "currently ",
      present, " batches enqueued and max_enqueued_batches is ", most);
}

Status BatchQueue::Add(BatchTask& task) {
  if (task.rows > options_.max_batch_size) {
    return InvalidArgument("Task size ", task.rows,
                           " is larger than maximum input batch size ",
                           options_.max_batch_size);
  }
  Batch* open = OpenBatchFor(task);
  const int64_t room =
      open == nullptr ? 0 : options_.max_execution_batch_size - open->rows;
  if (open != nullptr && task.rows <= room) {
    Append(open, std::move(task));
    return OkStatus();
  }
  if (options_.enable_large_batch_splitting &&
      (room > 0 || task.rows > options_.max_execution_batch_size)) {
    return AddPieces(task, open);
  }
  HR_RETURN_IF_ERROR(CheckRoom(task, 1));
  batches_.push_back(NewBatch(task.enqueued));
  if (open != nullptr) open->closed = true;
  Append(batches_.back().get(), std::move(task));
  return OkStatus();
}

Status BatchQueue::AddPieces(BatchTask& task, Batch* open) {
  const int64_t most = options_.max_execution_batch_size;
  std::vector<int64_t> sizes;
  if (open != nullptr) sizes.push_back(most - open->rows);
  for (int64_t left = task.rows - (open == nullptr ? 0 : sizes[0]); left > 0;
       left -= most) {
    sizes.push_back(std::min(left, most));
  }
  const size_t joining = open == nullptr ? 0 : 1;
  HR_RETURN_IF_ERROR(
      CheckRoom(task, static_cast<int64_t>(sizes.size() - joining)));
  // All that needs memory comes before the task is cut.
  std::vector<std::unique_ptr<Batch>> fresh;
  for (size_t i = joining; i < sizes.size(); ++i) {
    fresh.push_back(NewBatch(task.enqueued));
  }
  batches_.reserve(batches_.size() + fresh.size());
  if (open != nullptr) open->tasks.reserve(open->tasks.size() + 1);
  std::vector<BatchTask> pieces = CutTask(task, sizes);
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i >= joining) {
      batches_.push_back(std::move(fresh[i - joining]));
      open = batches_.back().get();
    }
    Append(open, std::move(pieces[i]));
  }
  return OkStatus();
}

std::unique_ptr<Batch> BatchQueue::NewBatch(Clock::time_point created) {
  auto batch = std::make_unique<Batch>();
  batch->tasks.reserve(4);
  batch->created = created;
  return batch;
}

void BatchQueue::Append(Batch* batch, BatchTask&& task) {
  const int64_t rows = task.rows;
  batch->tasks.push_back(std::move(task));
  batch->rows += rows;
  rows_ += rows;
  ++waiting_;
}

bool BatchQueue::Ready(const Batch& batch, Clock::time_point now) const {
  if (closed_ || batch.closed || options_.batch_timeout_micros == 0) {
    return true;
  }
  if (batch.rows >= options_.max_execution_batch_size) return true;
  const std::chrono::microseconds wait(
      std::min(options_.batch_timeout_micros, kLongestWaitMicros));
  return now >= batch.created + wait;
}

std::unique_ptr<Batch> BatchQueue::Take(Clock::time_point now) {
  for (auto it = batches_.begin(); it != batches_.end(); ++it) {
    if (!Ready(**it, now)) continue;
    std::unique_ptr<Batch> batch = std::move(*it);
    batches_.erase(it);
    rows_ -= batch->rows;
    waiting_ -= static_cast<int64_t>(batch->tasks.size());
    return batch;
  }
  return nullptr;
}

BatchQueue::Clock::time_point BatchQueue::ReadyAt() const {
  if (batches_.empty()) return Clock::time_point::max();
  for (const auto& batch : batches_) {
    if (Ready(*batch, Clock::time_point::min()))
      return Clock::time_point::min();
  }
  return batches_.front()->created +
         std::chrono::microseconds(
             std::min(options_.batch_timeout_micros, kLongestWaitMicros));
}

void BatchQueue::RemoveStopped(std::vector<BatchTask>* stopped) {
  stopped->reserve(stopped->size() + waiting_);
  for (const auto& batch : batches_) {
    auto& tasks = batch->tasks;
    size_t kept = 0;
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].call->stop().cancelled()) {
        batch->rows -= tasks[i].rows;
        rows_ -= tasks[i].rows;
        --waiting_;
        stopped->push_back(std::move(tasks[i]));
        continue;
      }
      if (kept != i) tasks[kept] = std::move(tasks[i]);
      ++kept;
    }
    tasks.resize(kept);
  }
  std::erase_if(batches_, [](const auto& b) { return b->tasks.empty(); });
}

void BatchQueue::RemoveAll(std::vector<BatchTask>* removed) {
  removed->reserve(removed->size() + waiting_);
  for (const auto& batch : batches_) {
    for (BatchTask& task : batch->tasks) removed->push_back(std::move(task));
  }
  batches_.clear();
  waiting_ = rows_ = 0;
}

}  // namespace headrace::serving
