#include "base/memory_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <vector>

#include "base/cgroup.h"

namespace headrace {
namespace {

using Clock = std::chrono::steady_clock;

// So much is taken in small blocks before anybody looks: reading the group's
// files takes 40 us, and first touching 8 MiB 40 times as much. Less than the
// reserve that cgroup.cc keeps free, but in groups of under 128 MiB, so that it
// does not pass the limit unseen.
constexpr int64_t kUnseen = int64_t{8} << 20;
// What was read counts for so long: other processes of the group take memory
// too.
constexpr auto kValid = std::chrono::seconds(1);

// Bytes of a block that were never written to: those have no memory yet.
int64_t Untouched(void* block, size_t bytes) {
  static const size_t page = sysconf(_SC_PAGESIZE);
  // A look at 16 MiB a call, with an array that fits on any thread's stack.
  constexpr size_t kPages = 4096;
  unsigned char present[kPages];
  char* const begin = static_cast<char*>(block);
  int64_t untouched = 0;
  for (size_t at = 0; at < bytes; at += kPages * page) {
    const size_t size = std::min(bytes - at, kPages * page);
    // Then it counts as written to, which errs on the safe side.
    if (mincore(begin + at, size, present) != 0) return 0;
    const size_t pages = (size + page - 1) / page;
    untouched += std::count_if(present, present + pages,
                               [](unsigned char p) { return (p & 1) == 0; }) *
                 static_cast<int64_t>(page);
  }
  return untouched;
}

class Guard {
 public:
  bool Admits(int64_t bytes) {
    if (bytes < kUnseen) {
      if (small_.fetch_add(bytes, std::memory_order_relaxed) + bytes <
          kUnseen) {
        return true;
      }
      bytes = small_.exchange(0, std::memory_order_relaxed);
    }
    MutexLock lock(mutex_);
    const Clock::time_point now = Clock::now();
    const bool valid = now < valid_until_;
    // Near the limit every look is a fresh one.
    // A quarter of what was left: others may take some of it before the next
    // look.
    if (valid && (left_ == kNoMemoryLimit || taken_ + bytes < left_ / 4)) {
      taken_ += bytes;
      return true;
    }
    left_ = CgroupMemoryLeft();
    taken_ = 0;
    valid_until_ = now + kValid;
    limited_ = left_ != kNoMemoryLimit;
    if (!limited_) return true;
    left_ -= UntouchedBytes();
    if (bytes > left_) return false;
    taken_ = bytes;
    return true;
  }

  void NoteMapped(void* block, size_t bytes) {
    if (!limited_) return;
    MutexLock lock(mutex_);
    try {
      fresh_.push_back({block, bytes});
    } catch (const std::bad_alloc&) {
      // It counts as written to.
    }
  }

  void NoteUnmapped(void* block) {
    if (!limited_) return;
    MutexLock lock(mutex_);
    std::erase_if(fresh_, [&](const Fresh& f) { return f.block == block; });
  }

  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }

 private:
  struct Fresh {
    void* block;
    size_t bytes;
  };

  // Forgets the blocks that were written to as a whole.
  int64_t UntouchedBytes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    int64_t sum = 0;
    std::erase_if(fresh_, [&](const Fresh& f) {
      const int64_t untouched = Untouched(f.block, f.bytes);
      sum += untouched;
      return untouched == 0;
    });
    return sum;
  }

  std::atomic<int64_t> small_{0};  // of small requests since the last look
  std::atomic<bool> limited_{false};
  Mutex mutex_;
  std::vector<Fresh> fresh_ ABSL_GUARDED_BY(mutex_);
  int64_t left_ ABSL_GUARDED_BY(mutex_) = 0;   // when it was read last
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;  // since then
  Clock::time_point valid_until_ ABSL_GUARDED_BY(mutex_) = {};
};

Guard& TheGuard() {
  static Guard* const guard = new Guard;
  return *guard;
}

}  // namespace

bool MayTakeMemory(size_t bytes) {
  return TheGuard().Admits(static_cast<int64_t>(bytes));
}
bool SystemHasRoom(size_t bytes) {
  if (!MayTakeMemory(bytes)) return false;
  void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return false;
  munmap(p, bytes);
  return true;
}
void NoteMapped(void* block, size_t bytes) {
  TheGuard().NoteMapped(block, bytes);
}
Mutex& MemoryGuardMutex() { return TheGuard().mutex(); }
void NoteUnmapped(void* block) { TheGuard().NoteUnmapped(block); }

}  // namespace headrace
