// pocketfft over vectors whose lanes are rows. Its header stands here under a
// namespace of the level's, so that no level's code serves another.
#include "ops/signal/fourier_loops.h"

#include <string.h>

// Its own threads would compete with the pool's.
#define POCKETFFT_NO_MULTITHREADING
#include "pocketfft/pocketfft_hdronly.h"

namespace headrace::HR_LEVEL {
namespace {

namespace library = pocketfft::detail;

// Forced inline, as code of one level must not be shared with another's (the
// linker keeps one copy of an inline function, whichever).
#define HR_INLINE [[gnu::always_inline]] static inline

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

template <typename T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes)));
  typedef T unaligned __attribute__((vector_size(kBytes), aligned(sizeof(T))));
};
template <typename T>
using Vec = typename VectorOf<T>::type;
template <typename T>
using Complex = library::cmplx<Vec<T>>;
template <typename T>
constexpr int kWidth = kBytes / sizeof(T);

template <typename T>
HR_INLINE Vec<T> Load(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::unaligned*>(p);
}
template <typename T>
HR_INLINE void Store(T* p, Vec<T> v) {
  *reinterpret_cast<typename VectorOf<T>::unaligned*>(p) = v;
}

// Shuffles of two vectors: element i comes from place kPlace(i).
enum class Pick { kZipLow, kZipHigh, kEven, kOdd };
template <Pick kPick>
constexpr int Place(int i, int width) {
  switch (kPick) {
    case Pick::kZipLow:
      return i / 2 + i % 2 * width;
    case Pick::kZipHigh:
      return width / 2 + i / 2 + i % 2 * width;
    case Pick::kEven:
      return 2 * i;
    default:
      return 2 * i + 1;
  }
}
template <Pick kPick, typename T, size_t... I>
HR_INLINE Vec<T> ShuffleAt(Vec<T> a, Vec<T> b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, Place<kPick>(I, kWidth<T>)...);
}
template <Pick kPick, typename T>
HR_INLINE Vec<T> Shuffle(Vec<T> a, Vec<T> b) {
  return ShuffleAt<kPick, T>(a, b, std::make_index_sequence<kWidth<T>>());
}

