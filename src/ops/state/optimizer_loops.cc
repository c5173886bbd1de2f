#include "ops/state/optimizer_loops.h"

#include "ops/state/optimizer_rules.h"

namespace headrace::HR_LEVEL {
namespace {

// More than any rule takes; a fixed number keeps the scalars in registers.
constexpr int kMostScalars = 8;

template <typename Rule, typename T>
[[gnu::always_inline]] inline void Loop(T* const* slots, const T* g,
                                        const double* scalars, int64_t n) {
  // In the variable's type: a double rate would make every step of a float loop
  // a double one.
  T in_type[kMostScalars];
  for (int i = 0; i < kMostScalars; ++i) in_type[i] = T(scalars[i]);
  Rule rule;
  rule.Prepare(in_type);
  constexpr int kSlots = Rule::kSlots;
  // Slots that a rule does not have alias the first one and are never touched.
  T* const s0 = slots[0];
  T* const s1 = slots[kSlots > 1 ? 1 : 0];
  T* const s2 = slots[kSlots > 2 ? 2 : 0];
  T* const s3 = slots[kSlots > 3 ? 3 : 0];
  // Element i depends on nothing but elements i, even if slots are the same.
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    // All is read before anything is written, so that a variable given for two
    // slots behaves the same in vector and in scalar loops.
    T x[4] = {s0[i], 0, 0, 0};
    if (kSlots > 1) x[1] = s1[i];
    if (kSlots > 2) x[2] = s2[i];
    if (kSlots > 3) x[3] = s3[i];
    rule.Step(x, g[i]);
    s0[i] = x[0];
    if (kSlots > 1) s1[i] = x[1];
    if (kSlots > 2) s2[i] = x[2];
    if (kSlots > 3) s3[i] = x[3];
  }
}

template <typename T>
[[gnu::always_inline]] inline void Run(UpdateRule rule, T* const* slots,
                                       const T* g, const double* scalars,
                                       int64_t n) {
  WithRule<T>(
      rule, [&](auto chosen) __attribute__((always_inline)) {
        Loop<decltype(chosen), T>(slots, g, scalars, n);
      });
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
void RunUpdateFloat<CpuLevel::HR_LEVEL>(UpdateRule rule, float* const* slots,
                                        const float* g, const double* scalars,
                                        int64_t n) {
  Run(rule, slots, g, scalars, n);
}

template <>
void RunUpdateDouble<CpuLevel::HR_LEVEL>(UpdateRule rule, double* const* slots,
                                         const double* g, const double* scalars,
                                         int64_t n) {
  Run(rule, slots, g, scalars, n);
}

}  // namespace headrace
