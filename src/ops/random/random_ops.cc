// RandomUniform, RandomStandardNormal, TruncatedNormal, RandomUniformInt:
// each op has a generator of its own, which moves on from run to run.
#include "op/vectorize.h"
#include "ops/random/fill.h"
#include "ops/random/generator.h"

namespace headrace {
namespace {

Status FirstInputShape(ShapeContext& c) { return RandomShape(c, 0); }

template <RandomKind kind>
class RandomFloats : public Kernel {
 public:
  explicit RandomFloats(const ResolvedOp& op) : generator_(op) {}
  Status Run(KernelContext& c) override {
    HR_RETURN_IF_ERROR(AllocateFrom(c, 0));
    Tensor& out = c.output(0);
    HR_ASSIGN_OR_RETURN(const Philox generator,
                        generator_.ReserveOutputs(out.num_elements()));
    return FillRandom(kind, generator, out);
  }

 private:
  SeededGenerator generator_;
};

template <RandomKind kKind>
OpBuilder RandomFloatsOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("shape: T")
      .Output("output: dtype")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr("dtype: {half, bfloat16, float, double}")
      .Attr("T: {int32, int64}")
      .Doc(doc)
      .Traits({OpTrait::kNoEffect})
      .Traits({OpTrait::kKeepsNoInput})
      .Stateful()
      .Shape(FirstInputShape)
      .NoGradient()
      .Traits({OpTrait::kOnePerRow})
      .Vectorize(VectorizeRandom)
      .Cpu(Bind<RandomFloats<kKind>>);
  return b;
}

[[maybe_unused]] const OpRegistrar kRandomFloats[] = {
    RandomFloatsOp<RandomKind::kUniform>("RandomUniform",
                                         "Random numbers, uniform in [0, 1)."),
    RandomFloatsOp<RandomKind::kNormal>(
        "RandomStandardNormal",
        "Random numbers, normal with mean 0 and deviation 1."),
    RandomFloatsOp<RandomKind::kTruncatedNormal>(
        "TruncatedNormal",
        "Random numbers, normal but never 2 or more from 0."),
};

class RandomInts : public Kernel {
 public:
  explicit RandomInts(const ResolvedOp& op) : generator_(op) {}
  Status Run(KernelContext& c) override {
    HR_RETURN_IF_ERROR(AllocateFrom(c, 0));
    Tensor& out = c.output(0);
    HR_ASSIGN_OR_RETURN(const Philox generator,
                        generator_.ReserveOutputs(out.num_elements()));
    return FillRandomInt(generator, c.input(1), c.input(2), out);
  }

 private:
  SeededGenerator generator_;
};

Status RandomIntShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckBound(c, 1, "minval"));
  HR_RETURN_IF_ERROR(CheckBound(c, 2, "maxval"));
  return RandomShape(c, 0);
}

HR_OP(RandomUniformInt)
    .Input("shape: T")
    .Input("minval: Tout")
    .Input("maxval: Tout")
    .Output("output: Tout")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("Tout: {int32, int64}")
    .Attr("T: {int32, int64}")
    .Doc("Random integers, uniform in [minval, maxval).")
    .Traits({OpTrait::kNoEffect, OpTrait::kKeepsNoInput})
    .Stateful()
    .Shape(RandomIntShape)
    .Traits({OpTrait::kOnePerRow})
    .Vectorize(VectorizeRandom)
    .Cpu(Bind<RandomInts>);

}  // namespace
}  // namespace headrace