// Rows become columns: log2(width) perfect shuffles.
template <typename T>
HR_INLINE void Transpose(Vec<T>* t) {
  constexpr int kHalf = kWidth<T> / 2;
#pragma GCC unroll 4
  for (int stage = 1; stage < kWidth<T>; stage *= 2) {
    Vec<T> u[kWidth<T>];
#pragma GCC unroll 16
    for (int i = 0; i < kHalf; ++i) {
      u[2 * i] = Shuffle<Pick::kZipLow, T>(t[i], t[i + kHalf]);
      u[2 * i + 1] = Shuffle<Pick::kZipHigh, T>(t[i], t[i + kHalf]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kWidth<T>; ++i) t[i] = u[i];
  }
}

// `lanes` complex numbers that follow one another.
template <typename T>
HR_INLINE void LoadPairs(const T* from, int lanes, Complex<T>& c) {
  if (lanes == kWidth<T>) {
    const Vec<T> a = Load(from), b = Load(from + kWidth<T>);
    c.r = Shuffle<Pick::kEven, T>(a, b);
    c.i = Shuffle<Pick::kOdd, T>(a, b);
    return;
  }
  c.r = c.i = Vec<T>{};
  for (int l = 0; l < lanes; ++l) {
    c.r[l] = from[2 * l];
    c.i[l] = from[2 * l + 1];
  }
}
template <typename T>
HR_INLINE void StorePairs(const Complex<T>& c, int lanes, T* to) {
  if (lanes == kWidth<T>) {
    Store(to, Shuffle<Pick::kZipLow, T>(c.r, c.i));
    Store(to + kWidth<T>, Shuffle<Pick::kZipHigh, T>(c.r, c.i));
    return;
  }
  for (int l = 0; l < lanes; ++l) {
    to[2 * l] = c.r[l];
    to[2 * l + 1] = c.i[l];
  }
}

// Whether the rows' first elements, each of `size` T, follow one another.
template <typename P>
bool Adjacent(P const* rows, int lanes, int size) {
  for (int l = 1; l < lanes; ++l) {
    if (rows[l] != rows[0] + l * size) return false;
  }
  return true;
}

// set(i, v) for every i < count, v[l] being element i of row l, whose elements
// follow one another.
template <typename T, typename F>
void GatherDense(const FourierBatch<T>& b, int64_t count, const F& set) {
  constexpr int kW = kWidth<T>;
  const T* rows[kW];
  // Lanes without a row read the first one again: something that is there, and
  // that nobody looks at.
  for (int l = 0; l < kW; ++l) rows[l] = b.from[l < b.lanes ? l : 0];
  Vec<T> t[kW];
  int64_t i = 0;
  for (; i + kW <= count; i += kW) {
    for (int l = 0; l < kW; ++l) t[l] = Load(rows[l] + i);
    Transpose<T>(t);
    for (int l = 0; l < kW; ++l) set(i + l, t[l]);
  }
  for (; i < count; ++i) {
    for (int l = 0; l < kW; ++l) t[0][l] = rows[l][i];
    set(i, t[0]);
  }
}
// The other way.
template <typename T, typename F>
void ScatterDense(const FourierBatch<T>& b, int64_t count, const F& get) {
  constexpr int kW = kWidth<T>;
  Vec<T> t[kW];
  int64_t i = 0;
  for (; i + kW <= count; i += kW) {
    for (int l = 0; l < kW; ++l) t[l] = get(i + l);
    Transpose<T>(t);
    for (int l = 0; l < b.lanes; ++l) Store(b.to[l] + i, t[l]);
  }
  for (; i < count; ++i) {
    t[0] = get(i);
    for (int l = 0; l < b.lanes; ++l) b.to[l][i] = t[0][l];
  }
}

template <typename T>
void GatherComplex(const FourierBatch<T>& b, int64_t n, Complex<T>* c) {
  if (b.from_step == 2) {
    GatherDense(b, 2 * n, [c](int64_t i, const Vec<T>& v) {
      (i % 2 == 0 ? c[i / 2].r : c[i / 2].i) = v;
    });
  } else if (Adjacent(b.from, b.lanes, 2)) {
    for (int64_t i = 0; i < n; ++i) {
      LoadPairs(b.from[0] + i * b.from_step, b.lanes, c[i]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      c[i].r = c[i].i = Vec<T>{};
      for (int l = 0; l < b.lanes; ++l) {
        c[i].r[l] = b.from[l][i * b.from_step];
        c[i].i[l] = b.from[l][i * b.from_step + 1];
      }
    }
  }
}
template <typename T>
void ScatterComplex(const FourierBatch<T>& b, int64_t n, const Complex<T>* c) {
  if (b.to_step == 2) {
    ScatterDense(b, 2 * n, [c](int64_t i) {
      return i % 2 == 0 ? c[i / 2].r : c[i / 2].i;
    });
  } else if (Adjacent(b.to, b.lanes, 2)) {
    for (int64_t i = 0; i < n; ++i) {
      StorePairs(c[i], b.lanes, b.to[0] + i * b.to_step);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      for (int l = 0; l < b.lanes; ++l) {
        b.to[l][i * b.to_step] = c[i].r[l];
        b.to[l][i * b.to_step + 1] = c[i].i[l];
      }
    }
  }
}

// Lengths from this one on are cut in two where they have the factors.
constexpr int64_t kLeastLong = 2048;
constexpr int64_t kGreatestFactor = 64;  // a prime beyond: not worth cutting

template <typename T>
struct Plan {
  int64_t n;
  std::unique_ptr<library::pocketfft_c<T>> complex;
  std::unique_ptr<library::pocketfft_r<T>> real;
  // A long row's, n = n1 * n2: transforms of n1 and n2, and what turns lie
  // between them. Element k of column j turns by k * j / n: by
  // turns[k] (a vector over a group's columns) and firsts[group][k].
  int64_t n1 = 0, n2 = 0;
  std::unique_ptr<library::pocketfft_c<T>> first, second;
  library::arr<Complex<T>> turns;
  library::arr<library::cmplx<T>> firsts;

  int64_t column_groups() const { return (n2 + kWidth<T> - 1) / kWidth<T>; }
  int64_t row_groups() const { return (n1 + kWidth<T> - 1) / kWidth<T>; }

  void Cut() {
    if (n < kLeastLong) return;
    if (library::util::largest_prime_factor(n) > kGreatestFactor) return;
    int64_t a = 1;
    // As near to the square root as can be: both halves of the work then stay
    // in the first caches (Cooley and Tukey's cut).
    for (int64_t d = 2; d * d <= n; ++d) {
      if (n % d == 0) a = d;
    }
    // Vectors run over columns and rows: there must be some of each.
    if (a < 2 * kWidth<T>) return;
    n1 = a;
    n2 = n / a;
    first = std::make_unique<library::pocketfft_c<T>>(n1);
    second = std::make_unique<library::pocketfft_c<T>>(n2);
    const library::sincos_2pibyn<T> turn(n);
    turns.resize(n1);
    firsts.resize(n1 * column_groups());
    for (int64_t k = 0; k < n1; ++k) {
      for (int l = 0; l < kWidth<T>; ++l) {
        const library::cmplx<T> w = turn[k * l];
        turns[k].r[l] = w.r;
        turns[k].i[l] = w.i;
      }
      for (int64_t g = 0; g < column_groups(); ++g) {
        firsts[g * n1 + k] = turn[k * g * kWidth<T>];
      }
    }
  }
};
template <typename T>
const Plan<T>& PlanAt(const void* plan) {
  return *static_cast<const Plan<T>*>(plan);
}

template <typename T>
void* Make(int64_t n, bool real) {
  try {
    auto plan = std::make_unique<Plan<T>>();
    plan->n = n;
    if (real) {
      plan->real = std::make_unique<library::pocketfft_r<T>>(n);
      return plan.release();
    }
    plan->Cut();
    plan->complex = std::make_unique<library::pocketfft_c<T>>(n);
    return plan.release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
template <typename T>
void Destroy(void* plan) {
  delete static_cast<Plan<T>*>(plan);
}

template <typename T>
int64_t BatchRoom(const void* plan) {
  return PlanAt<T>(plan).n * 2 * kWidth<T>;
}
template <typename T>
int64_t AloneRoom(const void* plan) {
  return PlanAt<T>(plan).n * 2;
}
template <typename T>
int64_t LongRoom(const void* plan) {
  return PlanAt<T>(plan).n1 * 2 * kWidth<T>;
}

// One row by itself.
template <typename T>
void ComplexRow(const Plan<T>& p, const FourierBatch<T>& b, T* room) {
  auto* c = reinterpret_cast<library::cmplx<T>*>(room);
  for (int64_t i = 0; i < p.n; ++i) {
    c[i] = {b.from[0][i * b.from_step], b.from[0][i * b.from_step + 1]};
  }
  p.complex->exec(c, b.scale, !b.inverse);
  for (int64_t i = 0; i < p.n; ++i) {
    b.to[0][i * b.to_step] = c[i].r;
    b.to[0][i * b.to_step + 1] = c[i].i;
  }
}

template <typename T>
bool ComplexRows(const void* plan, const FourierBatch<T>& b, T* room) {
  const Plan<T>& p = PlanAt<T>(plan);
  try {
    if (b.alone) {
      ComplexRow(p, b, room);
      return true;
    }
    auto* c = reinterpret_cast<Complex<T>*>(room);
    GatherComplex(b, p.n, c);
    p.complex->exec(c, b.scale, !b.inverse);
    ScatterComplex(b, p.n, c);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// The library's order of half a transform: the real part of 0, then both parts
// of 1, 2, …, and for even n the real part of n / 2. Part i of the whole list
// of pairs lies there at i - 1; parts 1 and, for even n, n + 1 are zero.
template <typename T>
void RealRow(const Plan<T>& p, const FourierBatch<T>& b, T* room) {
  const int64_t n = p.n;
  if (b.inverse) {
    for (int64_t i = 0; i < n; ++i) room[i] = b.from[0][i == 0 ? 0 : i + 1];
    p.real->exec(room, b.scale, false);
    memcpy(b.to[0], room, n * sizeof(T));
    return;
  }
  memcpy(room, b.from[0], n * sizeof(T));
  p.real->exec(room, b.scale, true);
  T* to = b.to[0];
  to[0] = room[0];
  to[1] = T(0);
  for (int64_t i = 1; i < n; ++i) to[i + 1] = room[i];
  if (n % 2 == 0) to[n + 1] = T(0);
}

template <typename T>
bool RealRows(const void* plan, const FourierBatch<T>& b, T* room) {
  const Plan<T>& p = PlanAt<T>(plan);
  const int64_t n = p.n, parts = n / 2 * 2 + 2;
  try {
    if (b.alone) {
      RealRow(p, b, room);
      return true;
    }
    auto* c = reinterpret_cast<Vec<T>*>(room);
    if (b.inverse) {
      GatherDense(b, parts, [c, n](int64_t i, const Vec<T>& v) {
        if (i != 1 && i <= n) c[i == 0 ? 0 : i - 1] = v;
      });
      p.real->exec(c, b.scale, false);
      ScatterDense(b, n, [c](int64_t i) { return c[i]; });
      return true;
    }
    GatherDense(b, n, [c](int64_t i, const Vec<T>& v) { c[i] = v; });
    p.real->exec(c, b.scale, true);
    ScatterDense(b, parts, [c, n](int64_t i) {
      // The imaginary parts of places 0 and n / 2, which are zero for real
      // rows.
      if (i == 1 || i > n) return Vec<T>{};
      return c[i == 0 ? 0 : i - 1];
    });
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

template <typename T>
bool IsLong(const void* plan) {
  return PlanAt<T>(plan).n1 > 0;
}
template <typename T>
int64_t Middle(const void* plan) {
  const Plan<T>& p = PlanAt<T>(plan);
  return p.row_groups() * p.n2 * 2 * kWidth<T>;
}
template <typename T>
int64_t ColumnGroups(const void* plan) {
  return PlanAt<T>(plan).column_groups();
}
template <typename T>
int64_t RowGroups(const void* plan) {
  return PlanAt<T>(plan).row_groups();
}

// One vector's worth of transformed columns, turned and transposed: rows
// [block, block + width) of `c` become elements of `width` places of `to`.
template <typename T, bool kInverse>
HR_INLINE void TurnBlock(const Plan<T>& p, const Complex<T>* c,
                         const library::cmplx<T>* firsts, int64_t block,
                         int lanes, Complex<T>* to) {
  constexpr int kW = kWidth<T>;
  Vec<T> re[kW], im[kW];
  for (int i = 0; i < kW; ++i) {
    const int64_t k = block + i;
    if (k >= p.n1) {
      re[i] = im[i] = Vec<T>{};
      continue;
    }
    // w^(k (column + l)) = w^(k column) w^(k l): two tables, smaller than
    // one of n numbers.
    const Complex<T> w = p.turns[k] * firsts[k];
    const Complex<T> y = c[k].template special_mul<!kInverse>(w);
    re[i] = y.r;
    im[i] = y.i;
  }
  Transpose<T>(re);
  for (int l = 0; l < lanes; ++l) to[l].r = re[l];
  Transpose<T>(im);
  for (int l = 0; l < lanes; ++l) to[l].i = im[l];
}

template <typename T>
bool LongColumns(const void* plan, const T* from, T* middle, int64_t group,
                 bool inverse, T* room) {
  constexpr int kW = kWidth<T>;
  const Plan<T>& p = PlanAt<T>(plan);
  auto* c = reinterpret_cast<Complex<T>*>(room);
  const int64_t column = group * kW;
  const int lanes = static_cast<int>(p.n2 - column < kW ? p.n2 - column : kW);
  for (int64_t j = 0; j < p.n1; ++j) {
    LoadPairs(from + 2 * (j * p.n2 + column), lanes, c[j]);
  }
  try {
    p.first->exec(c, T(1), !inverse);
  } catch (const std::bad_alloc&) {
    return false;
  }
  auto* to = reinterpret_cast<Complex<T>*>(middle);
  const library::cmplx<T>* firsts = p.firsts.data() + group * p.n1;
  for (int64_t g = 0; g < p.row_groups(); ++g) {
    Complex<T>* at = to + g * p.n2 + column;
    if (inverse) {
      TurnBlock<T, true>(p, c, firsts, g * kW, lanes, at);
    } else {
      TurnBlock<T, false>(p, c, firsts, g * kW, lanes, at);
    }
  }
  return true;
}

template <typename T>
bool LongRows(const void* plan, T* middle, T* to, int64_t group, bool inverse,
              T scale) {
  constexpr int kW = kWidth<T>;
  const Plan<T>& p = PlanAt<T>(plan);
  auto* c = reinterpret_cast<Complex<T>*>(middle) + group * p.n2;
  try {
    p.second->exec(c, scale, !inverse);
  } catch (const std::bad_alloc&) {
    return false;
  }
  const int64_t row = group * kW;
  const int lanes = static_cast<int>(p.n1 - row < kW ? p.n1 - row : kW);
  for (int64_t k = 0; k < p.n2; ++k) {
    StorePairs(c[k], lanes, to + 2 * (row + k * p.n1));
  }
  return true;
}

template <typename T>
constexpr FourierLoops<T> kLoops = {
    kWidth<T>,       Make<T>,        Destroy<T>,   BatchRoom<T>, AloneRoom<T>,
    LongRoom<T>,     ComplexRows<T>, RealRows<T>,  IsLong<T>,    Middle<T>,
    ColumnGroups<T>, LongColumns<T>, RowGroups<T>, LongRows<T>};

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
const FourierLoops<float>* FloatFourier<CpuLevel::HR_LEVEL>() {
  return &kLoops<float>;
}
template <>
const FourierLoops<double>* DoubleFourier<CpuLevel::HR_LEVEL>() {
  return &kLoops<double>;
}

}  // namespace headrace
