#include "serving/batch/batched_runner.h"

#include <atomic>
#include <thread>

#include "serving/batch/test_runner.h"

namespace headrace::serving {
namespace {

class BatchedRunnerTest : public testing::Test {
 protected:
  BatchedRunnerTest() {
    options_.num_batch_threads = 1;
    options_.max_batch_size = options_.max_execution_batch_size = 8;
  }
  Runner& runner() {
    if (runner_ == nullptr) {
      if (scheduler_ == nullptr) scheduler_ = *BatchScheduler::Start(options_);
      runner_ = std::make_shared<BatchedRunner>(
          scheduler_, options_, BatchLabels{"m", 1, "s"}, inner_);
    }
    return *runner_;
  }
  CallPtr Ask(
      Answer& answer, Tensors inputs,
      Call::Clock::time_point deadline = Call::Clock::time_point::max()) {
    auto call = std::make_shared<Call>(deadline);
    runner().Run(call, std::move(inputs), answer.done());
    return call;
  }
  // The only thread is busy with a batch until Release.
  void Block(Answer& answer) {
    inner_->Hold();
    Ask(answer, {FloatRows(1, 1, 100)});
    inner_->WaitForBatches(1);
  }

  BatchingOptions options_;
  std::shared_ptr<FakeRunner> inner_ = std::make_shared<FakeRunner>();
  BatchSchedulerPtr scheduler_;
  RunnerPtr runner_;
};

TEST_F(BatchedRunnerTest, OneRequestRunsAtOnce) {
  Answer answer;
  Ask(answer, {FloatRows(2, 3, 5)});
  const auto got = answer.Wait();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(FloatsOf((*got)[0]), (std::vector<float>{10, 10, 10, 12, 12, 12}));
  EXPECT_EQ((*got)[0].shape(), (Shape{2, 3}));
}

TEST_F(BatchedRunnerTest, RequestsShareABatchAndEachGetsItsRows) {
  Answer first, a, b, c;
  Block(first);
  Ask(a, {FloatRows(1, 2, 1)});
  Ask(b, {FloatRows(3, 2, 10)});
  Ask(c, {FloatRows(2, 2, 20)});
  EXPECT_FALSE(a.there());
  inner_->Release();
  EXPECT_EQ(FloatsOf((*a.Wait())[0]), (std::vector<float>{2, 2}));
  EXPECT_EQ(FloatsOf((*b.Wait())[0]),
            (std::vector<float>{20, 20, 22, 22, 24, 24}));
  EXPECT_EQ(FloatsOf((*c.Wait())[0]), (std::vector<float>{40, 40, 42, 42}));
  ASSERT_EQ(inner_->batches().size(), 2u);
  EXPECT_EQ(inner_->batches()[1][0].shape(), (Shape{6, 2}));
}

TEST_F(BatchedRunnerTest, ShortBatchesAreFilledUpWithTheLastTasksFirstRow) {
  options_.allowed_batch_sizes = {2, 8};
  Answer first, a, b;
  Block(first);
  EXPECT_EQ(inner_->batches()[0][0].shape(), (Shape{2, 1}));
  Ask(a, {FloatRows(1, 1, 1)});
  Ask(b, {FloatRows(3, 1, 10)});
  inner_->Release();
  EXPECT_EQ(FloatsOf((*first.Wait())[0]), (std::vector<float>{200}));
  EXPECT_EQ(FloatsOf((*a.Wait())[0]), (std::vector<float>{2}));
  EXPECT_EQ(FloatsOf((*b.Wait())[0]), (std::vector<float>{20, 22, 24}));
  EXPECT_EQ(FloatsOf(inner_->batches()[1][0]),
            (std::vector<float>{1, 10, 11, 12, 10, 10, 10, 10}));
}

TEST_F(BatchedRunnerTest, RequestsWithoutRows) {
  options_.allowed_batch_sizes = {2, 8};
  Answer first, none, some, none_again;
  Block(first);
  Ask(some, {FloatRows(1, 2, 7)});
  Ask(none, {FloatRows(0, 2, 0)});
  inner_->Release();
  EXPECT_EQ((*none.Wait())[0].shape(), (Shape{0, 2}));
  EXPECT_EQ(FloatsOf((*some.Wait())[0]), (std::vector<float>{14, 14}));
  EXPECT_EQ(FloatsOf(inner_->batches()[1][0]),
            (std::vector<float>{7, 7, 7, 7}));
  Ask(none_again, {FloatRows(0, 2, 0)});
  EXPECT_EQ((*none_again.Wait())[0].shape(), (Shape{0, 2}));
}

TEST_F(BatchedRunnerTest, UnequalShapesNeverMeet) {
  Answer first, a, b, c;
  Block(first);
  Ask(a, {FloatRows(1, 2, 1)});
  Ask(b, {FloatRows(1, 5, 2)});
  Ask(c, {FloatRows(1, 2, 3)});
  inner_->Release();
  EXPECT_EQ(FloatsOf((*a.Wait())[0]), (std::vector<float>{2, 2}));
  EXPECT_EQ(FloatsOf((*b.Wait())[0]), (std::vector<float>{4, 4, 4, 4, 4}));
  EXPECT_EQ(FloatsOf((*c.Wait())[0]), (std::vector<float>{6, 6}));
  ASSERT_EQ(inner_->batches().size(), 3u);
  EXPECT_EQ(inner_->batches()[1][0].shape(), (Shape{2, 2}));
  EXPECT_EQ(inner_->batches()[2][0].shape(), (Shape{1, 5}));
}

TEST_F(BatchedRunnerTest, PaddingRepeatsTheTensorsOwnFirstElement) {
  options_.pad_variable_length_inputs = true;
  Answer first, a, b;
  Block(first);
  Tensor wide = *Tensor::Allocate(DType::kFloat, Shape{1, 1, 3});
  Tensor tall = *Tensor::Allocate(DType::kFloat, Shape{2, 2, 1});
  for (int i = 0; i < 3; ++i) wide.data<float>()[i] = 1 + i;
  for (int i = 0; i < 4; ++i) tall.data<float>()[i] = 11 + i;
  Ask(a, {wide});
  Ask(b, {tall});
  inner_->Release();
  EXPECT_EQ(FloatsOf((*a.Wait())[0]), (std::vector<float>{2, 4, 6, 2, 2, 2}));
  // Outputs keep the padded width.
  EXPECT_EQ((*b.Wait())[0].shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(
      FloatsOf(inner_->batches()[1][0]),
      (std::vector<float>{1, 2, 3, 1, 1, 1,  //
                          11, 11, 11, 12, 11, 11, 13, 11, 11, 14, 11, 11}));
}

TEST_F(BatchedRunnerTest, PaddingOfStrings) {
  options_.pad_variable_length_inputs = true;
  Answer first, a, b;
  inner_->Hold();
  const std::vector<std::string> x = {"a", "b"}, y = {"c"};
  const auto row = [](const std::vector<std::string>& v) {
    return Tensor::Vector<std::string>(v).WithShape(
        Shape{1, static_cast<int64_t>(v.size())});
  };
  Ask(first, {row(x)});
  inner_->WaitForBatches(1);
  Ask(a, {row(x)});
  Ask(b, {row(y)});
  inner_->Release();
  ASSERT_TRUE(a.Wait().ok());
  const Tensor got = (*b.Wait())[0];
  EXPECT_EQ(got.data<std::string>()[0], "c");
  EXPECT_EQ(got.data<std::string>()[1], "c");
}

TEST_F(BatchedRunnerTest, RequestsThatCannotBeBatched) {
  const Tensor x = FloatRows(2, 1, 0), scalar = Tensor::Scalar<float>(1);
  const struct {
    Tensors inputs;
    const char* error;
    bool padded = false;
  } rows[] = {
      {{}, "Batching Run() must have at least one input tensor"},
      {{x, scalar},
       "Batching Run() input tensors must have at least one dimension"},
      {{x, FloatRows(3, 1, 0)},
       "Batching Run() input tensors must have equal 0th-dimension size"},
      {{FloatRows(9, 1, 0)},
       "Task size 9 is larger than maximum input batch size 8"},
      {{FloatRows(2, 0, 0)}, "An empty tensor cannot be padded", true},
      {{*Tensor::Allocate(DType::kFloat, Shape{1, 1, 1, 1, 1, 1, 1})},
       "Only tensors with rank from 1 to 6 can be padded.",
       true},
  };
  for (const auto& row : rows) {
    options_.pad_variable_length_inputs = row.padded;
    runner_ = nullptr;
    Answer answer;
    Ask(answer, row.inputs);
    const Status s = answer.WaitStatus();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(s.message().substr(0, strlen(row.error)), row.error);
  }
  EXPECT_TRUE(inner_->batches().empty());
}

TEST_F(BatchedRunnerTest, OutputsWithoutTheBatchsRows) {
  const struct {
    Tensor output;
    const char* error;
  } rows[] = {
      {Tensor::Scalar<float>(1), "Batched output tensor has 0 dimensions"},
      {FloatRows(3, 1, 0),
       "Batched output tensor's 0th dimension does not equal the sum "
       "of the 0th dimension sizes of the input tensors"}};
  for (const auto& row : rows) {
    inner_ = std::make_shared<FakeRunner>();
    inner_->Give([&](const Tensors&) { return Tensors{row.output}; });
    runner_ = nullptr;
    Answer answer;
    Ask(answer, {FloatRows(2, 1, 0)});
    EXPECT_EQ(answer.WaitStatus(), FailedPrecondition(row.error));
  }
}

TEST_F(BatchedRunnerTest, AnErrorOfTheRunIsEveryRequests) {
  Answer first, a, b;
  Block(first);
  Ask(a, {FloatRows(1, 1, 1)});
  Ask(b, {FloatRows(1, 1, 2)});
  inner_->Fail(Internal("broken"));
  inner_->Release();
  EXPECT_EQ(first.WaitStatus(), Internal("broken"));
  EXPECT_EQ(a.WaitStatus(), Internal("broken"));
  EXPECT_EQ(b.WaitStatus(), Internal("broken"));
  inner_->Fail(OkStatus());
  Answer after;
  Ask(after, {FloatRows(1, 1, 1)});
  EXPECT_TRUE(after.WaitStatus().ok());
}

TEST_F(BatchedRunnerTest, LargeRequestsRunInSeveralBatches) {
  options_.max_batch_size = 20;
  options_.max_execution_batch_size = 4;
  options_.enable_large_batch_splitting = true;
  options_.allowed_batch_sizes = {2, 4};
  Answer answer;
  Ask(answer, {FloatRows(11, 1, 0)});
  const auto got = answer.Wait();
  ASSERT_TRUE(got.ok()) << got.status();
  std::vector<float> wanted;
  for (int i = 0; i < 11; ++i) wanted.push_back(2 * i);
  EXPECT_EQ(FloatsOf((*got)[0]), wanted);
  ASSERT_EQ(inner_->batches().size(), 3u);
  EXPECT_EQ(inner_->batches()[2][0].shape(), (Shape{4, 1}));
  EXPECT_EQ(answer.calls(), 1);
}

TEST_F(BatchedRunnerTest, OneFailedPieceFailsItsRequest) {
  options_.max_batch_size = 20;
  options_.max_execution_batch_size = 4;
  options_.enable_large_batch_splitting = true;
  std::atomic<int> runs{0};
  inner_->Give([&](const Tensors& in) -> StatusOr<Tensors> {
    if (++runs == 2) return Internal("piece");
    return in;
  });
  Answer answer;
  Ask(answer, {FloatRows(12, 1, 0)});
  EXPECT_EQ(answer.WaitStatus(), Internal("piece"));
  EXPECT_EQ(answer.calls(), 1);
}

TEST_F(BatchedRunnerTest, QueueFull) {
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

TEST_F(BatchedRunnerTest, ExpiredAndCancelledRequestsLeaveTheQueueUnrun) {
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

TEST_F(BatchedRunnerTest, RequestsThatCameTooLateDoNotRun) {
  Answer answer;
  Ask(answer, {FloatRows(1, 1, 1)}, Call::Clock::now());
  EXPECT_EQ(answer.WaitStatus().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(inner_->batches().empty());
}

TEST_F(BatchedRunnerTest, ARunStopsWhenNobodyWantsItAnyMore) {
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

TEST_F(BatchedRunnerTest, ACancelledRequestLeavesItsBatchToTheOthers) {
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

TEST_F(BatchedRunnerTest, ABatchRunsUnderTheLatestDeadline) {
  options_.batch_timeout_micros = 60'000'000;
  const auto now = Call::Clock::now();
  const auto last = now + std::chrono::hours(2);
  Answer a, b;
  Ask(a, {FloatRows(1, 1, 1)}, now + std::chrono::hours(1));
  Ask(b, {FloatRows(7, 1, 1)}, last);
  ASSERT_TRUE(a.WaitStatus().ok());
  EXPECT_EQ(inner_->calls()[0]->deadline(), last);
}

TEST_F(BatchedRunnerTest, RequestsWaitForCompanyNoLongerThanTheyMay) {
  options_.batch_timeout_micros = 2000;
  Answer a;
  const auto begin = Call::Clock::now();
  Ask(a, {FloatRows(1, 1, 1)});
  EXPECT_TRUE(a.WaitStatus().ok());
  EXPECT_GE(Call::Clock::now() - begin, std::chrono::microseconds(2000));
}

TEST_F(BatchedRunnerTest, UnloadWhileRequestsWait) {
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

TEST_F(BatchedRunnerTest, TheLastRequestMayEndTheScheduler) {
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

TEST_F(BatchedRunnerTest, WaitingRequestsFailWhenTheServerGivesUp) {
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

TEST_F(BatchedRunnerTest, QueuesAreServedInTurn) {
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

TEST_F(BatchedRunnerTest, QueueDepth) {
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
TEST_F(BatchedRunnerTest, AModelsRequests) {
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
TEST_F(BatchedRunnerTest, EveryAnswerBelongsToItsRequest) {
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

TEST_F(BatchedRunnerTest, Metrics) {
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
