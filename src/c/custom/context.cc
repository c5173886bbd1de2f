// The functions of kernels.h for a call.
#include "c/buffer.h"
#include "c/custom/call.h"
#include "c/status.h"
#include "graph/graph.h"
#include "tensor/variant.h"
#include "tensorflow/core/framework/resource_handle.pb.h"

namespace headrace::capi {
namespace {

constexpr char kDeviceName[] = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr char kContainer[] = "localhost";

TF_StringView ViewOf(StringView s) { return {s.data(), s.size()}; }

Status CheckCall(const TF_OpKernelContext* ctx) {
  return NotNull(ctx, "the context of a call");
}

StatusOr<TF_Tensor*> InputOf(TF_OpKernelContext* ctx, int i) {
  HR_RETURN_IF_ERROR(CheckCall(ctx));
  HR_RETURN_IF_ERROR(ctx->CheckInput(i));
  const Tensor& input = ctx->c.input(i);
  // Kernels may keep what they get.
  if (input.counted()) return FromTensor(input);
  HR_ASSIGN_OR_RETURN(Tensor copy, input.Clone());
  return FromTensor(std::move(copy));
}

Status FindInputs(TF_OpKernelContext* ctx, const char* name,
                  TF_InputRange_Args* args) {
  HR_RETURN_IF_ERROR(CheckCall(ctx));
  HR_RETURN_IF_ERROR(NotNull(name, "name"));
  const ResolvedOp& op = ctx->c.op();
  const int at = op.def().FindInput(name);
  if (at < 0) {
    return InvalidArgument("Unknown input name '", name, "' of op ", op.name());
  }
  const ArgRange range = op.input_range(at);
  args->start = range.begin;
  args->stop = range.end;
  return OkStatus();
}

StatusOr<TF_Tensor*> AllocateOutput(TF_OpKernelContext* ctx, int i,
                                    TF_DataType type, const int64_t* dims,
                                    int num_dims) {
  HR_RETURN_IF_ERROR(CheckCall(ctx));
  HR_RETURN_IF_ERROR(ctx->CheckOutput(i));
  HR_ASSIGN_OR_RETURN(const DType dtype, ToDType(static_cast<int>(type)));
  const DType is = ctx->c.op().output_types()[i];
  if (dtype != is) {
    return InvalidArgument("Output ", i, " of op ", ctx->c.op().name(),
                           " is of type ", DTypeName(is), ", not ",
                           DTypeName(dtype));
  }
  HR_ASSIGN_OR_RETURN(Shape shape, ToShape(dims, num_dims, false));
  HR_ASSIGN_OR_RETURN(std::unique_ptr<TF_Tensor> out, ctx->Allocate(i, shape));
  return out.release();
}

StatusOr<TF_Tensor*> ForwardOrAllocate(TF_OpKernelContext* ctx,
                                       const int* candidates, int count, int i,
                                       const int64_t* dims, int num_dims,
                                       int* forwarded) {
  HR_RETURN_IF_ERROR(CheckCall(ctx));
  if (count > 0) HR_RETURN_IF_ERROR(NotNull(candidates, "candidates"));
  for (int k = 0; k < count; ++k) {
    HR_RETURN_IF_ERROR(ctx->CheckInput(candidates[k]));
  }
  HR_RETURN_IF_ERROR(ctx->CheckOutput(i));
  HR_ASSIGN_OR_RETURN(Shape shape, ToShape(dims, num_dims, false));
  HR_ASSIGN_OR_RETURN(std::unique_ptr<TF_Tensor> out, ctx->Allocate(i, shape));
  // None: a value that this call alone holds now may be read behind it.
  if (forwarded) *forwarded = -1;
  return out.release();
}

StatusOr<TF_Tensor*> AllocateTemp(TF_OpKernelContext* ctx, TF_DataType type,
                                  const int64_t* dims, int num_dims) {
  HR_RETURN_IF_ERROR(CheckCall(ctx));
  HR_ASSIGN_OR_RETURN(const DType dtype, ToDType(static_cast<int>(type)));
  HR_ASSIGN_OR_RETURN(Shape shape, ToShape(dims, num_dims, false));
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(dtype, shape));
  return FromTensor(std::move(t));
}

Status WriteHandle(TF_OpKernelContext* ctx, int i, TF_Buffer* out) {
  HR_RETURN_IF_ERROR(CheckCall(ctx));
  HR_RETURN_IF_ERROR(ctx->CheckInput(i));
  const Tensor& input = ctx->c.input(i);
  if (input.dtype() != DType::kResource || input.num_elements() != 1) {
    return InvalidArgument("Input ", i, " of op ", ctx->c.op().name(), " is ",
                           input.Describe(), ", not a resource");
  }
  const ResourceHandle& handle = input.scalar<ResourceHandle>();
  tensorflow::ResourceHandleProto proto;
  proto.set_device(handle.device);
  proto.set_container(handle.container);
  proto.set_name(handle.name);
  return SetBuffer(out, proto);
}

// Fails the call or the making of a kernel with what a caller's status says.
template <typename Context, typename Fail>
void TakeFailure(Context* ctx, const TF_Status* status, Fail&& fail) {
  if (ctx == nullptr) return;
  Status failure = status ? status->status : OkStatus();
  if (failure.ok()) failure = Unknown("a kernel failed and did not say why");
  fail(std::move(failure));
}

Status NotForKernels(StringView what) {
  return Unimplemented(what, " is not there for kernels on the CPU");
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::Status;

SP_Stream TF_GetStream(TF_OpKernelContext* ctx, TF_Status* status) {
  capi::Into(status, [] { return capi::NotForKernels("a stream"); });
  return nullptr;
}

int TF_NumInputs(TF_OpKernelContext* ctx) {
  return ctx ? ctx->c.num_inputs() : 0;
}

int TF_NumOutputs(TF_OpKernelContext* ctx) {
  return ctx ? ctx->c.num_outputs() : 0;
}

void TF_GetInput(TF_OpKernelContext* ctx, int i, TF_Tensor** tensor,
                 TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(tensor, "tensor"));
    HR_ASSIGN_OR_RETURN(*tensor, capi::InputOf(ctx, i));
    return headrace::OkStatus();
  });
}

