// Sessions of the C interface: a plan for each set of feeds, fetches and
// targets.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/hash_map.h"
#include "c/cluster_session.h"
#include "c/graph.h"
#include "c/request.h"
#include "op/resource.h"
#include "runtime/executable.h"
#include "runtime/function_caller.h"
#include "runtime/stateful_kernels.h"
#include "tensor/tensor.h"

namespace headrace::capi {

// What of a ConfigProto there is a choice about. Threads, memory of devices and
// rewriters are the engine's own affair: they change no result.
struct SessionConfig {
  bool soft_placement = false;
  int processors = 1;      // devices of type CPU
  int64_t timeout_ms = 0;  // of each run; 0: never
};
// InvalidArgument for bytes that are no ConfigProto, or counts below 1.
Status ReadConfig(const void* proto, size_t length, SessionConfig* config);

}  // namespace headrace::capi

struct TF_SessionOptions {
  std::string target;
  headrace::capi::SessionConfig config;
  std::string config_proto;  // as it was given, for masters of clusters
};

// Thread-safe. Counted in by its graph.
struct TF_Session {
  TF_Session(TF_Graph* g, const headrace::capi::SessionConfig& config);
  ~TF_Session();

  using Plan = std::shared_ptr<headrace::Executable>;
  using Key = absl::InlinedVector<uint64_t, 8>;

  // The plan of a request, made at the first time.
  headrace::StatusOr<Plan> PlanOf(const Key& key,
                                  const headrace::capi::Request& request);
  // Null where none was made yet.
  Plan FindPlan(const Key& key);
  headrace::Status Run(headrace::Executable& plan,
                       absl::Span<headrace::Tensor> feeds,
                       std::vector<headrace::Tensor>* fetches) {
    return plan.Run(services_, feeds, fetches);
  }
  // Runs under way end, and no other begins.
  headrace::Status Close();
  headrace::Status CheckOpen() const;

  TF_Graph* const graph;
  const headrace::capi::SessionConfig config;
  // Null for sessions of this process.
  std::unique_ptr<headrace::capi::ClusterSession> cluster;
  headrace::CancellationToken closing;

  headrace::PartialRuns partial;

 private:
  headrace::ResourceManager resources_;
  headrace::LibraryCaller caller_;
  headrace::RunServices services_;
  headrace::StatefulKernels kernels_;
  headrace::Mutex mutex_;
  headrace::HashMap<Key, Plan> plans_ ABSL_GUARDED_BY(mutex_);

  Key last_key_ ABSL_GUARDED_BY(mutex_);
  Plan last_ ABSL_GUARDED_BY(mutex_);
};

namespace headrace::capi {

// NotFound, with upstream's text, for targets that are neither this process nor
// "grpc://host:port", whose master need not be there yet.
StatusOr<TF_Session*> NewSession(TF_Graph* g, const TF_SessionOptions* options);
TF_Session::Key KeyOf(const Request& r);
// What callers name, checked: outputs and operations of the session's graph.
StatusOr<Request> RequestOf(TF_Session* session, const TF_Output* inputs,
                            int ninputs, const TF_Output* outputs, int noutputs,
                            const TF_Operation* const* targets, int ntargets);
// One run of a request, for callers without a hurry.
StatusOr<std::vector<Tensor>> RunRequest(TF_Session* session,
                                         const Request& request,
                                         std::vector<Tensor> feeds);

}  // namespace headrace::capi
