// One-thread reductions in fixed trees. A row is cut into blocks; within one
// each of a fixed number of lanes adds up its share, and the lanes are folded
// in halves. Blocks then combine pairwise, like the carries of a counter. The
// lanes are the same at every level of the instruction set.
#include <limits>

#include "ops/math/loop_templates.h"
#include "ops/math/reduce_tables.h"

#pragma GCC diagnostic ignored "-Wpsabi"

namespace headrace::HR_LEVEL {
namespace {

// Four vectors of 64 bytes side by side.
template <typename T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(64)));
  static constexpr int kWidth = 64 / sizeof(T);
  static constexpr int kCount = 4 * kWidth;
  Vector v[4];
};

template <typename V, typename T>
HR_VECTOR void Load(const T* p, V& v) {
  __builtin_memcpy(&v, p, sizeof(V));
}

template <typename T>
constexpr bool kHasNan = std::is_floating_point_v<T>;

struct Add {
  template <typename T>
  static constexpr T kNeutral = T(0);
  template <typename V>
  HR_VECTOR void Into(V& a, const V& b) {
    a += b;
  }
};
struct Multiply {
  template <typename T>
  static constexpr T kNeutral = T(1);
  template <typename V>
  HR_VECTOR void Into(V& a, const V& b) {
    a *= b;
  }
};
// A NaN in `a` stays (no comparison holds), one in `b` is taken in.
struct Max {
  template <typename T>
  static constexpr T kNeutral = kHasNan<T> ? -std::numeric_limits<T>::infinity()
                                           : std::numeric_limits<T>::lowest();
  template <typename V>
  HR_VECTOR void Into(V& a, const V& b) {
    a = ((b > a) | (b != b)) ? b : a;
  }
};
struct Min {
  template <typename T>
  static constexpr T kNeutral = kHasNan<T> ? std::numeric_limits<T>::infinity()
                                           : std::numeric_limits<T>::max();
  template <typename V>
  HR_VECTOR void Into(V& a, const V& b) {
    a = ((b < a) | (b != b)) ? b : a;
  }
};

constexpr int64_t kRowBlock = 1024;

// Of n <= kRowBlock elements.
template <typename F, typename T>
T FoldBlock(const T* x, int64_t n) {
  using L = Lanes<T>;
  typename L::Vector a[4], b;
  const T neutral = F::template kNeutral<T>;
  for (int j = 0; j < 4; ++j) a[j] = typename L::Vector{} + neutral;
  int64_t i = 0;
  for (; i + L::kCount <= n; i += L::kCount) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      Load(x + i + j * L::kWidth, b);
      F::Into(a[j], b);
    }
  }
  for (int j = 0; i < n; ++j, i += L::kWidth) {
    T rest[L::kWidth];
    for (int k = 0; k < L::kWidth; ++k)
      rest[k] = i + k < n ? x[i + k] : neutral;
    Load(rest, b);
    F::Into(a[j], b);
  }
  F::Into(a[0], a[2]);
  F::Into(a[1], a[3]);
  F::Into(a[0], a[1]);
  T lane[L::kWidth];
  __builtin_memcpy(lane, &a[0], sizeof(lane));
  for (int w = L::kWidth / 2; w > 0; w /= 2) {
    for (int k = 0; k < w; ++k) F::Into(lane[k], lane[k + w]);
  }
  return lane[0];
}

// Combines blocks pairwise: after 2^k blocks their fold lies at level k.
template <typename F, typename T>
struct Tree {
  T level[64];
  uint64_t blocks = 0;
  void Push(T v) {
    int k = 0;
    for (uint64_t b = blocks++; b & 1; b >>= 1, ++k) {
      F::Into(level[k], v);
      v = level[k];
    }
    level[k] = v;
  }
  T Result() const {
    T r = F::template kNeutral<T>;
    bool any = false;
    for (int k = 0; k < 64; ++k) {
      if (!(blocks >> k & 1)) continue;
      T v = level[k];
      if (any) F::Into(v, r);
      r = v;
      any = true;
    }
    return r;
  }
};