void TF_InputRange(TF_OpKernelContext* ctx, const char* name,
                   TF_InputRange_Args* args) {
  if (args == nullptr || args->status == nullptr) return;
  capi::Into(args->status, [&] { return capi::FindInputs(ctx, name, args); });
}

TF_DataType TF_InputDatatype(TF_OpKernelContext* ctx, int index) {
  if (ctx == nullptr || !ctx->CheckInput(index).ok()) {
    return static_cast<TF_DataType>(0);
  }
  return static_cast<TF_DataType>(ctx->c.input(index).dtype());
}

TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext* ctx, int i) {
  if (ctx == nullptr || !ctx->CheckOutput(i).ok()) {
    return static_cast<TF_DataType>(0);
  }
  return static_cast<TF_DataType>(ctx->c.op().output_types()[i]);
}

void TF_SetOutput(TF_OpKernelContext* ctx, int i, const TF_Tensor* tensor,
                  TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::CheckCall(ctx));
    return ctx->SetOutput(i, tensor);
  });
}

TF_Tensor* TF_GetMutableOutput(TF_OpKernelContext* ctx, int i,
                               TF_Status* status) {
  return capi::OrNull(status, [&]() -> headrace::StatusOr<TF_Tensor*> {
    HR_RETURN_IF_ERROR(capi::CheckCall(ctx));
    HR_ASSIGN_OR_RETURN(auto out, ctx->MutableOutput(i));
    return out.release();
  });
}

TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int index,
                             TF_DataType dtype, const int64_t* dims,
                             int num_dims, size_t len, TF_Status* status) {
  return capi::OrNull(status, [&] {
    return capi::AllocateOutput(context, index, dtype, dims, num_dims);
  });
}

