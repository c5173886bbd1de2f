// Where k-means begins: KmeansPlusPlusInitialization, KMC2ChainInitialization,
// with the numbers that upstream draws.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/thread_pool.h"
#include "op/op.h"
#include "op/shared_refusal.h"
#include "ops/random/generator.h"

namespace headrace {
namespace {

// In [0, 1), of the low 23 bits of a word: upstream's rule for floats.
float UnitFloat(uint32_t word) {
  return __builtin_bit_cast(float, uint32_t{127} << 23 | (word & 0x7fffff)) -
         1.0f;
}

Status NextOfChain(KernelContext& c) {
  const absl::Span<const float> distances = c.input(0).span<float>();
  if (distances.empty()) {
    return InvalidArgument("Expected distances_tensor.size() > 0.");
  }
  PhiloxWords words(
      Philox(static_cast<uint64_t>(c.input(1).scalar<int64_t>()), 0));
  size_t at = 0;
  for (size_t i = 1; i < distances.size(); ++i) {
    // The chain moves on with the probability of the ratio of the distances.
    if (distances[i] > UnitFloat(words.Next()) * distances[at]) at = i;
  }
  *c.out<int64_t>(0) = static_cast<int64_t>(at);
  return OkStatus();
}

// "Input seed should be a scalar." where input i is none.
Status WantScalar(ShapeContext& c, int i, StringView name) {
  const Shape& s = c.input(i);
  if (c.in_graph() || !s.known_rank() || s.rank() == 0) return OkStatus();
  return InvalidArgument("Input ", name, " should be a scalar.");
}

Status ChainShape(ShapeContext& c) {
  const Shape& distances = c.input(0);
  if (!c.in_graph() && distances.known_rank() && distances.rank() != 1) {
    return InvalidArgument("Input distances should be a vector.");
  }
  HR_RETURN_IF_ERROR(WantScalar(c, 1, "seed"));
  c.set_output(0, Shape());
  return OkStatus();
}

HR_OP(KMC2ChainInitialization)
    .Input("distances: float")
    .Input("seed: int64")
    .Output("index: int64")
    .Doc(
        "The last index of a Markov chain along the candidates, which moves "
        "to the next with the probability of the ratio of their distances.")
    .Shape(ChainShape)
    .NoGradient()
    .Cpu(Compute<NextOfChain>);

// Draws points one by one, each with the probability of its distance to the
// nearest of those that are there.
class SeedDrawing {
 public:
  SeedDrawing(const Tensor& points, int64_t seed)
      : points_(points.data<float>()),
        count_(points.shape()[0]),
        width_(points.shape()[1]),
        words_(Philox(static_cast<uint64_t>(seed), 0)),
        nearest_(count_, std::numeric_limits<float>::infinity()),
        half_norms_(count_) {
    ForPoints([&](int64_t i) { half_norms_[i] = 0.5f * Product(i, i); });
  }

  // The best of `tries` candidates, which then counts as drawn.
  int64_t Next(int64_t tries) {
    std::vector<float> best, distances;
    double least = 0;
    int64_t chosen = 0;
    for (int64_t t = 0; t < tries; ++t) {
      const int64_t candidate = Candidate();
      distances = NearestWith(candidate);
      const double sum =
          std::accumulate(distances.begin(), distances.end(), 0.0);
      if (t > 0 && !(sum < least)) continue;
      least = sum;
      chosen = candidate;
      best.swap(distances);
    }
    nearest_ = std::move(best);
    first_ = false;
    return chosen;
  }

 private:
  template <typename F>
  void ForPoints(F f) {
    ParallelFor(count_, 1.0 + 0.3 * static_cast<double>(width_),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) f(i);
                });
  }
  float Product(int64_t i, int64_t k) const {
    return std::inner_product(points_ + i * width_, points_ + (i + 1) * width_,
                              points_ + k * width_, 0.0f);
  }

  int64_t Candidate() {
    if (first_) {
      const uint64_t low = words_.Next();
      const uint64_t word = low | uint64_t{words_.Next()} << 32;
      return static_cast<int64_t>(word % static_cast<uint64_t>(count_));
    }
    std::vector<float> sums(count_);
    std::partial_sum(nearest_.begin(), nearest_.end(), sums.begin());
    const float drawn = UnitFloat(words_.Next()) * sums.back();
    const auto at = std::upper_bound(sums.begin(), sums.end(), drawn);
    // Where all distances are 0 there is no such place.
    return std::min<int64_t>(at - sums.begin(), count_ - 1);
  }

  // Half the squared distances to the nearest, `candidate` among them.
  std::vector<float> NearestWith(int64_t candidate) {
    std::vector<float> out(count_);
    ForPoints([&](int64_t i) {
      const float distance =
          half_norms_[i] + half_norms_[candidate] - Product(i, candidate);
      out[i] = std::min(nearest_[i], std::max(distance, 0.0f));
    });
    return out;
  }

  const float* const points_;
  const int64_t count_, width_;
  PhiloxWords words_;
  bool first_ = true;
  std::vector<float> nearest_, half_norms_;
};

Status DrawSeeds(KernelContext& c) {
  const Tensor& points = c.input(0);
  const int64_t count = c.input(1).scalar<int64_t>();
  int64_t retries = c.input(3).scalar<int64_t>();
  const int64_t there = points.shape()[0], width = points.shape()[1];
  if (there <= 0) return InvalidArgument("Expected points.rows() > 0.");
  if (count <= 0) return InvalidArgument("Expected num_to_sample > 0.");
  if (count > there) {
    return InvalidArgument("Expected num_to_sample <= points.rows(). ", count,
                           " vs ", there, ".");
  }
  // The greedy rule of Arthur and Vassilvitskii's own program.
  if (retries < 0) {
    retries = 2 + static_cast<int64_t>(std::log(static_cast<double>(count)));
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{count, width}));
  SeedDrawing drawing(points, c.input(2).scalar<int64_t>());
  for (int64_t i = 0; i < count; ++i) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    const int64_t at = drawing.Next(std::min(retries, INT64_MAX - 1) + 1);
    std::copy_n(points.data<float>() + at * width, width,
                c.out<float>(0) + i * width);
  }
  return OkStatus();
}

Status SeedsShape(ShapeContext& c) {
  const Shape& points = c.input(0);
  if (!c.in_graph() && points.known_rank() && points.rank() != 2) {
    return InvalidArgument("Input points should be a matrix.");
  }
  HR_RETURN_IF_ERROR(WantScalar(c, 1, "num_to_sample"));
  HR_RETURN_IF_ERROR(WantScalar(c, 2, "seed"));
  return WantScalar(c, 3, "num_retries_per_sample");
}

HR_OP(KmeansPlusPlusInitialization)
    .Input("points: float")
    .Input("num_to_sample: int64")
    .Input("seed: int64")
    .Input("num_retries_per_sample: int64")
    .Output("samples: float")
    .Doc(
        "Rows of points for k-means to begin with, each drawn with the "
        "probability of its squared distance to those that are drawn "
        "already; of some tries the one that leaves the least distances.")
    .Shape(SeedsShape)
    .NoGradient()
    .Cpu(Compute<DrawSeeds>);

}  // namespace
}  // namespace headrace
