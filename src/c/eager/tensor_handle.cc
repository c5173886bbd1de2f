// Tensors of eager code.
#include "c/devices.h"
#include "c/eager/context.h"
#include "c/status.h"
#include "c/tensor.h"
#include "op/processor.h"

struct TFE_TensorDebugInfo {
  headrace::Shape shape;
};

namespace headrace::capi {
namespace {

Status CheckHandle(const TFE_TensorHandle* h) {
  return h ? OkStatus() : InvalidArgument("Invalid handle");
}

// f(the tensor), or `otherwise` and an error for a handle that is null.
template <typename T, typename F>
T OfHandle(const TFE_TensorHandle* h, TF_Status* status, T otherwise, F&& f) {
  const bool ok = Into(status, [&] { return CheckHandle(h); });
  return ok ? f(h->tensor) : otherwise;
}

StatusOr<TFE_TensorHandle*> HandleOnDevice(const TFE_TensorHandle* h,
                                           TFE_Context* context,
                                           const char* device) {
  HR_RETURN_IF_ERROR(CheckHandle(h));
  HR_RETURN_IF_ERROR(NotNull(context, "ctx"));
  auto place = PlaceOnContext(*context, device);
  if (!place.ok()) return InvalidArgument(device, " unknown device.");
  auto there = std::make_unique<TFE_TensorHandle>();
  there->device = std::move(place->device);
  if (place->remote) {
    HR_RETURN_IF_ERROR(place->remote->Take(h->tensor, &there->tensor));
    return there.release();
  }
  if (const RemoteName* name = RemoteNameOf(h->tensor)) {
    return InvalidArgument("a ", DTypeName(h->tensor.dtype()), " of ",
                           name->place()->device(),
                           " cannot be copied to this process");
  }
  there->tensor = h->tensor;
  return there.release();
}

// The name of a handle's device; of `member`, which is one of EagerDevice's.
const char* NameOfDevice(const TFE_TensorHandle* h, TF_Status* status,
                         std::string EagerDevice::*member) {
  static const std::string& first = *new std::string(ProcessorName(0));
  if (!Into(status, [&] { return CheckHandle(h); })) return nullptr;
  return h->device ? (*h->device.*member).c_str() : first.c_str();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::StatusOr;
using headrace::Tensor;

TFE_TensorHandle* TFE_NewTensorHandle(const TF_Tensor* t, TF_Status* status) {
  return capi::OrNull(status, [&]() -> StatusOr<TFE_TensorHandle*> {
    HR_ASSIGN_OR_RETURN(Tensor tensor, capi::ToTensor(t));
    return new TFE_TensorHandle{std::move(tensor), nullptr};
  });
}

void TFE_DeleteTensorHandle(TFE_TensorHandle* h) { delete h; }

TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle* h) {
  return static_cast<TF_DataType>(h ? h->tensor.dtype()
                                    : headrace::DType::kInvalid);
}

int TFE_TensorHandleNumDims(TFE_TensorHandle* h, TF_Status* status) {
  return capi::OfHandle(h, status, -1,
                        [](const Tensor& t) { return t.rank(); });
}

int64_t TFE_TensorHandleNumElements(TFE_TensorHandle* h, TF_Status* status) {
  return capi::OfHandle<int64_t>(
      h, status, -1, [](const Tensor& t) { return t.num_elements(); });
}

int64_t TFE_TensorHandleDim(TFE_TensorHandle* h, int dim_index,
                            TF_Status* status) {
  int64_t size = -1;
  capi::Into(status, [&]() -> headrace::Status {
    HR_RETURN_IF_ERROR(capi::CheckHandle(h));
    if (dim_index < 0 || dim_index >= h->tensor.rank()) {
      return headrace::InvalidArgument("dimension ", dim_index,
                                       " of a tensor of rank ",
                                       h->tensor.rank(), " is asked for");
    }
    size = h->tensor.dim(dim_index);
    return headrace::OkStatus();
  });
  return size;
}

const char* TFE_TensorHandleDeviceName(TFE_TensorHandle* h, TF_Status* status) {
  return capi::NameOfDevice(h, status, &capi::EagerDevice::name);
}

const char* TFE_TensorHandleBackingDeviceName(TFE_TensorHandle* h,
                                              TF_Status* status) {
  return capi::NameOfDevice(h, status, &capi::EagerDevice::backing);
}

TFE_TensorHandle* TFE_TensorHandleCopySharingTensor(TFE_TensorHandle* h,
                                                    TF_Status* status) {
  return capi::OrNull(status, [&]() -> StatusOr<TFE_TensorHandle*> {
    HR_RETURN_IF_ERROR(capi::CheckHandle(h));
    return new TFE_TensorHandle(*h);
  });
}

TF_Tensor* TFE_TensorHandleResolve(TFE_TensorHandle* h, TF_Status* status) {
  return capi::OrNull(status, [&]() -> StatusOr<TF_Tensor*> {
    HR_RETURN_IF_ERROR(capi::CheckHandle(h));
    return capi::FromTensor(h->tensor);
  });
}

TFE_TensorHandle* TFE_TensorHandleCopyToDevice(TFE_TensorHandle* h,
                                               TFE_Context* ctx,
                                               const char* device_name,
                                               TF_Status* status) {
  return capi::OrNull(
      status, [&] { return capi::HandleOnDevice(h, ctx, device_name); });
}

TFE_TensorDebugInfo* TFE_TensorHandleTensorDebugInfo(TFE_TensorHandle* h,
                                                     TF_Status* status) {
  return capi::OrNull(status, [&]() -> StatusOr<TFE_TensorDebugInfo*> {
    HR_RETURN_IF_ERROR(capi::CheckHandle(h));
    return new TFE_TensorDebugInfo{h->tensor.shape()};
  });
}

void TFE_DeleteTensorDebugInfo(TFE_TensorDebugInfo* debug_info) {
  delete debug_info;
}

int TFE_TensorDebugInfoOnDeviceNumDims(TFE_TensorDebugInfo* debug_info) {
  return debug_info ? debug_info->shape.rank() : -1;
}

int64_t TFE_TensorDebugInfoOnDeviceDim(TFE_TensorDebugInfo* debug_info,
                                       int dim_index) {
  if (dim_index < 0 ||
      dim_index >= TFE_TensorDebugInfoOnDeviceNumDims(debug_info)) {
    return -1;
  }
  return debug_info->shape.dim(dim_index);
}
