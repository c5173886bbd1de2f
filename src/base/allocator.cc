#include "base/allocator.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <new>

#include "base/memory_guard.h"
#include "base/mutex.h"
#include "base/sandbox.h"
#include "base/threads.h"

namespace headrace {
namespace {

#ifdef __has_feature  // clang
#if __has_feature(address_sanitizer)
#define HR_ADDRESS_SANITIZER
#endif
#endif
#ifdef __SANITIZE_ADDRESS__  // g++
#define HR_ADDRESS_SANITIZER
#endif
#ifdef HR_ADDRESS_SANITIZER
constexpr bool kCached = false;  // so that the sanitizer sees each block's end
#else
constexpr bool kCached = true;
#endif

// Size classes: multiples of 64 (a cache line, and the alignment of vectors) up
// to 1 KiB, then eight to a doubling, so that at most an eighth of a block is
// wasted and a block that is freed fits requests of about its size. From
// kMapped on each has kBeside more, for a tensor's header, which may take a
// page (Buffer::Allocate), and a vector behind its data: weights of 2^n or 9 *
// 2^n bytes would otherwise take the next class, an eighth more memory.
constexpr size_t kFineLimit = 1024, kFineStep = 64;
constexpr int kFineClasses = kFineLimit / kFineStep;
constexpr int kStepsLog = 3;
constexpr size_t kMapped = 128 << 10;  // from here on blocks are mappings
constexpr size_t kBeside = 8 << 10;
// 64 TiB, half of a process' address space: larger requests are refused at
// once.
constexpr int kMaxLog = 46;
constexpr int kClasses = kFineClasses + ((kMaxLog - 10) << kStepsLog);
constexpr size_t kMaxBytes = size_t{1} << kMaxLog;

constexpr int ClassOf(size_t bytes) {
  if (bytes <= kFineLimit) {
    return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / kFineStep);
  }
  if (bytes > kMapped) bytes = std::max(kMapped, bytes - kBeside);
  const int log = std::bit_width(bytes - 1) - 1;  // 2^log < bytes <= 2^(log+1)
  const size_t step = size_t{1} << (log - kStepsLog);
  const size_t index = (bytes - 1 - (size_t{1} << log)) / step;
  return kFineClasses + ((log - 10) << kStepsLog) + static_cast<int>(index);
}

constexpr size_t BytesOf(int size_class) {
  if (size_class < kFineClasses) return (size_class + 1) * kFineStep;
  const int i = size_class - kFineClasses;
  const int log = 10 + (i >> kStepsLog);
  const size_t steps = (i & ((1 << kStepsLog) - 1)) + 1;
  const size_t bytes = (size_t{1} << log) + (steps << (log - kStepsLog));
  return bytes < kMapped ? bytes : bytes + kBeside;
}
static_assert(BytesOf(ClassOf(1)) == 64 && BytesOf(ClassOf(1024)) == 1024);
static_assert(BytesOf(ClassOf(1025)) == 1152 && ClassOf(1152) == 16);
static_assert(BytesOf(ClassOf(kMapped)) == kMapped + kBeside);
static_assert(BytesOf(ClassOf(kMapped + kBeside)) == kMapped + kBeside);
static_assert(BytesOf(ClassOf((9 << 20) + kBeside)) == (9 << 20) + kBeside);
static_assert(BytesOf(ClassOf((9 << 20) + kBeside + 1)) ==
              (10 << 20) + kBeside);
static_assert(BytesOf(ClassOf(kMaxBytes)) == kMaxBytes + kBeside);

// What a thread keeps for itself: 32 KiB is what most small tensors stay below,
// and larger ones cost so much to fill that the lock does not show. 1 MiB
// bounds what idle threads hold back from others.
constexpr size_t kThreadBlock = 32 << 10;  // larger ones skip thread caches
constexpr int kThreadClasses = ClassOf(kThreadBlock) + 1;
constexpr size_t kThreadBytes = 1 << 20;
// Blocks moved to a thread at a time: one lock then serves as many calls.
constexpr int kBatch = 32;
// What a thread keeps of one class: blocks that are always allocated in one
// thread and freed in another, as a server's requests are, are otherwise made
// anew until the other has 1 MiB of them. A server's threads each come to hold
// so much of the classes that its requests use, in hours as threads take turns,
// and such blocks are never given back: 128 KiB are four of the largest.
constexpr int kThreadBlocks = 8 * kBatch;
constexpr size_t kThreadClassBytes = 128 << 10;
static_assert(kThreadClassBytes >= 4 * BytesOf(kThreadClasses - 1));
constexpr size_t kHugePage = 2 << 20;
// Smaller blocks share regions, as a huge page of their own would waste up to 2
// MiB each; a region is eight of the largest of them. Blocks of huge pages made
// ResNet-50 with one image 2-5% faster.
constexpr size_t kCut = 8 << 20, kRegion = 64 << 20;
// Cached bytes below this are kept however little is used: giving them back and
// faulting them in again costs more than they are worth, but for a process that
// rests (kIdleWindows).
constexpr int64_t kAlwaysHeld = int64_t{256} << 20;
// Use is judged by windows of this length: longer than a training step, so that
// what one step frees is there for the next.
constexpr auto kWindow = std::chrono::seconds(4);
// Cached memory of which nothing is taken for as many windows goes back.
constexpr int kIdleWindows = 2;
// So much cached memory is worth a thread that watches when the process rests.
constexpr int64_t kWatched = int64_t{16} << 20;

// Reserves what it maps: the system then refuses at once what it can never
// give, instead of ending the process when the memory is written to.
void* Map(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

// `bytes` that begin at a huge page; nullptr where the system has no more.
char* MapHuge(size_t bytes) {
  // Cut out of a longer mapping.
  char* start = static_cast<char*>(Map(bytes + kHugePage));
  if (start == nullptr) return nullptr;
  const size_t before = -reinterpret_cast<uintptr_t>(start) % kHugePage;
  if (before > 0) munmap(start, before);
  munmap(start + before + bytes, kHugePage - before);
  madvise(start + before, bytes, MADV_HUGEPAGE);
  return start + before;
}

// Where blocks of less than kCut bytes that are mappings come from: one after
// the other out of regions, so that they lie in huge pages, too. Each is given
// back by itself.
struct Region {
  Mutex mutex;
  char* at ABSL_GUARDED_BY(mutex) = nullptr;
  size_t left ABSL_GUARDED_BY(mutex) = 0;

  void* Cut(size_t bytes) {
    MutexLock lock(mutex);
    // The rest of the old region is less than this block: the system gets it
    // back instead of a list of rests being kept.
    if (left < bytes) {
      char* const fresh = MapHuge(kRegion);
      if (fresh == nullptr) return Map(bytes);
      if (left > 0) munmap(at, left);
      at = fresh;
      left = kRegion;
    }
    at += bytes;
    left -= bytes;
    return at - bytes;
  }
};
Region& TheRegion() {
  static Region* const region = new Region;
  return *region;
}

void* SystemAllocate(size_t bytes) {
  if (!MayTakeMemory(bytes)) return nullptr;
  if (bytes < kMapped || !kCached) {
    void* p = nullptr;
    return posix_memalign(&p, Allocator::kAlignment, bytes) == 0 ? p : nullptr;
  }
  // Mappings are of whole pages, and those of the system may be larger ones.
  static const size_t page = sysconf(_SC_PAGESIZE);
  bytes = (bytes + page - 1) / page * page;
  if (bytes < kCut) return TheRegion().Cut(bytes);
  void* const p = MapHuge(bytes);
  if (p != nullptr) NoteMapped(p, bytes);
  return p;
}

void SystemFree(void* p, size_t bytes) {
  if (bytes < kMapped || !kCached) {
    std::free(p);
  } else {
    if (bytes >= kCut) NoteUnmapped(p);
    munmap(p, bytes);  // up to the end of the last page
  }
}

// A free block holds the link to the next one.
struct Block {
  Block* next;
};
struct List {
  Block* head = nullptr;
  int64_t count = 0;
  void Push(Block* b) {
    b->next = head;
    head = b;
    ++count;
  }
  Block* Pop() {
    Block* b = head;
    if (b) {
      head = b->next;
      --count;
    }
    return b;
  }
};

// A thread's own free blocks, which go back when it ends. Where there is no
// memory for one its thread does without.
struct ThreadCache {
  ~ThreadCache();
  List lists[kThreadClasses];
  size_t bytes = 0;
};

class CachingAllocator final : public Allocator {
 public:
  [[gnu::hot]] void* Allocate(size_t bytes) override {
    if (InSandbox()) [[unlikely]]
      return TakeCounted(bytes);
    return Take(bytes);
  }

  [[gnu::hot]] void Deallocate(void* p, size_t bytes) override {
    if (!p) return;
    // Who counts a block hands it to whoever gives it back.
    if (sandbox::counted_blocks.load(std::memory_order_relaxed) != 0)
        [[unlikely]]
      sandbox::ForgetBlock(p);
    Give(p, bytes);
  }

  AllocatorStats stats() const override {
    AllocatorStats s;
    s.bytes_in_use = in_use_.load(std::memory_order_relaxed);
    s.peak_bytes = peak_.load(std::memory_order_relaxed);
    s.bytes_held = held_.load(std::memory_order_relaxed);
    s.bytes_limit = limit_.load(std::memory_order_relaxed);
    s.system_calls = system_calls_.load(std::memory_order_relaxed);
    return s;
  }

  void ResetPeak() override { peak_.store(in_use_.load()); }
  void SetLimit(size_t bytes) override {
    limit_.store(static_cast<int64_t>(std::min(bytes, kMaxBytes)));
  }

  void Trim() override {
    if (ThreadCache* mine = OwnObjectOrNull<ThreadCache>()) Flush(*mine, 0);
    MutexLock lock(mutex_);
    ReleaseDownTo(0);
  }

  void Flush(ThreadCache& cache, size_t keep) {
    MutexLock lock(mutex_);
    // The largest first: fewest blocks are moved for the bytes.
    for (int c = kThreadClasses - 1; c >= 0 && cache.bytes > keep; --c) {
      while (cache.bytes > keep) {
        Block* b = cache.lists[c].Pop();
        if (!b) break;
        cache.bytes -= BytesOf(c);
        lists_[c].Push(b);
        cached_ += BytesOf(c);
      }
    }
    NoteCached();
  }

  // Around a fork. In the order in which a call takes the locks: the
  // allocator's, then what SystemAllocate and SystemFree take under it. The
  // child would otherwise find one held by a thread that it does not have.
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex_, TheRegion().mutex,
                                           MemoryGuardMutex()) {
    mutex_.lock();
    TheRegion().mutex.lock();
    MemoryGuardMutex().lock();
  }
  void Unlock(bool in_child)
      ABSL_UNLOCK_FUNCTION(mutex_, TheRegion().mutex, MemoryGuardMutex()) {
    if (in_child) watched_ = false;  // the thread did not come along
    MemoryGuardMutex().unlock();
    TheRegion().mutex.unlock();
    mutex_.unlock();
  }

 private:
  [[gnu::hot]] void* Take(size_t bytes) {
    if (bytes > kMaxBytes) return nullptr;
    const int c = ClassOf(bytes);
    const int64_t size = BytesOf(c);
    // Charged first and taken back when it fails: two threads that both asked
    // before either counted could pass the limit together.
    if (!Charge(size)) return nullptr;
    if (kCached && c < kThreadClasses) {
      ThreadCache* const cache = OwnObjectOrNull<ThreadCache>();
      if (Block* b = cache ? cache->lists[c].Pop() : nullptr) {
        cache->bytes -= size;
        return b;
      }
    }
    void* p = kCached ? AllocateShared(c, size) : AllocateExactly(bytes, size);
    if (!p) in_use_.fetch_sub(size, std::memory_order_relaxed);
    return p;
  }

  // Within the limits of the sandboxes that this thread is in.
  void* TakeCounted(size_t bytes) {
    if (bytes > kMaxBytes) return nullptr;
    const int64_t size = BytesOf(ClassOf(bytes));
    if (!CheckSandboxMemory(size).ok()) return nullptr;
    void* p = Take(bytes);
    if (p == nullptr || sandbox::CountBlock(p, size)) return p;
    Give(p, bytes);
    return nullptr;
  }

  [[gnu::hot]] void Give(void* p, size_t bytes) {
    const int c = ClassOf(bytes);
    const int64_t size = BytesOf(c);
    in_use_.fetch_sub(size, std::memory_order_relaxed);
    if (!kCached) return Release(p, size);
    // The link lies in the block itself: freeing never needs memory.
    Block* b = new (p) Block;
    if (c >= kThreadClasses) return PushShared(c, b);
    ThreadCache* const cache = OwnObjectOrNull<ThreadCache>();
    if (cache == nullptr) return PushShared(c, b);
    List& list = cache->lists[c];
    list.Push(b);
    cache->bytes += size;
    // Down to a half, so that a thread that frees what another allocates takes
    // the lock once for many blocks.
    if (list.count > kThreadBlocks ||
        list.count * size > int64_t{kThreadClassBytes}) [[unlikely]]
      FlushClass(*cache, c, list.count / 2);
    if (cache->bytes > kThreadBytes) Flush(*cache, kThreadBytes / 2);
  }

  void FlushClass(ThreadCache& cache, int c, int keep) {
    MutexLock lock(mutex_);
    while (cache.lists[c].count > keep) {
      lists_[c].Push(cache.lists[c].Pop());
      cache.bytes -= BytesOf(c);
      cached_ += BytesOf(c);
    }
    NoteCached();
  }

  // Counts `size` as in use; false if that passes the limit.
  bool Charge(int64_t size) {
    // Relaxed: the counts order nothing else, and the block itself comes from
    // under a lock or from this thread.
    const int64_t now =
        in_use_.fetch_add(size, std::memory_order_relaxed) + size;
    const int64_t limit = limit_.load(std::memory_order_relaxed);
    if (limit > 0 && now > limit) [[unlikely]] {
      in_use_.fetch_sub(size, std::memory_order_relaxed);
      return false;
    }
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak &&
           !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
    return true;
  }

  // A block of its own that ends where the caller was told.
  void* AllocateExactly(size_t bytes, int64_t size) {
    void* p = SystemAllocate(std::max<size_t>(bytes, 1));
    if (!p) return nullptr;
    system_calls_.fetch_add(1, std::memory_order_relaxed);
    held_.fetch_add(size, std::memory_order_relaxed);
    return p;
  }

  // From the shared lists, or else from the system.
  void* AllocateShared(int c, int64_t size) {
    {
      MutexLock lock(mutex_);
      ++uses_;
      window_peak_ = std::max(window_peak_, in_use_.load());
      if (Block* b = lists_[c].Pop()) {
        cached_ -= size;
        if (c < kThreadClasses) MoveToThread(c, size);
        return b;
      }
      // What is held counts against a limit, not only what is in use: cached
      // blocks of other classes make room for this one.
      const int64_t limit = limit_.load(std::memory_order_relaxed);
      const int64_t held = held_.load(std::memory_order_relaxed) + size;
      if (limit > 0 && held > limit) ReleaseDownTo(cached_ - (held - limit));
    }
    // Outside of the lock: the system may take long, for zeroed pages or to say
    // no.
    void* p = SystemAllocate(size);
    if (!p) {
      // The system has no more, but blocks of other classes may lie here
      // unused. One try: what others free meanwhile is theirs.
      Trim();
      p = SystemAllocate(size);
      if (!p) return nullptr;
    }
    system_calls_.fetch_add(1, std::memory_order_relaxed);
    held_.fetch_add(size, std::memory_order_relaxed);
    return p;
  }

  // Takes further blocks of the class along for this thread.
  void MoveToThread(int c, int64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ThreadCache* const cache = OwnObjectOrNull<ThreadCache>();
    if (cache == nullptr) return;
    // At most half of what a thread may keep, so that the next free does not at
    // once flush what was just moved. The block that the caller takes counts.
    const int64_t most =
        std::min<int64_t>(kBatch, kThreadClassBytes / 2 / size);
    for (int i = 1; i < most && cache->bytes + size <= kThreadBytes / 2; ++i) {
      Block* b = lists_[c].Pop();
      if (!b) return;
      cached_ -= size;
      cache->lists[c].Push(b);
      cache->bytes += size;
    }
  }

  void PushShared(int c, Block* b) {
    MutexLock lock(mutex_);
    lists_[c].Push(b);
    cached_ += BytesOf(c);
    NoteCached();
  }

  // More is cached than before.
  void NoteCached() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++uses_;
    if (cached_ > kAlwaysHeld) [[unlikely]]
      FollowUse();
    if (cached_ > kWatched && !watched_) [[unlikely]]
      StartWatch();
  }

