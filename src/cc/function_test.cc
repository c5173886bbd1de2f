// Which trace a call of a traced function takes.
#include "headrace/function.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;

namespace {

using Tensors = std::vector<tf::Tensor>;

tf::Tensor Ones(std::vector<int32_t> dims) {
  const int rank = static_cast<int>(dims.size());
  return tf::Fill(tf::Tensor::From<int32_t>(dims, {rank}), tf::Tensor(1.0f));
}

TEST(Function, OneTraceForEachSignature) {
  const tf::Function f([](const Tensors& x) { return Tensors{x[0] + x[0]}; });
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(f({Ones({2})})[0].vector<float>(), (std::vector<float>{2, 2}));
    EXPECT_EQ(f({tf::Tensor(3)})[0].item<int32_t>(), 6);
    EXPECT_EQ(f({Ones({2, 1})})[0].shape().dims, (std::vector<int64_t>{2, 1}));
  }
  EXPECT_EQ(f.trace_count(), 3);
}

// A body's tensors belong to the call that it was traced in.
TEST(Function, TracesWithTensorsOfAGraphStayInIt) {
  tf::Tensor outside;
  const tf::Function inner(
      [&](const Tensors& x) { return Tensors{x[0] * outside}; });
  const tf::Function outer([&](const Tensors& x) {
    outside = x[1];
    return inner({x[0]});
  });
  EXPECT_EQ(outer({tf::Tensor(2.0f), tf::Tensor(3.0f)})[0].item<float>(), 6);
  EXPECT_EQ(outer({tf::Tensor(2.0f), Ones({1})})[0].vector<float>()[0], 2);
  outside = tf::Tensor(5.0f);
  EXPECT_EQ(inner({tf::Tensor(2.0f)})[0].item<float>(), 10);
  EXPECT_EQ(inner.trace_count(), 3);
}

TEST(Function, BodiesMayCallTheFunctionForOtherSignatures) {
  std::unique_ptr<tf::Function> f;
  f = std::make_unique<tf::Function>([&](const Tensors& x) {
    const int64_t rank = static_cast<int64_t>(x[0].shape().dims.size());
    if (rank == 0) return Tensors{x[0]};
    return (*f)({tf::Sum(x[0], tf::Tensor(0))});
  });
  EXPECT_EQ((*f)({Ones({2, 3, 4})})[0].item<float>(), 24);
  EXPECT_EQ(f->trace_count(), 4);
}

TEST(Function, BodiesWithoutEndAreAnError) {
  std::unique_ptr<tf::Function> f;
  f = std::make_unique<tf::Function>([&](const Tensors& x) { return (*f)(x); });
  try {
    (*f)({tf::Tensor(1.0f)});
    FAIL();
  } catch (const tf::Error& e) {
    EXPECT_EQ(e.code(), tf::ErrorCode::kResourceExhausted);
  }
}

TEST(Function, ErrorsOfABodyLeaveNoTrace) {
  bool fails = true;
  const tf::Function f([&](const Tensors& x) {
    if (fails) throw std::runtime_error("not yet");
    return x;
  });
  EXPECT_THROW(f({tf::Tensor(1.0f)}), std::runtime_error);
  EXPECT_EQ(f.trace_count(), 0);
  fails = false;
  EXPECT_EQ(f({tf::Tensor(1.0f)})[0].item<float>(), 1);
}

TEST(Function, SeveralThreadsTraceOnce) {
  tf::Variable v(tf::Tensor(2.0f));
  const tf::Function f([&](const Tensors& x) { return Tensors{x[0] * v}; });
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const float x = static_cast<float>(i);
        right += f({tf::Tensor(x)})[0].item<float>() == 2 * x;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 200);
  EXPECT_EQ(f.trace_count(), 1);
}

// While x is not negative: for 1 without end.
Tensors SquareWhilePositive(const Tensors& x) {
  return {tf::While(
      [](const tf::Tensor& x) { return tf::GreaterEqual(x, tf::Abs(x)); },
      [](const tf::Tensor& x) { return x * x; }, x[0])};
}

template <typename F>
tf::ErrorCode CodeOfCall(F call) {
  try {
    call();
  } catch (const tf::Error& e) {
    return e.code();
  }
  ADD_FAILURE() << "the call ran to its end";
  return tf::ErrorCode::kUnknown;
}

TEST(Function, TimeoutsEndLoopsWithoutEnd) {
  using std::chrono::milliseconds;
  const tf::Function f(SquareWhilePositive, {.timeout = milliseconds(300)});
  EXPECT_EQ(CodeOfCall([&] { f({tf::Tensor(1.0f)}); }),
            tf::ErrorCode::kDeadlineExceeded);
  // Another call, with its own time.
  EXPECT_EQ(f({tf::Tensor(-1.0f)})[0].item<float>(), -1);
  EXPECT_EQ(f.trace_count(), 1);
  const auto typed =
      tf::function<1>([](auto& x) { return SquareWhilePositive(x)[0]; },
                      {.timeout = milliseconds(5)});
  EXPECT_EQ(CodeOfCall([&] { typed(1.0f); }), tf::ErrorCode::kDeadlineExceeded);
}

TEST(Function, TimeoutsAreOfCallsThatRun) {
  const auto inner = tf::function<1>([](auto& x) { return x[0] + 1.0f; },
                                     {.timeout = std::chrono::seconds(0)});
  EXPECT_EQ(CodeOfCall([&] { inner(1.0f); }), tf::ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(inner.trace_count(), 1);
  // A part of the outer one's call, which has its own limit.
  const auto outer =
      tf::function<1>([&](auto& x) { return inner(x[0]); },
                      {.timeout = std::chrono::nanoseconds::max()});
  EXPECT_EQ(outer(1.0f).template item<float>(), 2);
}

TEST(Function, WrongResultsAreErrors) {
  const tf::Function f([](const Tensors&) { return Tensors{tf::Tensor()}; });
  EXPECT_THROW(f({tf::Tensor(1.0f)}), tf::Error);
}

}  // namespace
