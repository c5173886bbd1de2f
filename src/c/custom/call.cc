#include "c/custom/call.h"

#include "c/status.h"
#include "c/strings.h"
#include "op/shape_context.h"

using headrace::InvalidArgument;
using headrace::MutexLock;
using headrace::OkStatus;
using headrace::Shape;
using headrace::Status;
using headrace::StatusOr;
using headrace::Tensor;

namespace headrace::capi {
namespace {

Status IndexError(StringView what, const ResolvedOp& op, int i, int count) {
  return OutOfRange(what, " index out of range: op ", op.name(), " has ", count,
                    " and no ", i);
}

std::unique_ptr<TF_Tensor> CopyOf(const TF_Tensor& t) {
  return std::make_unique<TF_Tensor>(t);
}

StatusOr<std::unique_ptr<TF_Tensor>> NewOutput(DType dtype,
                                               const Shape& shape) {
  auto t = std::make_unique<TF_Tensor>();
  t->dtype = dtype;
  t->shape = shape;
  if (dtype == DType::kString) {
    t->strings = std::make_shared<Strings>(shape.num_elements());
    t->data = t->strings->data();
    t->bytes = shape.num_elements() * sizeof(TF_TString);
    if (t->data == nullptr) {
      return ResourceExhausted("no memory for ", shape.num_elements(),
                               " strings");
    }
    return t;
  }
  if (!IsPlain(dtype)) {
    return Unimplemented("an output of type ", DTypeName(dtype),
                         " cannot be allocated, only set from an input");
  }
  HR_ASSIGN_OR_RETURN(t->tensor, Tensor::Allocate(dtype, shape));
  t->data = t->tensor.raw();
  t->bytes = t->tensor.bytes();
  return t;
}

bool Agrees(const Shape& said, const Shape& is) {
  if (!said.known_rank()) return true;
  if (said.rank() != is.rank()) return false;
  for (int i = 0; i < is.rank(); ++i) {
    if (said[i] != Shape::kUnknown && said[i] != is[i]) return false;
  }
  return true;
}

// Plans rely on what the shape function said: it is asked again, of the inputs
// as they are.
Status CheckShapes(const KernelContext& c, absl::Span<const Tensor> outputs) {
  std::vector<const Shape*> shapes;
  std::vector<const Tensor*> values;
  for (int i = 0; i < c.num_inputs(); ++i) {
    shapes.push_back(&c.input(i).shape());
    values.push_back(&c.input(i));
  }
  ShapeContext rule(c.op(), shapes, values);
  HR_RETURN_IF_ERROR(RunShapeRule(rule));
  for (int i = 0; i < c.num_outputs(); ++i) {
    if (Agrees(rule.output(i), outputs[i].shape())) continue;
    return InvalidArgument("The kernel of op ", c.op().name(), " made output ",
                           i, " of shape ", outputs[i].shape(),
                           ", but the op's shape function says ",
                           rule.output(i));
  }
  return OkStatus();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

Status TF_OpKernelContext::CheckInput(int i) const {
  if (i >= 0 && i < c.num_inputs()) return OkStatus();
  return capi::IndexError("input", c.op(), i, c.num_inputs());
}

Status TF_OpKernelContext::CheckOutput(int i) const {
  if (i >= 0 && i < c.num_outputs()) return OkStatus();
  return capi::IndexError("output", c.op(), i, c.num_outputs());
}

Status TF_OpKernelContext::SetOutput(int i, const TF_Tensor* t) {
  HR_RETURN_IF_ERROR(CheckOutput(i));
  HR_RETURN_IF_ERROR(capi::NotNull(t, "tensor"));
  if (t->dtype != c.op().output_types()[i]) {
    return InvalidArgument("Output ", i, " of op ", c.op().name(),
                           " is of type ", DTypeName(c.op().output_types()[i]),
                           ", not ", DTypeName(t->dtype));
  }
  auto copy = capi::CopyOf(*t);
  MutexLock lock(mutex_);
  outputs_[i] = std::move(copy);
  return OkStatus();
}

StatusOr<std::unique_ptr<TF_Tensor>> TF_OpKernelContext::Allocate(
    int i, const Shape& shape) {
  HR_RETURN_IF_ERROR(CheckOutput(i));
  HR_ASSIGN_OR_RETURN(auto made,
                      capi::NewOutput(c.op().output_types()[i], shape));
  auto callers = capi::CopyOf(*made);
  MutexLock lock(mutex_);
  outputs_[i] = std::move(made);
  return callers;
}

StatusOr<std::unique_ptr<TF_Tensor>> TF_OpKernelContext::MutableOutput(int i) {
  HR_RETURN_IF_ERROR(CheckOutput(i));
  MutexLock lock(mutex_);
  if (outputs_[i] == nullptr) {
    return headrace::FailedPrecondition("Output ", i, " of op ", c.op().name(),
                                        " was not set or allocated yet");
  }
  return capi::CopyOf(*outputs_[i]);
}

void TF_OpKernelContext::Fail(Status failure) {
  MutexLock lock(mutex_);
  failure_.Update(std::move(failure));
}

void TF_OpKernelContext::AddDeferred(int count) {
  MutexLock lock(mutex_);
  deferred_ += count;
  deferred_changed_.NotifyAll();
}

Status TF_OpKernelContext::Finish() {
  {
    MutexLock lock(mutex_);
    while (deferred_ > 0) deferred_changed_.Wait(mutex_);
    HR_RETURN_IF_ERROR(failure_);
  }
  return GiveOutputs();
}

Status TF_OpKernelContext::GiveOutputs() {
  std::vector<Tensor> outputs;
  MutexLock lock(mutex_);
  for (int i = 0; i < c.num_outputs(); ++i) {
    if (outputs_[i] == nullptr) {
      return InvalidArgument("Missing ", i, "-th output from {{node ",
                             c.op().name(),
                             "}}: its kernel neither set nor allocated it");
    }
    HR_ASSIGN_OR_RETURN(Tensor t, capi::ToTensor(outputs_[i].get()));
    // The memory of an input may be used again behind the call.
    if (!t.counted()) {
      HR_ASSIGN_OR_RETURN(t, t.Clone());
    }
    outputs.push_back(std::move(t));
  }
  HR_RETURN_IF_ERROR(capi::CheckShapes(c, outputs));
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, std::move(outputs[i]));
  }
  outputs_.clear();
  return OkStatus();
}
