// ConditionalAccumulator, SparseConditionalAccumulator and the ops on them, of
// references; ResourceConditionalAccumulator and its ops, of resources.
#include "op/op_like.h"
#include "op/waiting.h"
#include "ops/queue/accumulator.h"
#include "ops/queue/queue_handle.h"

namespace headrace {
namespace {

bool Accumulates(DType d) {
  return d == DType::kFloat || d == DType::kDouble || d == DType::kHalf;
}

template <typename A>
Status MakeAccumulator(KernelContext& c) {
  const ResolvedOp& op = c.op();
  const DType dtype = op.type_attr("dtype");
  const Shape& shape = op.attr<Shape>("shape");
  const bool mean = op.string_attr("reduction_type") == "MEAN";
  HR_ASSIGN_OR_RETURN(
      auto made,
      MakeHandle<Accumulator>(
          c, [&](std::string name) -> StatusOr<std::shared_ptr<Accumulator>> {
            return std::make_shared<A>(std::move(name), dtype, shape, mean);
          }));
  // A shared name may have been taken before, by a dense or a sparse one.
  if (dynamic_cast<const A*>(made.get()) == nullptr || made->dtype() != dtype ||
      made->shape() != shape) {
    return InvalidArgument("Shared accumulator '",
                           op.string_attr("shared_name"), "' is another one (",
                           made->DebugString(), ") than ", op.name(),
                           " asks for");
  }
  return OkStatus();
}

template <typename A>
StatusOr<std::unique_ptr<Kernel>> BindMaker(const ResolvedOp& op) {
  if (!Accumulates(op.type_attr("dtype"))) return nullptr;
  return MakeKernel(MakeAccumulator<A>, /*own_outputs=*/true);
}

template <typename A>
OpBuilder AccumulatorOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Output("handle: Ref(string)")
      .Attr("dtype: numbertype")
      .Attr("shape: shape")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Attr("reduction_type: {'MEAN', 'SUM'} = 'MEAN'")
      .Doc(doc)
      .Stateful()
      .Shape(ReferenceShape)
      .Cpu(BindMaker<A>);
  return b;
}
[[maybe_unused]] const OpRegistrar kAccumulators[] = {
    AccumulatorOp<DenseAccumulator>("ConditionalAccumulator",
                                    "Adds up gradients until enough came."),
    AccumulatorOp<SparseAccumulator>(
        "SparseConditionalAccumulator",
        "Adds up rows of gradients until enough came."),
};

template <typename A>
StatusOr<std::shared_ptr<A>> AccumulatorOf(const KernelContext& c) {
  HR_ASSIGN_OR_RETURN(
      auto found, ResourceAs<Accumulator>(c.input(0), c.services().resources));
  auto a = std::dynamic_pointer_cast<A>(found);
  if (!a) return WrongKind(found->DebugString());
  return a;
}

// The accumulator, which must be of the op's dtype.
template <typename A>
StatusOr<std::shared_ptr<A>> TypedAccumulatorOf(const KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto a, AccumulatorOf<A>(c));
  const DType asked = c.op().type_attr("dtype");
  if (a->dtype() == asked) return a;
  return InvalidArgument(c.op().name(), ": the accumulator is of ",
                         DTypeName(a->dtype()), ", not of ", DTypeName(asked));
}

StatusOr<int64_t> NumRequired(const KernelContext& c) {
  const int64_t n = c.input(1).scalar<int32_t>();
  if (n > 0) return n;
  return InvalidArgument("Argument num_required must be positive, but was ", n);
}

Status ScalarSecond(ShapeContext& c) { return CheckRank(c.input(1), 0); }

Status ApplyDense(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto a, TypedAccumulatorOf<DenseAccumulator>(c));
  return a->Add(c.input(1).scalar<int64_t>(), c.input(2));
}

HR_OP(AccumulatorApplyGradient)
    .Input("handle: Ref(string)")
    .Input("local_step: int64")
    .Input("gradient: dtype")
    .Attr("dtype: numbertype")
    .Doc("Adds a gradient, unless it is of a step that is over.")
    .Shape(ScalarSecond)
    .Cpu(Compute<ApplyDense>);

Status TakeDense(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto a, TypedAccumulatorOf<DenseAccumulator>(c));
  HR_ASSIGN_OR_RETURN(const int64_t n, NumRequired(c));
  HR_ASSIGN_OR_RETURN(Tensor sum, a->Take(n));
  c.set_output(0, std::move(sum));
  return OkStatus();
}

HR_OP(AccumulatorTakeGradient)
    .Input("handle: Ref(string)")
    .Input("num_required: int32")
    .Output("average: dtype")
    .Attr("dtype: numbertype")
    .Doc(
        "The mean or sum of gradients, when enough came; begins the next step.")
    .Traits({kMayWait, kMayBeTried})
    .Shape(ScalarSecond)
    .Cpu(ComputeOwn<TakeDense>);

Status NumAccumulated(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto a, AccumulatorOf<Accumulator>(c));
  *c.out<int32_t>(0) = static_cast<int32_t>(a->count());
  return OkStatus();
}

