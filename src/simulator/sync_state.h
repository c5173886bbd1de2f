// What training in step keeps on parameter servers, in numbers: accumulators,
// the queue of tokens, the count of steps.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace headrace::simulator {

class SyncState {
 public:
  // `wanted`: gradients that make a step. Of fewer than there are workers these
  // wait for the end of their step and pass over tokens of steps that are over,
  // as SyncReplicasOptimizer has it.
  SyncState(int servers, int workers, int wanted)
      : awaits_end_(wanted < workers),
        accumulators_(servers),
        local_(workers) {}

  // A gradient of a step that is over is dropped.
  void Apply(int server, int64_t local_step) {
    Accumulator& a = accumulators_[server];
    if (local_step < a.step) {
      ++dropped;
      return;
    }
    ++applied;
    ++a.count;
    Give(a);
  }
  // Has `taken` run when there are so many gradients, which begins the next
  // step.
  void Take(int server, int wanted, std::function<void()> taken) {
    Accumulator& a = accumulators_[server];
    a.wanted = wanted;
    a.taken = std::move(taken);
    Give(a);
  }
  // Has `taken` run when there is a token, which is the worker's step then.
  void Dequeue(int worker, std::function<void()> taken) {
    waiting_.push_back({worker, std::move(taken)});
    GiveTokens();
  }
  void Enqueue(int tokens) {
    for (int i = 0; i < tokens; ++i) tokens_.push_back(steps);
    GiveTokens();
  }
  int64_t LocalStep(int worker) const { return local_[worker]; }

  int64_t steps = 0;  // that were made
  int64_t applied = 0, dropped = 0;

 private:
  struct Accumulator {
    int64_t step = 0;
    int count = 0, wanted = 0;
    std::function<void()> taken;
  };
  struct Waiting {
    int worker;
    std::function<void()> taken;
  };

  static void Give(Accumulator& a) {
    if (!a.taken || a.count < a.wanted) return;
    a.count = 0;
    ++a.step;
    const auto taken = std::move(a.taken);
    a.taken = nullptr;
    taken();
  }
  void GiveTokens() {
    std::vector<Waiting> given;
    for (size_t i = 0; i < waiting_.size() && !tokens_.empty();) {
      int64_t& local = local_[waiting_[i].worker];
      if (awaits_end_ && accumulators_[0].step <= local) {
        ++i;
        continue;
      }
      while (awaits_end_ && !tokens_.empty() &&
             (tokens_.front() <= local ||
              (tokens_.front() < steps && tokens_.size() > 1))) {
        tokens_.pop_front();
      }
      if (tokens_.empty()) break;
      local = tokens_.front();
      tokens_.pop_front();
      given.push_back(std::move(waiting_[i]));
      waiting_.erase(waiting_.begin() + static_cast<int64_t>(i));
    }
    for (const Waiting& w : given) w.taken();
  }

  const bool awaits_end_;
  std::vector<Accumulator> accumulators_;
  std::vector<int64_t> local_;  // each worker's step
  std::deque<int64_t> tokens_;
  std::deque<Waiting> waiting_;
};

}  // namespace headrace::simulator
