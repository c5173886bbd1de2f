// Numbers too small to be normal, and whether a thread's arithmetic counts them
// as zero.
//
// Processors take a hundred times as long for them. Gradients that fade over
// the steps of a sequence end among them, where rounding may keep them for
// good. So kernels count them as zero, as operands and as results, as
// TensorFlow's do; what only moves numbers leaves them alone.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace {

// This thread's arithmetic flushes them while it lives, or does not.
class FlushDenormals {
 public:
  explicit FlushDenormals(bool flush = true) : before_(Mode()) {
    const uint64_t wanted = flush ? before_ | kBits : before_ & ~kBits;
    changed_ = wanted != before_;
    if (changed_) SetMode(wanted);
  }
  ~FlushDenormals() {
    if (changed_) SetMode(before_);
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

  // Whether this thread's does now.
  static bool On() { return (Mode() & kBits) == kBits; }

 private:
#if defined(__x86_64__)
  // Results (FTZ) and operands (DAZ).
  static constexpr uint64_t kBits = 0x8040;
  static uint64_t Mode() { return _mm_getcsr(); }
  static void SetMode(uint64_t mode) {
    _mm_setcsr(static_cast<unsigned>(mode));
  }
#elif defined(__aarch64__)
  static constexpr uint64_t kBits = uint64_t{1} << 24;  // FZ, both
  static uint64_t Mode() {
    uint64_t mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void SetMode(uint64_t mode) {
    asm volatile("msr fpcr, %0" : : "r"(mode));
  }
#else
  static constexpr uint64_t kBits = 0;
  static uint64_t Mode() { return 0; }
  static void SetMode(uint64_t) {}
#endif

  const uint64_t before_;
  bool changed_;
};

}  // namespace headrace
