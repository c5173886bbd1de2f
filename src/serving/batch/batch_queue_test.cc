#include "serving/batch/batch_queue.h"

#include "serving/batch/test_runner.h"

namespace headrace::serving {
namespace {

using Clock = BatchTask::Clock;

class BatchQueueTest : public testing::Test {
 protected:
  BatchTask TaskOf(Tensor t) {
    BatchTask task;
    task.call = std::make_shared<Call>();
    task.rows = t.dim(0);
    task.inputs.push_back(std::move(t));
    task.enqueued = now_;
    task.done = [](StatusOr<Tensors>) {};
    return task;
  }
  Status Add(int64_t rows, int64_t width = 1) {
    BatchTask task = TaskOf(FloatRows(rows, width, 0));
    return queue().Add(task);
  }
  // Rows of the next batch; -1 where none is ready.
  int64_t TakeRows() {
    const auto batch = queue().Take(now_);
    return batch == nullptr ? -1 : batch->rows;
  }
  BatchQueue& queue() {
    if (!queue_) queue_.emplace(options_);
    return *queue_;
  }

  BatchingOptions options_;
  Clock::time_point now_ = Clock::now();
  std::optional<BatchQueue> queue_;
};

TEST_F(BatchQueueTest, TasksShareABatchUpToItsSize) {
  options_.max_batch_size = options_.max_execution_batch_size = 4;
  for (const int64_t rows : {1, 2, 2, 4, 1}) ASSERT_TRUE(Add(rows).ok());
  EXPECT_EQ(queue().waiting(), 5);
  for (const int64_t rows : {3, 2, 4, 1, -1}) EXPECT_EQ(TakeRows(), rows);
  EXPECT_TRUE(queue().empty());
}

TEST_F(BatchQueueTest, TooLarge) {
  options_.max_batch_size = options_.max_execution_batch_size = 4;
  EXPECT_EQ(
      Add(5),
      InvalidArgument("Task size 5 is larger than maximum input batch size 4"));
  EXPECT_TRUE(queue().empty());
}

TEST_F(BatchQueueTest, Full) {
  options_.max_batch_size = options_.max_execution_batch_size = 4;
  options_.max_enqueued_batches = 2;
  for (const int64_t rows : {3, 3, 1}) ASSERT_TRUE(Add(rows).ok());
  EXPECT_EQ(Add(1), Unavailable("The batch scheduling queue to which this task "
                                "was submitted is full; currently 2 batches "
                                "enqueued and max_enqueued_batches is 2"));
  EXPECT_EQ(TakeRows(), 3);
  EXPECT_TRUE(Add(1).ok());
}

TEST_F(BatchQueueTest, OtherShapesHaveBatchesOfTheirOwn) {
  ASSERT_TRUE(Add(1, 3).ok());
  ASSERT_TRUE(Add(1, 5).ok());
  ASSERT_TRUE(Add(2, 3).ok());
  BatchTask other_type = TaskOf(*Tensor::Allocate(DType::kInt32, Shape{7, 3}));
  ASSERT_TRUE(queue().Add(other_type).ok());
  for (const int64_t rows : {3, 1, 7, -1}) EXPECT_EQ(TakeRows(), rows);
}

TEST_F(BatchQueueTest, ManyShapesDoNotFillTheQueueSooner) {
  options_.max_batch_size = options_.max_execution_batch_size = 4;
  options_.max_enqueued_batches = 2;
  for (int64_t width = 1; width <= 8; ++width) {
    EXPECT_TRUE(Add(1, width).ok()) << width;
  }
  EXPECT_TRUE(absl::IsUnavailable(Add(1, 9)));  // eight rows wait
}

TEST_F(BatchQueueTest, PaddedTasksShareABatchByRank) {
  options_.pad_variable_length_inputs = true;
  ASSERT_TRUE(Add(1, 3).ok());
  ASSERT_TRUE(Add(1, 5).ok());
  BatchTask cube = TaskOf(*Tensor::Allocate(DType::kFloat, Shape{1, 3, 1}));
  ASSERT_TRUE(queue().Add(cube).ok());
  for (const int64_t rows : {2, 1, -1}) EXPECT_EQ(TakeRows(), rows);
}

TEST_F(BatchQueueTest, WaitsForCompany) {
  options_.max_batch_size = options_.max_execution_batch_size = 4;
  options_.batch_timeout_micros = 1000;
  ASSERT_TRUE(Add(1).ok());
  EXPECT_EQ(TakeRows(), -1);
  EXPECT_EQ(queue().ReadyAt(), now_ + std::chrono::milliseconds(1));
  now_ += std::chrono::microseconds(999);
  ASSERT_TRUE(Add(1).ok());
  EXPECT_EQ(TakeRows(), -1);
  now_ += std::chrono::microseconds(1);
  EXPECT_EQ(TakeRows(), 2);
  // Full batches, and those that nothing can join, wait for nothing.
  ASSERT_TRUE(Add(3).ok());
  ASSERT_TRUE(Add(2).ok());
  EXPECT_EQ(TakeRows(), 3);
  EXPECT_EQ(TakeRows(), -1);
  ASSERT_TRUE(Add(2).ok());
  EXPECT_EQ(TakeRows(), 4);
  ASSERT_TRUE(Add(2).ok());
  queue().Close();
  EXPECT_EQ(TakeRows(), 2);
}

TEST_F(BatchQueueTest, LongestTimeout) {
  options_.batch_timeout_micros = INT64_MAX;
  ASSERT_TRUE(Add(1).ok());
  EXPECT_EQ(TakeRows(), -1);
  EXPECT_GT(queue().ReadyAt(), now_);
}

TEST_F(BatchQueueTest, LargeTasksAreCut) {
  options_.max_batch_size = 10;
  options_.max_execution_batch_size = 4;
  options_.enable_large_batch_splitting = true;
  ASSERT_TRUE(Add(1).ok());
  ASSERT_TRUE(Add(9).ok());  // 3 join the first
  EXPECT_EQ(queue().waiting(), 4);
  for (const int64_t rows : {4, 4, 2, -1}) EXPECT_EQ(TakeRows(), rows);
  EXPECT_EQ(Add(11),
            InvalidArgument(
                "Task size 11 is larger than maximum input batch size 10"));
}

TEST_F(BatchQueueTest, PiecesThatDoNotAllFitAreRefusedTogether) {
  options_.max_batch_size = 100;
  options_.max_execution_batch_size = 4;
  options_.enable_large_batch_splitting = true;
  options_.max_enqueued_batches = 3;
  ASSERT_TRUE(Add(2).ok());
  EXPECT_TRUE(absl::IsUnavailable(Add(11)));
  EXPECT_EQ(queue().waiting(), 1);
  ASSERT_TRUE(Add(10).ok());
  for (const int64_t rows : {4, 4, 4, -1}) EXPECT_EQ(TakeRows(), rows);
}

TEST_F(BatchQueueTest, StoppedTasksLeave) {
  options_.batch_timeout_micros = 1'000'000;
  BatchTask cancelled = TaskOf(FloatRows(2, 1, 0));
  BatchTask expired = TaskOf(FloatRows(3, 1, 0));
  const CallPtr call = cancelled.call;
  expired.call = std::make_shared<Call>(now_);
  ASSERT_TRUE(queue().Add(cancelled).ok());
  ASSERT_TRUE(queue().Add(expired).ok());
  ASSERT_TRUE(Add(1).ok());
  ASSERT_TRUE(Add(1, 2).ok());
  call->stop().Cancel();
  std::vector<BatchTask> stopped;
  queue().RemoveStopped(&stopped);
  ASSERT_EQ(stopped.size(), 2u);
  EXPECT_EQ(WaitStatus(stopped[0]).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(WaitStatus(stopped[1]),
            DeadlineExceeded(
                "Run() timeout exceeded while waiting in batching queue"));
  EXPECT_EQ(queue().waiting(), 2);
  stopped.clear();
  queue().RemoveAll(&stopped);
  EXPECT_EQ(stopped.size(), 2u);
  EXPECT_TRUE(queue().empty());
  EXPECT_EQ(queue().ReadyAt(), Clock::time_point::max());
}

}  // namespace
}  // namespace headrace::serving
