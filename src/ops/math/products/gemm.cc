#include "ops/math/products/gemm.h"

#include <algorithm>
#include <atomic>

#include "base/cpu_level.h"
#include "base/thread_pool.h"
#include "ops/math/loops/wrapping.h"
#include "ops/math/products/gemm_dnnl.h"
#include "ops/math/products/gemm_loops.h"
#include "tensor/tensor.h"

namespace headrace {

template <>
const GemmLoops<float>& LoopsForGemm() {
  // Chosen once: the processor does not change.
  static const auto* loops =
      AtActiveLevel([](auto level) { return FloatGemm<level>(); });
  return *loops;
}
template <>
const GemmLoops<double>& LoopsForGemm() {
  static const auto* loops =
      AtActiveLevel([](auto level) { return DoubleGemm<level>(); });
  return *loops;
}

namespace {

// 80 GFLOP/s, what a core with vectors of 8 floats does: an estimate that
// decides how work is shared out.
constexpr double kNsPerFlop = 1.0 / 80;
constexpr int64_t kDepth = 256;           // of a block of k
constexpr int64_t kPackBytes = 32 << 20;  // at most, for one operand

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One product of floats or doubles. C is cut into panels of rows and of
// columns, and k into blocks; operands are packed when they are large or have
// no unit stride.
template <typename T>
class Product {
 public:
  Product(const GemmDims& d, const T* a, const T* b, T* c, GemmRowsDone* done)
      : loops_(LoopsForGemm<T>()), d_(d), a_(a), b_(b), c_(c), done_(done) {}

  Status Run() {
    if (d_.m == 0 || d_.n == 0) return OkStatus();
    // A sum of nothing is 0.
    if (d_.k == 0) {
      for (int64_t i = 0; i < d_.m; ++i) {
        std::fill_n(c_ + i * d_.c_row, d_.n, T(0));
      }
      if (done_) (*done_)(0, d_.m);
      return OkStatus();
    }
    // Matrix by vector is bound by memory: blocks and packing would only copy.
    if (d_.n == 1 && d_.m > 1 && d_.c_row == 1 && RunColumn()) {
      return OkStatus();
    }
    if (FewRows() && RunRows(d_, a_, b_)) {
      if (done_) (*done_)(0, d_.m);
      return OkStatus();
    }
    if constexpr (std::is_same_v<T, float>) {
      if (DnnlGemm(d_, a_, b_, c_, done_)) return OkStatus();
    }
    return RunBlocks();
  }

 private:
  // One row after the other is faster than tiles of few rows: packing a
  // transposed B costs more than eight rows that read it, and tiles of three
  // rows or fewer wait for rows of B that are far apart.
  bool FewRows() const {
    if (d_.m == 1) return true;
    return d_.b_row == 1 ? d_.m < 8 && d_.k >= 64
                         : d_.m < 4 && d_.b_row >= 1024;
  }

  // C is a column: the transposed product is a row.
  bool RunColumn() {
    GemmDims t = d_;
    t.m = 1;
    t.n = d_.m;
    t.a_col = d_.b_row;
    t.b_row = d_.a_col;
    t.b_col = d_.a_row;
    if (!RunRows(t, b_, a_)) return false;
    if (done_) (*done_)(0, d_.m);
    return true;
  }

  // Row by row; false when B has no unit stride.
  bool RunRows(const GemmDims& d, const T* x, const T* b) {
    // A single row runs at a quarter of the rate: each number of B is used
    // once.
    const double cost = 2.0 * d.k * kNsPerFlop *
                        (d.m == 1 ? 4.0 : 2.0 * static_cast<double>(d.m));
    if (d.b_col == 1) {
      // Tasks of so many columns: whole cache lines, so that threads do not
      // share them.
      const int64_t block = 256;
      ParallelFor(CeilDiv(d.n, block), cost * block, [&](int64_t f, int64_t l) {
        const int64_t begin = f * block, end = std::min(l * block, d.n);
        // A strip of columns whose sums stay in the first cache.
        for (int64_t j = begin; j < end; j += 2048) {
          for (int64_t i = 0; i < d.m; ++i) {
            loops_.row_times_matrix(x + i * d.a_row, d.a_col, b + j, d.b_row,
                                    d.k, c_ + i * d.c_row + j,
                                    std::min<int64_t>(2048, end - j));
          }
        }
      });
      return true;
    }
    if (d.b_row == 1 && d.a_col == 1) {
      // Four dots at a time share the loads of x; so many of B's rows stay in
      // the first cache for the next x.
      constexpr int64_t kElements = 4096;
      const int64_t fours = std::max<int64_t>(1, kElements / d.k / 4);
      ParallelFor(CeilDiv(d.n, 4 * fours),
                  cost * 4 * static_cast<double>(fours),
                  [&](int64_t f, int64_t l) {
                    for (int64_t t = f; t < l; ++t) {
                      const int64_t j = t * 4 * fours;
                      const int64_t n = std::min(4 * fours, d.n - j);
                      for (int64_t i = 0; i < d.m; ++i) {
                        loops_.dots(x + i * d.a_row, b + j * d.b_col, d.b_col,
                                    d.k, c_ + i * d.c_row + j, n);
                      }
                    }
                  });
      return true;
    }
    return false;
  }

