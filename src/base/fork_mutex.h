// Locks that a forked child does not find held by threads it has not.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace headrace {

// A mutex for state of the whole process, held for moments. It is taken around
// a fork, so that the child finds it open and the state whole. Never destroyed:
// a global or leaked object.
class ProcessMutex {
 public:
  ProcessMutex();
  ProcessMutex(const ProcessMutex&) = delete;

  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// A mutex of one object that may be held for long, while a graph is planned. It
// is open to a forked child, which finds the object as it was: its holder must
// change it in one step, at the end.
class ForkMutex {
 public:
  ForkMutex();
  ForkMutex(const ForkMutex&) = delete;

  void lock() {
    if (forks_.load(std::memory_order_relaxed) != Forks()) [[unlikely]]
      Renew();
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  // How many forks led to this process.
  static uint32_t Forks();
  void Renew();

  std::mutex mutex_;
  std::atomic<uint32_t> forks_;
};

}  // namespace headrace
