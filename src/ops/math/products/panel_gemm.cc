#include "ops/math/products/panel_gemm.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "ops/math/products/gemm_loops.h"

namespace headrace {
namespace {

// With more rows, B is read so often that oneDNN's own packing pays.
constexpr int64_t kMostPackedRows = 64;
// With fewer, B would be packed for a tile or less.
constexpr int64_t kLeastPackedRows = 12;
constexpr int64_t kLeastPackedColumns = 32, kLeastPackedDepth = 128;
constexpr double kLeastPackedFlops = 2e6;
// Elements of B: what two processors hold in their second caches.
constexpr int64_t kLargestPacked = 512 << 10;
// Of what is summed at a time: a panel of so many rows is half of the second
// cache's smallest size.
constexpr int64_t kPanelDepth = 1024;
constexpr double kNsPacked = 0.3;  // of a number, at a guess

}  // namespace

bool PaysToPack(const GemmDims& d) {
  return d.m >= kLeastPackedRows && d.m <= kMostPackedRows &&
         d.n >= kLeastPackedColumns && d.k >= kLeastPackedDepth &&
         d.n <= kLargestPacked / d.k &&
         2.0 * static_cast<double>(d.m * d.n * d.k) >= kLeastPackedFlops;
}

StatusOr<Tensor> PackPanels(const GemmDims& d, const float* b) {
  const GemmLoops<float>& loops = LoopsForGemm<float>();
  const int64_t width = loops.width, panels = (d.n + width - 1) / width;
  HR_ASSIGN_OR_RETURN(
      Tensor made,
      Tensor::Allocate(DType::kFloat, Shape{panels * width * d.k}));
  float* to = made.data<float>();
  ParallelFor(panels, kNsPacked * width * d.k, [&](int64_t begin, int64_t end) {
    for (int64_t q = begin; q < end; ++q) {
      loops.pack(b + q * width * d.b_col, d.b_col, d.b_row,
                 static_cast<int>(std::min(width, d.n - q * width)), d.k,
                 to + q * width * d.k, static_cast<int>(width));
    }
  });
  return made;
}

int64_t PanelWidth() { return LoopsForGemm<float>().width; }

void PanelRows(const GemmDims& d, const float* a, const float* panel, float* c,
               int64_t begin, int64_t end, int columns, bool add) {
  const GemmLoops<float>& loops = LoopsForGemm<float>();
  const int64_t m = end - begin,
                tiles = (m + loops.max_rows - 1) / loops.max_rows;
  const auto row = [&](int64_t tile) { return begin + tile * m / tiles; };
  for (int64_t p = 0; p < d.k; p += kPanelDepth) {
    const int64_t depth = std::min(kPanelDepth, d.k - p);
    for (int64_t t = 0; t < tiles; ++t) {
      loops.tile(a + row(t) * d.a_row + p * d.a_col, d.a_row, d.a_col,
                 panel + p * loops.width, loops.width, c + row(t) * d.c_row,
                 d.c_row, static_cast<int>(row(t + 1) - row(t)), columns, depth,
                 add || p > 0);
    }
  }
}

void PanelGemm(const GemmDims& d, const float* a, const Tensor& panels,
               float* c, GemmRowsDone* done) {
  const int64_t width = PanelWidth();
  const float* from = panels.data<float>();
  // Columns are shared out, as each panel then is read by one processor alone.
  ParallelFor((d.n + width - 1) / width,
              2.0 * kPanelNsPerFlop * static_cast<double>(d.m * width * d.k),
              [&](int64_t begin, int64_t end) {
                for (int64_t q = begin; q < end; ++q) {
                  const int64_t columns = std::min(width, d.n - q * width);
                  PanelRows(d, a, from + q * width * d.k, c + q * width, 0, d.m,
                            static_cast<int>(columns), /*add=*/false);
                }
              });
  // No task knew when a row was complete.
  if (done) {
    ParallelFor(d.m, 0.5 * d.n, [&](int64_t i, int64_t j) { (*done)(i, j); });
  }
}

}  // namespace headrace
