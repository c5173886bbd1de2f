#include "ops/array/block_copy.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/thread_pool.h"
#include "ops/array/element_dispatch.h"
#include "ops/array/transpose_loops.h"

namespace headrace {
namespace {

// Below this many bytes a loop beats memcpy's call.
constexpr int64_t kShortRow = 64;
// Rows of `to` that one task of a transposition writes.
constexpr int64_t kBand = 64;
// Bytes that are copied from place to place to repeat a pattern.
constexpr int64_t kStretch = 8192;

template <typename T>
constexpr bool kIsPlain = std::is_trivially_copyable_v<T>;

template <typename T>
void CopyRow(const T* from, int64_t fs, T* to, int64_t ts, int64_t n) {
  if (fs == 1 && ts == 1) {
    if constexpr (kIsPlain<T>) {
      if (n * static_cast<int64_t>(sizeof(T)) > kShortRow) {
        std::memcpy(static_cast<void*>(to), from, n * sizeof(T));
        return;
      }
    }
    // Objects are copied one by one; short runs too, as a call of memcpy would
    // take longer.
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  } else if (fs == 0 && ts == 1) {
    // A stride of 0 repeats one element.
    std::fill_n(to, n, *from);
  } else if (ts == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * fs];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * ts] = from[i * fs];
  }
}

// Drops dimensions of size 1 and joins neighbours that are one run in both.
void Simplify(BlockDims* dims) {
  BlockDims out;
  for (const BlockDim& d : *dims) {
    if (d.size == 1) continue;
    // One run in both: the outer dimension goes on where the inner one ends.
    if (!out.empty() && out.back().from == d.from * d.size &&
        out.back().to == d.to * d.size) {
      out.back() = {out.back().size * d.size, d.from, d.to};
    } else {
      out.push_back(d);
    }
  }
  *dims = std::move(out);
}

// Walks the positions of `dims` from number `begin` on.
class Odometer {
 public:
  Odometer(absl::Span<const BlockDim> dims, int64_t begin)
      : dims_(dims), at_(dims.size()) {
    // The last dimension runs fastest.
    for (size_t k = dims.size(); k-- > 0;) {
      at_[k] = begin % dims[k].size;
      begin /= dims[k].size;
      from += at_[k] * dims[k].from;
      to += at_[k] * dims[k].to;
    }
  }
  void Next() {
    for (size_t k = dims_.size(); k-- > 0;) {
      from += dims_[k].from;
      to += dims_[k].to;
      if (++at_[k] < dims_[k].size) return;
      at_[k] = 0;
      // On wrapping a dimension goes back to its beginning.
      from -= dims_[k].size * dims_[k].from;
      to -= dims_[k].size * dims_[k].to;
    }
  }
  int64_t from = 0;
  int64_t to = 0;

 private:
  absl::Span<const BlockDim> dims_;
  absl::InlinedVector<int64_t, 8> at_;
};

int64_t CountPositions(absl::Span<const BlockDim> dims) {
  int64_t n = 1;
  for (const BlockDim& d : dims) n *= d.size;
  return n;
}

double CostOf(const BlockDim& inner, size_t element) {
  bool run = (inner.from == 1 || inner.from == 0) && inner.to == 1;
  // Nanoseconds: a run moves at memory's pace, scattered elements one by one.
  return run ? 0.1 * static_cast<double>(element) : 0.7;
}

template <typename T>
void CopyRows(const T* from, T* to, absl::Span<const BlockDim> dims) {
  const BlockDim inner = dims.back();
  absl::Span<const BlockDim> outer = dims.first(dims.size() - 1);
  const int64_t rows = CountPositions(outer);
  const double cost = CostOf(inner, sizeof(T));
  // Too few rows for the threads, but enough in each.
  if (rows < 4 && inner.size > 65536) {  // few long rows: cut the rows
    Odometer at(outer, 0);
    for (int64_t r = 0; r < rows; ++r, at.Next()) {
      ParallelFor(inner.size, cost, [&](int64_t b, int64_t e) {
        CopyRow(from + at.from + b * inner.from, inner.from,
                to + at.to + b * inner.to, inner.to, e - b);
      });
    }
    return;
  }
  // About 2 ns a row for the walk.
  ParallelFor(rows, cost * inner.size + 2, [&](int64_t b, int64_t e) {
    Odometer at(outer, b);
    for (int64_t r = b; r < e; ++r, at.Next()) {
      CopyRow(from + at.from, inner.from, to + at.to, inner.to, inner.size);
    }
  });
}

// The last dimension is a run in `to` and dimension `d` one in `from`:
// transposes the matrices of the two, in bands of whole cache lines.
template <typename T>
void CopyTransposed(const T* from, T* to, BlockDims dims, size_t d) {
  const TransposeLoop transpose = AtActiveLevel(
      [&](auto level) { return FindTranspose<level>(sizeof(T)); });
  const BlockDim column = dims.back(), row = dims[d];
  // What is left are the matrices.
  dims.pop_back();
  dims.erase(dims.begin() + d);
  const int64_t bands = (row.size + kBand - 1) / kBand;
  const int64_t outer = CountPositions(dims);
  const double cost = 0.4 * static_cast<double>(column.size) * kBand;
  ParallelFor(outer * bands, cost, [&](int64_t b, int64_t e) {
    Odometer at(dims, b / bands);
    for (int64_t i = b; i < e; ++i) {
      const int64_t r = i % bands * kBand;
      transpose(from + at.from + r, column.from, to + at.to + r * row.to,
                row.to, column.size, std::min(kBand, row.size - r));
      // The walk goes on with the next matrix after its last band.
      if (i % bands == bands - 1) at.Next();
    }
  });
}

