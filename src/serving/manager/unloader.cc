#include "serving/manager/unloader.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <utility>

#include "base/allocator.h"
#include "base/threads.h"
#include "serving/manager/work_threads.h"

namespace headrace::serving {
namespace {

// The C library raises its limits as it meets large blocks, and then keeps up
// to 64 MB at the end of each thread's heap, which malloc_trim does not look
// at. Limits that are set stay.
void KeepHeapsSmall() {
#ifdef __GLIBC__
  constexpr int kOfTheirOwn = 4 << 20;  // blocks from that size on
  constexpr int kMostKept = 2 << 20;    // of a heap
  (void)mallopt(M_MMAP_THRESHOLD, kOfTheirOwn);
  (void)mallopt(M_TRIM_THRESHOLD, kMostKept);
#endif
}

// After a version was freed: what is free stays with the process otherwise.
void GiveMemoryBack() {
  CpuAllocator()->Trim();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace

// Linked by itself, as letting go of a version must not need memory.
struct Unloader::Version {
  ServablePtr servable;
  std::function<void()> freed;
  std::unique_ptr<Version> next;
};

// Versions that wait to be freed.
class Unloader::Line {
 public:
  void Push(std::unique_ptr<Version> version) {
    MutexLock lock(mutex_);
    if (closed_) {
      // Freed below, once the lock is let go: parameters outlive it.
      return;
    }
    version->next = std::move(first_);
    first_ = std::move(version);
    changed_.NotifyOne();
  }
  // Waits for one; null when the line is closed and empty.
  std::unique_ptr<Version> Pop() {
    MutexLock lock(mutex_);
    while (first_ == nullptr && !closed_) changed_.Wait(mutex_);
    if (first_ == nullptr) return nullptr;
    auto version = std::move(first_);
    first_ = std::move(version->next);
    return version;
  }
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::unique_ptr<Version> first_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

StatusOr<std::unique_ptr<Unloader>> Unloader::Start(int threads) {
  KeepHeapsSmall();
  auto made = std::make_unique<Unloader>();
  made->line_ = std::make_shared<Line>();
  const auto work = [line = made->line_] {
    LowerOwnPriority();
    while (auto version = line->Pop()) {
      version->servable = nullptr;
      GiveMemoryBack();
      version->freed();
    }
  };
  MutexLock lock(made->threads_mutex_);
  for (int i = 0; i < std::max(threads, 1); ++i) {
    auto thread = StartThread(work);
    if (thread.ok()) {
      made->threads_.push_back(*std::move(thread));
    } else if (i == 0) {
      return thread.status();
    }
  }
  return made;
}

ServablePtr Unloader::Wrap(ServablePtr servable, std::function<void()> freed) {
  Servable* const handed_out = servable.get();
  auto version = std::make_unique<Version>();
  version->servable = std::move(servable);
  version->freed = std::move(freed);
  // A deleter has to be copyable; the one that runs owns the version. It runs
  // too where there is no memory for the handle.
  Version* const owned = version.release();
  return ServablePtr(handed_out, [line = line_, owned](Servable*) noexcept {
    line->Push(std::unique_ptr<Version>(owned));
  });
}

void Unloader::Stop() {
  line_->Close();
  MutexLock lock(threads_mutex_);
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

}  // namespace headrace::serving
