#include "c/eager/context.h"

#include "absl/container/fixed_array.h"
#include "absl/strings/str_cat.h"
#include "c/buffer.h"
#include "c/devices.h"
#include "c/function.h"
#include "c/status.h"
#include "op/registry.h"
#include "op/run_once.h"
#include "tensorflow/core/protobuf/config.pb.h"

using headrace::MutexLock;
using headrace::OkStatus;
using headrace::ResolvedOpPtr;
using headrace::Status;
using headrace::StatusOr;

namespace {

// Policies are asked for by thread, of all contexts alike; there is one kind of
// device.
constinit thread_local int policy_of_thread = -1;

// Kernels and calls that a context keeps: beyond that all are made anew.
constexpr size_t kMostKept = 4096;

}  // namespace

TFE_Context::TFE_Context(const TFE_ContextOptions& options)
    : config(options.config),
      policy(options.policy),
      functions(std::make_shared<headrace::Graph>()),
      caller_(functions->library()) {
  services_.resources = &resources;
  services_.functions = &caller_;
}

StatusOr<ResolvedOpPtr> TFE_Context::Resolve(
    const headrace::OpDef& def, absl::Span<const headrace::DType> inputs,
    const headrace::AttrMap& attrs) {
  if (!headrace::CallsFunctions(def)) {
    return headrace::ResolveOp(def, inputs, attrs);
  }
  // Calls are not shared by ResolveOp, as their kernels hold functions.
  std::string key = def.name;
  for (headrace::DType d : inputs) absl::StrAppend(&key, ",", DTypeName(d));
  for (const auto& [name, value] : attrs) {
    absl::StrAppend(&key, ";", name, "=", headrace::AttrToString(value));
  }
  {
    MutexLock lock(mutex);
    auto it = calls.find(key);
    if (it != calls.end()) return it->second;
  }
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr op,
                      headrace::ResolveOp(def, inputs, attrs));
  MutexLock lock(mutex);
  if (calls.size() >= kMostKept) calls.clear();
  return calls.emplace(std::move(key), std::move(op)).first->second;
}

StatusOr<std::shared_ptr<headrace::Kernel>> TFE_Context::KernelOf(
    const ResolvedOpPtr& op) {
  {
    MutexLock lock(mutex);
    auto it = kernels.find(op.get());
    if (it != kernels.end()) return it->second.second;
  }
  HR_ASSIGN_OR_RETURN(std::shared_ptr<headrace::Kernel> kernel,
                      headrace::BindKernel(*op));
  MutexLock lock(mutex);
  if (kernels.size() >= kMostKept) kernels.clear();
  return kernels.emplace(op.get(), std::pair(op, std::move(kernel)))
      .first->second.second;
}

Status TFE_Context::Run(const ResolvedOpPtr& op,
                        absl::Span<const headrace::Tensor> inputs,
                        std::vector<headrace::Tensor>* outputs) {
  absl::FixedArray<headrace::Tensor*, 8> in(inputs.size()),
      out(op->num_outputs());
  outputs->resize(op->num_outputs());
  for (size_t i = 0; i < inputs.size(); ++i) {
    in[i] = const_cast<headrace::Tensor*>(&inputs[i]);
  }
  for (size_t i = 0; i < outputs->size(); ++i) out[i] = &(*outputs)[i];
  // State and functions are the context's; all other kernels are everybody's.
  std::shared_ptr<headrace::Kernel> own;
  headrace::Kernel* kernel;
  if (op->def().is_stateful || headrace::CallsFunctions(op->def())) {
    HR_ASSIGN_OR_RETURN(own, KernelOf(op));
    kernel = own.get();
  } else {
    HR_ASSIGN_OR_RETURN(kernel, op->EagerKernel());
  }
  // The caller keeps its inputs: a second owner tells kernels that they may not
  // change a variant's value in place.
  const std::vector<headrace::Tensor> pinned(inputs.begin(), inputs.end());
  return headrace::RunOnce(*op, *kernel, absl::MakeConstSpan(in),
                           absl::MakeConstSpan(out), services_);
}

void TFE_Context::ClearCaches() {
  MutexLock lock(mutex);
  calls.clear();
  kernels.clear();
}

namespace capi = headrace::capi;

TFE_ContextOptions* TFE_NewContextOptions() {
  return capi::OrElse<TFE_ContextOptions*>(
      nullptr, [] { return new TFE_ContextOptions; });
}

void TFE_ContextOptionsSetConfig(TFE_ContextOptions* options, const void* proto,
                                 size_t proto_len, TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(options, "options"));
    return capi::ReadConfig(proto, proto_len, &options->config);
  });
}