TF_Tensor* TF_ForwardInputOrAllocateOutput(
    TF_OpKernelContext* context, const int* candidate_input_indices,
    int num_candidate_input_indices, int output_index,
    const int64_t* output_dims, int output_num_dims, int* forwarded_input,
    TF_Status* status) {
  return capi::OrNull(status, [&] {
    return capi::ForwardOrAllocate(
        context, candidate_input_indices, num_candidate_input_indices,
        output_index, output_dims, output_num_dims, forwarded_input);
  });
}

TF_Tensor* TF_AllocateTemp(TF_OpKernelContext* context, TF_DataType dtype,
                           const int64_t* dims, int num_dims,
                           TF_AllocatorAttributes* alloc_attrs,
                           TF_Status* status) {
  return capi::OrNull(status, [&] {
    return capi::AllocateTemp(context, dtype, dims, num_dims);
  });
}

void TF_OpKernelContext_Failure(TF_OpKernelContext* ctx, TF_Status* status) {
  capi::TakeFailure(ctx, status, [&](Status s) { ctx->Fail(std::move(s)); });
}

void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* ctx,
                                     TF_Status* status) {
  capi::TakeFailure(ctx, status,
                    [&](Status s) { ctx->failure.Update(std::move(s)); });
}

void TF_GetSerializedFunctionDefLibrary(
    TF_OpKernelContext* ctx, TF_Buffer* serialized_function_def_library,
    TF_Status* status) {
  capi::Into(status, [] { return capi::NotForKernels("a function library"); });
}

void TF_GetSerializedConfigProto(TF_OpKernelContext* ctx,
                                 TF_Buffer* serialized_config_proto,
                                 TF_Status* status) {
  capi::Into(status, [] { return capi::NotForKernels("a ConfigProto"); });
}

void TF_GetSerializedResourceHandleProto(
    TF_OpKernelContext* ctx, int i, TF_Buffer* serialized_resource_handle_proto,
    TF_Status* status) {
  capi::Into(status, [&] {
    return capi::WriteHandle(ctx, i, serialized_resource_handle_proto);
  });
}

bool TF_IsHostMemoryInput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  return capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::CheckCall(ctx));
    return ctx->CheckInput(i);
  });
}

bool TF_IsHostMemoryOutput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  return capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::CheckCall(ctx));
    return ctx->CheckOutput(i);
  });
}

int64_t TF_StepId(TF_OpKernelContext* ctx) {
  return ctx ? ctx->c.services().step_id : 0;
}

int64_t TF_GetStepId(TF_OpKernelContext* ctx) { return TF_StepId(ctx); }

uint64_t TF_GetFrameId(TF_OpKernelContext* ctx) { return 0; }

int64_t TF_GetIterId(TF_OpKernelContext* ctx) { return 0; }

int TF_GetDeviceId(TF_OpKernelContext* ctx) { return 0; }

int TF_GetGraphDefVersion(TF_OpKernelContext* ctx) {
  return headrace::kGraphVersion;
}

TF_StringView TF_GetDeviceName(TF_OpKernelContext* ctx) {
  return capi::ViewOf(capi::kDeviceName);
}

TF_StringView TF_GetOpKernelName(TF_OpKernelContext* ctx) {
  return ctx ? capi::ViewOf(ctx->c.op().name()) : TF_StringView{"", 0};
}

TF_StringView TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext* ctx) {
  return capi::ViewOf(capi::kContainer);
}

TF_StringView TF_GetOpKernelRequestedInput(TF_OpKernelContext* ctx,
                                           size_t index) {
  return TF_StringView{"", 0};
}

TF_RendezvousThunk TF_GetRendezvous(TF_OpKernelContext* ctx) {
  return TF_RendezvousThunk{};
}

void TF_IncNumDeferredOps(TF_OpKernelContext* context) {
  if (context) context->AddDeferred(1);
}

void TF_DecNumDeferredOps(TF_OpKernelContext* context) {
  if (context) context->AddDeferred(-1);
}
