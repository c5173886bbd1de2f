// RandomGamma, RandomPoissonV2 and their stateless forms: numbers whose
// parameters stand in a tensor.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "op/vectorize.h"
#include "ops/random/generator.h"
#include "ops/random/samplers.h"

namespace headrace {
namespace {

using ParameterTypes = TypeList<half, float, double, int32_t, int64_t>;
using Draw = double (*)(Philox generator, double parameter);

double ParameterAt(const Tensor& t, int64_t i) {
  double v = 0;
  DispatchDType(t.dtype(), ParameterTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    v = static_cast<double>(t.data<T>()[i]);
  });
  return v;
}

// A sample as a T; whole numbers stop at the type's greatest.
template <typename T>
T Sample(double v) {
  if constexpr (std::is_integral_v<T>) {
    // Written so that a NaN comes here too.
    if (!(v < static_cast<double>(std::numeric_limits<T>::max()))) {
      return std::isnan(v) ? T(-1) : std::numeric_limits<T>::max();
    }
    return static_cast<T>(v);
  } else {
    return static_cast<T>(v);
  }
}

// Output element k takes the parameter parameter_of(k) and the k'-th stretch
// of the stream, k' = stretch_of(k).
template <typename P, typename S>
void FillSamples(Draw draw, const Philox& generator, const Tensor& parameters,
                 P parameter_of, S stretch_of, Tensor& out) {
  DispatchDType(out.dtype(), ParameterTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = out.data<T>();
    ParallelFor(out.num_elements(), 100, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        // Every sample begins at a stretch of its own, whatever the rejections
        // of those before, so threads need not know of each other.
        Philox at = generator;
        at.Skip(static_cast<uint64_t>(stretch_of(k)) * kPhiloxReservedSamples);
        to[k] = Sample<T>(draw(at, ParameterAt(parameters, parameter_of(k))));
      }
    });
  });
}

// shape + parameters.shape: `shape` samples of every parameter.
Status SamplesOfEachShape(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape s, c.ShapeValue(0));
  if (!s.known_rank() || !c.input(1).known_rank()) return OkStatus();
  c.set_output(0, s.Concat(c.input(1)));
  return OkStatus();
}

template <Draw draw>
class SamplesOfEach : public Kernel {
 public:
  explicit SamplesOfEach(const ResolvedOp& op) : generator_(op) {}
  bool own_outputs() const override { return true; }
  Status Run(KernelContext& c) override {
    HR_ASSIGN_OR_RETURN(Shape shape, ShapeFromTensor(c.input(0)));
    const Tensor& parameters = c.input(1);
    const int64_t samples = shape.num_elements();
    const int64_t each = parameters.num_elements();
    // Made anew, as the joined shape may have too many elements.
    HR_ASSIGN_OR_RETURN(shape,
                        Shape::Make(shape.Concat(parameters.shape()).dims()));
    HR_RETURN_IF_ERROR(c.Allocate(0, shape));
    if (shape.num_elements() == 0) return OkStatus();
    HR_ASSIGN_OR_RETURN(const Philox generator,
                        generator_.ReserveOutputs(samples * each));
    // The stream runs over the samples of the first parameter, then the next.
    FillSamples(
        draw, generator, parameters, [=](int64_t k) { return k % each; },
        [=](int64_t k) { return k % each * samples + k / each; }, c.output(0));
    return OkStatus();
  }

 private:
  SeededGenerator generator_;
};

Status GammaGradient(GradientContext& g) {
  // d sample / d alpha, summed over the samples of each alpha.
  Value alpha = g.input(1);
  Value extra = g("Size", {g.input(0)});
  // alpha gets one dimension of size 1 for each of the sample shape's, so that
  // it broadcasts over the samples.
  Value ones = g("Fill", {g("ExpandDims", {extra, g.Int32(0)}), g.Int32(1)});
  Value wide = g("ConcatV2", {ones, g.ShapeOf(alpha), g.Int32(0)});
  Value partial =
      g("RandomGammaGrad", {g("Reshape", {alpha, wide}), g.output(0)});
  // The sample dimensions come first.
  g.set(1, g("Sum", {g("Mul", {g.grad(), partial}),
                     g("Range", {g.Int32(0), extra, g.Int32(1)})}));
  return g.status();
}

HR_OP(RandomGamma)
    .Input("shape: S")
    .Input("alpha: T")
    .Output("output: T")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("S: {int32, int64}")
    .Attr("T: {half, float, double}")
    .Doc("Gamma numbers of scale 1, for every alpha.")
    .Traits({OpTrait::kNoEffect, OpTrait::kKeepsNoInput})
    .Stateful()
    .Shape(SamplesOfEachShape)
    .Gradient(GammaGradient)
    .Traits({OpTrait::kOnePerRow})
    .Vectorize(VectorizeRandom)
    .Cpu(Bind<SamplesOfEach<DrawGamma>>);

