// Sum, Mean, Prod, Max, Min, All, Any, EuclideanNorm: reductions over axes.
#include <cmath>
#include <limits>

#include "op/float_ops.h"
#include "op/op.h"
#include "op/passes/binds_calls.h"
#include "op/passes/row_reduction.h"
#include "op/shared_refusal.h"
#include "op/vectorize.h"
#include "ops/math/reductions/reduce.h"
#include "ops/math/reductions/reduction_gradients.h"

namespace headrace {
namespace {

Status AxesShape(ShapeContext& c) {
  if (c.input(0).known_rank() && c.value(1)) {
    absl::InlinedVector<int64_t, 8> axes;
    c.IntValues(1, &axes);
    const int rank = c.input(0).rank();
    absl::InlinedVector<bool, 8> seen(rank, false);
    for (int64_t axis : axes) {
      if (axis < -rank || axis >= rank) {
        return WrongReductionAxis(c, axis, rank);
      }
      const int at = static_cast<int>(axis < 0 ? axis + rank : axis);
      // Upstream refuses an axis that is named twice, once as negative.
      if (seen[at]) {
        return InvalidArgument(
            "Invalid reduction arguments: Axes contains duplicate dimension: ",
            at);
      }
      seen[at] = true;
    }
  }
  return ReductionShape(c);
}

// Which dimensions go, and how many elements meet in one.
absl::InlinedVector<bool, 8> Reduced(const KernelContext& c, int64_t* count) {
  const Tensor &x = c.input(0), &axes = c.input(1);
  absl::InlinedVector<bool, 8> reduced(x.rank(), false);
  *count = 1;
  for (int64_t i = 0; i < axes.num_elements(); ++i) {
    const int64_t axis = axes.IntAt(i);
    const int64_t at = axis < 0 ? axis + x.rank() : axis;
    reduced[at] = true;
    *count *= x.dim(static_cast<int>(at));
  }
  return reduced;
}

// The result in the type it was made in, which may be wider than T.
struct Wide {
  Tensor storage;
  DType dtype;
  const void* data;
  int64_t count;  // elements that met in one
};

StatusOr<Wide> ReduceWide(KernelContext& c, Reduction r) {
  Wide w;
  const auto reduced = Reduced(c, &w.count);
  const Tensor &x = c.input(0), &out = c.output(0);
  w.dtype = LoopsForReduction(r, x.dtype()).out;
  if (w.dtype == DType::kInvalid) {
    return Unimplemented(c.op().name(), " of ", DTypeName(x.dtype()));
  }
  void* to = out.raw();
  // Small types are reduced in a wider one and rounded once.
  if (w.dtype != out.dtype()) {
    HR_ASSIGN_OR_RETURN(w.storage, Tensor::Allocate(w.dtype, out.shape()));
    to = w.storage.raw();
  }
  HR_RETURN_IF_ERROR(Reduce(r, x, reduced, to));
  w.data = to;
  return w;
}

// out[i] = f(wide[i]) for each element; From and To are the types.
template <typename F>
Status Finish(const Wide& w, const Tensor& out, F f) {
  const int64_t n = out.num_elements();
  DispatchDType(w.dtype, NumberTypes{}, [&](auto from) {
    using From = typename decltype(from)::type;
    const From* x = static_cast<const From*>(w.data);
    auto convert = [&](auto to) {
      using To = typename decltype(to)::type;
      To* y = out.data<To>();
      for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(f(x[i]));
    };
    if (w.dtype == out.dtype()) {
      convert(from);
    } else if constexpr (std::is_same_v<From, float>) {
      DispatchDType(out.dtype(), TypeList<half, bfloat16>{}, convert);
    } else if constexpr (std::is_same_v<From, int64_t>) {
      DispatchDType(out.dtype(), IntTypes{}, convert);
    }
  });
  return OkStatus();
}

template <Reduction r>
Status RunReduction(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Wide w, ReduceWide(c, r));
  if (w.dtype == c.output(0).dtype()) return OkStatus();
  return Finish(w, c.output(0), [](auto x) { return x; });
}

Status RunMean(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Wide w, ReduceWide(c, Reduction::kWideSum));
  const int64_t count = w.count;
  return Finish(w, c.output(0), [count](auto x) {
    using X = decltype(x);
    if constexpr (std::numeric_limits<X>::is_integer) {
      // The mean of nothing is 0 for integers, NaN for floats.
      return count == 0 ? X(0) : static_cast<X>(x / static_cast<X>(count));
    } else {
      // By way of float, as upstream counts.
      return x / static_cast<X>(static_cast<float>(count));
    }
  });
}

