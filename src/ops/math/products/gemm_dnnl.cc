#include "ops/math/products/gemm_dnnl.h"

#include <algorithm>
#include <atomic>

#include "base/cancellation.h"
#include "base/cpu_count.h"
#include "base/cpu_level.h"
#include "base/memory_guard.h"
#include "base/thread_pool.h"
#include "oneapi/dnnl/dnnl.h"
#include "ops/math/products/one_omp_thread.h"
#include "tensor/tensor.h"

namespace headrace {
namespace {

// An estimate, as in gemm.cc: 120 GFLOP/s a core.
constexpr double kDnnlNsPerFlop = 1.0 / 120;
constexpr double kLeastFlops = 1e6;  // where it overtakes our own loops
// A task that is cut in two: the first cuts give each processor one, later ones
// even out what others take of them. A cut costs some hundredths, as operands
// are packed again.
constexpr double kLeastTaskFlops = 4e6, kLeastLaterFlops = 1.6e10;
constexpr int64_t kMostTasks = 64;
// Of one call, and what its depth is a multiple of: about a twentieth of a
// second.
constexpr double kLongestFlops = 4e9;
constexpr int64_t kDepthUnit = 768;
constexpr int64_t kLeastRows = 48, kLeastCols = 64;  // of a half
constexpr int64_t kMostSize = int64_t{1} << 30;      // oneDNN counts in ints

// An operand as oneDNN takes it: rows (n) or columns (t) lie in memory.
struct Layout {
  char letter;
  dnnl_dim_t leading;
};

// False when no stride is 1 or rows overlap.
bool LayoutOf(int64_t rows, int64_t cols, int64_t row, int64_t col,
              Layout* to) {
  // Overlapping rows (strides of 0 of a broadcast) are more than BLAS promises
  // to take.
  if (col == 1 && row >= cols) {
    *to = {'N', row};
  } else if (row == 1 && col >= rows) {
    *to = {'T', col};
  } else {
    return false;
  }
  return to->leading < kMostSize;
}

// The tasks: `rows` x `cols` blocks of C, cut in halves.
struct Grid {
  int64_t rows = 1, cols = 1;
};

Grid GridOf(const GemmDims& d) {
  Grid g;
  const double flops = 2.0 * d.m * d.n * d.k;
  while (g.rows * g.cols < kMostTasks) {
    const int64_t tasks = g.rows * g.cols;
    const double least =
        tasks < TasksForProcessors() ? kLeastTaskFlops : kLeastLaterFlops;
    if (flops / static_cast<double>(tasks) < least) break;
    const int64_t m = d.m / g.rows, n = d.n / g.cols;
    const bool can_m = m >= 2 * kLeastRows;
    const bool can_n = n >= 2 * kLeastCols;
    if (!can_m && !can_n) break;
    // The longer side is cut: blocks near the square read the operands least
    // often.
    (can_m && (m >= n || !can_n) ? g.rows : g.cols) *= 2;
  }
  return g;
}

// Where block i of `blocks` over n begins: a multiple of what the inner loops
// take at a time.
int64_t Cut(int64_t i, int64_t blocks, int64_t n, int64_t unit) {
  return i == blocks ? n : i * n / blocks / unit * unit;
}

// oneDNN 2.6's own rule: whether it reads operands of an m x n product where
// they lie.
bool ReadsWhereTheyLie(int64_t m, int64_t n) {
  return DnnlReadsWhereItLies() &&
         1.0 / static_cast<double>(m) + 1.0 / static_cast<double>(n) >= 0.0038;
}

// Rows of an operand that are read one after the other share a few lines of the
// first cache where they are a multiple of 2 KiB apart: 32 rows times 512 x
// 2048 ran at 38 GFLOP/s, at 80 with rows of 2056.
bool Aliases(int64_t leading) {
  return leading % static_cast<int64_t>(2048 / sizeof(float)) == 0;
}

// Whether A, or B, is to be copied first for an m x n product.
bool CopiesA(int64_t m, int64_t n, Layout a) {
  return a.letter == 'T' && Aliases(a.leading) && ReadsWhereTheyLie(m, n);
}
bool CopiesB(int64_t m, int64_t n, Layout b) {
  return b.letter == 'N' && Aliases(b.leading) && ReadsWhereTheyLie(m, n);
}

// Room for copies of some columns of such an operand.
class Strip {
 public:
  // Of `depth` rows; `columns`: all that there are.
  static StatusOr<Strip> Make(int64_t depth, int64_t columns) {
    // Half of the second cache.
    constexpr int64_t kElements = 128 << 10, kLeast = 64, kMost = 1024;
    Strip s;
    s.depth_ = depth;
    s.columns_ = std::min(
        columns, std::clamp(kElements / depth / 16 * 16, kLeast, kMost));
    HR_ASSIGN_OR_RETURN(s.room_,
                        Tensor::Allocate(DType::kFloat, Shape{depth, s.row()}));
    return s;
  }
  int64_t columns() const { return columns_; }
  // Rows of the copy are a line further apart than they are long, or two.
  int64_t row() const {
    const int64_t row = columns_ + 16;
    return Aliases(row) ? row + 16 : row;
  }
  const float* Copy(const float* from, int64_t leading, int64_t columns) const {
    float* to = room_.data<float>();
    for (int64_t p = 0; p < depth_; ++p) {
      std::copy_n(from + p * leading, columns, to + p * row());
    }
    return to;
  }

