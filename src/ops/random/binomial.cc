// StatelessRandomBinomial, StatefulRandomBinomial.
#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "op/vectorize.h"
#include "ops/random/generator.h"
#include "ops/random/generator_state.h"
#include "ops/random/samplers.h"

namespace headrace {
namespace {

using ParameterTypes = TypeList<half, float, double, int32_t, int64_t>;

double At(const Tensor& t, int64_t i) {
  double v = 0;
  DispatchDType(t.dtype(), ParameterTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    v = static_cast<double>(t.data<T>()[i]);
  });
  return v;
}

// Which element of `t` belongs to place `k` of the broadcast shape `all`.
int64_t Index(const Shape& all, const Shape& t, int64_t k) {
  int64_t at = 0, stride = 1;
  // Shapes broadcast from their ends; a size of 1 has one element for all
  // places.
  for (int d = all.rank() - 1, e = t.rank() - 1; e >= 0; --d, --e) {
    if (t[e] != 1) at += k % all[d] * stride;
    k /= all[d];
    stride *= t[e];
  }
  return at;
}

// Checks that output 0's shape ends with that of counts and probs, broadcast.
StatusOr<Shape> ParameterShape(const KernelContext& c, int counts) {
  HR_ASSIGN_OR_RETURN(Shape all, BroadcastShapes(c.input(counts).shape(),
                                                 c.input(counts + 1).shape()));
  const Shape& out = c.output(0).shape();
  const int extra = out.rank() - all.rank();
  if (extra < 0 || out.Sub(extra, out.rank()) != all) {
    return InvalidArgument("Shape passed in must end with broadcasted shape.");
  }
  return all;
}

// Upstream sets fewer numbers aside where it sums geometric ones.
constexpr uint64_t kGeometricStretch = 42;
uint64_t StretchOf(double count, double p) {
  return count * std::min(p, 1 - p) >= 10 ? kPhiloxReservedSamples
                                          : kGeometricStretch;
}

// All samples of parameter number b: out[b], out[b + each], ...
template <typename T>
void DrawColumn(const Philox& generator, double count, double p, int64_t b,
                int64_t each, int64_t samples, T* out) {
  for (int64_t k = 0; k < samples; ++k) {
    // Every sample has a stretch of the stream of its own, so the result does
    // not depend on how threads share the work.
    Philox at = generator;
    at.Skip(static_cast<uint64_t>(b * samples + k) * StretchOf(count, p));
    PhiloxDoubles uniform(&at);
    const double v = DrawBinomial(uniform, count, p);
    // Beyond int64 a conversion would be undefined; -1 stands for "no number",
    // as for NaN.
    const bool fits = !std::is_integral_v<T> || std::abs(v) < 9e18;
    out[b + k * each] = fits ? static_cast<T>(v) : T(-1);
  }
}

// Inputs `counts` and counts + 1 hold the parameters.
Status Fill(KernelContext& c, const Philox& generator, int counts) {
  HR_ASSIGN_OR_RETURN(Shape all, ParameterShape(c, counts));
  const int64_t n = c.output(0).num_elements();
  // Guards the division by `each` below.
  if (n == 0) return OkStatus();
  const int64_t each = all.num_elements(), samples = n / each;
  const Tensor &count = c.input(counts), &p = c.input(counts + 1);
  DispatchDType(c.output(0).dtype(), ParameterTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ParallelFor(each, 100.0 * samples, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        DrawColumn<T>(generator, At(count, Index(all, count.shape(), b)),
                      At(p, Index(all, p.shape(), b)), b, each, samples,
                      c.out<T>(0));
      }
    });
  });
  return OkStatus();
}

Status Stateless(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Philox generator, StatelessGenerator(c.input(1)));
  HR_RETURN_IF_ERROR(AllocateFrom(c, 0));
  return Fill(c, generator, 2);
}

HR_OP(StatelessRandomBinomial)
    .Input("shape: S")
    .Input("seed: Tseed")
    .Input("counts: T")
    .Input("probs: T")
    .Output("output: dtype")
    .Attr("S: {int32, int64}")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Attr("T: {half, float, double, int32, int64} = DT_DOUBLE")
    .Attr("dtype: {half, float, double, int32, int64} = DT_INT64")
    .Doc("Binomial numbers of a seed.")
    .Shape(SeedShape)
    .NoGradient()
    .Vectorize(VectorizeInLoop)
    .Cpu(Compute<Stateless>);

Status Stateful(KernelContext& c) {
  HR_RETURN_IF_ERROR(AllocateFrom(c, 2));
  HR_ASSIGN_OR_RETURN(Shape all, ParameterShape(c, 3));
  Philox generator;
  // Upstream's allowance for rejections.
  const uint64_t each = static_cast<uint64_t>(all.num_elements());
  const uint64_t samples =
      each ? static_cast<uint64_t>(c.output(0).num_elements()) / each : 0;
  HR_RETURN_IF_ERROR(TakeFromState(c, c.input(1).scalar<int64_t>(),
                                   each * 50 * (samples + 3), &generator));
  return Fill(c, generator, 3);
}

Status StatefulShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckScalarInput(c, 1));
  return RandomShape(c, 2);
}

HR_OP(StatefulRandomBinomial)
    .Input("resource: resource")
    .Input("algorithm: int64")
    .Input("shape: S")
    .Input("counts: T")
    .Input("probs: T")
    .Output("output: dtype")
    .Attr("S: {int32, int64}")
    .Attr("T: {half, float, double, int32, int64} = DT_DOUBLE")
    .Attr("dtype: {half, float, double, int32, int64} = DT_INT64")
    .Doc("Draws binomial numbers from a generator.")
    .Stateful()
    .Shape(StatefulShape)
    .Cpu(Compute<Stateful>);

}  // namespace
}  // namespace headrace
