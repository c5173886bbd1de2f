#include "c/session.h"

#include <optional>

#include "absl/strings/match.h"
#include "c/buffer.h"
#include "c/status.h"
#include "distributed/processors.h"
#include "runtime/placement.h"
#include "tensorflow/core/protobuf/config.pb.h"

using headrace::MutexLock;
using headrace::OkStatus;
using headrace::Status;
using headrace::StatusOr;

TF_Session::TF_Session(TF_Graph* g, const headrace::capi::SessionConfig& c)
    : graph(g),
      config(c),
      caller_(g->graph->library()),
      kernels_(g->graph.get()) {
  services_.resources = &resources_;
  services_.functions = &caller_;
  graph->AddSession();
}

TF_Session::~TF_Session() {
  // Plans hold what is the graph's.
  {
    MutexLock lock(mutex_);
    last_.reset();
    plans_.clear();
  }
  resources_.Clear();
  cluster.reset();
  graph->RemoveSession();
}

TF_Session::Plan TF_Session::FindPlan(const Key& key) {
  MutexLock lock(mutex_);
  // Most callers run the same again and again.
  if (last_ && key == last_key_) [[likely]]
    return last_;
  auto it = plans_.find(key);
  if (it == plans_.end()) return nullptr;
  last_key_ = key;
  last_ = it->second;
  return last_;
}

StatusOr<TF_Session::Plan> TF_Session::PlanOf(
    const Key& key, const headrace::capi::Request& r) {
  if (Plan found = FindPlan(key)) return found;
  for (size_t i = 0; i < r.feeds.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (r.feeds[i] == r.feeds[j]) {
        return headrace::InvalidArgument("Endpoint \"", r.feeds[i].node->name(),
                                         ":", r.feeds[i].index,
                                         "\" fed more than once.");
      }
    }
  }
  // The graph stays as it is while a plan of it is made.
  MutexLock lock(graph->mutex);
  if (!config.soft_placement) {
    HR_RETURN_IF_ERROR(
        headrace::CheckPlacement(r.fetches, r.targets, config.processors));
  }
  const headrace::StatefulKernelsScope kept(&kernels_);
  HR_ASSIGN_OR_RETURN(Plan plan, headrace::Executable::Make(
                                     *graph->graph, r.feeds, r.fetches,
                                     r.targets, graph->graph->library().get()));
  MutexLock plans_lock(mutex_);
  last_key_ = key;
  last_ = plan;
  plans_[key] = plan;
  return plan;
}

Status TF_Session::CheckOpen() const {
  // Only Close cancels it.
  if (closing.cancelled()) [[unlikely]] {
    return headrace::Cancelled("Session has been closed.");
  }
  return OkStatus();
}

Status TF_Session::Close() {
  closing.Cancel();
  partial.Clear();
  MutexLock lock(mutex_);
  last_.reset();
  plans_.clear();
  resources_.Clear();
  return cluster ? cluster->Close() : OkStatus();
}

