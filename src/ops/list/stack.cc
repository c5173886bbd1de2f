// Stacks, in which the loops of TensorFlow 1 keep values for their gradients.

#include "base/mutex.h"
#include "op/op.h"
#include "op/op_like.h"
#include "op/resource.h"

namespace headrace {
namespace {

class Stack : public Resource {
 public:
  Stack(DType dtype, int64_t most) : dtype_(dtype), most_(most) {}
  std::string DebugString() const override { return "Stack"; }

  Status Push(const Tensor& t) {
    MutexLock lock(mutex_);
    if (t.dtype() != dtype_) {
      return InvalidArgument("Must have type ", DTypeName(dtype_), " but got ",
                             DTypeName(t.dtype()));
    }
    // A negative size means no limit.
    if (most_ >= 0 && static_cast<int64_t>(items_.size()) >= most_) {
      return InvalidArgument("Stack overflowed its max_size ", most_);
    }
    items_.push_back(t);
    return OkStatus();
  }
  StatusOr<Tensor> Pop(DType wanted) {
    MutexLock lock(mutex_);
    if (wanted != dtype_) {
      return InvalidArgument("Must have type ", DTypeName(dtype_), " but got ",
                             DTypeName(wanted));
    }
    if (items_.empty()) return InvalidArgument("Stack is empty when popping");
    Tensor t = std::move(items_.back());
    items_.pop_back();
    return t;
  }
  void Clear() {
    MutexLock lock(mutex_);
    items_.clear();
  }

 private:
  const DType dtype_;
  const int64_t most_;
  Mutex mutex_;
  std::vector<Tensor> items_ ABSL_GUARDED_BY(mutex_);
};

StatusOr<std::shared_ptr<Stack>> StackOf(KernelContext& c) {
  return ResourceAs<Stack>(c.input(0), c.services().resources);
}

Status Make(KernelContext& c) {
  // The first version has no limit.
  int32_t most = -1;
  if (c.num_inputs() > 0) {
    if (c.input(0).num_elements() != 1) {
      return InvalidArgument("Stack size must be a scalar, but is ",
                             c.input(0).Describe());
    }
    most = c.input(0).scalar<int32_t>();
  }
  ResourceHandle handle;
  // The stack lives in its handle and not in a table, so runs at the same time
  // have stacks of their own.
  handle.name = "Stack";
  handle.resource =
      std::make_shared<Stack>(c.op().type_attr("elem_type"), most);
  c.set_output(0, Tensor::Scalar<ResourceHandle>(std::move(handle)));
  return OkStatus();
}

Status Push(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto stack, StackOf(c));
  HR_RETURN_IF_ERROR(stack->Push(c.input(1)));
  c.set_output(0, c.input(1));
  return OkStatus();
}

Status Pop(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto stack, StackOf(c));
  HR_ASSIGN_OR_RETURN(Tensor t, stack->Pop(c.op().type_attr("elem_type")));
  c.set_output(0, std::move(t));
  return OkStatus();
}

Status Close(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto stack, StackOf(c));
  stack->Clear();
  return OkStatus();
}

HR_OP(StackV2)
    .Input("max_size: int32")
    .Output("handle: resource")
    .Attr("elem_type: type")
    .Attr("stack_name: string = ''")
    .Stateful()
    .Doc("Makes a stack; a negative size means without limit.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<Make>);
HR_OP(StackPushV2)
    .Input("handle: resource")
    .Input("elem: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("swap_memory: bool = false")
    .Stateful()
    .Doc("Puts a tensor on a stack and hands it on.")
    .Shape(LikeInput<1>)
    .Cpu(ComputeOwn<Push>);
HR_OP(StackPopV2)
    .Input("handle: resource")
    .Output("elem: elem_type")
    .Attr("elem_type: type")
    .Stateful()
    .Doc("Takes the last tensor off a stack.")
    .Shape(UnknownShape)
    .Cpu(ComputeOwn<Pop>);
HR_OP(StackCloseV2)
    .Input("handle: resource")
    .Stateful()
    .Doc("Forgets what is on a stack.")
    .Cpu(ComputeOwn<Close>);

void WithoutLimit(OpDef& def) {
  ByReference(def);
  def.inputs.clear();
}
[[maybe_unused]] const bool kStacksByReference[] = {
    RegisterLike("Stack", "StackV2", WithoutLimit),
    RegisterLike("StackPush", "StackPushV2", ByReference),
    RegisterLike("StackPop", "StackPopV2", ByReference),
    RegisterLike("StackClose", "StackCloseV2", ByReference),
};

}  // namespace
}  // namespace headrace