// How dimensions of a shape are reduced, as [outer, n] over n; false where the
// reduced ones are not the last, or there is nothing to reduce.
bool IsTail(const Shape& shape, const Tensor& axes, int64_t* outer,
            int64_t* n) {
  absl::InlinedVector<bool, 8> reduced(shape.rank(), false);
  for (int64_t i = 0; i < axes.num_elements(); ++i) {
    const int64_t axis = axes.IntAt(i);
    reduced[axis < 0 ? axis + shape.rank() : axis] = true;
  }
  *outer = *n = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (reduced[i]) {
      *n *= shape[i];
    } else if (shape[i] != 1) {
      if (*n > 1) return false;
      *outer *= shape[i];
    }
  }
  return *n > 0 && *outer > 0;
}

// A reduction of T that can also be done row by row.
template <typename T, Reduction r, bool kMean>
class RowKernel : public RowReducer, public BindsCalls {
 public:
  Status Run(KernelContext& c) override {
    return kMean ? RunMean(c) : RunReduction<r>(c);
  }
  void ReduceRow(const void* x, int64_t n, void* y) const override {
    // The op's own loop, so that a fused reduction gives the same bits.
    loops_.runs(x, n, 1, y);
    if (kMean) *static_cast<T*>(y) /= static_cast<T>(static_cast<float>(n));
  }
  bool BindTo(absl::Span<const BoundInput> inputs, const Shape& output,
              BoundCall* call) const override {
    int64_t outer, n;
    if (inputs[1].constant == nullptr ||
        !IsTail(*inputs[0].shape, *inputs[1].constant, &outer, &n) ||
        !IsOneRun(outer, n)) {
      return false;
    }
    call->run = RunBound;
    call->loop = reinterpret_cast<const void*>(loops_.runs);
    call->n = n;
    call->kind = static_cast<int32_t>(outer);
    return outer == output.num_elements();
  }

 private:
  static void RunBound(BoundCall& c) {
    reinterpret_cast<decltype(ReduceLoops::runs)>(const_cast<void*>(c.loop))(
        c.in[0], c.n, c.kind, c.out);
    if constexpr (kMean) {
      T* y = static_cast<T*>(c.out);
      for (int32_t i = 0; i < c.kind; ++i) {
        y[i] /= static_cast<T>(static_cast<float>(c.n));
      }
    }
    RunNext(c);
  }

  const ReduceLoops loops_ = LoopsForReduction(r, DTypeOf<T>);
};

template <Reduction r, bool kMean = false>
StatusOr<std::unique_ptr<Kernel>> BindReduction(const ResolvedOp& op) {
  switch (op.input_types()[0]) {
    case DType::kFloat:
      return std::make_unique<RowKernel<float, r, kMean>>();
    case DType::kDouble:
      return std::make_unique<RowKernel<double, r, kMean>>();
    default:
      return MakeKernel(kMean ? RunMean : RunReduction<r>);
  }
}

Status RunNorm(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Wide w, ReduceWide(c, Reduction::kSumSquares));
  return Finish(w, c.output(0), [](auto x) {
    using X = decltype(x);
    if constexpr (std::numeric_limits<X>::is_integer) {
      return static_cast<X>(std::sqrt(static_cast<double>(x)));
    } else {
      return std::sqrt(x);
    }
  });
}

