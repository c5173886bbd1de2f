#include "base/threads.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

#include "base/sandbox.h"

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
#define HR_LAZY_THREAD_DATA
#include <link.h>
extern "C" void* __tls_get_addr(void* place);
#endif

namespace headrace::threads {
namespace {

constinit thread_local Owned* owned [[gnu::tls_model("initial-exec")]] =
    nullptr;

void DeleteOwned(void*) {
  while (Owned* last = owned) {
    owned = last->next;
    delete last;  // may make others
  }
}

// A key that was made early takes no memory in any thread.
pthread_key_t Key() {
  static const pthread_key_t key = [] {
    pthread_key_t k;
    if (pthread_key_create(&k, DeleteOwned) != 0) throw std::bad_alloc();
    return k;
  }();
  return key;
}
[[maybe_unused]] const pthread_key_t key_is_made = Key();

#ifdef HR_LAZY_THREAD_DATA
// One library's.
int MakeThreadData(dl_phdr_info* info, size_t size, void* most_bytes) {
  if (size < offsetof(dl_phdr_info, dlpi_tls_data) + sizeof(void*)) return 0;
  if (info->dlpi_tls_modid == 0 || info->dlpi_tls_data != nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_TLS) continue;
    if (header.p_memsz > *static_cast<const size_t*>(most_bytes)) continue;
    const size_t extra =
        header.p_align > alignof(std::max_align_t) ? header.p_align : 0;
    if (!HasRoomFor(header.p_memsz + extra)) return 1;
    const size_t place[2] = {info->dlpi_tls_modid, 0};
    __tls_get_addr(const_cast<size_t*>(place));
  }
  return 0;
}
#endif

}  // namespace

bool DeleteWithThread(Owned* object) {
  if (owned == nullptr && pthread_setspecific(Key(), &owned) != 0) return false;
  object->next = std::exchange(owned, object);
  return true;
}

constinit thread_local size_t prepared = 0;

bool HasRoomFor(size_t bytes) {
  // volatile: a pair of malloc and free may be left out.
  void* volatile p = std::malloc(bytes);
  if (p == nullptr) return false;
  std::free(p);
  return true;
}

bool Prepare(size_t most_bytes) {
#ifdef HR_LAZY_THREAD_DATA
  // A page is more than these lists take.
  if (!HasRoomFor(4 << 10)) return false;
  if (dl_iterate_phdr(MakeThreadData, &most_bytes) != 0) return false;
#endif
  prepared = most_bytes;
  return true;
}

StatusOr<std::thread> Start(std::function<void()> body) {
  enum { kBegins, kRuns, kCannot };
  auto state = std::make_shared<std::atomic<int>>(kBegins);
  std::thread thread(
      [state, body = std::move(body), inside = CarriedSandboxes()]() mutable {
        const bool runs = PrepareThread();
        state->store(runs ? kRuns : kCannot);
        state->notify_one();
        state = nullptr;
        if (runs) inside.Run(body);
      });
  // The new thread makes its libraries' data first: where there is no memory
  // for them, the caller learns that here and the body never runs.
  state->wait(kBegins);
  if (state->load() == kRuns) return thread;
  thread.join();
  return ResourceExhausted("starting a thread: out of memory");
}

}  // namespace headrace::threads
