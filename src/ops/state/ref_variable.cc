// Variables of TensorFlow 1's graphs, which travel by reference: at run time a
// reference is a resource handle, like those of the Resource* ops; who reads
// it as a plain tensor has the engine read the variable.
#include "ops/array/index/nd_index.h"
#include "ops/state/scatter.h"
#include "ops/state/variable_access.h"

namespace headrace {
namespace {

// One that is known by its reference: a kind of its own beside those that
// handles name.
class RefVariable : public Variable {
  using Variable::Variable;
};

// The variable is found by name, so that every plan of a graph sees the same.
Status MakeReference(KernelContext& c) {
  ResourceHandle handle;
  handle.name = c.op().string_attr("shared_name");
  handle.container = c.op().string_attr("container");
  // Upstream's default container.
  if (handle.container.empty()) handle.container = "localhost";
  if (handle.name.empty()) {
    return FailedPrecondition(
        "a reference variable needs a shared_name; graphs give it the name of "
        "its node");
  }
  const DType dtype = c.op().type_attr("dtype");
  const Shape& shape = c.op().attr<Shape>("shape");
  handle.data =
      std::make_shared<const HandleData>(HandleData{HandlePart{dtype, shape}});
  HR_ASSIGN_OR_RETURN(handle.resource,
                      c.services().resources->LookUpOrCreate<RefVariable>(
                          handle.container, handle.name,
                          [&]() -> StatusOr<std::shared_ptr<RefVariable>> {
                            return std::make_shared<RefVariable>(dtype, shape);
                          }));
  c.set_output(0, Tensor::Scalar<ResourceHandle>(std::move(handle)));
  return OkStatus();
}

Status DeclaredShape(ShapeContext& c) {
  c.set_output(0, c.op().attr<Shape>("shape"));
  return OkStatus();
}

OpBuilder RefVariableOp(const char* name) {
  OpBuilder b(name);
  b.Output("ref: Ref(dtype)")
      .Attr("shape: shape")
      .Attr("dtype: type")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Doc("A reference to a variable that lasts across runs.")
      .Traits({OpTrait::kNoEffect})
      .Stateful()
      .Shape(DeclaredShape)
      .Cpu(ComputeOwn<MakeReference>);
  return b;
}

[[maybe_unused]] const OpRegistrar kRefVariables[] = {
    RefVariableOp("VariableV2"),
    RefVariableOp("Variable"),
};

// A variable of one run: it lives in its handle and in no table.
Status MakeTemporary(KernelContext& c) {
  const DType dtype = c.op().type_attr("dtype");
  const Shape& shape = c.op().attr<Shape>("shape");
  if (!shape.fully_known()) {
    return InvalidArgument(
        "TemporaryVariable: the shape must be fully known, got ", shape);
  }
  HR_ASSIGN_OR_RETURN(Tensor value, Tensor::Allocate(dtype, shape));
  FillZero(value);
  auto variable = std::make_shared<Variable>(dtype, shape);
  variable->Assign(std::move(value));
  ResourceHandle handle;
  handle.name = c.op().string_attr("var_name");
  handle.data =
      std::make_shared<const HandleData>(HandleData{HandlePart{dtype, shape}});
  handle.resource = std::move(variable);
  c.set_output(0, Tensor::Scalar<ResourceHandle>(std::move(handle)));
  return OkStatus();
}

HR_OP(TemporaryVariable)
    .Output("ref: Ref(dtype)")
    .Attr("shape: shape")
    .Attr("dtype: type")
    .Attr("var_name: string = ''")
    .Doc("A reference to a variable of this run alone.")
    .Stateful()
    .Shape(DeclaredShape)
    .Cpu(ComputeOwn<MakeTemporary>);

Status EndTemporary(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Tensor t, ReadVariable(c, 0, c.op().type_attr("T")));
  c.set_output(0, std::move(t));
  return OkStatus();
}

HR_OP(DestroyTemporaryVariable)
    .Input("ref: Ref(T)")
    .Output("value: T")
    .Attr("T: type")
    .Attr("var_name: string")
    .Doc("The last value of a variable of this run.")
    .Shape(UnknownShape)
    .Cpu(ComputeOwn<EndTemporary>);

// What the engine puts where a reference meets an op that wants a tensor.
Status ReadReference(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(VariableInput v, VariableOf(c, 0));
  // TensorFlow 1 has this text for references, another than for resource
  // variables.
  if (!v.variable->initialized()) {
    return FailedPrecondition("Attempting to use uninitialized value ", v.name);
  }
  HR_ASSIGN_OR_RETURN(Tensor t, ReadVariable(c, 0, c.op().output_types()[0]));
  c.set_output(0, std::move(t));
  return OkStatus();
}

HR_OP(_ReadReference)
    .Input("ref: Ref(T)")
    .Output("value: T")
    .Attr("T: type")
    .Doc("The value of the variable behind a reference.")
    .Traits({OpTrait::kNoEffect})
    .Stateful()
    .Role(OpRole::kReadVariable)
    .Shape(UnknownShape)
    .NoGradient()
    .Cpu(ComputeOwn<ReadReference>);

Status HandleAsReference(KernelContext& c) {
  c.set_output(0, c.input(0));
  return OkStatus();
}

HR_OP(_Reference)
    .Input("handle: resource")
    .Output("ref: Ref(dtype)")
    .Attr("shape: shape")
    .Attr("dtype: type")
    .Doc("A reference to the variable behind a handle.")
    .Shape(DeclaredShape)
    .NoGradient()
    .Cpu(ComputeOwn<HandleAsReference>);

Status IsRefInitialized(KernelContext& c) {
  StatusOr<VariableInput> v = VariableOf(c, 0);
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape()));
  // A variable that was never made is not initialized; that is no error.
  *c.out<bool>(0) = v.ok() && v->variable->initialized();
  return OkStatus();
}