HR_OP(RandomPoissonV2)
    .Input("shape: S")
    .Input("rate: R")
    .Output("output: dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("S: {int32, int64}")
    .Attr("R: {half, float, double, int32, int64} = DT_DOUBLE")
    .Attr("dtype: {half, float, double, int32, int64} = DT_INT64")
    .Doc("Poisson numbers for every rate.")
    .Traits({OpTrait::kNoEffect, OpTrait::kKeepsNoInput})
    .Stateful()
    .Shape(SamplesOfEachShape)
    .Traits({OpTrait::kOnePerRow})
    .Vectorize(VectorizeRandom)
    .Cpu(Bind<SamplesOfEach<DrawPoisson>>);

HR_OP(RandomPoisson)
    .Input("shape: S")
    .Input("rate: dtype")
    .Output("output: dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("S: {int32, int64}")
    .Attr("dtype: {half, float, double}")
    .Doc("Poisson numbers for every rate.")
    .Traits({OpTrait::kNoEffect, OpTrait::kKeepsNoInput})
    .Stateful()
    .Deprecated(25, "Replaced by RandomPoissonV2")
    .Shape(SamplesOfEachShape)
    .Traits({OpTrait::kOnePerRow})
    .Vectorize(VectorizeRandom)
    .Cpu(Bind<SamplesOfEach<DrawPoisson>>);

// Stateless forms: the parameters' shape must end the asked shape.
Status FillStateless(KernelContext& c, Draw draw, const Philox& generator,
                     const Tensor& parameters) {
  HR_RETURN_IF_ERROR(AllocateFrom(c, 0));
  Tensor& out = c.output(0);
  const int64_t extra = out.rank() - parameters.rank();
  if (extra < 0 || out.shape().Sub(static_cast<int>(extra), out.rank()) !=
                       parameters.shape()) {
    return InvalidArgument("Shape passed in must end with broadcasted shape.");
  }
  if (out.num_elements() == 0) return OkStatus();
  const int64_t each = parameters.num_elements();
  const int64_t samples = out.num_elements() / each;
  FillSamples(
      draw, generator, parameters, [=](int64_t k) { return k % each; },
      [=](int64_t k) { return k % each * samples + k / each; }, out);
  return OkStatus();
}

template <Draw draw>
Status FromSeed(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Philox generator, StatelessGenerator(c.input(1)));
  return FillStateless(c, draw, generator, c.input(2));
}

Status GammaFromKey(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Philox generator,
                      KeyCounterGenerator(c.input(1), c.input(2), c.input(3)));
  return FillStateless(c, DrawGamma, generator, c.input(4));
}

Status KeyShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckKeyCounterShapes(c.input(1), c.input(2), c.input(3)));
  return RandomShape(c, 0);
}

// Input `alpha` is the last one in both stateless forms.
Status StatelessGammaGradient(GradientContext& g) {
  const int last = g.num_inputs() - 1;
  const Value& alpha = g.input(last);
  Value partial = g("RandomGammaGrad", {alpha, g.output(0)});
  g.set(last, g.ReduceTo(g("Mul", {g.grad(), partial}), alpha));
  return g.status();
}

HR_OP(StatelessRandomGammaV2)
    .Input("shape: T")
    .Input("seed: Tseed")
    .Input("alpha: dtype")
    .Output("output: dtype")
    .Attr("dtype: {half, float, double}")
    .Attr("T: {int32, int64}")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Doc("Gamma numbers of a seed.")
    .Shape(SeedShape)
    .Gradient(StatelessGammaGradient)
    .Vectorize(VectorizeInLoop)
    .Cpu(Compute<FromSeed<DrawGamma>>);

HR_OP(StatelessRandomGammaV3)
    .Input("shape: shape_dtype")
    .Input("key: uint64")
    .Input("counter: uint64")
    .Input("alg: int32")
    .Input("alpha: dtype")
    .Output("output: dtype")
    .Attr("dtype: {half, float, double}")
    .Attr("shape_dtype: {int32, int64} = DT_INT32")
    .Doc("Gamma numbers of a key and counter.")
    .Shape(KeyShape)
    .Gradient(StatelessGammaGradient)
    .Cpu(Compute<GammaFromKey>);

HR_OP(StatelessRandomPoisson)
    .Input("shape: T")
    .Input("seed: Tseed")
    .Input("lam: Rtype")
    .Output("output: dtype")
    .Attr("Rtype: {half, float, double, int32, int64}")
    .Attr("dtype: {half, float, double, int32, int64}")
    .Attr("T: {int32, int64}")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Doc("Poisson numbers of a seed.")
    .Shape(SeedShape)
    .NoGradient()
    .Vectorize(VectorizeInLoop)
    .Cpu(Compute<FromSeed<DrawPoisson>>);

}  // namespace
}  // namespace headrace