namespace headrace::capi {

Status ReadConfig(const void* proto, size_t length, SessionConfig* config) {
  tensorflow::ConfigProto read;
  HR_RETURN_IF_ERROR(ReadProto(proto, length, "ConfigProto", &read));
  SessionConfig made;
  made.soft_placement = read.allow_soft_placement();
  made.timeout_ms = read.operation_timeout_in_ms();
  HR_ASSIGN_OR_RETURN(made.processors, distributed::ProcessorsOf(read));
  *config = made;
  return OkStatus();
}

StatusOr<TF_Session*> NewSession(TF_Graph* g,
                                 const TF_SessionOptions* options) {
  HR_RETURN_IF_ERROR(NotNull(g, "graph"));
  HR_RETURN_IF_ERROR(NotNull(options, "opts"));
  if (g->is_part) {
    return InvalidArgument(
        "the graph is a part of a loop, which sessions do "
        "not run");
  }
  std::unique_ptr<ClusterSession> cluster;
  if (absl::StartsWith(options->target, "grpc://")) {
    HR_ASSIGN_OR_RETURN(cluster, ClusterSession::Make(g, options->target,
                                                      options->config_proto));
  } else if (!options->target.empty() && options->target != "local") {
    return NotFound(
        "No session factory registered for the given session options: "
        "{target: \"",
        options->target,
        "\" config: } Registered factories are {GRPC_SESSION, "
        "DIRECT_SESSION}.");
  }
  auto session = std::make_unique<TF_Session>(g, options->config);
  session->cluster = std::move(cluster);
  return session.release();
}

TF_Session::Key KeyOf(const Request& r) {
  // Numbers of nodes begin with 0, which separates the parts.
  const auto number = [](const Edge& e) {
    return (static_cast<uint64_t>(e.node->id()) + 1) << 32 |
           static_cast<uint32_t>(e.index);
  };
  TF_Session::Key key;
  for (const Edge& e : r.fetches) key.push_back(number(e));
  key.push_back(0);
  for (const Node* n : r.targets) key.push_back(n->id() + 1);
  key.push_back(0);
  for (const Edge& e : r.feeds) key.push_back(number(e));
  return key;
}

StatusOr<Request> RequestOf(TF_Session* session, const TF_Output* inputs,
                            int ninputs, const TF_Output* outputs, int noutputs,
                            const TF_Operation* const* targets, int ntargets) {
  HR_RETURN_IF_ERROR(NotNull(session, "session"));
  Request r;
  HR_ASSIGN_OR_RETURN(r.feeds, EdgesOf(session->graph, inputs, ninputs));
  HR_ASSIGN_OR_RETURN(r.fetches, EdgesOf(session->graph, outputs, noutputs));
  HR_ASSIGN_OR_RETURN(r.targets, NodesOf(session->graph, targets, ntargets));
  return r;
}

StatusOr<std::vector<Tensor>> RunRequest(TF_Session* session,
                                         const Request& request,
                                         std::vector<Tensor> feeds) {
  HR_RETURN_IF_ERROR(session->CheckOpen());
  const StopScope closing(&session->closing);
  std::vector<Tensor> results;
  if (session->cluster) {
    HR_RETURN_IF_ERROR(session->cluster->Run(request, {}, std::move(feeds),
                                             &results, nullptr));
    return results;
  }
  HR_ASSIGN_OR_RETURN(TF_Session::Plan plan,
                      session->PlanOf(KeyOf(request), request));
  HR_RETURN_IF_ERROR(session->Run(*plan, absl::MakeSpan(feeds), &results));
  return results;
}

}  // namespace headrace::capi

namespace capi = headrace::capi;

TF_SessionOptions* TF_NewSessionOptions() {
  return capi::OrElse<TF_SessionOptions*>(nullptr,
                                          [] { return new TF_SessionOptions; });
}

void TF_SetTarget(TF_SessionOptions* options, const char* target) {
  if (options) options->target = target ? target : "";
}

void TF_SetConfig(TF_SessionOptions* options, const void* proto,
                  size_t proto_len, TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(options, "options"));
    HR_RETURN_IF_ERROR(capi::ReadConfig(proto, proto_len, &options->config));
    options->config_proto.assign(static_cast<const char*>(proto), proto_len);
    return OkStatus();
  });
}

void TF_DeleteSessionOptions(TF_SessionOptions* options) { delete options; }

TF_Session* TF_NewSession(TF_Graph* graph, const TF_SessionOptions* opts,
                          TF_Status* status) {
  return capi::OrNull(status, [&] { return capi::NewSession(graph, opts); });
}

void TF_CloseSession(TF_Session* session, TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(session, "session"));
    return session->Close();
  });
}

void TF_DeleteSession(TF_Session* session, TF_Status* status) {
  capi::Into(status, [&] {
    delete session;
    return OkStatus();
  });
}

void TF_ExtendSession(TF_Session* session, TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(session, "session"));
    const headrace::StopScope closing(&session->closing);
    return session->cluster ? session->cluster->Extend() : OkStatus();
  });
}
