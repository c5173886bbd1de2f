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
                                           const TFE_Context* context,
                                           const char* device) {
  HR_RETURN_IF_ERROR(CheckHandle(h));
  HR_RETURN_IF_ERROR(NotNull(context, "ctx"));
  if (!CheckEagerDevice(*context, device).ok()) {
    return InvalidArgument(device, " unknown device.");
  }
  return new TFE_TensorHandle{h->tensor};
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::StatusOr;
using headrace::Tensor;

TFE_TensorHandle* TFE_NewTensorHandle(const TF_Tensor* t, TF_Status* status) {
  return capi::OrNull(status, [&]() -> StatusOr<TFE_TensorHandle*> {
    HR_ASSIGN_OR_RETURN(Tensor tensor, capi::ToTensor(t));
    return new TFE_TensorHandle{std::move(tensor)};
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
  static const std::string& name = *new std::string(headrace::ProcessorName(0));
  return capi::OfHandle<const char*>(
      h, status, nullptr, [](const Tensor&) { return name.c_str(); });
}

const char* TFE_TensorHandleBackingDeviceName(TFE_TensorHandle* h,
                                              TF_Status* status) {
  return TFE_TensorHandleDeviceName(h, status);
}

TFE_TensorHandle* TFE_TensorHandleCopySharingTensor(TFE_TensorHandle* h,
                                                    TF_Status* status) {
  return capi::OrNull(status, [&]() -> StatusOr<TFE_TensorHandle*> {
    HR_RETURN_IF_ERROR(capi::CheckHandle(h));
    return new TFE_TensorHandle{h->tensor};
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
