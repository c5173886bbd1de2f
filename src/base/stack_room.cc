#include "base/stack_room.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

namespace headrace {
namespace {

// The reserve: what a library call behind a check (oneDNN, Python's printing of
// an error) takes of a stack, with room to spare; of small stacks a quarter.
constexpr uintptr_t kMostKept = 512 << 10;

struct Stack {
  uintptr_t low = 0, size = 0;
};

Stack FindStack(uintptr_t here) {
  pthread_attr_t attr;
  if (pthread_getattr_np(pthread_self(), &attr) == 0) {
    void* begin = nullptr;
    size_t bytes = 0;
    const bool found = pthread_attr_getstack(&attr, &begin, &bytes) == 0;
    pthread_attr_destroy(&attr);
    if (found && bytes) return {reinterpret_cast<uintptr_t>(begin), bytes};
  }
  // The first thread where /proc cannot be read.
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0) return {};
  // Half of the limit, as it is not known how much was used already, and of no
  // more than the usual 8 MiB, as "unlimited" names no end.
  const uintptr_t size = std::min<uintptr_t>(limit.rlim_cur, 8 << 20) / 2;
  return {here - size, size};
}

}  // namespace

namespace stack_room {

constinit thread_local uintptr_t lowest = UINTPTR_MAX;

Status LookClosely(uintptr_t here, StringView what, size_t needed) {
  if (lowest == UINTPTR_MAX) {
    const Stack stack = FindStack(here);
    lowest = stack.low + std::min(stack.size / 4, kMostKept);
  }
  // Far below, another stack is in use, whose owner knows its room.
  if (here < lowest - kMostKept) return OkStatus();
  if (here >= lowest && here - lowest >= needed) return OkStatus();
  return ResourceExhausted(what, ": too deep for this thread's stack");
}

}  // namespace stack_room
}  // namespace headrace
