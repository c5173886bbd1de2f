// One call on fixed memory: what the turns of a loop on small values are made
// of. Plain data, for code that is compiled for several instruction sets.
#pragma once

#include <cstdint>

namespace headrace {

// Memory is aligned to 64 bytes and holds a multiple of kBoundBlock elements;
// what lies behind a value's own elements may be read and written.
inline constexpr int64_t kBoundBlock = 16;

// Calls of a list lie one behind another, and the last one ends it.
struct BoundCall {
  // Computes `out`, on this thread, and goes on with the call behind it
  // (RunNext): a jump in place of a return, a branch of a loop and a call.
  void (*run)(BoundCall& c) = nullptr;
  const void* in[3] = {};
  void* out = nullptr;
  // For `run` alone: what it calls, elements, and how they lie.
  const void* loop = nullptr;
  int64_t n = 0;
  int32_t kind = 0;
  // Not 0: what was wrong with a value, in `run`'s own numbers. It stays.
  uint32_t error = 0;
};

// The last thing that `run` does.
[[gnu::always_inline]] static inline void RunNext(BoundCall& c) {
  BoundCall& next = (&c)[1];
  return next.run(next);
}

}  // namespace headrace
