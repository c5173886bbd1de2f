// Several threads that call and trace the same functions.
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;

namespace {

using Many = std::vector<tf::Tensor>;

void OnThreadsAtOnce(int count, const std::function<void(int)>& body) {
  std::atomic<int> missing{count};
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      --missing;
      while (missing > 0) std::this_thread::yield();
      body(t);
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST(FunctionThreads, SixteenMakeOneTrace) {
  const tf::Variable v(tf::Tensor(2.0f));
  const tf::Function f([&](const Many& x) { return Many{x[0] * v}; });
  OnThreadsAtOnce(16, [&](int t) {
    for (int i = 0; i < 5; ++i) {
      const float x = static_cast<float>(t);
      EXPECT_EQ(f({tf::Tensor(x)})[0].item<float>(), 2 * x);
    }
  });
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(FunctionThreads, SixteenTraceShapesOfTheirOwn) {
  const tf::Function f([](const Many& x) { return Many{tf::Size(x[0])}; });
  OnThreadsAtOnce(16, [&](int t) {
    for (const int size : {t % 4 + 1, t % 4 + 2, t % 4 + 1}) {
      const tf::Tensor x =
          tf::Fill(tf::Tensor::From<int32_t>({size}, {1}), tf::Tensor(1.0f));
      EXPECT_EQ(f({x})[0].item<int32_t>(), size);
    }
  });
  EXPECT_EQ(f.trace_count(), 5);
}

// Each of the functions calls the next one while that is traced: a circle.
TEST(FunctionThreads, FunctionsThatTraceEachOther) {
  for (const int count : {2, 3, 8}) {
    std::vector<tf::Function> functions;
    std::atomic<int> missing{count};
    for (int t = 0; t < count; ++t) {
      functions.emplace_back([&, t](const Many& x) {
        if (x[0].shape().dims.empty()) return Many{x[0] + float(t)};
        --missing;
        while (missing > 0) std::this_thread::yield();
        const tf::Function& next = functions[(t + 1) % count];
        return next({tf::Sum(x[0], tf::Tensor(0))});
      });
    }
    OnThreadsAtOnce(count, [&](int t) {
      const tf::Tensor x = tf::Tensor::From<float>({1, 2}, {2});
      EXPECT_EQ(functions[t]({x})[0].item<float>(), 3 + (t + 1) % count);
    });
  }
}

}  // namespace
