// Contexts of the C interface: ops that run at once, with variables and
// functions of their own.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "c/session.h"
#include "graph/graph.h"
#include "op/resource.h"
#include "runtime/function_caller.h"
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

  // Runs an op with this context's variables and functions.
  headrace::Status Run(const headrace::ResolvedOpPtr& op,
                       absl::Span<const headrace::Tensor> inputs,
                       std::vector<headrace::Tensor>* outputs);
  // The same op again and again, with what its kernel keeps: state, and the
  // functions that it calls.
  headrace::StatusOr<headrace::ResolvedOpPtr> Resolve(
      const headrace::OpDef& def, absl::Span<const headrace::DType> inputs,
      const headrace::AttrMap& attrs);
  void ClearCaches();

  const headrace::capi::SessionConfig config;
  const TFE_ContextDevicePlacementPolicy policy;
  // Functions are those of a graph without nodes, which checks them.
  headrace::Mutex mutex;
  const std::shared_ptr<headrace::Graph> functions;
  std::map<std::string, headrace::ResolvedOpPtr> calls ABSL_GUARDED_BY(mutex);
  std::map<
      const headrace::ResolvedOp*,
      std::pair<headrace::ResolvedOpPtr, std::shared_ptr<headrace::Kernel>>>
      kernels ABSL_GUARDED_BY(mutex);
  std::atomic<bool> recording{false};
  tensorflow::StepStats recorded ABSL_GUARDED_BY(mutex);
  headrace::ResourceManager resources;

 private:
  headrace::StatusOr<std::shared_ptr<headrace::Kernel>> KernelOf(
      const headrace::ResolvedOpPtr& op);

  headrace::LibraryCaller caller_;
  headrace::RunServices services_;
};

struct TFE_TensorHandle {
  headrace::Tensor tensor;
};

namespace headrace::capi {

// InvalidArgument for the name of a device that the context does not have.
Status CheckEagerDevice(const TFE_Context& context, const char* name);

}  // namespace headrace::capi
