#include "ops/state/optimizer_update.h"

#include <algorithm>

#include "ops/state/optimizer_loops.h"

// The rules once more, for their slot counts only. As for reductions of rare
// types: one copy, for no particular level.
#define HR_LEVEL plain
#include "ops/state/optimizer_rules.h"

namespace headrace {
namespace {

// 2 KiB a tile of floats: five of them lie in the first cache.
constexpr int64_t kTile = 512;

// Narrow floats: a tile at a time is widened, updated and narrowed again.
template <typename T>
void RunNarrow(UpdateRule rule, void* const* slots, const void* gradient,
               const double* scalars, int64_t n) {
  // On the stack, tile by tile: a widened copy of whole variables would cost
  // more memory than the variables.
  float tiles[4][kTile];
  float g[kTile];
  float* pointers[4] = {tiles[0], tiles[1], tiles[2], tiles[3]};
  const int count = UpdateSlots(rule);
  const CpuLevel level = ActiveCpuLevel();
  for (int64_t at = 0; at < n; at += kTile) {
    const int64_t m = std::min(kTile, n - at);
    const T* from = static_cast<const T*>(gradient) + at;
    for (int64_t i = 0; i < m; ++i) g[i] = static_cast<float>(from[i]);
    for (int s = 0; s < count; ++s) {
      const T* slot = static_cast<const T*>(slots[s]) + at;
      for (int64_t i = 0; i < m; ++i) tiles[s][i] = static_cast<float>(slot[i]);
    }
    AtLevel(level, [&](auto level) {
      return RunUpdateFloat<level>(rule, pointers, g, scalars, m);
    });
    for (int s = 0; s < count; ++s) {
      T* slot = static_cast<T*>(slots[s]) + at;
      for (int64_t i = 0; i < m; ++i) slot[i] = static_cast<T>(tiles[s][i]);
    }
  }
}

template <typename T>
void Pointers(UpdateRule rule, void* const* slots, T** out) {
  for (int i = 0; i < UpdateSlots(rule); ++i)
    out[i] = static_cast<T*>(slots[i]);
}

}  // namespace

int UpdateSlots(UpdateRule rule) {
  return plain::WithRule<float>(
      rule, [](auto chosen) { return decltype(chosen)::kSlots; });
}

bool RunUpdate(UpdateRule rule, DType dtype, void* const* slots,
               const void* gradient, const double* scalars, int64_t n) {
  const CpuLevel level = ActiveCpuLevel();
  if (dtype == DType::kFloat) {
    float* p[4] = {};
    Pointers(rule, slots, p);
    const float* g = static_cast<const float*>(gradient);
    AtLevel(level, [&](auto level) {
      return RunUpdateFloat<level>(rule, p, g, scalars, n);
    });
  } else if (dtype == DType::kDouble) {
    double* p[4] = {};
    Pointers(rule, slots, p);
    const double* g = static_cast<const double*>(gradient);
    AtLevel(level, [&](auto level) {
      return RunUpdateDouble<level>(rule, p, g, scalars, n);
    });
  } else if (dtype == DType::kHalf) {
    RunNarrow<half>(rule, slots, gradient, scalars, n);
  } else if (dtype == DType::kBfloat16) {
    RunNarrow<bfloat16>(rule, slots, gradient, scalars, n);
  } else {
    return false;
  }
  return true;
}

}  // namespace headrace