  Status RunBlocks() {
    const int width = loops_.width, rows = loops_.max_rows;
    // A B that stays in the first cache need not be packed for it.
    const bool small_b = d_.k * d_.n * sizeof(T) <= 24 * 1024;
    // Few rows read B once or twice: packing costs as much as reading.
    pack_b_ = d_.b_col != 1 || (d_.m > 2 * rows && !small_b);
    pack_a_ = d_.a_col != 1 && d_.a_row != 1;
    if (d_.a_col == 1 && d_.n >= 2 * width) {
      // Rows a multiple of 2 KiB apart would share a few lines of the cache.
      pack_a_ = d_.n >= 8 * width || d_.a_row * sizeof(T) % 2048 == 0;
    }
    // Blocks of equal depth, not 256 and a small rest.
    depth_ = CeilDiv(d_.k, CeilDiv(d_.k, kDepth));
    // Large operands are packed in parts, so that the memory is bounded.
    const int64_t limit = kPackBytes / sizeof(T) / d_.k;
    const int64_t chunk_n = std::max<int64_t>(limit / width, 8) * width;
    const int64_t chunk_m = std::max<int64_t>(limit / 16 * rows, 8 * rows);
    // A caller who waits for complete rows gets them from the last chunk.
    for (int64_t i = 0; i < d_.m; i += chunk_m) {
      const int64_t m = std::min(chunk_m, d_.m - i);
      for (int64_t j = 0; j < d_.n; j += chunk_n) {
        HR_RETURN_IF_ERROR(RunChunk(i, m, j, std::min(chunk_n, d_.n - j)));
      }
      if (done_ && chunk_n < d_.n) (*done_)(i, i + m);
    }
    return OkStatus();
  }

  // What one chunk of C is computed with.
  struct Chunk {
    const T* a;
    const T* b;
    T* c;
    int64_t m, n, first_row, row_panels, col_panels;
    T* packed_a = nullptr;
    T* packed_b = nullptr;  // only the last panel when B is not packed
    int64_t row(int64_t panel) const { return panel * m / row_panels; }
  };

  Status RunChunk(int64_t row, int64_t m, int64_t col, int64_t n) {
    // Rows of a panel in fours, as they are packed by fours.
    const int width = loops_.width, stride = (loops_.max_rows + 3) / 4 * 4;
    Chunk k{a_ + row * d_.a_row,
            b_ + col * d_.b_col,
            c_ + row * d_.c_row + col,
            m,
            n,
            row,
            CeilDiv(m, loops_.max_rows),
            CeilDiv(n, width)};
    Tensor room_a, room_b;
    if (pack_a_) {
      HR_ASSIGN_OR_RETURN(
          room_a,
          Tensor::Allocate(DTypeOf<T>, Shape{k.row_panels * stride * d_.k}));
      k.packed_a = room_a.data<T>();
    }
    // The last panel is packed in any case where it is not whole: tiles read
    // full vectors.
    const int64_t packed_panels = pack_b_ ? k.col_panels : n % width != 0;
    if (packed_panels > 0) {
      HR_ASSIGN_OR_RETURN(
          room_b,
          Tensor::Allocate(DTypeOf<T>, Shape{packed_panels * width * d_.k}));
      k.packed_b = room_b.data<T>();
    }
    PackChunk(k, packed_panels, stride);
    RunTiles(k, stride);
    return OkStatus();
  }

  void PackChunk(const Chunk& k, int64_t b_panels, int stride) {
    const int width = loops_.width;
    const int64_t a_panels = pack_a_ ? k.row_panels : 0;
    const int64_t first_b = k.col_panels - b_panels;
    ParallelFor(a_panels + b_panels, d_.k * width * 0.3,
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    if (i < b_panels) {
                      const int64_t col = (first_b + i) * width;
                      const int cols = std::min<int64_t>(width, k.n - col);
                      loops_.pack(k.b + col * d_.b_col, d_.b_col, d_.b_row,
                                  cols, d_.k, k.packed_b + i * width * d_.k,
                                  width);
                      continue;
                    }
                    const int64_t p = i - b_panels;
                    loops_.pack(k.a + k.row(p) * d_.a_row, d_.a_row, d_.a_col,
                                static_cast<int>(k.row(p + 1) - k.row(p)), d_.k,
                                k.packed_a + p * stride * d_.k, stride);
                  }
                });
  }

