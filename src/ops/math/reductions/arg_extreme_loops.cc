#include "ops/math/reductions/arg_extreme_loops.h"

#include <limits>

namespace headrace::HR_LEVEL {
namespace {

// So many running extremes side by side, as a single one would wait for each
// comparison before the next.
constexpr int kLanes = 64;

template <bool kMax, typename A>
[[gnu::always_inline]] inline bool Better(A a, A b) {
  return kMax ? a > b : a < b;
}

template <bool kMax, typename A>
constexpr A Worst() {
  using L = std::numeric_limits<A>;
  // Infinities are numbers: the start must lose against none of them.
  if constexpr (L::has_infinity) return kMax ? -L::infinity() : L::infinity();
  return kMax ? L::lowest() : L::max();
}

// First the extreme itself, then the first element equal to it.
template <typename T, typename A, bool kMax>
int64_t Run(const void* from, int64_t n) {
  const T* x = static_cast<const T*>(from);
  // The block that holds the extreme is looked through again for its place:
  // while it is still in the cache.
  constexpr int64_t kBlock = 4096;
  A best = Worst<kMax, A>();
  int64_t place = 0;
  for (int64_t start = 0; start < n; start += kBlock) {
    const int64_t m = n - start < kBlock ? n - start : kBlock;
    const T* b = x + start;
    // Side by side, so that comparisons do not wait for each other.
    A lanes[kLanes];
    for (int j = 0; j < kLanes; ++j) lanes[j] = Worst<kMax, A>();
    int64_t i = 0;
    for (; i + kLanes <= m; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) {
        const A v = static_cast<A>(b[i + j]);
        // A NaN is better than nothing, so that it is passed over.
        lanes[j] = Better<kMax>(v, lanes[j]) ? v : lanes[j];
      }
    }
    for (int j = 0; i + j < m; ++j) {
      const A v = static_cast<A>(b[i + j]);
      lanes[j] = Better<kMax>(v, lanes[j]) ? v : lanes[j];
    }
    A top = lanes[0];
    for (int j = 1; j < kLanes; ++j) {
      top = Better<kMax>(lanes[j], top) ? lanes[j] : top;
    }
    // Strictly: of equal blocks the first stands, and so the first element.
    if (!Better<kMax>(top, best)) continue;
    best = top;
    i = 0;
    for (; i + kLanes <= m; i += kLanes) {
      int found = 0;
      // Without a branch for each element.
      for (int j = 0; j < kLanes; ++j) found |= static_cast<A>(b[i + j]) == top;
      if (found) break;
    }
    while (!(static_cast<A>(b[i]) == top)) ++i;
    place = start + i;
  }
  return place;
}

template <typename T, typename A, bool kMax>
void Rows(const void* from, int64_t n, int64_t inner, void* room,
          int64_t* places) {
  const T* x = static_cast<const T*>(from);
  T* best = static_cast<T*>(room);
  for (int64_t j = 0; j < inner; ++j) {
    // The first row stands even where it is NaN: an all-NaN column has place 0.
    best[j] = x[j];
    places[j] = 0;
  }
  for (int64_t i = 1; i < n; ++i) {
    const T* row = x + i * inner;
#pragma GCC ivdep
    for (int64_t j = 0; j < inner; ++j) {
      const A v = static_cast<A>(row[j]), b = static_cast<A>(best[j]);
      // A NaN that came first gives way to any number.
      const bool better = Better<kMax>(v, b) | ((b != b) & (v == v));
      best[j] = better ? row[j] : best[j];
      places[j] = better ? i : places[j];
    }
  }
}

template <typename T, typename A>
ArgLoops Of(bool max) {
  return max ? ArgLoops{Run<T, A, true>, Rows<T, A, true>}
             : ArgLoops{Run<T, A, false>, Rows<T, A, false>};
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
ArgLoops Arg<CpuLevel::HR_LEVEL>(DType dtype, bool max) {
  switch (dtype) {
    case DType::kFloat:
      return Of<float, float>(max);
    case DType::kDouble:
      return Of<double, double>(max);
    case DType::kHalf:
      return Of<half, float>(max);
    case DType::kBfloat16:
      return Of<bfloat16, float>(max);
    case DType::kInt8:
    case DType::kQint8:
      return Of<int8_t, int8_t>(max);
    case DType::kInt16:
    case DType::kQint16:
      return Of<int16_t, int16_t>(max);
    case DType::kInt32:
    case DType::kQint32:
      return Of<int32_t, int32_t>(max);
    case DType::kInt64:
      return Of<int64_t, int64_t>(max);
    case DType::kUint8:
    case DType::kQuint8:
    // Bytes of 0 and 1 compare as numbers.
    case DType::kBool:
      return Of<uint8_t, uint8_t>(max);
    case DType::kUint16:
    case DType::kQuint16:
      return Of<uint16_t, uint16_t>(max);
    case DType::kUint32:
      return Of<uint32_t, uint32_t>(max);
    case DType::kUint64:
      return Of<uint64_t, uint64_t>(max);
    default:
      return {};
  }
}

}  // namespace headrace
