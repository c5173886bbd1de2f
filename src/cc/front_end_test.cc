// The C++ front end as a user writes it.
#include <chrono>
#include <ctime>
#include <thread>

#include "base/test_machine.h"
#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;

namespace {

TEST(FrontEnd, Arithmetic) {
  tf::Tensor a = tf::Tensor::From<float>({1, 2, 3, 4}, {2, 2});
  tf::Tensor b = 2 * a + 1.0;
  EXPECT_EQ(b.vector<float>(), (std::vector<float>{3, 5, 7, 9}));
  EXPECT_EQ(tf::MatMul(a, a).vector<float>(),
            (std::vector<float>{7, 10, 15, 22}));
  EXPECT_EQ(tf::MatMul(a, a, {.transpose_b = true}).vector<float>()[0], 5);
  EXPECT_EQ(a.ToString(),
            "tf.Tensor(\n[[1 2]\n [3 4]], shape=(2, 2), "
            "dtype=float32)");
}

TEST(FrontEnd, ErrorsNameTheOp) {
  tf::Tensor a = tf::Tensor::From<float>({1, 2, 3}, {3});
  tf::Tensor b = tf::Tensor::From<float>({1, 2}, {2});
  try {
    a + b;
    FAIL();
  } catch (const tf::Error& e) {
    EXPECT_EQ(e.code(), tf::ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(e.what()).find("[3] vs. [2]"), std::string::npos);
  }
  EXPECT_THROW(a.data<int32_t>(), tf::Error);
  EXPECT_THROW(tf::Tensor().shape(), tf::Error);
  EXPECT_THROW(tf::Tensor::From<float>({1, 2, 3}, {2}), tf::Error);
}

TEST(FrontEnd, GradientsOfGradients) {
  tf::Tensor x(3.0f);
  tf::GradientTape outer;
  outer.watch(x);
  tf::GradientTape inner;
  inner.watch(x);
  tf::Tensor y = x * x * x;
  tf::Tensor dy = inner.gradient(y, x);
  tf::Tensor ddy = outer.gradient(dy, x);
  EXPECT_FLOAT_EQ(dy.item<float>(), 27);
  EXPECT_FLOAT_EQ(ddy.item<float>(), 18);
}

TEST(FrontEnd, TapesThatAreNotPersistentAreUsedOnce) {
  for (const bool persistent : {false, true}) {
    tf::Tensor x(3.0f);
    tf::GradientTape tape(persistent);
    tape.watch(x);
    tf::Tensor y = x * x;
    EXPECT_EQ(tape.gradient(y, x).item<float>(), 6.0f);
    if (persistent) {
      EXPECT_EQ(tape.gradient(y, x).item<float>(), 6.0f);
      continue;
    }
    try {
      tape.gradient(y, x);
      FAIL() << "a second call";
    } catch (const tf::Error& e) {
      EXPECT_EQ(e.code(), tf::ErrorCode::kFailedPrecondition);
    }
  }
}

TEST(FrontEnd, TracedFunctionsCaptureVariables) {
  tf::Variable v(tf::Tensor(2.0f));
  auto f = tf::function<1>([&](auto& x) { return x[0] * v; });
  EXPECT_EQ(f(tf::Tensor(3.0f)).item<float>(), 6);
  v.assign(5.0f);
  EXPECT_EQ(f(tf::Tensor(3.0f)).item<float>(), 15);
  EXPECT_EQ(f.trace_count(), 1);
  tf::GradientTape tape;
  tf::Tensor y = f(tf::Tensor(3.0f));
  EXPECT_EQ(tape.gradient(y, v).item<float>(), 3);
}

// What a call that was ended says; it must not take its seconds.
template <typename F>
tf::ErrorCode EndOf(const F& call) {
  // Processor time, of all threads: other programs take none of it.
  const std::clock_t begin = std::clock();
  try {
    call();
  } catch (const tf::Error& e) {
    if (!headrace::Emulated())
      EXPECT_LT(std::clock() - begin, 2 * CLOCKS_PER_SEC);
    return e.code();
  }
  ADD_FAILURE() << "the call ran to its end";
  return tf::ErrorCode::kUnknown;
}

TEST(FrontEnd, CallsEndWhenCancelled) {
  const tf::Function f([](const std::vector<tf::Tensor>& x) {
    tf::Tensor y = x[0];
    for (int i = 0; i < 3000; ++i) y = tf::Tanh(tf::MatMul(y, x[0]));
    return std::vector<tf::Tensor>{y};
  });
  const tf::Tensor small = tf::Tensor::From<float>({0.5f}, {1, 1});
  const tf::Tensor large =
      tf::Fill(tf::Tensor::From<int32_t>({512, 512}, {2}), tf::Tensor(0.01f));
  f({small});
  const std::chrono::milliseconds soon(50);
  EXPECT_EQ(EndOf([&] { f({large}, tf::Cancellation(soon)); }),
            tf::ErrorCode::kDeadlineExceeded);
  const tf::Cancellation request;
  std::thread other([&] {
    std::this_thread::sleep_for(soon);
    request.Cancel();
  });
  EXPECT_EQ(EndOf([&] { f({large}, request); }), tf::ErrorCode::kCancelled);
  other.join();
  EXPECT_TRUE(request.cancelled());
  const tf::Tensor one =
      tf::Fill(tf::Tensor::From<int32_t>({6000, 6000}, {2}), tf::Tensor(1.0f));
  EXPECT_EQ(EndOf([&] {
              const tf::CancellationScope scope{tf::Cancellation(soon)};
              tf::MatMul(one, one);
            }),
            tf::ErrorCode::kDeadlineExceeded);
  EXPECT_NEAR(f({small})[0].item<float>(), 0, 0.5);
}

// Fits y = 3x + 1 with either optimizer, traced.
template <typename O>
float Fit(O optimizer, int steps) {
  tf::Variable w(tf::Tensor(0.0f), "w"), b(tf::Tensor(0.0f), "b");
  tf::Tensor x = tf::Tensor::From<float>({-1, 0, 1, 2}, {4});
  tf::Tensor y = tf::Tensor::From<float>({-2, 1, 4, 7}, {4});
  std::vector<tf::Variable> variables = {w, b};
  auto step = tf::function<2>([&](auto& in) {
    tf::GradientTape tape;
    tf::Tensor error = in[0] * w + b - in[1];
    tf::Tensor loss = tf::Mean(error * error, tf::Tensor(0));
    optimizer.Apply(tape.gradient(loss, variables), variables);
    return loss;
  });
  optimizer.Apply({tf::Tensor(0.0f), tf::Tensor(0.0f)}, variables);
  float loss = 0;
  for (int i = 0; i < steps; ++i) loss = step(x, y).template item<float>();
  EXPECT_EQ(step.trace_count(), 1);
  return loss;
}

TEST(FrontEnd, OptimizersFitALine) {
  EXPECT_LT(Fit(tf::SGD(0.1f), 200), 1e-4);
  EXPECT_LT(Fit(tf::SGD(0.05f, 0.9f), 200), 1e-4);
  EXPECT_LT(Fit(tf::Adam(0.1f), 400), 1e-3);
}

}  // namespace