template <typename F, typename T>
void FoldRow(const void* x, void* y, int64_t n) {
  const T* a = static_cast<const T*>(x);
  if (n <= kRowBlock) {
    *static_cast<T*>(y) = FoldBlock<F, T>(a, n);
    return;
  }
  Tree<F, T> tree;
  for (int64_t i = 0; i < n; i += kRowBlock) {
    tree.Push(FoldBlock<F, T>(a + i, n - i < kRowBlock ? n - i : kRowBlock));
  }
  *static_cast<T*>(y) = tree.Result();
}

// half and bfloat16: block by block through float.
template <typename F, typename S>
void FoldSmallRow(const void* x, void* y, int64_t n) {
  const S* a = static_cast<const S*>(x);
  alignas(64) float block[kRowBlock];
  Tree<F, float> tree;
  for (int64_t i = 0; i < n; i += kRowBlock) {
    const int64_t m = n - i < kRowBlock ? n - i : kRowBlock;
    Widen(a + i, block, m);
    tree.Push(FoldBlock<F, float>(block, m));
  }
  *static_cast<float*>(y) = tree.Result();
}

// Columns: runs of 16 rows are folded in order, runs pairwise.
constexpr int64_t kRun = 16;

template <typename F, typename P, typename T>
void FoldRun(const T* x, P* acc, int64_t rows, int64_t columns,
             int64_t stride) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * stride;
    if constexpr (std::is_same_v<P, T>) {
#pragma GCC ivdep
      for (int64_t c = 0; c < columns; ++c) {
        P a = acc[c];
        F::Into(a, row[c]);
        acc[c] = a;
      }
    } else {
      P wide[kFoldColumns];
      Widen(row, wide, columns);
      for (int64_t c = 0; c < columns; ++c) F::Into(acc[c], wide[c]);
    }
  }
}

template <typename F, typename P, typename T>
void FoldColumns(const void* x, void* y, int64_t rows, int64_t columns,
                 int64_t stride) {
  const T* a = static_cast<const T*>(x);
  P* result = static_cast<P*>(y);
  // Runs are counted below 2^36: rows lie in memory.
  P level[36][kFoldColumns];
  uint64_t runs = 0;
  for (int64_t r = 0; r < rows; r += kRun) {
    alignas(64) P v[kFoldColumns];
    for (int64_t c = 0; c < columns; ++c) v[c] = F::template kNeutral<P>;
    FoldRun<F, P, T>(a + r * stride, v, rows - r < kRun ? rows - r : kRun,
                     columns, stride);
    int k = 0;
    for (uint64_t b = runs++; b & 1; b >>= 1, ++k) {
      for (int64_t c = 0; c < columns; ++c) {
        P sum = level[k][c];
        F::Into(sum, v[c]);
        v[c] = sum;
      }
    }
    for (int64_t c = 0; c < columns; ++c) level[k][c] = v[c];
  }
  bool any = false;
  for (int64_t c = 0; c < columns; ++c) result[c] = F::template kNeutral<P>;
  for (int k = 0; k < 36; ++k) {
    if (!(runs >> k & 1)) continue;
    for (int64_t c = 0; c < columns; ++c) {
      P v = level[k][c];
      if (any) F::Into(v, result[c]);
      result[c] = v;
    }
    any = true;
  }
}

template <typename F, typename T>
constexpr FoldLoops kFolds = {FoldRow<F, T>, FoldColumns<F, T, T>};
template <typename F, typename S>
constexpr FoldLoops kSmallFolds = {FoldSmallRow<F, S>,
                                   FoldColumns<F, float, S>};

// Sums and products of signed integers wrap: they are those of unsigned ones.
template <typename F, bool kWraps>
FoldLoops FoldsOf(int dtype) {
  switch (dtype) {
    case kType<float>:
      return kFolds<F, float>;
    case kType<double>:
      return kFolds<F, double>;
    case kType<half>:
      return kSmallFolds<F, half>;
    case kType<bfloat16>:
      return kSmallFolds<F, bfloat16>;
    case kType<bool>:
    case kType<uint8_t>:
      return kFolds<F, uint8_t>;
    case kType<uint16_t>:
      return kFolds<F, uint16_t>;
    case kType<uint32_t>:
      return kFolds<F, uint32_t>;
    case kType<uint64_t>:
      return kFolds<F, uint64_t>;
    case kType<int8_t>:
      return kFolds<F, std::conditional_t<kWraps, uint8_t, int8_t>>;
    case kType<int16_t>:
      return kFolds<F, std::conditional_t<kWraps, uint16_t, int16_t>>;
    case kType<int32_t>:
      return kFolds<F, std::conditional_t<kWraps, uint32_t, int32_t>>;
    case kType<int64_t>:
      return kFolds<F, std::conditional_t<kWraps, uint64_t, int64_t>>;
    default:
      return {};
  }
}