// `n` times the same `bytes` bytes, one after the other.
void Repeat(const char* from, int64_t bytes, char* to, int64_t n) {
  const double cost = 0.06 * static_cast<double>(bytes) + 0.1;
  ParallelFor(n, cost, [&](int64_t b, int64_t e) {
    char* begin = to + b * bytes;
    const int64_t all = (e - b) * bytes;
    std::memcpy(begin, from, bytes);
    // What is written already is the source, up to a stretch that stays in
    // the nearest cache.
    const int64_t stretch = std::max(kStretch / bytes, int64_t{1}) * bytes;
    for (int64_t done = bytes; done < all;) {
      const int64_t step = std::min({done, stretch, all - done});
      std::memcpy(begin + done, begin, step);
      done += step;
    }
  });
}

// True where the block is one run over and over.
bool IsRepeated(absl::Span<const BlockDim> dims) {
  // One element over and over, or one row.
  if (dims.size() == 1) return dims[0].from == 0 && dims[0].to == 1;
  return dims.size() == 2 && dims[0].from == 0 && dims[1].from == 1 &&
         dims[1].to == 1 && dims[0].to == dims[1].size;
}

// The dimension to pair with the last one for a transposition, or -1.
int TransposedWith(absl::Span<const BlockDim> dims) {
  const BlockDim& last = dims.back();
  // Shorter rows do not fill a tile.
  if (last.to != 1 || last.size < 4 || last.from <= 1) return -1;
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    if (dims[d].from == 1 && dims[d].size >= 4) return static_cast<int>(d);
  }
  return -1;
}

// Calls f(bytes), where the sizes that are common are constants.
template <typename F>
void ForRowBytes(int64_t bytes, F f) {
  // A constant size makes memcpy one instruction.
  switch (bytes) {
    case 1:
      return f(std::integral_constant<int64_t, 1>());
    case 2:
      return f(std::integral_constant<int64_t, 2>());
    case 4:
      return f(std::integral_constant<int64_t, 4>());
    case 8:
      return f(std::integral_constant<int64_t, 8>());
    case 16:
      return f(std::integral_constant<int64_t, 16>());
    default:
      return f(bytes);
  }
}

}  // namespace

void CopyBlock(DType dtype, const void* from, void* to, BlockDims dims) {
  for (const BlockDim& d : dims) {
    if (d.size == 0) return;
  }
  Simplify(&dims);
  // All dimensions were of size 1: one element.
  if (dims.empty()) dims.push_back({1, 1, 1});
  if (IsPlain(dtype) && IsRepeated(dims)) {
    const int64_t run = dims.size() == 1 ? 1 : dims[1].size;
    return Repeat(static_cast<const char*>(from), run * DTypeSize(dtype),
                  static_cast<char*>(to), dims[0].size);
  }
  const int paired = TransposedWith(dims);
  DispatchElement(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* f = static_cast<const T*>(from);
    T* t = static_cast<T*>(to);
    // Tiles are made of words of up to 16 bytes; objects move by assignment.
    if constexpr (kIsPlain<T> && sizeof(T) <= 16) {
      if (paired >= 0) return CopyTransposed(f, t, std::move(dims), paired);
    }
    CopyRows(f, t, dims);
  });
}

absl::InlinedVector<int64_t, 8> RowMajorStrides(
    absl::Span<const int64_t> dims) {
  absl::InlinedVector<int64_t, 8> strides(dims.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0; step *= dims[i]) strides[i] = step;
  return strides;
}

void ScatterRows(int64_t bytes, const void* from, const int32_t* at, int64_t n,
                 void* to) {
  const char* f = static_cast<const char*>(from);
  char* t = static_cast<char*>(to);
  ForRowBytes(bytes, [=](auto size) {
    for (int64_t i = 0; i < n; ++i) {
      std::memcpy(t + at[i] * int64_t{size}, f + i * size, size);
    }
  });
}

void DealRows(int64_t bytes, const void* from, const int32_t* at, int64_t n,
              char** tos) {
  const char* f = static_cast<const char*>(from);
  ForRowBytes(bytes, [=](auto size) {
    for (int64_t i = 0; i < n; ++i) {
      // Each part's place moves on by what it got.
      char*& to = tos[at[i]];
      std::memcpy(to, f + i * size, size);
      to += size;
    }
  });
}

void CopyRun(DType dtype, const void* from, void* to, int64_t n) {
  if (IsPlain(dtype)) {
    std::memcpy(to, from, n * DTypeSize(dtype));
    return;
  }
  // Objects are assigned, not copied as bytes.
  CopyBlock(dtype, from, to, {{n, 1, 1}});
}

void FillRun(DType dtype, void* to, const void* value, int64_t n) {
  CopyBlock(dtype, value, to, {{n, 0, 1}});
}

}  // namespace headrace