HR_OP(AccumulatorNumAccumulated)
    .Input("handle: Ref(string)")
    .Output("num_accumulated: int32")
    .Doc("How many gradients came since the last ones were taken.")
    .Shape(ScalarShape)
    .Cpu(Compute<NumAccumulated>);

Status NumDropped(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto a, AccumulatorOf<Accumulator>(c));
  *c.out<int64_t>(0) = a->dropped();
  return OkStatus();
}

// TensorFlow has no such op.
HR_OP(_AccumulatorNumDropped)
    .Input("handle: Ref(string)")
    .Output("num_dropped: int64")
    .Doc("How many gradients of steps that were over have been dropped.")
    .Shape(ScalarShape)
    .Cpu(Compute<NumDropped>);

Status AwaitEnd(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto a, AccumulatorOf<Accumulator>(c));
  return a->AwaitEnd(c.input(1).scalar<int64_t>());
}

// Nor this one.
HR_OP(_AccumulatorAwaitEnd)
    .Input("handle: Ref(string)")
    .Input("local_step: int64")
    .Doc("Waits until gradients of another step are added up.")
    .Traits({kMayWait, kMayBeTried})
    .Shape(ScalarSecond)
    .Cpu(ComputeOwn<AwaitEnd>);

Status SetGlobalStep(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto a, AccumulatorOf<Accumulator>(c));
  a->SetGlobalStep(c.input(1).scalar<int64_t>());
  return OkStatus();
}

HR_OP(AccumulatorSetGlobalStep)
    .Input("handle: Ref(string)")
    .Input("new_global_step: int64")
    .Doc("Gradients of older steps will be dropped.")
    .Shape(ScalarSecond)
    .Cpu(Compute<SetGlobalStep>);

Status ApplySparse(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto a, TypedAccumulatorOf<SparseAccumulator>(c));
  Tensor shape = c.input(4);
  if (!c.op().bool_attr("has_known_shape")) {
    shape = Tensor::Vector<int64_t>(absl::Span<const int64_t>());
  }
  return a->Add(c.input(1).scalar<int64_t>(), c.input(2), c.input(3), shape);
}

Status ApplySparseRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 0));
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 1));
  return CheckRank(c.input(4), 1);
}

HR_OP(SparseAccumulatorApplyGradient)
    .Input("handle: Ref(string)")
    .Input("local_step: int64")
    .Input("gradient_indices: int64")
    .Input("gradient_values: dtype")
    .Input("gradient_shape: int64")
    .Attr("dtype: numbertype")
    .Attr("has_known_shape: bool")
    .Doc("Adds rows of a gradient, unless they are of a step that is over.")
    .Shape(ApplySparseRule)
    .Cpu(Compute<ApplySparse>);

Status TakeSparse(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto a, TypedAccumulatorOf<SparseAccumulator>(c));
  HR_ASSIGN_OR_RETURN(const int64_t n, NumRequired(c));
  HR_ASSIGN_OR_RETURN(SparseAccumulator::Rows rows, a->Take(n));
  c.set_output(0, std::move(rows.indices));
  c.set_output(1, std::move(rows.values));
  c.set_output(2, std::move(rows.shape));
  return OkStatus();
}

HR_OP(SparseAccumulatorTakeGradient)
    .Input("handle: Ref(string)")
    .Input("num_required: int32")
    .Output("indices: int64")
    .Output("values: dtype")
    .Output("shape: int64")
    .Attr("dtype: numbertype")
    .Doc("The mean or sum of rows, when enough gradients came.")
    .Traits({kMayWait, kMayBeTried})
    .Shape(ScalarSecond)
    .Cpu(ComputeOwn<TakeSparse>);

// --- The same of resources.

void OfResource(OpDef& def) {
  for (auto* args : {&def.inputs, &def.outputs}) {
    for (ArgDef& a : *args) {
      if (!a.is_ref) continue;
      a.type = DType::kResource;
      a.is_ref = false;
    }
  }
  if (def.inputs.empty()) def.shape_fn = ScalarShape;
  def.is_stateful = true;
}
[[maybe_unused]] const bool kResourceAccumulators[] = {
    RegisterLike("ResourceConditionalAccumulator", "ConditionalAccumulator",
                 OfResource),
    RegisterLike("ResourceAccumulatorApplyGradient", "AccumulatorApplyGradient",
                 OfResource),
    RegisterLike("ResourceAccumulatorTakeGradient", "AccumulatorTakeGradient",
                 OfResource),
    RegisterLike("ResourceAccumulatorNumAccumulated",
                 "AccumulatorNumAccumulated", OfResource),
    RegisterLike("_ResourceAccumulatorNumDropped", "_AccumulatorNumDropped",
                 OfResource),
    RegisterLike("_ResourceAccumulatorAwaitEnd", "_AccumulatorAwaitEnd",
                 OfResource),
    RegisterLike("ResourceAccumulatorSetGlobalStep", "AccumulatorSetGlobalStep",
                 OfResource),
};

}  // namespace
}  // namespace headrace
