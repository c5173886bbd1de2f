// Which level of the instruction set the vector loops use.
//
// Files named *_loops.cc are compiled once for every level, with HR_LEVEL as
// its name (v2, v3, v4 on x86-64; base elsewhere) and as the namespace that
// their functions live in. What such a file gives away is a template of the
// level, which it specializes for its own:
//
//   template <CpuLevel kLevel>
//   const PoolLoops* PoolLoopsOf();                    // in the header
//   template <>
//   const PoolLoops* PoolLoopsOf<CpuLevel::HR_LEVEL>() {...}
//
// Only the functions of the chosen level may be called, and such files include
// nothing whose inline functions are not forced inline: the linker keeps one
// copy of an inline function, perhaps the v4 one.
#pragma once

#include <type_traits>

namespace headrace {

#if defined(__x86_64__)
enum class CpuLevel { v2, v3, v4 };
inline constexpr CpuLevel kCpuLevels[] = {CpuLevel::v2, CpuLevel::v3,
                                          CpuLevel::v4};
#else
enum class CpuLevel { base };
inline constexpr CpuLevel kCpuLevels[] = {CpuLevel::base};
#endif

// The best level that this machine runs, or the one that the environment's
// HEADRACE_CPU_LEVEL (v2, v3, v4) asks for, if it is lower. Fixed at first use.
CpuLevel ActiveCpuLevel();
// Whether this machine runs `level`.
bool CpuRuns(CpuLevel level);

// f(level), where `level` is a constant.
template <typename F>
[[gnu::always_inline]] inline decltype(auto) AtLevel(CpuLevel level, F f) {
#if defined(__x86_64__)
  using L = CpuLevel;
  if (level == L::v4) return f(std::integral_constant<L, L::v4>());
  if (level == L::v3) return f(std::integral_constant<L, L::v3>());
  return f(std::integral_constant<L, L::v2>());
#else
  return f(std::integral_constant<CpuLevel, CpuLevel::base>());
#endif
}
// The same for the active level:
// AtActiveLevel([](auto level) { return PoolLoopsOf<level>(); }).
template <typename F>
[[gnu::always_inline]] inline decltype(auto) AtActiveLevel(F f) {
  return AtLevel(ActiveCpuLevel(), f);
}

}  // namespace headrace
