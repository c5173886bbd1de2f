#include "base/nested.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <new>
#include <vector>

namespace headrace {
namespace {

constexpr int kDeepest = 100;  // of calls that destroy inside each other
constexpr size_t kReserve = 128 << 10;
constexpr size_t kLeastGuess = 1 << 20;

struct Pending {
  void* object;
  void (*destroy)(void*);
};

// Of this thread. Without destructors: other thread-local objects may end
// later.
constinit thread_local int depth = 0;
constinit thread_local std::vector<Pending>* pending = nullptr;

// The lowest address of this thread's stack, and its size.
struct Stack {
  uintptr_t low = 0;
  size_t size = 0;
};

Stack FindStack() {
  Stack stack;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void* low = nullptr;
    if (pthread_attr_getstack(&attributes, &low, &stack.size) == 0) {
      stack.low = reinterpret_cast<uintptr_t>(low);
    }
    pthread_attr_destroy(&attributes);
  }
  if (stack.low == 0) {  // the first thread, where /proc is missing
    struct rlimit limit;
    const bool known = getrlimit(RLIMIT_STACK, &limit) == 0;
    stack.size = known && limit.rlim_cur != RLIM_INFINITY
                     ? limit.rlim_cur
                     : static_cast<rlim_t>(kLeastGuess);
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    const size_t left = stack.size / 2;  // somewhere in the middle
    stack.low = here > left ? here - left : 0;
  }
  return stack;
}

const Stack& ThisStack() {
  constinit thread_local Stack stack;
  if (stack.size == 0) [[unlikely]]
    stack = FindStack();
  return stack;
}

}  // namespace

void DestroyNested(void* object, void (*destroy)(void*)) {
  if (depth >= kDeepest) {
    try {
      if (pending == nullptr) pending = new std::vector<Pending>;
      pending->push_back({object, destroy});
      return;
    } catch (const std::bad_alloc&) {
      // One level more.
    }
  }
  ++depth;
  destroy(object);
  if (depth == 1 && pending != nullptr) {
    while (!pending->empty()) {
      const Pending next = pending->back();
      pending->pop_back();
      next.destroy(next.object);
    }
    delete std::exchange(pending, nullptr);
  }
  --depth;
}

size_t StackLeft() {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const Stack& stack = ThisStack();
  // Whoever runs on a stack of his own making knows its room himself.
  if (here < stack.low || here - stack.low > stack.size) return SIZE_MAX;
  return here - stack.low;
}

Status CheckStack(StringView what, size_t needed) {
  const size_t reserve = std::min(kReserve, ThisStack().size / 4);
  if (StackLeft() >= needed && StackLeft() - needed >= reserve) {
    return OkStatus();
  }
  return ResourceExhausted(what, " is nested too deeply for this thread's ",
                           "stack of ", ThisStack().size, " bytes");
}

}  // namespace headrace