  // The grid of tasks depends on the sizes alone.
  void RunTiles(const Chunk& k, int stride) {
    const double flops = 2.0 * k.m * k.n * d_.k;
    // A million operations (12 microseconds) a task, or 64 tasks: with more of
    // them than threads, threads that come late take fewer.
    const int64_t wanted = std::clamp<int64_t>(flops / 1e6, 1, 64);
    // Whoever waits for rows gets tasks of whole rows.
    const int64_t row_tasks =
        std::min(k.row_panels, done_ ? wanted : CeilDiv(wanted, 4) * 2);
    const int64_t col_tasks =
        done_ ? 1 : std::min(k.col_panels, CeilDiv(wanted, row_tasks));
    const bool whole_rows = k.n == d_.n;
    const int64_t tasks = row_tasks * col_tasks;
    ParallelFor(
        tasks, flops / tasks * kNsPerFlop, [&](int64_t begin, int64_t end) {
          for (int64_t t = begin; t < end; ++t) {
            const int64_t r = t / col_tasks, q = t % col_tasks;
            const int64_t p0 = r * k.row_panels / row_tasks;
            const int64_t p1 = (r + 1) * k.row_panels / row_tasks;
            RunTask(k, stride, p0, p1, q * k.col_panels / col_tasks,
                    (q + 1) * k.col_panels / col_tasks);
            if (done_ && whole_rows) {
              (*done_)(k.first_row + k.row(p0), k.first_row + k.row(p1));
            }
          }
        });
  }

  void RunTask(const Chunk& k, int stride, int64_t p0, int64_t p1, int64_t q0,
               int64_t q1) const {
    const int width = loops_.width;
    // The depth outermost: a block of B stays in the second cache while all
    // rows go over it.
    for (int64_t k0 = 0; k0 < d_.k; k0 += depth_) {
      const int64_t depth = std::min(depth_, d_.k - k0);
      for (int64_t q = q0; q < q1; ++q) {
        const int64_t col = q * width;
        const int cols = std::min<int64_t>(width, k.n - col);
        const T* b = k.b + col + k0 * d_.b_row;
        int64_t b_row = d_.b_row;
        if (pack_b_ || cols < width) {
          b = k.packed_b + ((pack_b_ ? q * d_.k : 0) + k0) * width;
          b_row = width;
        }
        for (int64_t p = p0; p < p1; ++p) {
          const int64_t row = k.row(p);
          const T* a = pack_a_ ? k.packed_a + (p * d_.k + k0) * stride
                               : k.a + row * d_.a_row + k0 * d_.a_col;
          // Later depths add to what the first stored.
          loops_.tile(a, pack_a_ ? 1 : d_.a_row, pack_a_ ? stride : d_.a_col, b,
                      b_row, k.c + row * d_.c_row + col, d_.c_row,
                      static_cast<int>(k.row(p + 1) - row), cols, depth,
                      k0 > 0);
        }
      }
    }
  }

  const GemmLoops<T>& loops_;
  const GemmDims d_;
  const T* a_;
  const T* b_;
  T* c_;
  GemmRowsDone* done_;
  bool pack_a_ = false, pack_b_ = false;
  int64_t depth_ = 0;
};

// Integers and complex numbers: row by row.
template <typename T>
void PlainProduct(const GemmDims& d, const T* a, const T* b, T* c) {
  const double cost = 2.0 * d.n * d.k * sizeof(T) / 8;
  ParallelFor(d.m, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* row = c + i * d.c_row;
      std::fill_n(row, d.n, T(0));
      for (int64_t p = 0; p < d.k; ++p) {
        const T x = a[i * d.a_row + p * d.a_col];
        const T* from = b + p * d.b_row;
        if (d.b_col == 1) {
          for (int64_t j = 0; j < d.n; ++j) {
            row[j] = Plus(row[j], Times(x, from[j]));
          }
        } else {
          for (int64_t j = 0; j < d.n; ++j) {
            row[j] = Plus(row[j], Times(x, from[j * d.b_col]));
          }
        }
      }
    }
  });
}

