#include "c/eager/context.h"

#include "base/hash_map.h"
#include "c/buffer.h"
#include "c/devices.h"
#include "c/function.h"
#include "c/status.h"
#include "tensorflow/core/protobuf/config.pb.h"

using headrace::MutexLock;
using headrace::Status;
using headrace::StatusOr;

namespace {

// What a thread has chosen, by the numbers of contexts: few, and never many.
thread_local headrace::HashMap<uint64_t, TFE_ContextDevicePlacementPolicy>
    policies_of_thread;

uint64_t NextId() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

TFE_Context::TFE_Context(const TFE_ContextOptions& options)
    : id(NextId()),
      config(options.config),
      policy(options.policy),
      ops(&resources) {}

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
    if (const auto cluster = ctx->cluster()) {
      auto list = std::make_unique<TF_DeviceList>();
      cluster->AddDevices(list.get());
      return list.release();
    }
    return capi::ListProcessors(ctx->config.processors);
  });
}

void TFE_ContextClearCaches(TFE_Context* ctx) {
  if (ctx) ctx->ops.ClearCaches();
}

void TFE_ContextSetThreadLocalDevicePlacementPolicy(
    TFE_Context* ctx, TFE_ContextDevicePlacementPolicy policy) {
  if (ctx)
    capi::OrElse(0, [&] { return policies_of_thread[ctx->id] = policy, 0; });
}

TFE_ContextDevicePlacementPolicy TFE_ContextGetDevicePlacementPolicy(
    TFE_Context* ctx) {
  if (ctx == nullptr) return TFE_DEVICE_PLACEMENT_SILENT;
  const auto chosen = policies_of_thread.find(ctx->id);
  return chosen == policies_of_thread.end() ? ctx->policy : chosen->second;
}

void TFE_ContextAddFunctionDef(TFE_Context* ctx,
                               const char* serialized_function_def, size_t size,
                               TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(ctx, "ctx"));
    TF_Function f;
    if (!capi::ReadProto(serialized_function_def, size, "FunctionDef", &f.def)
             .ok()) {
      return headrace::InvalidArgument("Invalid FunctionDef proto");
    }
    tensorflow::FunctionDefLibrary library;
    f.def.Swap(library.add_function());
    return ctx->ops.AddFunctions(library);
  });
}

void TFE_ContextAddFunction(TFE_Context* ctx, TF_Function* function,
                            TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(ctx, "ctx"));
    HR_RETURN_IF_ERROR(capi::NotNull(function, "function"));
    tensorflow::FunctionDefLibrary library;
    *library.add_function() = function->def;
    return ctx->ops.AddFunctions(library);
  });
}

void TFE_ContextRemoveFunction(TFE_Context* ctx, const char* name,
                               TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(ctx, "ctx"));
    HR_RETURN_IF_ERROR(capi::NotNull(name, "name"));
    HR_RETURN_IF_ERROR(ctx->ops.RemoveFunction(name));
    const auto cluster = ctx->cluster();
    return cluster ? cluster->remote().RemoveFunction(name)
                   : headrace::OkStatus();
  });
}

unsigned char TFE_ContextHasFunction(TFE_Context* ctx, const char* name) {
  return ctx && name && ctx->ops.FindFunction(name) != nullptr;
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
