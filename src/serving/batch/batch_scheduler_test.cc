#include "serving/batch/batch_scheduler.h"

#include <atomic>
#include <thread>

#include "serving/batch/test_batched_runner.h"

namespace headrace::serving {
namespace {

using BatchSchedulerTest = BatchedRunnerTest;

TEST_F(BatchSchedulerTest, QueueFull) {
  options_.max_enqueued_batches = 1;
  Answer first, a, b;
  Block(first);
  Ask(a, {FloatRows(8, 1, 0)});
  Ask(b, {FloatRows(1, 1, 0)});
  EXPECT_EQ(b.WaitStatus(),
            Unavailable("The batch scheduling queue to which this task was "
                        "submitted is full; currently 1 batches enqueued and "
                        "max_enqueued_batches is 1"));
  inner_->Release();
  EXPECT_TRUE(a.WaitStatus().ok());
}

TEST_F(BatchSchedulerTest, ExpiredAndCancelledRequestsLeaveTheQueueUnrun) {
  Answer first, expired, cancelled, wanted;
  Block(first);
  Ask(expired, {FloatRows(1, 1, 1)},
      Call::Clock::now() + std::chrono::milliseconds(5));
  const CallPtr call = Ask(cancelled, {FloatRows(1, 1, 2)});
  Ask(wanted, {FloatRows(1, 1, 3)});
  call->stop().Cancel();
  // While the only thread is still busy.
  EXPECT_EQ(expired.WaitStatus(),
            DeadlineExceeded(
                "Run() timeout exceeded while waiting in batching queue"));
  EXPECT_EQ(cancelled.WaitStatus().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(wanted.there());
  inner_->Release();
  EXPECT_TRUE(wanted.WaitStatus().ok());
  EXPECT_EQ(inner_->batches()[1][0].shape(), (Shape{1, 1}));
}

TEST_F(BatchSchedulerTest, RequestsThatCameTooLateDoNotRun) {
  Answer answer;
  Ask(answer, {FloatRows(1, 1, 1)}, Call::Clock::now());
  EXPECT_EQ(answer.WaitStatus().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(inner_->batches().empty());
}

TEST_F(BatchSchedulerTest, ARunStopsWhenNobodyWantsItAnyMore) {
  Answer first, a, b;
  Block(first);
  const CallPtr x = Ask(a, {FloatRows(1, 1, 1)});
  const CallPtr y = Ask(b, {FloatRows(1, 1, 2)});
  inner_->Release();
  ASSERT_TRUE(first.WaitStatus().ok());
  inner_->Hold();
  // Whether the batch began before Hold or not, both answers come.
  x->stop().Cancel();
  EXPECT_TRUE(a.Wait().ok() || absl::IsCancelled(a.WaitStatus()));
  y->stop().Cancel();
  EXPECT_TRUE(b.Wait().ok() || absl::IsCancelled(b.WaitStatus()));
}

TEST_F(BatchSchedulerTest, ACancelledRequestLeavesItsBatchToTheOthers) {
  options_.batch_timeout_micros = 20'000;
  inner_->Hold();
  Answer a, b;
  const CallPtr x = Ask(a, {FloatRows(1, 1, 1)});
  Ask(b, {FloatRows(7, 1, 2)});  // the batch is full and runs
  inner_->WaitForBatches(1);
  x->stop().Cancel();
  EXPECT_TRUE(absl::IsCancelled(a.WaitStatus()));
  EXPECT_FALSE(b.there());
  EXPECT_FALSE(inner_->calls()[0]->stop().cancelled());
  inner_->Release();
  EXPECT_EQ((*b.Wait())[0].dim(0), 7);
  EXPECT_EQ(a.calls(), 1);
}

TEST_F(BatchSchedulerTest, ABatchRunsUnderTheLatestDeadline) {
  options_.batch_timeout_micros = 60'000'000;
  const auto now = Call::Clock::now();
  const auto last = now + std::chrono::hours(2);
  Answer a, b;
  Ask(a, {FloatRows(1, 1, 1)}, now + std::chrono::hours(1));
  Ask(b, {FloatRows(7, 1, 1)}, last);
  ASSERT_TRUE(a.WaitStatus().ok());
  EXPECT_EQ(inner_->calls()[0]->deadline(), last);
}

TEST_F(BatchSchedulerTest, RequestsWaitForCompanyNoLongerThanTheyMay) {
  options_.batch_timeout_micros = 2000;
  Answer a;
  const auto begin = Call::Clock::now();
  Ask(a, {FloatRows(1, 1, 1)});
  EXPECT_TRUE(a.WaitStatus().ok());
  EXPECT_GE(Call::Clock::now() - begin, std::chrono::microseconds(2000));
}

TEST_F(BatchSchedulerTest, UnloadWhileRequestsWait) {
  options_.batch_timeout_micros = 600'000'000;
  Answer a, b;
  Ask(a, {FloatRows(1, 1, 1)});
  Ask(b, {FloatRows(1, 2, 1)});
  const std::weak_ptr<FakeRunner> inner = inner_;
  runner_ = nullptr;
  inner_ = nullptr;
  EXPECT_TRUE(a.WaitStatus().ok());
  EXPECT_TRUE(b.WaitStatus().ok());
  scheduler_ = nullptr;
  EXPECT_TRUE(inner.expired());
}

TEST_F(BatchSchedulerTest, TheLastRequestMayEndTheScheduler) {
  inner_->Hold();
  Answer answer;
  runner();
  auto held = runner_;
  scheduler_ = nullptr;
  runner_ = nullptr;
  Runner* raw = held.get();
  RunDone done = answer.done();
  // As requests do, who hold their version.
  raw->Run(std::make_shared<Call>(), {FloatRows(1, 1, 1)},
           [held = std::move(held), done](StatusOr<Tensors> r) mutable {
             held = nullptr;
             done(std::move(r));
           });
  inner_->WaitForBatches(1);
  inner_->Release();
  EXPECT_TRUE(answer.WaitStatus().ok());
}

TEST_F(BatchSchedulerTest, WaitingRequestsFailWhenTheServerGivesUp) {
  Answer first, a;
  Block(first);
  Ask(a, {FloatRows(1, 1, 1)});
  EXPECT_EQ(scheduler_->waiting(), 1);
  scheduler_->FailWaiting(Unavailable("server is shutting down"));
  EXPECT_EQ(a.WaitStatus(), Unavailable("server is shutting down"));
  EXPECT_EQ(scheduler_->waiting(), 0);
  inner_->Release();
  EXPECT_TRUE(first.WaitStatus().ok());
}

TEST_F(BatchSchedulerTest, QueuesAreServedInTurn) {
  options_.max_batch_size = options_.max_execution_batch_size = 1;
  options_.max_enqueued_batches = 100;
  Answer first;
  Block(first);
  auto other_inner = std::make_shared<FakeRunner>();
  other_inner->Hold();
  BatchedRunner other(scheduler_, options_, {"other", 1, "s"}, other_inner);
  std::vector<Answer> mine(5);
  for (Answer& a : mine) Ask(a, {FloatRows(1, 1, 1)});
  Answer theirs;
  other.Run(std::make_shared<Call>(), {FloatRows(1, 1, 1)}, theirs.done());
  inner_->Release();
  other_inner->WaitForBatches(1);
  EXPECT_LE(inner_->batches().size(), 2u);
  other_inner->Release();
  for (Answer& a : mine) EXPECT_TRUE(a.WaitStatus().ok());
  EXPECT_TRUE(theirs.WaitStatus().ok());
}

TEST_F(BatchSchedulerTest, QueueDepth) {
  const auto depth = metrics::QueueDepth("m", 1, "s");
  depth->Set(0);
  Answer first, a, b;
  Block(first);
  Ask(a, {FloatRows(1, 1, 1)});
  Ask(b, {FloatRows(1, 1, 1)});
  EXPECT_EQ(depth->value(), 2);
  inner_->Release();
  EXPECT_TRUE(a.WaitStatus().ok());
  EXPECT_EQ(depth->value(), 0);
}

// A model of tests/golden: "twice" is x * 2.
TEST_F(BatchSchedulerTest, AModelsRequests) {
  options_.num_batch_threads = 2;
  scheduler_ = *BatchScheduler::Start(options_);
  ServableOptions load;
  load.wrap = WrapInBatches(scheduler_, options_, {"plain", 1});
  auto model =
      *Servable::Load({"plain", 1}, HR_GOLDEN_DIR "/saved_models/plain", load);
  const Signature* signature = model->signature("");
  ASSERT_NE(signature, nullptr);
  ASSERT_EQ(signature->inputs.size(), 1u);
  ASSERT_EQ(signature->outputs[0].name, "twice");
  const int first[] = {0};
  auto runner = *model->RunnerOf(*signature, first);
  std::vector<Answer> answers(40);
  for (size_t i = 0; i < answers.size(); ++i) {
    const float x = static_cast<float>(i);
    // Requests hold their version.
    runner->Run(std::make_shared<Call>(), {Tensor::Vector<float>({x, x + 1})},
                [model, done = answers[i].done()](StatusOr<Tensors> result) {
                  done(std::move(result));
                });
  }
  runner = nullptr;
  model = nullptr;
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto got = answers[i].Wait();
    ASSERT_TRUE(got.ok()) << got.status();
    const float x = static_cast<float>(i);
    EXPECT_EQ(FloatsOf((*got)[0]), (std::vector<float>{2 * x, 2 * x + 2}));
  }
}

// Many clients at once, of four shapes, some of whom go away.
TEST_F(BatchSchedulerTest, EveryAnswerBelongsToItsRequest) {
  options_.num_batch_threads = 3;
  options_.max_enqueued_batches = 1000;
  options_.batch_timeout_micros = 200;
  options_.allowed_batch_sizes = {4, 8};
  runner();
  constexpr int kClients = 8, kRequests = 200;
  std::atomic<int> right{0}, gone{0}, wrong{0};
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0; i < kRequests; ++i) {
        const int64_t rows = 1 + i % 3, width = 1 + (client + i) % 4;
        const float value = static_cast<float>(client * 1000 + i);
        Answer answer;
        const CallPtr call = Ask(answer, {FloatRows(rows, width, value)});
        if (i % 10 == 9) call->stop().Cancel();
        const auto got = answer.Wait();
        if (absl::IsCancelled(got.status()) && i % 10 == 9) {
          ++gone;
        } else if (got.ok() &&
                   FloatsOf((*got)[0]) == FloatsOf(*[&]() -> StatusOr<Tensor> {
                     Tensor t = FloatRows(rows, width, value);
                     for (float& x : t.span<float>()) x *= 2;
                     return t;
                   }())) {
          ++right;
        } else {
          ++wrong;
        }
        if (answer.calls() != 1) ++wrong;
      }
    });
  }
  for (std::thread& t : clients) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(right + gone, kClients * kRequests);
  EXPECT_LE(gone, kClients * kRequests / 10);
}

TEST_F(BatchSchedulerTest, Metrics) {
  const int64_t runs = metrics::BatchWrappedRunCount()->value();
  const int64_t padded = metrics::BatchPaddingSize(8)->count();
  const int64_t waited = metrics::BatchQueuingLatency("pool_of_test")->count();
  options_.thread_pool_name = "pool_of_test";
  options_.allowed_batch_sizes = {8};
  Answer answer;
  Ask(answer, {FloatRows(3, 1, 0)});
  ASSERT_TRUE(answer.WaitStatus().ok());
  EXPECT_EQ(metrics::BatchWrappedRunCount()->value(), runs + 1);
  EXPECT_EQ(metrics::BatchPaddingSize(8)->count(), padded + 1);
  EXPECT_EQ(metrics::BatchQueuingLatency("pool_of_test")->count(), waited + 1);
}

}  // namespace
}  // namespace headrace::serving