void TFE_ContextOptionsSetAsync(TFE_ContextOptions*, unsigned char enable) {}

void TFE_ContextOptionsSetDevicePlacementPolicy(
    TFE_ContextOptions* options, TFE_ContextDevicePlacementPolicy policy) {
  if (options) options->policy = policy;
}

void TFE_DeleteContextOptions(TFE_ContextOptions* options) { delete options; }

TFE_Context* TFE_NewContext(const TFE_ContextOptions* opts, TF_Status* status) {
  return capi::OrNull(status, [&]() -> StatusOr<TFE_Context*> {
    HR_RETURN_IF_ERROR(capi::NotNull(opts, "opts"));
    return new TFE_Context(*opts);
  });
}

void TFE_DeleteContext(TFE_Context* ctx) { delete ctx; }

TF_DeviceList* TFE_ContextListDevices(TFE_Context* ctx, TF_Status* status) {
  return capi::OrNull(status, [&]() -> StatusOr<TF_DeviceList*> {
    HR_RETURN_IF_ERROR(capi::NotNull(ctx, "ctx"));
    return capi::ListProcessors(ctx->config.processors);
  });
}

void TFE_ContextClearCaches(TFE_Context* ctx) {
  if (ctx) ctx->ClearCaches();
}

void TFE_ContextSetThreadLocalDevicePlacementPolicy(
    TFE_Context* ctx, TFE_ContextDevicePlacementPolicy policy) {
  policy_of_thread = policy;
}

TFE_ContextDevicePlacementPolicy TFE_ContextGetDevicePlacementPolicy(
    TFE_Context* ctx) {
  if (policy_of_thread >= 0) {
    return static_cast<TFE_ContextDevicePlacementPolicy>(policy_of_thread);
  }
  return ctx ? ctx->policy : TFE_DEVICE_PLACEMENT_SILENT;
}

void TFE_ContextSetServerDef(TFE_Context* ctx, int keep_alive_secs,
                             const void* proto, size_t proto_len,
                             TF_Status* status) {
  capi::Into(status, [] {
    return headrace::Unimplemented(
        "TFE_ContextSetServerDef is not supported: operations of a context run "
        "at once, in this process alone; TF_NewServer makes a task of a "
        "cluster, and sessions with its target run on the cluster");
  });
}

void TFE_ContextAddFunctionDef(TFE_Context* ctx,
                               const char* serialized_function_def, size_t size,
                               TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(ctx, "ctx"));
    TF_Function f;
    HR_RETURN_IF_ERROR(
        capi::ReadProto(serialized_function_def, size, "FunctionDef", &f.def));
    MutexLock lock(ctx->mutex);
    return capi::AddToLibrary(f, nullptr, ctx->functions.get());
  });
}

void TFE_ContextAddFunction(TFE_Context* ctx, TF_Function* function,
                            TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(ctx, "ctx"));
    HR_RETURN_IF_ERROR(capi::NotNull(function, "function"));
    MutexLock lock(ctx->mutex);
    return capi::AddToLibrary(*function, nullptr, ctx->functions.get());
  });
}

void TFE_ContextRemoveFunction(TFE_Context* ctx, const char* name,
                               TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(ctx, "ctx"));
    HR_RETURN_IF_ERROR(capi::NotNull(name, "name"));
    if (!ctx->functions->library()->Find(name)) {
      return headrace::InvalidArgument(
          "Tried to remove non-existent function '", name, "'.");
    }
    ctx->functions->library()->Remove(name);
    // Kernels that call it would keep it.
    ctx->ClearCaches();
    return OkStatus();
  });
}

unsigned char TFE_ContextHasFunction(TFE_Context* ctx, const char* name) {
  return ctx && name && ctx->functions->library()->Find(name) != nullptr;
}

void TFE_ContextEnableRunMetadata(TFE_Context* ctx) {
  if (ctx) ctx->recording = true;
}

void TFE_ContextDisableRunMetadata(TFE_Context* ctx) {
  if (ctx) ctx->recording = false;
}

void TFE_ContextExportRunMetadata(TFE_Context* ctx, TF_Buffer* buf,
                                  TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(ctx, "ctx"));
    tensorflow::RunMetadata metadata;
    {
      MutexLock lock(ctx->mutex);
      metadata.mutable_step_stats()->Swap(&ctx->recorded);
    }
    return capi::SetBuffer(buf, metadata);
  });
}

// No resource lives for a step alone here: there is nothing to drop at its end.
void TFE_ContextStartStep(TFE_Context* ctx) {}
void TFE_ContextEndStep(TFE_Context* ctx) {}