template <typename R>
void PlainProduct(const GemmDims& d, const std::complex<R>* a,
                  const std::complex<R>* b, std::complex<R>* c) {
  const double cost = 8.0 * d.n * d.k;
  ParallelFor(d.m, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      // As pairs of reals: std::complex's product looks for infinities, which
      // no vector code survives.
      R* row = reinterpret_cast<R*>(c + i * d.c_row);
      std::fill_n(row, 2 * d.n, R(0));
      for (int64_t p = 0; p < d.k; ++p) {
        const std::complex<R> x = a[i * d.a_row + p * d.a_col];
        const R* from = reinterpret_cast<const R*>(b + p * d.b_row);
        for (int64_t j = 0; j < d.n; ++j, from += 2 * d.b_col) {
          row[2 * j] += x.real() * from[0] - x.imag() * from[1];
          row[2 * j + 1] += x.real() * from[1] + x.imag() * from[0];
        }
      }
    }
  });
}

// half and bfloat16: through float.
template <typename T>
Status NarrowProduct(GemmDims d, const T* a, const T* b, T* c) {
  if (d.m == 0 || d.n == 0) return OkStatus();
  auto widen = [](const T* from, int64_t n) -> StatusOr<Tensor> {
    HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(DType::kFloat, Shape{n}));
    float* to = t.data<float>();
    ParallelFor(n, 0.5, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = from[i];
    });
    return t;
  };
  auto extent = [](int64_t r, int64_t rs, int64_t c, int64_t cs) {
    // The elements that are reached, not m times k: operands may be views with
    // gaps.
    return c == 0 ? 0 : (r - 1) * rs + (c - 1) * cs + 1;
  };
  HR_ASSIGN_OR_RETURN(Tensor wide_a,
                      widen(a, extent(d.m, d.a_row, d.k, d.a_col)));
  HR_ASSIGN_OR_RETURN(Tensor wide_b,
                      widen(b, extent(d.n, d.b_col, d.k, d.b_row)));
  HR_ASSIGN_OR_RETURN(Tensor wide_c,
                      Tensor::Allocate(DType::kFloat, Shape{d.m, d.n}));
  const int64_t c_row = d.c_row;
  d.c_row = d.n;
  const float* from = wide_c.data<float>();
  auto narrow = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < d.n; ++j) {
        // Rounded once, at the end.
        c[i * c_row + j] = static_cast<T>(from[i * d.n + j]);
      }
    }
  };
  GemmRowsDone done(narrow);
  return Product<float>(d, wide_a.data<float>(), wide_b.data<float>(),
                        wide_c.data<float>(), &done)
      .Run();
}

template <typename T>
Status OneProduct(const GemmDims& d, const void* a, const void* b, void* c) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* z = static_cast<T*>(c);
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return Product<T>(d, x, y, z, nullptr).Run();
  } else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return NarrowProduct(d, x, y, z);
  } else {
    PlainProduct(d, x, y, z);
    return OkStatus();
  }
}

}  // namespace

GemmDims GemmDims::Dense(int64_t m, int64_t n, int64_t k, bool transpose_a,
                         bool transpose_b) {
  GemmDims d;
  d.m = m;
  d.n = n;
  d.k = k;
  d.a_row = transpose_a ? 1 : k;
  d.a_col = transpose_a ? m : 1;
  d.b_row = transpose_b ? 1 : n;
  d.b_col = transpose_b ? k : 1;
  d.c_row = n;
  return d;
}

namespace {

// The product by the loop for small ones: few columns leave most of a tile
// unused. Sums run in the same order.
template <typename T>
bool FewColumns(const GemmDims& d, const void* a, const void* b, void* c) {
  const GemmLoops<T>& loops = LoopsForGemm<T>();
  // Many rows of few columns: with fewer rows the general loop is as good.
  if (d.n < 2 || d.n > 4 || d.n > loops.small_columns || d.k < 1 || d.k > 8 ||
      d.m < 256) {
    return false;
  }
  ParallelFor(d.m, 2, [&](int64_t begin, int64_t end) {
    loops.small(static_cast<const T*>(a) + begin * d.a_row, d.a_row, d.a_col,
                static_cast<const T*>(b), d.b_row, d.b_col,
                static_cast<T*>(c) + begin * d.c_row, d.c_row, end - begin,
                static_cast<int>(d.n), static_cast<int>(d.k));
  });
  return true;
}

// All products by the loop for small ones, where they are.
template <typename T>
bool SmallProducts(const GemmDims& d, const void* a, const void* b, void* c,
                   absl::Span<const GemmOffsets> batch) {
  const GemmLoops<T>& loops = LoopsForGemm<T>();
  if (d.m < 2 || d.n < 2 || d.n > loops.small_columns || d.k < 1 ||
      d.k > loops.small_depth) {
    return false;
  }
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  T* z = static_cast<T*>(c);
  const double ns = 5.0 + 0.1 * static_cast<double>(d.m * d.k);
  ParallelFor(batch.size(), ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      loops.small(x + batch[i].a, d.a_row, d.a_col, y + batch[i].b, d.b_row,
                  d.b_col, z + batch[i].c, d.c_row, d.m, static_cast<int>(d.n),
                  static_cast<int>(d.k));
    }
  });
  return true;
}

}  // namespace

