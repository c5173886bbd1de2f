#include "ops/math/reductions/segment_loops.h"

namespace headrace::HR_LEVEL {
namespace {

// Forced inline, for each level of the instruction set its own copy.
#define HR_INLINE [[gnu::always_inline]] static inline

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

// What T is computed in: integers wrap.
template <typename T>
struct Form {
  typedef T type;
};
template <>
struct Form<int32_t> {
  typedef uint32_t type;
};
template <>
struct Form<int64_t> {
  typedef uint64_t type;
};

template <typename T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes), aligned(sizeof(T))));
};
template <typename T>
using Vec = typename VectorOf<T>::type;
template <typename T>
constexpr int kWidth = kBytes / sizeof(T);

// Of scalars and of vectors, V over elements T.
template <SegmentJoin kJoin, typename V, typename U>
HR_INLINE V Join(V a, V b) {
  // Cast to unsigned and back: integers wrap.
  if constexpr (kJoin == SegmentJoin::kSum) return (V)((U)a + (U)b);
  if constexpr (kJoin == SegmentJoin::kProd) return (V)((U)a * (U)b);
  if constexpr (kJoin == SegmentJoin::kMax) return a < b ? b : a;
  if constexpr (kJoin == SegmentJoin::kMin) return b < a ? b : a;
}

template <SegmentJoin kJoin, typename T>
HR_INLINE Vec<T> JoinVector(Vec<T> a, Vec<T> b) {
  return Join<kJoin, Vec<T>, Vec<typename Form<T>::type>>(a, b);
}
template <SegmentJoin kJoin, typename T>
HR_INLINE T JoinOne(T a, T b) {
  return Join<kJoin, T, typename Form<T>::type>(a, b);
}

template <typename T>
HR_INLINE Vec<T>& At(T* p) {
  return *reinterpret_cast<Vec<T>*>(p);
}
template <typename T>
HR_INLINE const Vec<T>& At(const T* p) {
  return *reinterpret_cast<const Vec<T>*>(p);
}

// `kVectors` vectors of columns, or `columns` of them where that is 0.
template <SegmentJoin kJoin, int kVectors, typename T, typename Id>
HR_INLINE void StreamColumns(const T* x, int64_t width, const Id* id,
                             int64_t rows, int64_t columns, T* out) {
  constexpr int kW = kWidth<T>;
  // Known when compiled: the loop over columns is unrolled.
  if (kVectors > 0) columns = kVectors * kW;
  for (int64_t r = 0; r < rows; ++r) {
    if (id[r] < 0) continue;
    const T* from = x + r * width;
    T* to = out + id[r] * width;
    int64_t j = 0;
    for (; j + kW <= columns; j += kW) {
      // Written at each row: the next may belong to another segment.
      At(to + j) = JoinVector<kJoin, T>(At(to + j), At(from + j));
    }
    if (kVectors > 0) continue;
    for (; j < columns; ++j) to[j] = JoinOne<kJoin>(to[j], from[j]);
  }
}

template <SegmentJoin kJoin, typename T, typename Id>
void Stream(const T* x, int64_t width, const Id* id, int64_t rows,
            int64_t columns, T* out) {
  constexpr int kW = kWidth<T>;
  switch (columns) {
    case kW:
      // Widths that batches of embeddings have.
      return StreamColumns<kJoin, 1>(x, width, id, rows, columns, out);
    case 2 * kW:
      return StreamColumns<kJoin, 2>(x, width, id, rows, columns, out);
    case 4 * kW:
      return StreamColumns<kJoin, 4>(x, width, id, rows, columns, out);
    default:
      return StreamColumns<kJoin, 0>(x, width, id, rows, columns, out);
  }
}

// Rows to come are asked for ahead.
template <SegmentJoin kJoin, typename T>
void JoinRows(const T* x, int64_t width, const int64_t* row, int64_t n,
              T* sums) {
  constexpr int kW = kWidth<T>;
  // Four rows of at most 512 bytes: enough to hide memory's latency, little
  // enough for the first cache.
  constexpr int64_t kAhead = 4, kMostAhead = 512 / sizeof(T);
  const int64_t ahead = width < kMostAhead ? width : kMostAhead;
  for (int64_t i = 0; i < n; ++i) {
    if (i + kAhead < n) {
      const T* next = x + row[i + kAhead] * width;
      for (int64_t j = 0; j < ahead; j += 64 / sizeof(T)) {
        __builtin_prefetch(next + j);
      }
    }
    const T* from = x + row[i] * width;
    int64_t j = 0;
    for (; j + kW <= width; j += kW) {
      At(sums + j) = JoinVector<kJoin, T>(At(sums + j), At(from + j));
    }
    for (; j < width; ++j) sums[j] = JoinOne<kJoin>(sums[j], from[j]);
  }
}

template <SegmentJoin kJoin, typename T>
constexpr SegmentLoops<T> kLoops = {
    Stream<kJoin, T, int32_t>, Stream<kJoin, T, int64_t>, JoinRows<kJoin, T>};

template <typename T>
const SegmentLoops<T>* Find(SegmentJoin join) {
  switch (join) {
    case SegmentJoin::kSum:
      return &kLoops<SegmentJoin::kSum, T>;
    case SegmentJoin::kProd:
      return &kLoops<SegmentJoin::kProd, T>;
    case SegmentJoin::kMax:
      return &kLoops<SegmentJoin::kMax, T>;
    default:
      return &kLoops<SegmentJoin::kMin, T>;
  }
}

template <typename Id>
HR_INLINE bool Below(const Id* id, int64_t n, int64_t limit) {
  uint32_t above = 0;
  // =| No early end: the loop stays a vector's.
  for (int64_t i = 0; i < n; ++i) above |= id[i] >= limit;
  return above == 0;
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
const SegmentLoops<float>* SegmentFloat<CpuLevel::HR_LEVEL>(SegmentJoin j) {
  return Find<float>(j);
}
template <>
const SegmentLoops<double>* SegmentDouble<CpuLevel::HR_LEVEL>(SegmentJoin j) {
  return Find<double>(j);
}
template <>
const SegmentLoops<int32_t>* SegmentInt32<CpuLevel::HR_LEVEL>(SegmentJoin j) {
  return Find<int32_t>(j);
}
template <>
const SegmentLoops<int64_t>* SegmentInt64<CpuLevel::HR_LEVEL>(SegmentJoin j) {
  return Find<int64_t>(j);
}
template <>
bool AllBelow32<CpuLevel::HR_LEVEL>(const int32_t* id, int64_t n,
                                    int64_t limit) {
  return Below(id, n, limit);
}
template <>
bool AllBelow64<CpuLevel::HR_LEVEL>(const int64_t* id, int64_t n,
                                    int64_t limit) {
  return Below(id, n, limit);
}

}  // namespace headrace
