// Contexts of the C interface: ops that run at once, with variables and
// functions of their own.
#pragma once

#include <atomic>

#include "base/mutex.h"
#include "c/session.h"
#include "op/resource.h"
#include "runtime/op_context.h"
#include "tensor/tensor.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/core/framework/step_stats.pb.h"

struct TFE_ContextOptions {
  headrace::capi::SessionConfig config;
  TFE_ContextDevicePlacementPolicy policy = TFE_DEVICE_PLACEMENT_SILENT;
};

// Thread-safe.
struct TFE_Context {
  explicit TFE_Context(const TFE_ContextOptions& options);

  const headrace::capi::SessionConfig config;
  const TFE_ContextDevicePlacementPolicy policy;
  std::atomic<bool> recording{false};
  headrace::Mutex mutex;
  tensorflow::StepStats recorded ABSL_GUARDED_BY(mutex);
  headrace::ResourceManager resources;
  headrace::OpContext ops;
};

struct TFE_TensorHandle {
  headrace::Tensor tensor;
};

namespace headrace::capi {

// InvalidArgument for the name of a device that the context does not have.
Status CheckEagerDevice(const TFE_Context& context, const char* name);

}  // namespace headrace::capi
