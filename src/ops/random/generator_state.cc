// tf.random.Generator: a variable of int64 holds a Philox counter and key, and
// these ops draw from it and move it on.
//
//   state: [counter low, counter high, key, ...]
//
// StatefulStandardNormal, of old graphs, has the algorithm before them.
#include "ops/random/generator_state.h"

#include "base/cancellation.h"
#include "ops/random/fill.h"
#include "ops/random/generator.h"
#include "ops/state/variable_access.h"

namespace headrace {
namespace {

constexpr int64_t kStateSize = 3;

// Inputs of the drawing ops: resource, [algorithm,] shape, ...
template <bool kHasAlgorithm = true>
StatusOr<Philox> PrepareDraw(KernelContext& c) {
  HR_RETURN_IF_ERROR(AllocateFrom(c, kHasAlgorithm ? 2 : 1));
  std::optional<int64_t> algorithm;
  if (kHasAlgorithm) algorithm = c.input(1).scalar<int64_t>();
  Philox p;
  HR_RETURN_IF_ERROR(
      TakeFromState(c, algorithm, c.output(0).num_elements(), &p));
  return p;
}

template <RandomKind kind, bool kHasAlgorithm = true>
Status DrawFrom(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Philox p, PrepareDraw<kHasAlgorithm>(c));
  return FillRandom(kind, p, c.output(0));
}

Status DrawInt(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Philox p, PrepareDraw(c));
  return FillRandomInt(p, c.input(3), c.input(4), c.output(0));
}

Status DrawShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckScalarInput(c, 1));
  return RandomShape(c, 2);
}

Status DrawIntShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckBound(c, 3, "minval"));
  HR_RETURN_IF_ERROR(CheckBound(c, 4, "maxval"));
  return DrawShape(c);
}

Status DrawShapeOfOld(ShapeContext& c) { return RandomShape(c, 1); }

template <RandomKind kKind>
OpBuilder DrawOp(const char* name, const char* dtype, const char* doc) {
  OpBuilder b(name);
  b.Input("resource: resource")
      .Input("algorithm: int64")
      .Input("shape: shape_dtype")
      .Output("output: dtype")
      .Attr(dtype)
      .Attr("shape_dtype: type = DT_INT64")
      .Doc(doc)
      .Stateful()
      .Shape(DrawShape)
      .Cpu(Compute<DrawFrom<kKind>>);
  return b;
}

[[maybe_unused]] const OpRegistrar kDraws[] = {
    DrawOp<RandomKind::kUniform>(
        "StatefulUniform", "dtype: type = DT_FLOAT",
        "Draws uniform numbers in [0, 1) from a generator."),
    DrawOp<RandomKind::kNormal>("StatefulStandardNormalV2",
                                "dtype: type = DT_FLOAT",
                                "Draws normal numbers from a generator."),
    DrawOp<RandomKind::kTruncatedNormal>(
        "StatefulTruncatedNormal", "dtype: type = DT_FLOAT",
        "Draws normal numbers, never 2 or more from 0, from a generator."),
    DrawOp<RandomKind::kBits>(
        "StatefulUniformFullInt", "dtype: type = DT_UINT64",
        "Draws integers over all the type has from a generator."),
};

HR_OP(StatefulStandardNormal)
    .Input("resource: resource")
    .Input("shape: shape_dtype")
    .Output("output: dtype")
    .Attr("dtype: type = DT_FLOAT")
    .Attr("shape_dtype: type = DT_INT64")
    .Doc("Draws normal numbers from a generator.")
    .Stateful()
    .Deprecated(29, "Use StatefulStandardNormalV2 instead")
    .Shape(DrawShapeOfOld)
    .Cpu(Compute<DrawFrom<RandomKind::kNormal, false>>);

