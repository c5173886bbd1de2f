// Variables: making, reading, replacing and forgetting them.
#include <algorithm>

#include "op/anonymous.h"
#include "ops/state/variable_access.h"

namespace headrace {
namespace {

constexpr StringView kCpuName = "/job:localhost/replica:0/task:0/device:CPU:0";

class VarHandle : public Kernel {
 public:
  explicit VarHandle(const ResolvedOp& op)
      : dtype_(op.type_attr("dtype")), shape_(op.attr<Shape>("shape")) {
    handle_.name = op.string_attr("shared_name");
    handle_.container = op.string_attr("container");
    if (handle_.container.empty()) handle_.container = "localhost";
    handle_.kind = &typeid(Variable);
    handle_.device = std::string(kCpuName);
    handle_.data = std::make_shared<const HandleData>(
        HandleData{HandlePart{dtype_, shape_}});
    anonymous_ = handle_.name == kAnonymousName;
    debug_name_ = op.string_attr("debug_name");
  }
  bool own_outputs() const override { return true; }
  Status Run(KernelContext& c) override {
    ResourceHandle handle = handle_;
    // A new variable each run, and no entry by name: it lives as long as its
    // handles.
    if (anonymous_) {
      handle.name = debug_name_;
      handle.kind = nullptr;
      handle.resource = std::make_shared<Variable>(dtype_, shape_);
    }
    c.set_output(0, Tensor::Scalar<ResourceHandle>(std::move(handle)));
    return OkStatus();
  }

