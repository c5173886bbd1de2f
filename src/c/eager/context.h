// Contexts of the C interface: ops that run at once, with variables and
// functions of their own.
#pragma once

#include <atomic>

#include "base/mutex.h"
#include "c/eager/cluster.h"
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
  ~TFE_Context() {
    if (const auto last = cluster()) last->Close();
  }

  // Null where it has none.
  std::shared_ptr<headrace::capi::EagerCluster> cluster() {
    if (!has_cluster_.load(std::memory_order_acquire)) return nullptr;
    headrace::MutexLock lock(mutex);
    return cluster_;
  }
  void SetCluster(std::shared_ptr<headrace::capi::EagerCluster> cluster) {
    headrace::MutexLock lock(mutex);
    has_cluster_.store(cluster != nullptr, std::memory_order_release);
    cluster_.swap(cluster);
  }

  // By which threads tell contexts apart; no other one ever has it.
  const uint64_t id;
  const headrace::capi::SessionConfig config;
  const TFE_ContextDevicePlacementPolicy policy;
  std::atomic<bool> recording{false};
  headrace::Mutex mutex;
  tensorflow::StepStats recorded ABSL_GUARDED_BY(mutex);
  headrace::ResourceManager resources;
  headrace::OpContext ops;
  headrace::Mutex setting_cluster;  // comes before `mutex`

 private:
  std::atomic<bool> has_cluster_{false};
  std::shared_ptr<headrace::capi::EagerCluster> cluster_ ABSL_GUARDED_BY(mutex);
};

struct TFE_TensorHandle {
  headrace::Tensor tensor;
  headrace::capi::EagerDevicePtr device;  // as EagerPlace
};

namespace headrace::capi {

// Where ops of the device (null or empty: none) run. InvalidArgument for the
// name of a device that the context does not have; those of other tasks are
// looked for when an op is sent there.
StatusOr<EagerPlace> PlaceOnContext(TFE_Context& context, const char* name);
// What contexts without a cluster say.
Status NoCluster();

}  // namespace headrace::capi