 private:
  Tensor room_;
  int64_t depth_ = 0, columns_ = 0;
};

bool Multiply(int64_t m, int64_t n, const GemmDims& d, const float* a,
              Layout la, const float* b, Layout lb, float* c);

// Multiply by strips of A, whose columns lie in memory.
bool MultiplyRows(int64_t m, int64_t n, GemmDims d, const float* a, Layout la,
                  const float* b, Layout lb, float* c) {
  StatusOr<Strip> strip = Strip::Make(d.k, m);
  if (!strip.ok()) return false;
  d.a_col = strip->row();
  for (int64_t i = 0; i < m; i += strip->columns()) {
    const int64_t rows = std::min(strip->columns(), m - i);
    const float* copy = strip->Copy(a + i, la.leading, rows);
    if (!Multiply(rows, n, d, copy, {'T', d.a_col}, b, lb, c + i * d.c_row)) {
      return false;
    }
  }
  return true;
}

// Multiply by strips of B, whose rows lie in memory.
bool MultiplyColumns(int64_t m, int64_t n, GemmDims d, const float* a,
                     Layout la, const float* b, Layout lb, float* c) {
  StatusOr<Strip> strip = Strip::Make(d.k, n);
  if (!strip.ok()) return false;
  d.b_row = strip->row();
  for (int64_t j = 0; j < n; j += strip->columns()) {
    const int64_t columns = std::min(strip->columns(), n - j);
    const float* copy = strip->Copy(b + j, lb.leading, columns);
    if (!Multiply(m, columns, d, a, la, copy, {'N', d.b_row}, c + j)) {
      return false;
    }
  }
  return true;
}

// c[m, n] = a[m, d.k] b[d.k, n], a depth at a time, as nothing looks inside a
// call; false when oneDNN fails or there is no memory.
bool Multiply(int64_t m, int64_t n, const GemmDims& d, const float* a,
              Layout la, const float* b, Layout lb, float* c) {
  if (CopiesA(m, n, la)) return MultiplyRows(m, n, d, a, la, b, lb, c);
  if (CopiesB(m, n, lb)) return MultiplyColumns(m, n, d, a, la, b, lb, c);
  const double at_once = kLongestFlops / (2.0 * m * n) / kDepthUnit;
  const int64_t depth =
      at_once * kDepthUnit >= static_cast<double>(d.k)
          ? d.k
          : std::max<int64_t>(1, static_cast<int64_t>(at_once)) * kDepthUnit;
  for (int64_t k = 0; k < d.k; k += depth) {
    // The only place to stop: a call of oneDNN cannot be ended.
    StopPoint();
    OneOmpThread one;
    // The first depth overwrites C, so that it need not be cleared.
    if (dnnl_sgemm(la.letter, lb.letter, m, n, std::min(depth, d.k - k), 1.0f,
                   a + k * d.a_col, la.leading, b + k * d.b_row, lb.leading,
                   k == 0 ? 0.0f : 1.0f, c, d.c_row) != dnnl_success) {
      return false;
    }
  }
  return true;
}

constexpr size_t kRoomToWrite = size_t{64} << 20;

// At its first call oneDNN writes its loops, and dies where it has no memory.
// Once one call has succeeded the loops are there.
std::atomic<bool> loops_written{false};

// True where oneDNN may be asked for the product, and how operands lie.
bool Takes(const GemmDims& d, Layout* la, Layout* lb) {
  return std::max({d.m, d.n, d.k, d.c_row}) < kMostSize && d.c_row >= d.n &&
         LayoutOf(d.m, d.k, d.a_row, d.a_col, la) &&
         LayoutOf(d.k, d.n, d.b_row, d.b_col, lb) &&
         (loops_written || SystemHasRoom(kRoomToWrite));
}

// Of a run of small products under one guard: less than a millisecond, so that
// signals and stops do not wait for long.
constexpr double kGuardedFlops = 5e7;

}  // namespace

bool DnnlReadsWhereItLies() {
#if defined(__x86_64__)
  static const bool reads = CpuRuns(CpuLevel::v3) && !CpuRuns(CpuLevel::v4);
  return reads;
#else
  return false;
#endif
}

int64_t DnnlGemmTasks(const GemmDims& d) {
  // oneDNN's own tiles would be mostly empty.
  if (2.0 * d.m * d.n * d.k < kLeastFlops || d.m < 8 || d.n < 16) return 0;
  const Grid grid = GridOf(d);
  return grid.rows * grid.cols;
}

bool DnnlGemm(const GemmDims& d, const float* a, const float* b, float* c,
              GemmRowsDone* done) {
  const int64_t tasks = DnnlGemmTasks(d);
  Layout la, lb;
  if (tasks == 0 || !Takes(d, &la, &lb)) return false;
  const Grid grid = GridOf(d);
  std::atomic<bool> failed{false};
  ParallelFor(tasks, 2.0 * d.m * d.n * d.k / tasks * kDnnlNsPerFlop,
              [&](int64_t begin, int64_t end) {
                for (int64_t t = begin; t < end && !failed; ++t) {
                  const int64_t r = t / grid.cols, q = t % grid.cols;
                  // Rows in eights, columns in sixteens: what the inner loops
                  // take at a time.
                  const int64_t i0 = Cut(r, grid.rows, d.m, 8);
                  const int64_t i1 = Cut(r + 1, grid.rows, d.m, 8);
                  const int64_t j0 = Cut(q, grid.cols, d.n, 16);
                  const int64_t j1 = Cut(q + 1, grid.cols, d.n, 16);
                  if (!Multiply(i1 - i0, j1 - j0, d, a + i0 * d.a_row, la,
                                b + j0 * d.b_col, lb, c + i0 * d.c_row + j0)) {
                    failed = true;
                  } else if (done && grid.cols == 1) {
                    (*done)(i0, i1);
                  }
                }
              });
  // Our own loops begin anew.
  if (failed) return false;
  loops_written = true;
  // No task knew when a row was complete.
  if (done && grid.cols > 1) {
    ParallelFor(d.m, 0.5 * d.n, [&](int64_t i, int64_t j) { (*done)(i, j); });
  }
  return true;
}

int64_t DnnlGemmRun(const GemmDims& d, const float* a, const float* b, float* c,
                    absl::Span<const GemmOffsets> batch) {
  Layout la, lb;
  const double flops = 2.0 * d.m * d.n * d.k;
  if (flops > kGuardedFlops || DnnlGemmTasks(d) != 1 || !Takes(d, &la, &lb) ||
      CopiesA(d.m, d.n, la) || CopiesB(d.m, d.n, lb)) {
    return 0;
  }
  const size_t at_once = std::max<size_t>(1, kGuardedFlops / flops);
  size_t i = 0;
  while (i < batch.size()) {
    StopPoint();
    OneOmpThread one;
    for (size_t end = std::min(batch.size(), i + at_once); i < end; ++i) {
      if (dnnl_sgemm(la.letter, lb.letter, d.m, d.n, d.k, 1.0f, a + batch[i].a,
                     la.leading, b + batch[i].b, lb.leading, 0.0f,
                     c + batch[i].c, d.c_row) != dnnl_success) {
        return i;
      }
    }
    loops_written = true;
  }
  return i;
}

}  // namespace headrace
