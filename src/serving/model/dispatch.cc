#include "serving/model/dispatch.h"

#include <atomic>

namespace headrace::serving {
namespace {

// Handing a request to another thread and back takes some 20 us here, twice
// that where both processors are busy: what takes ten times as long goes.
constexpr int64_t kInlineNs = 300'000;
// Of the running mean of what runs take: a weight of one eighth for the last.
constexpr int64_t kWeight = 8;

class DispatchedRunner : public Runner,
                         public std::enable_shared_from_this<DispatchedRunner> {
 public:
  DispatchedRunner(RunnerPtr runner, Workers* workers)
      : runner_(std::move(runner)), workers_(workers) {}

  void Run(CallPtr call, Tensors inputs, RunDone done) override {
    if (ns_.load(std::memory_order_relaxed) < kInlineNs) {
      return RunHere(std::move(call), std::move(inputs), std::move(done));
    }
    workers_->Run([self = shared_from_this(), call = std::move(call),
                   inputs = std::move(inputs),
                   done = std::move(done)]() mutable {
      self->RunHere(std::move(call), std::move(inputs), std::move(done));
    });
  }

 private:
  void RunHere(CallPtr call, Tensors inputs, RunDone done) {
    const auto start = Call::Clock::now();
    runner_->Run(std::move(call), std::move(inputs),
                 [self = shared_from_this(), start,
                  done = std::move(done)](StatusOr<Tensors> outputs) {
                   self->Note(Call::Clock::now() - start);
                   done(std::move(outputs));
                 });
  }
  // Two threads may lose one another's note.
  void Note(std::chrono::nanoseconds took) {
    const int64_t old = ns_.load(std::memory_order_relaxed);
    ns_.store(
        old == kUnknown ? took.count() : old + (took.count() - old) / kWeight,
        std::memory_order_relaxed);
  }

  // The first run, which makes plans, takes long, and nobody knows how long.
  static constexpr int64_t kUnknown = int64_t{1} << 62;

  const RunnerPtr runner_;
  Workers* const workers_;
  std::atomic<int64_t> ns_{kUnknown};
};

}  // namespace

RunnerPtr Dispatched(RunnerPtr runner, Workers* workers) {
  return std::make_shared<DispatchedRunner>(std::move(runner), workers);
}

}  // namespace headrace::serving
