// BiasAdd, BiasAddV1, BiasAddGrad: a vector added along one dimension.
#include "base/thread_pool.h"
#include "op/float_ops.h"
#include "op/op.h"
#include "op/passes/simplify.h"
#include "op/vectorize.h"
#include "ops/math/loops/wrapping.h"
#include "ops/math/reductions/reduce.h"

namespace headrace {
namespace {

bool IsNchw(const ResolvedOp& op) {
  const auto* format = op.attrs().Get<std::string>("data_format");
  return format && *format == "NCHW";
}

// Where the channels are.
int ChannelAxis(const ResolvedOp& op, int rank) {
  // NHWC and no format at all mean the last dimension.
  return IsNchw(op) ? 1 : rank - 1;
}

Status BiasAddShape(ShapeContext& c) {
  const Shape &x = c.input(0), &bias = c.input(1);
  const bool no_vector = bias.known_rank() && bias.rank() != 1;
  if (x.known_rank() && x.rank() < 2) {
    return c.Refuse(
        no_vector ? RankIsNot(1, bias.rank()) : RankIsLess(2, x.rank()),
        InvalidArgument("Input tensor must be at least 2D: ", x));
  }
  if (no_vector) {
    return c.Refuse(RankIsNot(1, bias.rank()),
                    InvalidArgument("Biases must be 1D: ", bias));
  }
  Shape out = x;
  if (x.known_rank() && bias.known_rank()) {
    const int axis = ChannelAxis(c.op(), x.rank());
    if (x[axis] >= 0 && bias[0] >= 0 && x[axis] != bias[0]) {
      return c.Refuse(
          DimensionsDiffer(x[axis], bias[0]),
          InvalidArgument(
              IsNchw(c.op())
                  ? "Must provide as many biases as the channel dimension "
                    "of the input tensor: "
                  : "Must provide as many biases as the last dimension of the "
                    "input tensor: ",
              bias, " vs. ", x));
    }
    // The bias knows the channels where the input does not.
    if (x[axis] < 0) out.set_dim(axis, bias[0]);
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

// x seen as [outer, channels, inner].
struct Split {
  int64_t outer, channels, inner;
  Split(const ResolvedOp& op, const Shape& s) {
    const int axis = ChannelAxis(op, s.rank());
    outer = s.Product(0, axis);
    channels = s[axis];
    inner = s.Product(axis + 1, s.rank());
  }
};

template <typename T>
Status RunBiasAdd(KernelContext& c) {
  const Split s(c.op(), c.input(0).shape());
  const T* x = c.in<T>(0);
  const T* bias = c.in<T>(1);
  T* y = c.out<T>(0);
  // The bias is a row: one addition of rows; else one number for a run.
  if (s.inner == 1) {
    ParallelFor(s.outer, s.channels * sizeof(T) * 0.06,
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin * s.channels; i < end * s.channels;
                       i += s.channels) {
                    for (int64_t j = 0; j < s.channels; ++j) {
                      // Integers wrap.
                      y[i + j] = Plus(x[i + j], bias[j]);
                    }
                  }
                });
    return OkStatus();
  }
  ParallelFor(s.outer * s.channels, s.inner * sizeof(T) * 0.06,
              [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                  const T b = bias[r % s.channels];
                  const int64_t at = r * s.inner;
                  for (int64_t j = 0; j < s.inner; ++j) {
                    y[at + j] = Plus(x[at + j], b);
                  }
                }
              });
  return OkStatus();
}

ComputeFn PickBiasAdd(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), NumberTypes{}, [&](auto tag) {
    fn = RunBiasAdd<typename decltype(tag)::type>;
  });
  return fn;
}

Status BiasGradShape(ShapeContext& c) {
  const Shape& d = c.input(0);
  if (d.known_rank() && d.rank() < 2) {
    return InvalidArgument("Input tensor must be at least 2D: ", d);
  }
  c.set_output(0, Shape{d.known_rank() ? d[ChannelAxis(c.op(), d.rank())]
                                       : Shape::kUnknown});
  return OkStatus();
}

Status RunBiasGrad(KernelContext& c) {
  const Tensor& d = c.input(0);
  absl::InlinedVector<bool, 8> reduced(d.rank(), true);
  reduced[ChannelAxis(c.op(), d.rank())] = false;
  const DType wide = LoopsForReduction(Reduction::kSum, d.dtype()).out;
  if (wide == d.dtype()) {
    return Reduce(Reduction::kSum, d, reduced, c.output(0).raw());
  }
  if (wide == DType::kInvalid) {
    return Unimplemented("BiasAddGrad of ", DTypeName(d.dtype()));
  }
  // Half and bfloat16 are summed in float and rounded once.
  HR_ASSIGN_OR_RETURN(Tensor sums, c.Temporary(wide, c.output(0).shape()));
  HR_RETURN_IF_ERROR(Reduce(Reduction::kSum, d, reduced, sums.raw()));
  DispatchDType(d.dtype(), TypeList<half, bfloat16>{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < sums.num_elements(); ++i) {
      c.out<T>(0)[i] = static_cast<T>(sums.data<float>()[i]);
    }
  });
  return OkStatus();
}

