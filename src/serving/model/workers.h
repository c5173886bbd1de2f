// Threads for what takes long: runs of large models, reloads.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace headrace::serving {

// Thread-safe. Threads are made when they are wanted, up to a number, and stay.
class Workers {
 public:
  explicit Workers(int most_threads) : most_(most_threads) {}
  // Waits for all jobs.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Runs `job` on one of the threads, in the order given; on this thread where
  // the system gives none.
  void Run(std::function<void()> job);

 private:
  void Work();

  const int most_;
  Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> jobs_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace headrace::serving