HR_OP(IsVariableInitialized)
    .Input("ref: Ref(dtype)")
    .Output("is_initialized: bool")
    .Attr("dtype: type")
    .Doc("Whether the variable has a value.")
    .Traits({OpTrait::kNoEffect})
    .AllowsUninitialized()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<IsRefInitialized>);

Status AssignRef(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(VariableInput v, VariableOf(c, 0));
  const Tensor& value = c.input(1);
  if (c.op().bool_attr("validate_shape") &&
      !v.variable->shape().CompatibleWith(value.shape())) {
    return InvalidArgument(
        "Assign requires shapes of both tensors to match. "
        "lhs shape= ",
        v.variable->shape(), " rhs shape= ", value.shape());
  }
  // A borrowed tensor (a caller's memory) may change or go away after the run.
  HR_ASSIGN_OR_RETURN(Tensor kept, Keepable(value));
  v.variable->Assign(std::move(kept));
  c.set_output(0, c.input(0));
  return OkStatus();
}

Status AssignRefShape(ShapeContext& c) {
  // What arrives at run time on input 0 is a handle, a scalar.
  if (!c.op().bool_attr("validate_shape")) {
    if (c.in_graph()) c.set_output(0, c.input(1));
    return OkStatus();
  }
  c.set_output(0, c.input(1));
  if (!c.in_graph() || c.input(0).CompatibleWith(c.input(1))) return OkStatus();
  return c.Refuse(NotMerged(c.input(0), c.input(1)),
                  InvalidArgument("Assign requires shapes of both tensors to "
                                  "match. lhs shape= ",
                                  c.input(0), " rhs shape= ", c.input(1)));
}

// That of the variable, where the graph says it.
Status ShapeOfReferred(ShapeContext& c) {
  if (c.in_graph()) c.set_output(0, c.input(0));
  return OkStatus();
}

HR_OP(Assign)
    .Input("ref: Ref(T)")
    .Input("value: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: type")
    .Attr("validate_shape: bool = true")
    .Attr("use_locking: bool = true")
    .Doc("Replaces a variable's value.")
    .AllowsUninitialized()
    .Shape(AssignRefShape)
    .NoGradient()
    .Cpu(ComputeOwn<AssignRef>);

template <ScatterKind kind>
Status Scatter(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(VariableInput v, VariableOf(c, 0));
  HR_RETURN_IF_ERROR(
      UpdateVariables({v}, c.input(2).dtype(), [&](absl::Span<Tensor*> values) {
        return ScatterRows(kind, c.input(1), c.input(2), *values[0]);
      }));
  c.set_output(0, c.input(0));
  return OkStatus();
}

template <ScatterKind kind>
ComputeFn PickScatter(const ResolvedOp& op) {
  return ScatterSupports(kind, op.type_attr("T")) ? Scatter<kind> : nullptr;
}

