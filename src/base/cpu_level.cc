#include "base/cpu_level.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdlib>
#include <string_view>

namespace headrace {
namespace {

#if defined(__x86_64__)
// clang 14 knows no name for this feature in __builtin_cpu_supports.
bool HasHalfConversions() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

}  // namespace

bool CpuRuns(CpuLevel level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") &&
                  __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2") && HasHalfConversions();
  if (level == CpuLevel::v3) return v3;
  if (level == CpuLevel::v4) {
    return v3 && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
  }
#endif
  return true;
}

CpuLevel ActiveCpuLevel() {
#if defined(__x86_64__)
  static const CpuLevel level = [] {
    CpuLevel most = CpuLevel::v4;
    if (const char* wanted = std::getenv("HEADRACE_CPU_LEVEL")) {
      const std::string_view name = wanted;
      if (name == "v2") most = CpuLevel::v2;
      if (name == "v3") most = CpuLevel::v3;
    }
    while (!CpuRuns(most)) most = static_cast<CpuLevel>(int(most) - 1);
    return most;
  }();
  return level;
#else
  return CpuLevel::base;
#endif
}

}  // namespace headrace