 private:
  const DType dtype_;
  const Shape shape_;
  ResourceHandle handle_;
  std::string debug_name_;
  bool anonymous_;
};

Status VarHandleShape(ShapeContext& c) {
  c.set_output(0, Shape());
  c.set_output_handle(
      0, {HandlePart{c.op().type_attr("dtype"), c.op().attr<Shape>("shape")}});
  return OkStatus();
}

HR_OP(VarHandleOp)
    .Output("resource: resource")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("debug_name: string = ''")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .Attr("allowed_devices: list(string) = []")
    .Doc("Makes a handle of a variable, by name or of a new one.")
    .Traits({OpTrait::kNoEffect, OpTrait::kUnnamedState, OpTrait::kNeverWaits})
    .Stateful()
    .Shape(VarHandleShape)
    .Cpu(Bind<VarHandle>);

Status IsInitialized(KernelContext& c) {
  StatusOr<VariableInput> v = VariableOf(c, 0);
  *c.out<bool>(0) = v.ok() && v->variable->initialized();
  return OkStatus();
}

HR_OP(VarIsInitializedOp)
    .Input("resource: resource")
    .Output("is_initialized: bool")
    .Doc("Whether the variable has a value.")
    .Traits({OpTrait::kNoEffect, OpTrait::kNeverWaits})
    .Stateful()
    .Shape(ScalarShape)
    .NoGradient()
    .Cpu(Compute<IsInitialized>);

Status ReadShape(ShapeContext& c) {
  const HandleData* data = c.input_handle(0);
  DType dtype = c.op().type_attr("dtype");
  if (data && !data->empty() && data->front().dtype != dtype) {
    return InvalidArgument(
        "Trying to read variable with wrong dtype. Expected ", DTypeName(dtype),
        " got ", DTypeName(data->front().dtype));
  }
  c.set_output(0, HandleShape(c, 0));
  return OkStatus();
}

Status Read(KernelContext& c) {
  const StatusOr<VariableInput> v = VariableOf(c, 0);
  // Upstream's text for reads, which other ops on missing variables do not
  // have.
  if (!v.ok()) {
    const ResourceHandle& h = c.input(0).scalar<ResourceHandle>();
    return FailedPrecondition(
        "Could not find variable ", h.name,
        ". This could mean that the variable has been deleted. In TF1, it can "
        "also mean the variable is uninitialized. Debug info: container=",
        h.container, ", status error message=", v.status().message());
  }
  HR_ASSIGN_OR_RETURN(Tensor t, ReadVariable(*v, c.op().output_types()[0]));
  c.set_output(0, std::move(t));
  return OkStatus();
}

Status ReadGradient(GradientContext& g) {
  // Slices are handed on as slices: optimizers update the rows alone.
  g.set(0, g.raw_grad(0));
  return g.status();
}

HR_OP(ReadVariableOp)
    .Input("resource: resource")
    .Output("value: dtype")
    .Attr("dtype: type")
    .Doc("Reads a variable; the value never changes afterwards.")
    .Role(OpRole::kReadVariable)
    .Traits({OpTrait::kNoEffect, OpTrait::kNeverWaits})
    .Stateful()
    .Shape(ReadShape)
    .Gradient(ReadGradient)
    .GradientSkips({}, {0})
    .Cpu(ComputeOwn<Read>);

Status AssignShape(ShapeContext& c) {
  const HandleData* data = c.input_handle(0);
  if (data == nullptr || data->empty()) return OkStatus();
  if (data->front().dtype != c.input_dtype(1)) {
    return InvalidArgument(
        "Trying to assign variable with wrong dtype. Expected ",
        DTypeName(data->front().dtype), " got ", DTypeName(c.input_dtype(1)));
  }
  return MergeShapes(data->front().shape, c.input(1)).status();
}

// The variable behind input 0, made if its name is new.
StatusOr<VariableInput> VariableToAssign(const KernelContext& c) {
  const ResourceHandle& handle = c.input(0).scalar<ResourceHandle>();
  // An anonymous variable is in the handle and in no table.
  if (handle.resource || c.services().resources == nullptr) {
    return VariableOf(c, 0);
  }
  if (handle.kind != nullptr && *handle.kind != typeid(Variable)) {
    return VariableOf(c, 0);  // whose error says what it is
  }
  HR_ASSIGN_OR_RETURN(auto variable,
                      c.services().resources->LookUpOrCreate<Variable>(
                          handle.container, handle.name,
                          [&]() -> StatusOr<std::shared_ptr<Variable>> {
                            Shape shape = handle.data && !handle.data->empty()
                                              ? handle.data->front().shape
                                              : Shape::UnknownRank();
                            // Its element type is the value's, as the handle
                            // need not tell.
                            return std::make_shared<Variable>(
                                c.op().input_types()[1], shape);
                          }));
  return VariableInput{std::move(variable), handle.name};
}

Status Assign(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(VariableInput v, VariableToAssign(c));
  const Tensor& value = c.input(1);
  if (v.variable->dtype() != value.dtype()) {
    return InvalidArgument(
        "Trying to assign variable with wrong dtype. Expected ",
        DTypeName(v.variable->dtype()), " got ", DTypeName(value.dtype()));
  }
  if (c.op().bool_attr("validate_shape") && v.variable->initialized() &&
      v.variable->shape().known_rank() &&
      !v.variable->shape().CompatibleWith(value.shape())) {
    return InvalidArgument(
        "Trying to assign to variable with tensor with wrong shape. Expected ",
        v.variable->shape(), " got ", value.shape());
  }
  HR_ASSIGN_OR_RETURN(Tensor kept, Keepable(value));
  v.variable->Assign(std::move(kept));
  return OkStatus();
}

HR_OP(AssignVariableOp)
    .Input("resource: resource")
    .Input("value: dtype")
    .Attr("dtype: type")
    .Attr("validate_shape: bool = false")
    .Doc("Replaces a variable's value.")
    .Traits({OpTrait::kNeverWaits})
    .Stateful()
    .Shape(AssignShape)
    .Cpu(Compute<Assign>);

Status Destroy(KernelContext& c) {
  const ResourceHandle& handle = c.input(0).scalar<ResourceHandle>();
  // Anonymous resources go with their last handle.
  const bool anonymous = handle.resource && handle.kind == nullptr;
  if (anonymous || c.services().resources == nullptr) return OkStatus();
  // Who took a handle from elsewhere means what any of its users would find.
  const Status s = c.services().resources->Delete(handle.container, handle.name,
                                                  handle.kind);
  return c.op().bool_attr("ignore_lookup_error") ? OkStatus() : s;
}

HR_OP(DestroyResourceOp)
    .Input("resource: resource")
    .Attr("ignore_lookup_error: bool = true")
    .Doc("Deletes a named resource; one without a name ends with its handles.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<Destroy>);

Status VariableShapeShape(ShapeContext& c) {
  Shape s = HandleShape(c, 0);
  c.set_output(0, Shape{s.known_rank() ? s.rank() : Shape::kUnknown});
  return OkStatus();
}

Status ShapeOfVariable(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(VariableInput v, VariableOf(c, 0));
  HR_ASSIGN_OR_RETURN(Tensor t, v.variable->Read(v.name));
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{t.rank()}));
  for (int i = 0; i < t.rank(); ++i) {
    if (c.output(0).dtype() == DType::kInt64) {
      c.out<int64_t>(0)[i] = t.dim(i);
    } else if (t.dim(i) > INT32_MAX) {
      return InvalidArgument("Shape output type is 32-bit  but shape.dim(", i,
                             ") = ", t.dim(i));
    } else {
      c.out<int32_t>(0)[i] = static_cast<int32_t>(t.dim(i));
    }
  }
  return OkStatus();
}

HR_OP(VariableShape)
    .Input("input: resource")
    .Output("output: out_type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .Doc("The shape of a variable's value.")
    .Traits({OpTrait::kNoEffect, OpTrait::kNeverWaits})
    .Stateful()
    .Shape(VariableShapeShape)
    .NoGradient()
    .Cpu(ComputeOwn<ShapeOfVariable>);

}  // namespace
}  // namespace headrace
