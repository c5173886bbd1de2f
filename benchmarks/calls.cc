// What a C++ call of a traced function takes over its plan: the aim is 0.3 us.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "headrace/headrace.h"

namespace tf = headrace::tf;

namespace {

// Best nanoseconds a call of several rounds.
double Best(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  constexpr int kCalls = 20'000, kRounds = 9;
  double best = 1e18;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    best = std::min(best, took.count() / kCalls);
  }
  return best;
}

}  // namespace

int main() {
  const tf::Tensor x = tf::Tensor::From<float>({1, 2, 3, 4}, {2, 2});
  const tf::Tensor one(1.0f);
  const auto plus = tf::function<1>([&](auto& in) { return in[0] + one; });
  const tf::Function twenty([](const std::vector<tf::Tensor>& in) {
    return std::vector<tf::Tensor>{in[0] + in[19]};
  });
  const tf::Function same([](const std::vector<tf::Tensor>& in) { return in; });
  const std::vector<tf::Tensor> args(20, x);
  std::printf("eager x + 1            %7.0f ns\n", Best([&] { x + one; }));
  std::printf("traced x + 1           %7.0f ns\n", Best([&] { plus(x); }));
  std::printf("traced x               %7.0f ns\n", Best([&] { same({x}); }));
  std::printf("traced, 20 arguments   %7.0f ns\n", Best([&] { twenty(args); }));
  return 0;
}
