// GetSessionHandle, GetSessionTensor, DeleteSessionTensor: tensors that a
// session keeps between its runs, under handles that programs hold as strings.
#include <atomic>

#include "ops/state/variable_access.h"

namespace headrace {
namespace {

constexpr char kContainer[] = "_session_tensors";
constexpr char kDevice[] = "/job:localhost/replica:0/task:0/device:CPU:0";

class SessionTensor : public Resource {
 public:
  explicit SessionTensor(Tensor value) : value_(std::move(value)) {}
  std::string DebugString() const override {
    return absl::StrCat("SessionTensor ", value_.Describe());
  }
  const Tensor& value() const { return value_; }

 private:
  const Tensor value_;
};

// Keeps input 0 under a new handle.
StatusOr<ResourceHandle> KeepTensor(const KernelContext& c) {
  static std::atomic<int64_t> next{0};
  ResourceHandle handle;
  handle.container = kContainer;
  handle.device = kDevice;
  handle.name = absl::StrCat(c.op().name(), ";", next++, ";", kDevice);
  HR_ASSIGN_OR_RETURN(Tensor kept, Keepable(c.input(0)));
  auto made = std::make_shared<SessionTensor>(std::move(kept));
  HR_RETURN_IF_ERROR(
      c.services().resources->Create(handle.container, handle.name, made));
  handle.resource = std::move(made);
  handle.kind = &typeid(SessionTensor);
  return handle;
}

Status TextHandle(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ResourceHandle handle, KeepTensor(c));
  c.set_output(0, Tensor::Scalar<std::string>(std::move(handle.name)));
  return OkStatus();
}

HR_OP(GetSessionHandle)
    .Input("value: T")
    .Output("handle: string")
    .Attr("T: type")
    .Doc("Keeps a tensor for later runs of the session.")
    .Stateful()
    .Shape(ScalarShape)
    .NoGradient()
    .Cpu(ComputeOwn<TextHandle>);

Status ObjectHandle(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ResourceHandle handle, KeepTensor(c));
  c.set_output(0, Tensor::Scalar<ResourceHandle>(std::move(handle)));
  return OkStatus();
}

HR_OP(GetSessionHandleV2)
    .Input("value: T")
    .Output("handle: resource")
    .Attr("T: type")
    .Doc("Keeps a tensor for later runs of the session.")
    .Stateful()
    .Shape(ScalarShape)
    .NoGradient()
    .Cpu(ComputeOwn<ObjectHandle>);

StatusOr<std::string> HandleText(const KernelContext& c) {
  if (c.input(0).num_elements() == 1) return c.input(0).scalar<std::string>();
  return InvalidArgument(c.op().name(), ": handle must be a scalar, got shape ",
                         c.input(0).shape());
}

Status NotKept(StringView handle) {
  return InvalidArgument("The tensor with handle '", handle,
                         "' is not in the session store.");
}

Status KeptTensor(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const std::string handle, HandleText(c));
  const auto kept =
      c.services().resources->LookUp<SessionTensor>(kContainer, handle);
  if (!kept.ok()) return NotKept(handle);
  const Tensor& value = (*kept)->value();
  if (value.dtype() != c.op().type_attr("dtype")) {
    return InvalidArgument("GetSessionTensor: the tensor is of ",
                           DTypeName(value.dtype()), ", not of ",
                           DTypeName(c.op().type_attr("dtype")));
  }
  c.set_output(0, value);
  return OkStatus();
}

Status ScalarHandle(ShapeContext& c) { return CheckRank(c.input(0), 0); }

HR_OP(GetSessionTensor)
    .Input("handle: string")
    .Output("value: dtype")
    .Attr("dtype: type")
    .Doc("The tensor that an earlier run kept.")
    .Stateful()
    .Shape(ScalarHandle)
    .NoGradient()
    .Cpu(ComputeOwn<KeptTensor>);

Status DeleteTensor(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const std::string handle, HandleText(c));
  const Status gone = c.services().resources->Delete(kContainer, handle,
                                                     &typeid(SessionTensor));
  return gone.ok() ? gone : NotKept(handle);
}

HR_OP(DeleteSessionTensor)
    .Input("handle: string")
    .Doc("Forgets the tensor that an earlier run kept.")
    .Stateful()
    .Shape(ScalarHandle)
    .NoGradient()
    .Cpu(Compute<DeleteTensor>);

}  // namespace
}  // namespace headrace