template <ScatterKind kind>
StatusOr<std::unique_ptr<Kernel>> BindScatter(const ResolvedOp& op) {
  ComputeFn fn = PickScatter<kind>(op);
  return fn ? MakeKernel(fn, /*own_outputs=*/true) : nullptr;
}

template <ScatterKind kind>
Status ScatterNdRef(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const BadIndices policy, BadIndicesPolicy(c.op()));
  HR_ASSIGN_OR_RETURN(VariableInput v, VariableOf(c, 0));
  HR_RETURN_IF_ERROR(
      UpdateVariables({v}, c.input(2).dtype(), [&](absl::Span<Tensor*> values) {
        return ScatterSlices(kind, c.input(1), c.input(2),
                             policy == BadIndices::kIgnore, *values[0]);
      }));
  c.set_output(0, c.input(0));
  return OkStatus();
}

template <ScatterKind kind>
StatusOr<std::unique_ptr<Kernel>> BindScatterNd(const ResolvedOp& op) {
  if (!ScatterSupports(kind, op.type_attr("T"))) return nullptr;
  return MakeKernel(ScatterNdRef<kind>, /*own_outputs=*/true);
}

template <ScatterKind kKind>
OpBuilder RefScatterNdOp(const char* name, const char* types,
                         const char* locking) {
  OpBuilder b(name);
  b.Input("ref: Ref(T)")
      .Input("indices: Tindices")
      .Input("updates: T")
      .Output("output_ref: Ref(T)")
      .Attr(types)
      .Attr("Tindices: {int32, int64}")
      .Attr(locking)
      .Attr("bad_indices_policy: string = ''")
      .Doc("Changes slices of a variable.")
      .Shape(ShapeOfReferred)
      .Cpu(BindScatterNd<kKind>);
  return b;
}

template <ScatterKind kKind>
OpBuilder RefScatterOp(const char* name, const char* types,
                       const char* locking) {
  OpBuilder b(name);
  b.Input("ref: Ref(T)")
      .Input("indices: Tindices")
      .Input("updates: T")
      .Output("output_ref: Ref(T)")
      .Attr(types)
      .Attr("Tindices: {int32, int64}")
      .Attr(locking)
      .Doc("Changes rows of a variable.")
      .Shape(ShapeOfReferred)
      .Cpu(BindScatter<kKind>);
  return b;
}

constexpr char kSmallNumbers[] =
    "T: {half, bfloat16, float, double, int32, int64}";
[[maybe_unused]] const OpRegistrar kRefScatters[] = {
    RefScatterOp<ScatterKind::kUpdate>("ScatterUpdate", "T: type",
                                       "use_locking: bool = true"),
    RefScatterOp<ScatterKind::kAdd>("ScatterAdd", "T: numbertype",
                                    "use_locking: bool = false")
        .NoGradient(),
    RefScatterOp<ScatterKind::kSub>("ScatterSub", "T: numbertype",
                                    "use_locking: bool = false")
        .NoGradient(),
    RefScatterOp<ScatterKind::kMul>("ScatterMul", "T: numbertype",
                                    "use_locking: bool = false")
        .NoGradient(),
    RefScatterOp<ScatterKind::kDiv>("ScatterDiv", "T: numbertype",
                                    "use_locking: bool = false")
        .NoGradient(),
    RefScatterOp<ScatterKind::kMin>("ScatterMin", kSmallNumbers,
                                    "use_locking: bool = false"),
    RefScatterOp<ScatterKind::kMax>("ScatterMax", kSmallNumbers,
                                    "use_locking: bool = false"),
    RefScatterNdOp<ScatterKind::kUpdate>("ScatterNdUpdate", "T: type",
                                         "use_locking: bool = true"),
    RefScatterNdOp<ScatterKind::kAdd>("ScatterNdAdd", "T: numbertype",
                                      "use_locking: bool = false"),
    RefScatterNdOp<ScatterKind::kSub>("ScatterNdSub", "T: numbertype",
                                      "use_locking: bool = false"),
    RefScatterNdOp<ScatterKind::kMin>("ScatterNdMin", "T: numbertype",
                                      "use_locking: bool = false"),
    RefScatterNdOp<ScatterKind::kMax>("ScatterNdMax", "T: numbertype",
                                      "use_locking: bool = false"),
};

}  // namespace
}  // namespace headrace
