#include "ops/nn/norm/batch_norm.h"

#include <algorithm>
#include <vector>

#include "base/cpu_level.h"
#include "base/thread_pool.h"
#include "ops/nn/norm/batch_norm_loops.h"

namespace headrace {

const BatchNormLoops& LoopsForBatchNorm() {
  static const auto* loops =
      AtActiveLevel([](auto level) { return BatchNorm<level>(); });
  return *loops;
}

namespace {

// Sums two things over blocks of rows, in float within short runs and in
// double over them: `add(begin, rows, first, second)` adds a run's sums.
template <typename Add>
Status TwoSums(int64_t rows, int64_t channels, double* first, double* second,
               Add add) {
  // Short runs in float lose little; all runs are added in double.
  const int64_t run = 32;
  // Sizes alone decide the blocks, and so the bits.
  const int64_t wanted = std::clamp<int64_t>(rows * channels >> 14, 1, 32);
  // (Of no rows there are no blocks.)
  const int64_t block =
      std::max(((rows + wanted - 1) / wanted + run - 1) / run * run, run);
  const int64_t blocks = (rows + block - 1) / block;
  HR_ASSIGN_OR_RETURN(
      Tensor parts,
      Tensor::Allocate(DType::kDouble, Shape{blocks, 2, channels}));
  double* all = parts.data<double>();
  ParallelFor(blocks, block * channels * 0.3, [&](int64_t begin, int64_t end) {
    std::vector<float> room(2 * channels);
    for (int64_t b = begin; b < end; ++b) {
      double* to = all + b * 2 * channels;
      std::fill_n(to, 2 * channels, 0.0);
      const int64_t last = std::min((b + 1) * block, rows);
      for (int64_t r = b * block; r < last; r += run) {
        std::fill(room.begin(), room.end(), 0.0f);
        add(r, std::min(run, last - r), room.data(), room.data() + channels);
        for (int64_t i = 0; i < 2 * channels; ++i) to[i] += room[i];
      }
    }
  });
  // Block by block, in order.
  std::fill_n(first, channels, 0.0);
  std::fill_n(second, channels, 0.0);
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t c = 0; c < channels; ++c) {
      first[c] += all[b * 2 * channels + c];
      second[c] += all[(b * 2 + 1) * channels + c];
    }
  }
  return OkStatus();
}

}  // namespace

Status ColumnMoments(const float* x, int64_t rows, int64_t channels,
                     float* mean, float* variance) {
  // Differences from the first row, lest large means cancel.
  std::vector<double> sum(channels), squares(channels);
  HR_RETURN_IF_ERROR(TwoSums(rows, channels, sum.data(), squares.data(),
                             [&](int64_t r, int64_t n, float* s, float* q) {
                               LoopsForBatchNorm().moments(x + r * channels, n,
                                                           channels, x, s, q);
                             }));
  for (int64_t c = 0; c < channels; ++c) {
    const double d = sum[c] / rows;
    mean[c] = static_cast<float>(x[c] + d);
    // Rounding may leave it a little below 0.
    variance[c] = static_cast<float>(std::max(0.0, squares[c] / rows - d * d));
    // std::max drops a NaN.
    if (squares[c] != squares[c]) variance[c] = squares[c];
  }
  return OkStatus();
}

Status BackpropSums(const float* dy, const float* x, int64_t rows,
                    int64_t channels, const float* mean, float* sum,
                    float* dot) {
  std::vector<double> s(channels), d(channels);
  HR_RETURN_IF_ERROR(
      TwoSums(rows, channels, s.data(), d.data(),
              [&](int64_t r, int64_t n, float* to_s, float* to_d) {
                const int64_t at = r * channels;
                LoopsForBatchNorm().back_sums(dy + at, x + at, n, channels,
                                              mean, to_s, to_d);
              }));
  std::copy(s.begin(), s.end(), sum);
  std::copy(d.begin(), d.end(), dot);
  return OkStatus();
}

}  // namespace headrace
