#include "ops/math/reduce.h"

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include "base/allocator.h"
#include "base/float_types.h"
#include "base/thread_pool.h"
#include "ops/math/reduce_tables.h"

namespace headrace {
namespace {

constexpr int kFloat = 1, kDouble = 2, kComplex64 = 8, kBool = 10,
              kBfloat16 = 14, kComplex128 = 18, kHalf = 19;

bool IsSmall(int t) { return t == kHalf || t == kBfloat16; }

int BytesOf(int dtype) {
  switch (dtype) {
    case 1:
    case 3:
    case 22:
      return 4;
    case 2:
    case 9:
    case 23:
      return 8;
    case 5:
    case 14:
    case 17:
    case 19:
      return 2;
    default:
      return 1;
  }
}

// Memory for partial results.
class Workspace {
 public:
  explicit Workspace(size_t bytes)
      : bytes_(bytes), data_(static_cast<char*>(AllocateMemory(bytes))) {}
  ~Workspace() { FreeMemory(data_, bytes_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  char* data() const { return data_; }

 private:
  const size_t bytes_;
  char* const data_;
};

// One fold of a [outer, middle, inner] array, from type to partial type.
struct Problem {
  Fold fold;
  int dtype;
  int partial;
  int64_t outer, middle, inner;
};

constexpr double kNsByte = 0.05;

// Folds whole `middle`, or segments of it, so that result (o, s, i) is the
// fold of the s-th segment; all on the pool.
void FoldSegments(const Problem& p, const FoldLoops& loops, int64_t segment,
                  const char* x, char* y) {
  const int64_t segments =
      std::max<int64_t>(1, p.middle / segment + (p.middle % segment != 0));
  const int64_t in = BytesOf(p.dtype), out = BytesOf(p.partial);
  const auto range = [&](int64_t s, int64_t& begin, int64_t& rows) {
    begin = s * segment;
    rows = std::min(segment, p.middle - begin);
  };
  if (p.inner == 1) {
    const double ns = std::min(segment, p.middle) * in * kNsByte + 10;
    ParallelFor(p.outer * segments, ns, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        int64_t begin, rows;
        range(i % segments, begin, rows);
        loops.row(x + (i / segments * p.middle + begin) * in, y + i * out,
                  rows);
      }
    });
    return;
  }
  const int64_t chunks = (p.inner + kFoldColumns - 1) / kFoldColumns;
  const double ns = std::min(segment, p.middle) *
                        std::min(p.inner, kFoldColumns) * in * kNsByte +
                    50;
  ParallelFor(p.outer * segments * chunks, ns,
              [&](int64_t first, int64_t last) {
                for (int64_t i = first; i < last; ++i) {
                  const int64_t c = i % chunks * kFoldColumns;
                  const int64_t os = i / chunks;
                  int64_t begin, rows;
                  range(os % segments, begin, rows);
                  const int64_t row = os / segments * p.middle + begin;
                  loops.column(x + (row * p.inner + c) * in,
                               y + (os * p.inner + c) * out, rows,
                               std::min(kFoldColumns, p.inner - c), p.inner);
                }
              });
}

// y gets partial results. Long reductions go in two steps, cut by shape alone.
Status FoldAll(const Problem& p, const void* x, void* y) {
  const CpuLevel level = ActiveCpuLevel();
  const FoldLoops loops = HR_CALL_LEVEL(level, FindFold(p.fold, p.dtype));
  if (!loops.row) return Unimplemented("No reduction for DataType ", p.dtype);
  const int64_t segment = std::max<int64_t>(FixedBlockSize(p.middle), 4096);
  const char* from = static_cast<const char*>(x);
  if (p.middle <= segment) {
    FoldSegments(p, loops, segment, from, static_cast<char*>(y));
    return OkStatus();
  }
  const int64_t segments = FixedBlocks(p.middle);
  const Workspace partials(p.outer * segments * p.inner * BytesOf(p.partial));
  if (!partials.data()) {
    return ResourceExhausted("No memory for a reduction's partial results");
  }
  FoldSegments(p, loops, segment, from, partials.data());
  Problem rest = p;
  rest.dtype = p.partial;
  rest.middle = segments;
  FoldSegments(rest, HR_CALL_LEVEL(level, FindFold(p.fold, p.partial)),
               segments, partials.data(), static_cast<char*>(y));
  return OkStatus();
}

template <typename T>
void DivideBy(void* y, int64_t n, int64_t count) {
  T* r = static_cast<T*>(y);
  if (std::is_floating_point_v<T>) {
    for (int64_t i = 0; i < n; ++i) r[i] /= static_cast<T>(count);
  } else if (count > 0) {
    for (int64_t i = 0; i < n; ++i) {
      r[i] = static_cast<T>(static_cast<__int128>(r[i]) / count);
    }
  }
}

void Divide(int partial, void* y, int64_t n, int64_t count) {
  switch (partial) {
    case 1:
      return DivideBy<float>(y, n, count);
    case 2:
      return DivideBy<double>(y, n, count);
    case 3:
      return DivideBy<int32_t>(y, n, count);
    case 4:
      return DivideBy<uint8_t>(y, n, count);
    case 5:
      return DivideBy<int16_t>(y, n, count);
    case 6:
      return DivideBy<int8_t>(y, n, count);
    case 9:
      return DivideBy<int64_t>(y, n, count);
    case 17:
      return DivideBy<uint16_t>(y, n, count);
    case 22:
      return DivideBy<uint32_t>(y, n, count);
    case 23:
      return DivideBy<uint64_t>(y, n, count);
  }
}

// Products of complex numbers, in order.
template <typename R>
void ComplexProduct(const void* x, void* y, int64_t outer, int64_t middle,
                    int64_t inner) {
  const auto* a = static_cast<const std::complex<R>*>(x);
  auto* r = static_cast<std::complex<R>*>(y);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      std::complex<R> product = 1;
      for (int64_t m = 0; m < middle; ++m) {
        product *= a[(o * middle + m) * inner + i];
      }
      r[o * inner + i] = product;
    }
  }
}