// Bools are bytes of 0 and 1: all is their minimum, any their maximum.
template <Reduction r>
Status RunLogical(KernelContext& c) {
  int64_t count;
  const auto reduced = Reduced(c, &count);
  // The same bytes under another type.
  const Tensor x = c.input(0).WithType(DType::kUint8, c.input(0).shape());
  bool* out = c.out<bool>(0);
  uint8_t* bytes = reinterpret_cast<uint8_t*>(out);
  HR_RETURN_IF_ERROR(Reduce(r, x, reduced, bytes));
  for (int64_t i = 0; i < c.output(0).num_elements(); ++i) {
    // The neutral elements of minimum and maximum of bytes are 255 and 0: as
    // bools 1 and 0.
    out[i] = bytes[i] != 0;
  }
  return OkStatus();
}

constexpr char kOrdered[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "
    "half, uint32, uint64, qint8, quint8, qint32, qint16, quint16}";

OpBuilder& WithAxes(OpBuilder&& op, const char* type, KernelFactory kernel,
                    GradientFn gradient, const char* doc) {
  op.Input(type ? "input: T" : "input: bool")
      .Input("reduction_indices: Tidx")
      .RawName("reduction_indices", "axis")
      .Output(type ? "output: T" : "output: bool")
      .Attr("keep_dims: bool = false");
  if (type) op.Attr(type);
  op.Attr("Tidx: {int32, int64} = int32").Doc(doc).Shape(AxesShape).Cpu(kernel);
  op.Vectorize(VectorizeOverAxes);
  if (gradient) op.Gradient(gradient);
  const bool skips = gradient == SumGradient || gradient == ProdGradient;
  if (skips) op.GradientSkips({}, {0});
  return op;
}

const OpRegistrar sum =
    WithAxes(OpBuilder("Sum"), "T: numbertype", BindReduction<Reduction::kSum>,
             SumGradient, "Sum over axes.")
        .Role(OpRole::kSum)
        .Traits({OpTrait::kRowReduction});
const OpRegistrar mean = WithAxes(OpBuilder("Mean"), "T: numbertype",
                                  BindReduction<Reduction::kSum, true>,
                                  MeanGradient, "Mean over axes.")
                             .Traits({OpTrait::kRowReduction});
const OpRegistrar prod = WithAxes(OpBuilder("Prod"), "T: numbertype",
                                  Compute<RunReduction<Reduction::kProd>>,
                                  ProdGradient, "Product over axes.");
const OpRegistrar max =
    WithAxes(OpBuilder("Max"), kOrdered, BindReduction<Reduction::kMax>,
             ExtremeGradient,
             "Largest element over axes; NaN where one is met.")
        .Traits({OpTrait::kRowReduction});
const OpRegistrar min =
    WithAxes(OpBuilder("Min"), kOrdered, BindReduction<Reduction::kMin>,
             ExtremeGradient,
             "Smallest element over axes; NaN where one is met.")
        .Traits({OpTrait::kRowReduction});
const OpRegistrar norm =
    WithAxes(OpBuilder("EuclideanNorm"), "T: numbertype", Compute<RunNorm>,
             NormGradient, "Square root of the sum of squares over axes.");
const OpRegistrar all =
    WithAxes(OpBuilder("All"), nullptr, Compute<RunLogical<Reduction::kMin>>,
             nullptr, "Logical and over axes.");
const OpRegistrar any =
    WithAxes(OpBuilder("Any"), nullptr, Compute<RunLogical<Reduction::kMax>>,
             nullptr, "Logical or over axes.");

const FloatOps sum_float_ops({"Sum"}, FloatOpsOfReduction);
// The sums, and a quotient for each of these.
const FloatOps mean_float_ops({"Mean"},
                              [](FloatOpsContext& c) { return c.input(0); });

}  // namespace
}  // namespace headrace