// Two passes: the extreme, NaNs passed over, then its first place.
template <typename T, bool kGreatest>
int64_t ArgRow(const void* x, int64_t n) {
  const T* a = static_cast<const T*>(x);
  using L = Lanes<T>;
  using F = std::conditional_t<kGreatest, Max, Min>;
  const T neutral = F::template kNeutral<T>;
  typename L::Vector best[4], b;
  for (int j = 0; j < 4; ++j) best[j] = typename L::Vector{} + neutral;
  int64_t i = 0;
  for (; i + L::kCount <= n; i += L::kCount) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      Load(a + i + j * L::kWidth, b);
      // A NaN compares false and is left out.
      best[j] = (kGreatest ? b > best[j] : b < best[j]) ? b : best[j];
    }
  }
  T extreme = neutral;
  const auto take = [&extreme](T v) [[gnu::always_inline]] {
    extreme = (kGreatest ? v > extreme : v < extreme) ? v : extreme;
  };
  for (; i < n; ++i) take(a[i]);
  T lanes[L::kCount];
  __builtin_memcpy(lanes, best, sizeof(lanes));
  for (T lane : lanes) take(lane);
  // In blocks, so that the search is vector code too.
  constexpr int64_t kStep = 256;
  for (i = 0; i + kStep <= n; i += kStep) {
    int found = 0;
    for (int64_t k = 0; k < kStep; ++k) found |= a[i + k] == extreme;
    if (found) break;
  }
  for (; i < n; ++i) {
    if (a[i] == extreme) return i;
  }
  return 0;
}

template <typename S, bool kGreatest>
int64_t ArgSmallRow(const void* x, int64_t n) {
  const S* a = static_cast<const S*>(x);
  alignas(64) float block[kRowBlock];
  int64_t best = 0;
  float extreme = kGreatest ? -kInfinity : kInfinity;
  for (int64_t i = 0; i < n; i += kRowBlock) {
    const int64_t m = n - i < kRowBlock ? n - i : kRowBlock;
    Widen(a + i, block, m);
    const int64_t at = ArgRow<float, kGreatest>(block, m);
    if (kGreatest ? block[at] > extreme : block[at] < extreme) {
      extreme = block[at];
      best = i + at;
    }
  }
  return best;
}

template <bool kGreatest>
RowArg ArgOf(int dtype) {
  switch (dtype) {
    case kType<float>:
      return ArgRow<float, kGreatest>;
    case kType<double>:
      return ArgRow<double, kGreatest>;
    case kType<int8_t>:
      return ArgRow<int8_t, kGreatest>;
    case kType<int16_t>:
      return ArgRow<int16_t, kGreatest>;
    case kType<int32_t>:
      return ArgRow<int32_t, kGreatest>;
    case kType<int64_t>:
      return ArgRow<int64_t, kGreatest>;
    case kType<bool>:
    case kType<uint8_t>:
      return ArgRow<uint8_t, kGreatest>;
    case kType<uint16_t>:
      return ArgRow<uint16_t, kGreatest>;
    case kType<uint32_t>:
      return ArgRow<uint32_t, kGreatest>;
    case kType<uint64_t>:
      return ArgRow<uint64_t, kGreatest>;
    case kType<half>:
      return ArgSmallRow<half, kGreatest>;
    case kType<bfloat16>:
      return ArgSmallRow<bfloat16, kGreatest>;
    default:
      return nullptr;
  }
}

}  // namespace

FoldLoops FindFold(Fold fold, int dtype) {
  switch (fold) {
    case Fold::kAdd:
      return FoldsOf<Add, true>(dtype);
    case Fold::kMultiply:
      return FoldsOf<Multiply, true>(dtype);
    case Fold::kMax:
      return FoldsOf<Max, false>(dtype);
    case Fold::kMin:
      return FoldsOf<Min, false>(dtype);
  }
  return {};
}

RowArg FindRowArg(bool greatest, int dtype) {
  return greatest ? ArgOf<true>(dtype) : ArgOf<false>(dtype);
}

}  // namespace headrace::HR_LEVEL