bool FoldOf(Reduction reduction, Fold& fold) {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kMean:
      fold = Fold::kAdd;
      return true;
    case Reduction::kProd:
      fold = Fold::kMultiply;
      return true;
    case Reduction::kMax:
    case Reduction::kAny:
      fold = Fold::kMax;
      return true;
    case Reduction::kMin:
    case Reduction::kAll:
      fold = Fold::kMin;
      return true;
  }
  return false;
}

template <typename S>
void NarrowTo(const float* x, void* y, int64_t n) {
  S* r = static_cast<S*>(y);
  for (int64_t i = 0; i < n; ++i) r[i] = S(x[i]);
}

// Bools of nothing: bytes fold to 255 and 0.
void FixEmptyBools(void* y, int64_t n) {
  uint8_t* r = static_cast<uint8_t*>(y);
  for (int64_t i = 0; i < n; ++i) r[i] = r[i] != 0;
}

}  // namespace

Status Reduce(Reduction reduction, int dtype, const void* x, void* y,
              int64_t outer, int64_t middle, int64_t inner) {
  const int64_t results = outer * inner;
  if (results == 0) return OkStatus();
  if (dtype == kComplex64 || dtype == kComplex128) {
    if (reduction == Reduction::kProd) {
      (dtype == kComplex64
           ? ComplexProduct<float>
           : ComplexProduct<double>)(x, y, outer, middle, inner);
      return OkStatus();
    }
    if (reduction != Reduction::kSum && reduction != Reduction::kMean) {
      return Unimplemented("Complex numbers have no such reduction");
    }
    return Reduce(reduction, dtype == kComplex64 ? kFloat : kDouble, x, y,
                  outer, middle, 2 * inner);
  }
  const bool logical =
      reduction == Reduction::kAll || reduction == Reduction::kAny;
  if (logical != (dtype == kBool)) {
    return Unimplemented("No such reduction for DataType ", dtype);
  }
  Problem p{Fold::kAdd, dtype, dtype, outer, middle, inner};
  FoldOf(reduction, p.fold);
  if (!IsSmall(dtype)) {
    HR_RETURN_IF_ERROR(FoldAll(p, x, y));
    if (reduction == Reduction::kMean) Divide(dtype, y, results, middle);
    if (logical && middle == 0) FixEmptyBools(y, results);
    return OkStatus();
  }
  p.partial = kFloat;
  const Workspace sums(results * sizeof(float));
  if (!sums.data()) {
    return ResourceExhausted("No memory for a reduction's partial results");
  }
  HR_RETURN_IF_ERROR(FoldAll(p, x, sums.data()));
  float* wide = reinterpret_cast<float*>(sums.data());
  if (reduction == Reduction::kMean) Divide(kFloat, wide, results, middle);
  (dtype == kHalf ? NarrowTo<half> : NarrowTo<bfloat16>)(wide, y, results);
  return OkStatus();
}

Status ArgReduce(bool greatest, int dtype, const void* x, int64_t* y,
                 int64_t outer, int64_t middle, int64_t inner) {
  const RowArg row =
      HR_CALL_LEVEL(ActiveCpuLevel(), FindRowArg(greatest, dtype));
  if (!row) return Unimplemented("No argmax for DataType ", dtype);
  if (outer * inner == 0 || middle == 0) return OkStatus();
  const int64_t bytes = BytesOf(dtype);
  const char* from = static_cast<const char*>(x);
  const double ns = middle * bytes * 2 * kNsByte + 20;
  if (inner == 1) {
    ParallelFor(outer, ns, [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o) {
        y[o] = row(from + o * middle * bytes, middle);
      }
    });
    return OkStatus();
  }
  // Columns are gathered into rows, a few at a time.
  constexpr int64_t kColumns = 16;
  const int64_t chunks = (inner + kColumns - 1) / kColumns;
  std::atomic<bool> failed{false};
  ParallelFor(outer * chunks, ns * kColumns, [&](int64_t first, int64_t last) {
    const Workspace rows(kColumns * middle * bytes);
    if (!rows.data()) {
      failed = true;
      return;
    }
    for (int64_t oc = first; oc < last; ++oc) {
      const int64_t o = oc / chunks, c = oc % chunks * kColumns;
      const int64_t n = std::min(kColumns, inner - c);
      for (int64_t m = 0; m < middle; ++m) {
        const char* at = from + ((o * middle + m) * inner + c) * bytes;
        for (int64_t k = 0; k < n; ++k) {
          std::memcpy(rows.data() + (k * middle + m) * bytes, at + k * bytes,
                      bytes);
        }
      }
      for (int64_t k = 0; k < n; ++k) {
        y[o * inner + c + k] = row(rows.data() + k * middle * bytes, middle);
      }
    }
  });
  if (failed) return ResourceExhausted("No memory for a reduction");
  return OkStatus();
}

}  // namespace headrace
