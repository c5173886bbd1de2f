// A worker of python/tests/distribute/test_with_cpp_workers.py whose other
// workers, Python's, come and go:
//
//   elastic_worker STEPS STEPS_FILE PREFIX
//
// STEPS_FILE gets a line a step, how many workers took part; the weights go to
// the checkpoint PREFIX.
#include <headrace/headrace.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

namespace tf = headrace::tf;
using tf::distribute::ElasticState;
using tf::distribute::ElasticStrategy;

namespace {

constexpr int64_t kShards = 12, kWidth = 50;

void Train(int64_t steps, const char* file, const char* prefix) {
  const ElasticStrategy strategy({.timeout_seconds = 60});
  const ElasticStrategy::Scope scope(strategy);
  const tf::Variable weights(
      tf::Fill(tf::Tensor::From<int32_t>({kWidth}),
               tf::Tensor(1 + static_cast<float>(strategy.rank()))));
  const tf::Variable speed(
      tf::Fill(tf::Tensor::From<int32_t>({kWidth}), tf::Tensor(0.0f)));
  ElasticState state(strategy, {{"weights", weights}, {"speed", speed}});
  auto gradient = tf::function([&](const tf::Tensor& row) {
    tf::GradientTape tape;
    const tf::Tensor error = tf::Sin(weights.value() * row) - 0.5f;
    const tf::Tensor loss = tf::Mean(error * error, tf::Tensor(0));
    const std::vector<tf::Variable> all = {weights};
    return tape.gradient(loss, all)[0].dense();
  });
  auto update = tf::function([&](const tf::Tensor& parts) {
    const tf::Tensor total = tf::Sum(strategy.AllGather(parts), tf::Tensor(0));
    speed.assign(speed.value() * 0.5f + total);
    weights.assign_sub(speed.value() * 0.125f);
  });
  state.Run([&] {
    while (state.commits() < steps) {
      const auto [first, behind] = state.Share(kShards);
      std::vector<tf::Tensor> parts;
      for (int64_t i = first; i < behind; ++i) {
        parts.push_back(gradient(
            tf::Tensor(static_cast<float>(state.commits() % 7 * kShards + i))));
      }
      update(tf::Pack(parts));
      state.Commit();
      std::ofstream(file, std::ios::app) << state.members().size() << std::endl;
      // Time for those to come that are being started.
      const bool all = state.members().size() == 3;
      std::this_thread::sleep_for(std::chrono::milliseconds(all ? 20 : 300));
    }
  });
  tf::Checkpoint({{"weights", weights}}).write(prefix);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    Train(std::atoll(argv[1]), argv[2], argv[3]);
  } catch (const tf::Error& e) {
    std::fprintf(stderr, "elastic_worker: %s\n", e.what());
    return 1;
  }
  return 0;
}