Status Gemm(DType dtype, const GemmDims& dims, const void* a, const void* b,
            void* c) {
  if (dtype == DType::kFloat && FewColumns<float>(dims, a, b, c)) {
    return OkStatus();
  }
  Status s;
  const bool known = DispatchDType(dtype, NumberTypes{}, [&](auto tag) {
    s = OneProduct<typename decltype(tag)::type>(dims, a, b, c);
  });
  if (!known) return Unimplemented("no matrix product of ", DTypeName(dtype));
  return s;
}

Status Gemm(const GemmDims& dims, const float* a, const float* b, float* c,
            GemmRowsDone done) {
  return Product<float>(dims, a, b, c, &done).Run();
}

std::vector<GemmOffsets> BatchOffsets(absl::Span<const int64_t> dims,
                                      absl::Span<const int64_t> a,
                                      absl::Span<const int64_t> b,
                                      absl::Span<const int64_t> c,
                                      GemmOffsets first) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  std::vector<GemmOffsets> offsets(count);
  absl::InlinedVector<int64_t, 8> at(dims.size(), 0);
  GemmOffsets now = first;
  for (GemmOffsets& o : offsets) {
    o = now;
    for (size_t i = dims.size(); i-- > 0;) {
      // On wrapping an offset goes back by all steps but the one not taken.
      const int64_t turn = ++at[i] < dims[i] ? 1 : 1 - dims[i];
      now.a += turn * a[i];
      now.b += turn * b[i];
      now.c += turn * c[i];
      if (turn == 1) break;
      at[i] = 0;
    }
  }
  return offsets;
}

Status BatchGemm(DType dtype, const GemmDims& dims, const void* a,
                 const void* b, void* c, absl::Span<const GemmOffsets> batch) {
  if (dtype == DType::kFloat && SmallProducts<float>(dims, a, b, c, batch)) {
    return OkStatus();
  }
  if (dtype == DType::kDouble && SmallProducts<double>(dims, a, b, c, batch)) {
    return OkStatus();
  }
  const int64_t size = DTypeSize(dtype);
  std::atomic<bool> failed{false};
  Status first;
  auto run = [&](int64_t begin, int64_t end) {
    if (dtype == DType::kFloat) {
      begin += DnnlGemmRun(dims, static_cast<const float*>(a),
                           static_cast<const float*>(b), static_cast<float*>(c),
                           batch.subspan(begin, end - begin));
    }
    for (int64_t i = begin; i < end; ++i) {
      Status s =
          Gemm(dtype, dims, static_cast<const char*>(a) + batch[i].a * size,
               static_cast<const char*>(b) + batch[i].b * size,
               static_cast<char*>(c) + batch[i].c * size);
      // The first error; the others end their parts on their own.
      if (!s.ok() && !failed.exchange(true)) first = std::move(s);
    }
  };
  // Products of a batch side by side; a large one is cut up by itself, as
  // parallel loops nest.
  ParallelFor(batch.size(), 2.0 * dims.m * dims.n * dims.k * kNsPerFlop, run);
  return first;
}

CallWork GemmWork(DType dtype, int64_t m, int64_t n, int64_t k, int64_t count) {
  const double flops = 2.0 * m * n * k;
  CallWork one{flops * kNsPerFlop, 1};
  if (IsComplex(dtype) || IsInteger(dtype)) {
    // As PlainProduct: about 1 ns an operation.
    one = {flops * (IsComplex(dtype) ? 4 : 1), m};
  } else if (m == 1 || n == 1) {
    one = {flops * kNsPerFlop * 4, CeilDiv(std::max(m, n), 256)};
  } else if (const int64_t tasks =
                 dtype == DType::kFloat ? DnnlGemmTasks({m, n, k}) : 0) {
    one.tasks = tasks;
  } else {
    // As RunTiles, for who waits for rows.
    one.tasks = std::clamp<int64_t>(flops / 1e6, 1, 64);
  }
  return {one.ns * static_cast<double>(count), one.tasks * count};
}

}  // namespace headrace
