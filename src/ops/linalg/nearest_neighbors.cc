// NearestNeighbors: for each point the centers that are closest to it.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "op/op.h"

namespace headrace {
namespace {

struct Neighbor {
  float distance;
  int64_t center;
  // Closest first, of equal ones the first center. A distance that is not a
  // number comes before all others: it has to have some place, or sorting by
  // this order were undefined.
  bool operator<(const Neighbor& o) const {
    const bool unordered = std::isnan(distance);
    if (unordered != std::isnan(o.distance)) return unordered;
    if (!unordered && distance != o.distance) return distance < o.distance;
    return center < o.center;
  }
};

float SquaredDistance(const float* a, const float* b, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

Status CheckPlaces(const Shape& points, const Shape& centers, const Shape& k) {
  if (points.rank() != 2) {
    return InvalidArgument("Input points should be a matrix.");
  }
  if (centers.rank() != 2) {
    return InvalidArgument("Input centers should be a matrix.");
  }
  if (k.rank() != 0) return InvalidArgument("Input k should be a scalar.");
  if (points[0] == 0) return InvalidArgument("Expected points.rows() > 0.");
  if (points[1] != centers[1]) {
    return InvalidArgument("Expected point_dimensions == center_dimensions: ",
                           points[1], " vs ", centers[1], ".");
  }
  return OkStatus();
}

Status NearestNeighbors(KernelContext& c) {
  const Shape &points = c.input(0).shape(), &centers = c.input(1).shape();
  HR_RETURN_IF_ERROR(CheckPlaces(points, centers, c.input(2).shape()));
  const int64_t asked = *c.in<int64_t>(2);
  if (asked < 0) return InvalidArgument("k must be at least 0, got ", asked);
  const int64_t n = points[0], m = centers[0], size = points[1];
  const int64_t k = std::min(asked, m);
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{n, k}));
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{n, k}));
  if (k == 0) return OkStatus();
  const float *p = c.in<float>(0), *q = c.in<float>(1);
  auto* indices = c.out<int64_t>(0);
  auto* distances = c.out<float>(1);
  // A multiplication and an addition take about 1 ns an element in this order
  // of sums; the choice among the centers about 5 ns each.
  const double ns = static_cast<double>(m) * (size + 5.0);
  ParallelFor(n, ns, [&](int64_t begin, int64_t end) {
    std::vector<Neighbor> all(m);
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < m; ++j) {
        all[j] = {SquaredDistance(p + i * size, q + j * size, size), j};
      }
      std::partial_sort(all.begin(), all.begin() + k, all.end());
      for (int64_t j = 0; j < k; ++j) {
        indices[i * k + j] = all[j].center;
        distances[i * k + j] = all[j].distance;
      }
    }
  });
  return OkStatus();
}

HR_OP(NearestNeighbors)
    .Input("points: float")
    .Input("centers: float")
    .Input("k: int64")
    .Output("nearest_center_indices: int64")
    .Output("nearest_center_distances: float")
    .Doc(
        "The k rows of centers that are closest to each row of points, by "
        "squared Euclidean distance, closest first.")
    .Shape(UnknownShape)
    .Cpu(ComputeOwn<NearestNeighbors>);

}  // namespace
}  // namespace headrace