  // A thread that sees when nothing happens any more, and lives until then.
  void StartWatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto now = std::chrono::steady_clock::now();
    // Where the system gave no thread, asking at every free would cost a system
    // call each.
    if (now < watch_at_) return;
    const AdoptedSandbox outside;  // it serves everybody
    StatusOr<std::thread> thread = StartThread([this] { Watch(); });
    watched_ = thread.ok();
    watched_ ? thread->detach() : void(watch_at_ = now + kWindow);
  }

  void Watch() {
    uint64_t seen = 0;
    for (int idle = 0; idle < kIdleWindows; ++idle) {
      std::this_thread::sleep_for(kWindow);
      MutexLock lock(mutex_);
      // Any use begins the count anew (-1, as the loop adds one).
      if (uses_ != seen) idle = -1;
      seen = uses_;
      FollowUse();
    }
    {
      MutexLock lock(mutex_);
      ReleaseDownTo(0);
      watched_ = false;
    }
    malloc_trim(0);  // small blocks came from there
  }

  // Keeps no more than what the last two windows of time used at most.
  void FollowUse() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto now = std::chrono::steady_clock::now();
    if (now - window_start_ > kWindow) {
      last_peak_ = now - window_start_ > 2 * kWindow ? 0 : window_peak_;
      window_peak_ = in_use_.load();
      window_start_ = now;
    }
    const int64_t wanted = std::max(last_peak_, window_peak_);
    // An eighth above the peak, as steps differ a little from one another.
    const int64_t keep = wanted + wanted / 8 - in_use_.load();
    if (cached_ > keep) ReleaseDownTo(std::max(keep, kAlwaysHeld));
  }

  // Frees cached blocks, the largest first, until at most `keep` bytes are.
  void ReleaseDownTo(int64_t keep) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // Few system calls for the bytes, and small blocks are the ones that are
    // asked for again.
    for (int c = kClasses - 1; c >= 0 && cached_ > keep; --c) {
      while (cached_ > keep) {
        Block* b = lists_[c].Pop();
        if (!b) break;
        cached_ -= BytesOf(c);
        Release(b, BytesOf(c));
      }
    }
  }

  void Release(void* p, int64_t size) {
    held_.fetch_sub(size, std::memory_order_relaxed);
    SystemFree(p, size);
  }

  // Lines of their own: in_use_ changes in every call of every thread, the
  // other counts only with the system's, and a shared line would make readers
  // of one wait for writers of the other.
  alignas(64) std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> limit_{0};
  alignas(64) std::atomic<int64_t> held_{0};
  std::atomic<int64_t> system_calls_{0};
  Mutex mutex_;
  List lists_[kClasses] ABSL_GUARDED_BY(mutex_);
  int64_t cached_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t window_peak_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t last_peak_ ABSL_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point window_start_ ABSL_GUARDED_BY(mutex_);
  uint64_t uses_ ABSL_GUARDED_BY(mutex_) =
      0;  // blocks moved to or from the lists
  bool watched_ ABSL_GUARDED_BY(mutex_) = false;  // by a thread
  // Not before.
  std::chrono::steady_clock::time_point watch_at_ ABSL_GUARDED_BY(mutex_);
};

CachingAllocator& TheAllocator() {
  static CachingAllocator* const allocator = [] {
    auto* a = new CachingAllocator;
    // Not analysed: the locks are held from one handler to the other.
    pthread_atfork(
        []() ABSL_NO_THREAD_SAFETY_ANALYSIS { TheAllocator().Lock(); },
        []() ABSL_NO_THREAD_SAFETY_ANALYSIS {
          TheAllocator().Unlock(/*in_child=*/false);
        },
        []() ABSL_NO_THREAD_SAFETY_ANALYSIS {
          TheAllocator().Unlock(/*in_child=*/true);
        });
    return a;
  }();
  return *allocator;
}

ThreadCache::~ThreadCache() { TheAllocator().Flush(*this, 0); }

}  // namespace

Allocator* CpuAllocator() { return &TheAllocator(); }

[[gnu::hot]] void* AllocateMemory(size_t bytes) {
  return TheAllocator().Allocate(bytes);
}
[[gnu::hot]] void FreeMemory(void* p, size_t bytes) {
  TheAllocator().Deallocate(p, bytes);
}

}  // namespace headrace
