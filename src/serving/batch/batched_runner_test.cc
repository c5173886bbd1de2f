#include "serving/batch/batched_runner.h"

#include <atomic>
#include <cstring>

#include "serving/batch/test_batched_runner.h"

namespace headrace::serving {
namespace {

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

}  // namespace
}  // namespace headrace::serving