HR_OP(StatefulUniformInt)
    .Input("resource: resource")
    .Input("algorithm: int64")
    .Input("shape: shape_dtype")
    .Input("minval: dtype")
    .Input("maxval: dtype")
    .Output("output: dtype")
    .Attr("dtype: type = DT_INT64")
    .Attr("shape_dtype: type = DT_INT64")
    .Doc("Draws integers in [minval, maxval) from a generator.")
    .Stateful()
    .Shape(DrawIntShape)
    .Cpu(Compute<DrawInt>);

Status Skip(KernelContext& c) {
  Philox before;
  return TakeFromState(c, c.input(1).scalar<int64_t>(),
                       static_cast<uint64_t>(c.input(2).scalar<int64_t>()),
                       &before);
}

Status SkipShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckScalarInput(c, 1));
  return CheckScalarInput(c, 2);
}

HR_OP(RngSkip)
    .Input("resource: resource")
    .Input("algorithm: int64")
    .Input("delta: int64")
    .Doc("Moves a generator on as drawing `delta` numbers does.")
    .Stateful()
    .Shape(SkipShape)
    .Cpu(Compute<Skip>);

Status ReadAndSkip(KernelContext& c) {
  Philox before;
  HR_RETURN_IF_ERROR(TakeFromState(c, c.input(1).scalar<int32_t>(),
                                   c.input(2).scalar<uint64_t>(), &before));
  int64_t* out = c.out<int64_t>(0);
  // The state before the skip: the caller draws from the stretch that was
  // skipped.
  out[0] = static_cast<int64_t>(before.counter_low());
  out[1] = static_cast<int64_t>(before.counter_high());
  out[2] = static_cast<int64_t>(before.key64());
  return OkStatus();
}

Status ReadAndSkipShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(SkipShape(c));
  c.set_output(0, Shape{kStateSize});
  return OkStatus();
}

HR_OP(RngReadAndSkip)
    .Input("resource: resource")
    .Input("alg: int32")
    .Input("delta: uint64")
    .Output("value: int64")
    .Doc(
        "Moves a generator on as drawing `delta` numbers does; gives the "
        "state before.")
    .Stateful()
    .Shape(ReadAndSkipShape)
    .Cpu(Compute<ReadAndSkip>);

}  // namespace

Status TakeFromState(KernelContext& c, std::optional<int64_t> algorithm,
                     uint64_t delta, Philox* before) {
  if (algorithm) HR_RETURN_IF_ERROR(CheckAlgorithm(*algorithm));
  HR_ASSIGN_OR_RETURN(VariableInput v, VariableOf(c, 0));
  if (v.variable->dtype() != DType::kInt64) {
    return InvalidArgument("dtype of RNG state variable must be int64, not ",
                           DTypeName(v.variable->dtype()));
  }
  // Read and moved on under the variable's lock, so that two draws never get
  // the same stretch.
  return v.variable->Update(v.name, [&](Tensor& state) {
    // A stop between the words would leave half a state behind.
    const StopHold whole;
    if (state.rank() != 1) {
      return InvalidArgument(
          "RNG state must have one and only one dimension, not ", state.rank());
    }
    int64_t* words = state.data<int64_t>();
    int64_t size = kStateSize;
    if (!algorithm) {
      if (state.num_elements() == 0) {
        return InvalidArgument("Size of tensor must be at least 1");
      }
      // The old op has its algorithm in the first word of the state.
      HR_RETURN_IF_ERROR(CheckAlgorithm(*words));
      ++words;
      ++size;
    }
    if (state.num_elements() < size) {
      return InvalidArgument(
          "For the Philox algorithm, the size of state must "
          "be at least ",
          size, "; got ", state.num_elements());
    }
    Philox p = Philox::FromState(words[0], words[1], words[2]);
    *before = p;
    // 256 groups for each number: as much as upstream's Skip takes.
    p.Skip(delta * kPhiloxReservedSamples);
    words[0] = static_cast<int64_t>(p.counter_low());
    words[1] = static_cast<int64_t>(p.counter_high());
    return OkStatus();
  });
}

}  // namespace headrace
