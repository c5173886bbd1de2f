// Which level of the instruction set the vector loops use.
//
// Files named *_loops.cc are compiled once for every level, with HR_LEVEL as
// the namespace their functions live in (v2, v3, v4 on x86-64; base
// elsewhere). Only the functions of the chosen level may be called, and such
// files include nothing whose inline functions are not forced inline: the
// linker keeps one copy of an inline function, perhaps the v4 one.
#pragma once

namespace headrace {

#if defined(__x86_64__)
#define HR_FOR_EACH_LEVEL(F) F(v2) F(v3) F(v4)
#else
#define HR_FOR_EACH_LEVEL(F) F(base)
#endif

enum class CpuLevel {
#define HR_LEVEL_NAME(level) level,
  HR_FOR_EACH_LEVEL(HR_LEVEL_NAME)
#undef HR_LEVEL_NAME
};

// The best level that this machine runs, or the one that the environment's
// HEADRACE_CPU_LEVEL (v2, v3, v4) asks for, if it is lower. Fixed at first use.
CpuLevel ActiveCpuLevel();
// Whether this machine runs `level`.
bool CpuRuns(CpuLevel level);

}  // namespace headrace

// HR_CALL_LEVEL(level, F(x)): v2::F(x), v3::F(x) or v4::F(x).
#if defined(__x86_64__)
#define HR_CALL_LEVEL(level, call)                  \
  ((level) == ::headrace::CpuLevel::v4   ? v4::call \
   : (level) == ::headrace::CpuLevel::v3 ? v3::call \
                                         : v2::call)
#else
#define HR_CALL_LEVEL(level, call) base::call
#endif
