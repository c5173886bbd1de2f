// Transposing a matrix by square tiles that fit in registers: a tile of n rows
// is shuffled log2(n) times, each time interleaving row i with row i + n/2.
#include "ops/array/transpose_loops.h"

#include <utility>

#include "base/numbers/vector_math.h"

#pragma GCC diagnostic ignored "-Wpsabi"

namespace headrace::HR_LEVEL {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

constexpr int Min(int a, int b) { return a < b ? a : b; }

// Rows (and columns) of a tile of elements of that size.
template <typename T>
constexpr int kTileRows = Min(kVectorBytes / static_cast<int>(sizeof(T)), 16);

template <typename T>
struct Tile {
  static constexpr int kN = kTileRows<T>;
  typedef T Vector __attribute__((vector_size(sizeof(T) * kN)));
  Vector row[kN];
};

template <typename V, int... i>
HR_VECTOR void Interleave(const V& a, const V& b, V& low, V& high,
                          std::integer_sequence<int, i...>) {
  constexpr int kN = sizeof...(i);
  // Even places from a, odd ones from b.
  low = __builtin_shufflevector(a, b, (i % 2 * kN + i / 2)...);
  high = __builtin_shufflevector(a, b, (i % 2 * kN + i / 2 + kN / 2)...);
}

template <typename T>
HR_VECTOR void Shuffle(const Tile<T>& from, Tile<T>& to) {
  constexpr int kN = Tile<T>::kN;
// Unrolled, so that rows are registers.
#pragma GCC unroll 8
  for (int i = 0; i < kN / 2; ++i) {
    Interleave(from.row[i], from.row[i + kN / 2], to.row[2 * i],
               to.row[2 * i + 1], std::make_integer_sequence<int, kN>());
  }
}

template <typename T>
HR_VECTOR void TransposeTile(const T* x, int64_t x_stride, T* y,
                             int64_t y_stride) {
  constexpr int kN = Tile<T>::kN;
  Tile<T> a, b;
#pragma GCC unroll 16
  for (int i = 0; i < kN; ++i) {
    // Rows may lie anywhere; memcpy is one unaligned load.
    __builtin_memcpy(&a.row[i], x + i * x_stride, sizeof(a.row[i]));
  }
  // log2(kN) turns.
  Shuffle(a, b);
  // The result must end in `a`, whichever tile the number of turns leaves it
  // in.
  if constexpr (kN == 2) a = b;
  if constexpr (kN >= 4) Shuffle(b, a);
  if constexpr (kN >= 8) Shuffle(a, b);
  if constexpr (kN == 8) a = b;
  if constexpr (kN >= 16) Shuffle(b, a);
#pragma GCC unroll 16
  for (int i = 0; i < kN; ++i) {
    __builtin_memcpy(y + i * y_stride, &a.row[i], sizeof(a.row[i]));
  }
}

// Tiles are walked in squares of this many elements a side, to use each cache
// line and page of either side while it is near.
constexpr int64_t kSquare = 64;

template <typename T>
void Transpose(const void* from, int64_t x_stride, void* to, int64_t y_stride,
               int64_t rows, int64_t columns) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  constexpr int kN = kTileRows<T>;
  const int64_t whole_rows = rows - rows % kN;
  const int64_t whole_columns = columns - columns % kN;
  for (int64_t r0 = 0; r0 < whole_rows; r0 += kSquare) {
    const int64_t r1 = r0 + kSquare < whole_rows ? r0 + kSquare : whole_rows;
    for (int64_t c0 = 0; c0 < whole_columns; c0 += kSquare) {
      const int64_t c1 =
          c0 + kSquare < whole_columns ? c0 + kSquare : whole_columns;
      for (int64_t c = c0; c < c1; c += kN) {
        for (int64_t r = r0; r < r1; r += kN) {
          TransposeTile(x + r * x_stride + c, x_stride, y + c * y_stride + r,
                        y_stride);
        }
      }
    }
  }
  // What makes no whole tile, element by element.
  for (int64_t r = 0; r < whole_rows; ++r) {
    for (int64_t c = whole_columns; c < columns; ++c) {
      y[c * y_stride + r] = x[r * x_stride + c];
    }
  }
  for (int64_t r = whole_rows; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      y[c * y_stride + r] = x[r * x_stride + c];
    }
  }
}

struct Bytes16 {
  uint64_t low, high;
};

void Transpose16(const void* from, int64_t x_stride, void* to, int64_t y_stride,
                 int64_t rows, int64_t columns) {
  const Bytes16* x = static_cast<const Bytes16*>(from);
  Bytes16* y = static_cast<Bytes16*>(to);
  // Sixteen columns of 16 bytes: four cache lines are read of each row, and the
  // sixteen lines that are written stay in the cache until they are full.
  constexpr int64_t kSide = 16;
  for (int64_t c0 = 0; c0 < columns; c0 += kSide) {
    const int64_t c1 = c0 + kSide < columns ? c0 + kSide : columns;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = c0; c < c1; ++c) {
        y[c * y_stride + r] = x[r * x_stride + c];
      }
    }
  }
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
TransposeLoop FindTranspose<CpuLevel::HR_LEVEL>(int size) {
  switch (size) {
    case 1:
      return Transpose<uint8_t>;
    case 2:
      return Transpose<uint16_t>;
    case 4:
      return Transpose<uint32_t>;
    case 8:
      return Transpose<uint64_t>;
    case 16:
      return Transpose16;
    default:
      return nullptr;
  }
}

}  // namespace headrace
