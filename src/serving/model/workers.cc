#include "serving/model/workers.h"

#include "base/threads.h"

namespace headrace::serving {

Workers::~Workers() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    ending_ = true;
    threads.swap(threads_);
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads) thread.join();
}

void Workers::Run(std::function<void()> job) {
  {
    MutexLock lock(mutex_);
    const bool wants_thread = idle_ <= static_cast<int>(jobs_.size());
    if (wants_thread && static_cast<int>(threads_.size()) < most_) {
      StatusOr<std::thread> thread = threads::Start([this] { Work(); });
      if (thread.ok()) threads_.push_back(*std::move(thread));
    }
    if (!threads_.empty()) {
      jobs_.push_back(std::move(job));
      job = nullptr;
    }
  }
  if (job) return job();
  wake_.NotifyOne();
}

void Workers::Work() {
  while (true) {
    std::function<void()> job;
    {
      MutexLock lock(mutex_);
      ++idle_;
      while (jobs_.empty() && !ending_) wake_.Wait(mutex_);
      --idle_;
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace headrace::serving
