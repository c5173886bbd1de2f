// From a seed pair to the key and counter of the V2 stateless ops.
#include "ops/random/generator.h"

namespace headrace {
namespace {

constexpr int32_t kPhiloxAlgorithm = 1;

Status KeyCounterShape(ShapeContext& c) {
  const Shape& seed = c.input(0);
  if (Status fits = CheckSeedShape(seed); !fits.ok()) {
    return c.Refuse(seed.rank() != 1 ? RankIsNot(1, seed.rank())
                                     : DimensionIsNot(2, seed[0]),
                    std::move(fits));
  }
  c.set_output(0, Shape{1});
  c.set_output(1, Shape{2});
  if (c.num_outputs() > 2) c.set_output(2, Shape());
  return OkStatus();
}

Status KeyCounter(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Philox p, StatelessGenerator(c.input(0)));
  c.out<uint64_t>(0)[0] = p.key64();
  c.out<uint64_t>(1)[0] = p.counter_low();
  c.out<uint64_t>(1)[1] = p.counter_high();
  if (c.num_outputs() > 2) *c.out<int32_t>(2) = kPhiloxAlgorithm;
  return OkStatus();
}

HR_OP(StatelessRandomGetKeyCounter)
    .Input("seed: Tseed")
    .Output("key: uint64")
    .Output("counter: uint64")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Doc("Scrambles a seed into a key and a counter.")
    .Shape(KeyCounterShape)
    .Cpu(Compute<KeyCounter>);

HR_OP(StatelessRandomGetKeyCounterAlg)
    .Input("seed: Tseed")
    .Output("key: uint64")
    .Output("counter: uint64")
    .Output("alg: int32")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Doc("Scrambles a seed into a key and a counter; names the algorithm.")
    .Shape(KeyCounterShape)
    .Cpu(Compute<KeyCounter>);

Status Algorithm(KernelContext& c) {
  *c.out<int32_t>(0) = kPhiloxAlgorithm;
  return OkStatus();
}

HR_OP(StatelessRandomGetAlg)
    .Output("alg: int32")
    .Doc("The random number algorithm of the device: Philox.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(Compute<Algorithm>);

}  // namespace
}  // namespace headrace