Status BiasAddGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  g.set(0, d);
  AttrMap attrs;
  if (IsNchw(g.op())) attrs.Set("data_format", "NCHW");
  if (g.wants(1)) g.set(1, g("BiasAddGrad", {d}, attrs));
  return g.status();
}

// The vector's gradient stretched over the input's shape.
Status BiasGradGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const Value& x = g.input(0);
  if (IsNchw(g.op())) {
    Value rank = x.shape().known_rank() ? g.Int32(x.rank()) : g("Rank", {x});
    Value tail = g("ExpandDims", {g("Sub", {rank, g.Int32(2)}), g.Int32(0)});
    Value ones = g("Fill", {tail, g.Int32(1)});
    Value shape = g("ConcatV2", {g.Int32s({-1}), ones, g.Int32(0)});
    // [channels, 1, ...]: broadcasting aligns shapes at their ends.
    d = g("Reshape", {d, shape});
  }
  g.set(0, g("BroadcastTo", {d, g.ShapeOf(x)}));
  return g.status();
}

// A bias along the last dimension is a broadcast sum, which fuses.
Status BiasAsSum(SimplifyContext& c) {
  const Shape x = c.input_shape(0), bias = c.input_shape(1);
  // With a size unknown the sum might broadcast, which BiasAdd refuses.
  if (!IsNchw(c.op()) && x.fully_known() && x.rank() >= 2 &&
      bias.fully_known() && bias.rank() == 1 && bias[0] == x[x.rank() - 1]) {
    c.Replace(0, c("AddV2", {c.input(0), c.input(1)}));
  }
  return c.status();
}

// Which dimension of a row has the channels.
int ChannelOfRow(const VectorizeContext& c, int rank) {
  const std::string* format = c.op().attrs().Get<std::string>("data_format");
  return format && *format == "NCHW" ? 1 : rank - 1;
}

Status VectorizeBias(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantRank(0));
  const int rank = c.row_rank(0), channel = ChannelOfRow(c, rank);
  Value bias = c.input(1);
  const int behind = rank - 1 - channel;
  if (behind > 0) {
    const std::vector<int32_t> ones(behind, 1);
    bias = c.Reshape(bias, c.Join({c.Sizes(bias, 0), c.Int32s(ones)}));
  }
  if (c.stacked(1)) bias = c.PadRank(bias, 1 + behind, rank);
  return c.Set(c("AddV2", {c.input(0), bias}));
}

Status VectorizeBiasGrad(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantRank(0));
  const int rank = c.row_rank(0), channel = ChannelOfRow(c, rank);
  std::vector<int32_t> axes;
  for (int d = 0; d < rank; ++d) {
    if (d != channel) axes.push_back(d + 1);
  }
  return c.Set(c("Sum", {c.input(0), c.Int32s(axes)}));
}

HR_OP(BiasAdd)
    .Input("value: T")
    .Input("bias: T")
    .Output("output: T")
    .Attr("T: numbertype")
    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
    .Doc("Adds a vector to the channels of a tensor.")
    .Simplify(BiasAsSum)
    .Shape(BiasAddShape)
    .Gradient(BiasAddGradient)
    .GradientSkips({0, 1}, {0})
    .InPlace({0})
    .Vectorize(VectorizeBias)
    .Cpu(ComputeFor<PickBiasAdd>);

HR_OP(BiasAddV1)
    .Input("value: T")
    .Input("bias: T")
    .Output("output: T")
    .Attr("T: numbertype")
    .Doc("Adds a vector to the last dimension of a tensor.")
    .Simplify(BiasAsSum)
    .Shape(BiasAddShape)
    .Gradient(BiasAddGradient)
    .GradientSkips({0, 1}, {0})
    .InPlace({0})
    .Vectorize(VectorizeBias)
    .Cpu(ComputeFor<PickBiasAdd>);

HR_OP(BiasAddGrad)
    .Input("out_backprop: T")
    .Output("output: T")
    .Attr("T: numbertype")
    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
    .Doc("Sum over all dimensions but the channels'.")
    .Shape(BiasGradShape)
    .Gradient(BiasGradGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeBiasGrad)
    .Cpu(Compute<RunBiasGrad>);

const FloatOps bias_float_ops({"BiasAdd"}, FloatOpsPerElement<1>);
const FloatOps bias_grad_float_ops({"BiasAddGrad"}, FloatOpsOfReduction);

}  // namespace
}  // namespace headrace
