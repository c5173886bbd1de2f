// Stateless random numbers: the same inputs always give the same numbers. The
// first form takes a seed pair, the second (V2) a key and a counter.
#include "op/vectorize.h"
#include "ops/random/fill.h"
#include "ops/random/generator.h"

namespace headrace {
namespace {

Status SeedAndBoundsShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSeedShape(c.input(1)));
  if (c.num_inputs() > 2) {
    HR_RETURN_IF_ERROR(CheckBound(c, 2, "minval"));
    HR_RETURN_IF_ERROR(CheckBound(c, 2 + 1, "maxval"));
  }
  return RandomShape(c, 0);
}

Status KeyAndBoundsShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckKeyCounterShapes(c.input(1), c.input(2), c.input(3)));
  if (c.num_inputs() > 4) {
    HR_RETURN_IF_ERROR(CheckBound(c, 4, "minval"));
    HR_RETURN_IF_ERROR(CheckBound(c, 4 + 1, "maxval"));
  }
  return RandomShape(c, 0);
}

template <RandomKind kind>
Status FromSeed(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Philox generator, StatelessGenerator(c.input(1)));
  HR_RETURN_IF_ERROR(AllocateFrom(c, 0));
  return FillRandom(kind, generator, c.output(0));
}

template <RandomKind kind>
Status FromKey(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Philox generator,
                      KeyCounterGenerator(c.input(1), c.input(2), c.input(3)));
  HR_RETURN_IF_ERROR(AllocateFrom(c, 0));
  return FillRandom(kind, generator, c.output(0));
}

OpBuilder FromSeedOp(const char* name, const char* dtype, const char* seed,
                     const char* doc, KernelFactory kernel) {
  OpBuilder b(name);
  b.Input("shape: T")
      .Input("seed: Tseed")
      .Output("output: dtype")
      .Attr(dtype)
      .Attr("T: {int32, int64} = DT_INT32")
      .Attr(seed)
      .Doc(doc)
      .Shape(SeedAndBoundsShape)
      .NoGradient()
      .Vectorize(VectorizeInLoop)
      .Cpu(kernel);
  return b;
}
OpBuilder FromKeyOp(const char* name, const char* dtype, const char* doc,
                    KernelFactory kernel) {
  OpBuilder b(name);
  b.Input("shape: Tshape")
      .Input("key: uint64")
      .Input("counter: uint64")
      .Input("alg: int32")
      .Output("output: dtype")
      .Attr(dtype)
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .Doc(doc)
      .Shape(KeyAndBoundsShape)
      .NoGradient()
      .Cpu(kernel);
  return b;
}

// Numbers of one kind: drawn with a seed, and (V2) with a key and a counter.
struct StatelessRow {
  const char* name;
  const char* dtype;
  const char* seed;
  const char* doc;
  KernelFactory from_seed, from_key;
};
constexpr char kFloats[] = "dtype: {half, bfloat16, float, double} = DT_FLOAT";
constexpr char kSeedTypes[] = "Tseed: {int32, int64} = DT_INT64";
constexpr StatelessRow kStatelessRows[] = {
    {"StatelessRandomUniform", kFloats, kSeedTypes,
     "Random numbers of a seed, uniform in [0, 1).",
     Compute<FromSeed<RandomKind::kUniform>>,
     Compute<FromKey<RandomKind::kUniform>>},
    {"StatelessRandomNormal", kFloats, kSeedTypes,
     "Random numbers of a seed, normal.",
     Compute<FromSeed<RandomKind::kNormal>>,
     Compute<FromKey<RandomKind::kNormal>>},
    {"StatelessTruncatedNormal", kFloats, kSeedTypes,
     "Random numbers of a seed, normal but never 2 or more from 0.",
     Compute<FromSeed<RandomKind::kTruncatedNormal>>,
     Compute<FromKey<RandomKind::kTruncatedNormal>>},
    {"StatelessRandomUniformFullInt",
     "dtype: {int32, int64, uint32, uint64} = DT_UINT64",
     "Tseed: {int32, int64, uint32, uint64} = DT_INT64",
     "Random integers of a seed, uniform over all the type has.",
     Compute<FromSeed<RandomKind::kBits>>, Compute<FromKey<RandomKind::kBits>>},
};
[[maybe_unused]] const bool stateless_registered = [] {
  for (const StatelessRow& r : kStatelessRows) {
    FromSeedOp(r.name, r.dtype, r.seed, r.doc, r.from_seed).Register();
    FromKeyOp(absl::StrCat(r.name, "V2").c_str(), r.dtype, r.doc, r.from_key)
        .Register();
  }
  return true;
}();

Status IntFromSeed(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Philox generator, StatelessGenerator(c.input(1)));
  HR_RETURN_IF_ERROR(AllocateFrom(c, 0));
  return FillRandomInt(generator, c.input(2), c.input(3), c.output(0));
}

Status IntFromKey(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Philox generator,
                      KeyCounterGenerator(c.input(1), c.input(2), c.input(3)));
  HR_RETURN_IF_ERROR(AllocateFrom(c, 0));
  return FillRandomInt(generator, c.input(4), c.input(5), c.output(0));
}

HR_OP(StatelessRandomUniformInt)
    .Input("shape: T")
    .Input("seed: Tseed")
    .Input("minval: dtype")
    .Input("maxval: dtype")
    .Output("output: dtype")
    .Attr("dtype: {int32, int64}")
    .Attr("T: {int32, int64}")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Doc("Random integers of a seed, uniform in [minval, maxval).")
    .Shape(SeedAndBoundsShape)
    .NoGradient()
    .Vectorize(VectorizeInLoop)
    .Cpu(Compute<IntFromSeed>);

HR_OP(StatelessRandomUniformIntV2)
    .Input("shape: Tshape")
    .Input("key: uint64")
    .Input("counter: uint64")
    .Input("alg: int32")
    .Input("minval: dtype")
    .Input("maxval: dtype")
    .Output("output: dtype")
    .Attr("dtype: {int32, int64, uint32, uint64}")
    .Attr("Tshape: {int32, int64} = DT_INT32")
    .Doc("Random integers of a key and counter, uniform in [minval, maxval).")
    .Shape(KeyAndBoundsShape)
    .NoGradient()
    .Cpu(Compute<IntFromKey>);

}  // namespace
}  // namespace headrace
