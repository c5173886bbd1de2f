// Sessions with a graph of their own, whose operations go by their names.
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "c/buffer.h"
#include "c/devices.h"
#include "c/session.h"
#include "c/status.h"
#include "distributed/task/process.h"
#include "graph/import.h"
#include "tensorflow/core/protobuf/config.pb.h"

struct TF_DeprecatedSession {
  TF_Graph* graph;
  TF_Session* session;
};

namespace headrace::capi {
namespace {

StatusOr<TF_DeprecatedSession*> NewOldSession(
    const TF_SessionOptions* options) {
  auto graph = std::make_unique<TF_Graph>();
  HR_ASSIGN_OR_RETURN(TF_Session * session, NewSession(graph.get(), options));
  return new TF_DeprecatedSession{graph.release(), session};
}

Status ExtendOldSession(TF_DeprecatedSession* s, const void* proto,
                        size_t length) {
  HR_RETURN_IF_ERROR(NotNull(s, "session"));
  if (length > 0) HR_RETURN_IF_ERROR(NotNull(proto, "GraphDef"));
  MutexLock lock(s->graph->mutex);
  ++s->graph->changes;
  return ImportGraphBytes(StringView(static_cast<const char*>(proto), length),
                          {}, s->graph->graph.get(), nullptr);
}

StatusOr<std::vector<TF_Output>> OutputsNamed(TF_DeprecatedSession* s,
                                              const char** names, int count) {
  HR_RETURN_IF_ERROR(NotNull(s, "session"));
  HR_RETURN_IF_ERROR(CheckList(names, count, "names of tensors"));
  MutexLock lock(s->graph->mutex);
  std::vector<TF_Output> outputs;
  for (int i = 0; i < count; ++i) {
    HR_RETURN_IF_ERROR(NotNull(names[i], "the name of a tensor"));
    HR_ASSIGN_OR_RETURN(Edge e, s->graph->graph->FindOutput(names[i]));
    outputs.push_back(s->graph->OutputOf(e));
  }
  return outputs;
}

StatusOr<std::vector<TF_Operation*>> OperationsNamed(TF_DeprecatedSession* s,
                                                     const char** names,
                                                     int count) {
  HR_RETURN_IF_ERROR(CheckList(names, count, "names of operations"));
  MutexLock lock(s->graph->mutex);
  std::vector<TF_Operation*> operations;
  for (int i = 0; i < count; ++i) {
    HR_RETURN_IF_ERROR(NotNull(names[i], "the name of an operation"));
    Node* n = s->graph->graph->FindNode(names[i]);
    if (n == nullptr) {
      return NotFound("the graph has no operation '", names[i], "'");
    }
    operations.push_back(s->graph->OperationOf(n));
  }
  return operations;
}

// What the functions of names and those of operations share.
struct NamedCall {
  std::vector<TF_Output> inputs, outputs;
  std::vector<TF_Operation*> targets;
};

StatusOr<NamedCall> Named(TF_DeprecatedSession* s, const char** inputs,
                          int ninputs, const char** outputs, int noutputs,
                          const char** targets, int ntargets) {
  NamedCall call;
  HR_ASSIGN_OR_RETURN(call.inputs, OutputsNamed(s, inputs, ninputs));
  HR_ASSIGN_OR_RETURN(call.outputs, OutputsNamed(s, outputs, noutputs));
  HR_ASSIGN_OR_RETURN(call.targets, OperationsNamed(s, targets, ntargets));
  return call;
}

// Nothing, and the error in *status, where a name leads nowhere.
std::optional<NamedCall> NamedOrError(TF_DeprecatedSession* s,
                                      const char** inputs, int ninputs,
                                      const char** outputs, int noutputs,
                                      const char** targets, int ntargets,
                                      TF_Status* status) {
  std::optional<NamedCall> call;
  Into(status, [&]() -> Status {
    HR_ASSIGN_OR_RETURN(
        call, Named(s, inputs, ninputs, outputs, noutputs, targets, ntargets));
    return OkStatus();
  });
  return call;
}

Status Reset(const TF_SessionOptions* options, const char** containers,
             int count) {
  HR_RETURN_IF_ERROR(NotNull(options, "opt"));
  HR_RETURN_IF_ERROR(CheckList(containers, count, "names of containers"));
  if (!absl::StartsWith(options->target, "grpc://")) {
    return Unimplemented(
        "TF_Reset: sessions of this process share no containers");
  }
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    HR_RETURN_IF_ERROR(NotNull(containers[i], "the name of a container"));
    names.emplace_back(containers[i]);
  }
  tensorflow::ConfigProto config;
  const std::string& said = options->config_proto;
  HR_RETURN_IF_ERROR(
      ReadProto(said.data(), said.size(), "ConfigProto", &config));
  return distributed::ResetCluster(options->target, names, config);
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::OkStatus;
using headrace::Status;

TF_DeprecatedSession* TF_NewDeprecatedSession(const TF_SessionOptions* options,
                                              TF_Status* status) {
  return capi::OrNull(status, [&] { return capi::NewOldSession(options); });
}

void TF_CloseDeprecatedSession(TF_DeprecatedSession* s, TF_Status* status) {
  capi::Into(status, [&]() -> Status {
    HR_RETURN_IF_ERROR(capi::NotNull(s, "session"));
    return s->session->Close();
  });
}

void TF_DeleteDeprecatedSession(TF_DeprecatedSession* s, TF_Status* status) {
  capi::SetOk(status);
  if (s == nullptr) return;
  TF_DeleteSession(s->session, status);
  TF_DeleteGraph(s->graph);
  delete s;
}

void TF_Reset(const TF_SessionOptions* opt, const char** containers,
              int ncontainers, TF_Status* status) {
  capi::Into(status, [&] { return capi::Reset(opt, containers, ncontainers); });
}

void TF_ExtendGraph(TF_DeprecatedSession* s, const void* proto,
                    size_t proto_len, TF_Status* status) {
  capi::Into(status,
             [&] { return capi::ExtendOldSession(s, proto, proto_len); });
}

void TF_Run(TF_DeprecatedSession* s, const TF_Buffer* run_options,
            const char** input_names, TF_Tensor** inputs, int ninputs,
            const char** output_names, TF_Tensor** outputs, int noutputs,
            const char** target_oper_names, int ntargets,
            TF_Buffer* run_metadata, TF_Status* status) {
  const auto call =
      capi::NamedOrError(s, input_names, ninputs, output_names, noutputs,
                         target_oper_names, ntargets, status);
  if (call) {
    TF_SessionRun(s->session, run_options, call->inputs.data(), inputs, ninputs,
                  call->outputs.data(), outputs, noutputs, call->targets.data(),
                  ntargets, run_metadata, status);
  }
}

void TF_PRunSetup(TF_DeprecatedSession* s, const char** input_names,
                  int ninputs, const char** output_names, int noutputs,
                  const char** target_oper_names, int ntargets,
                  const char** handle, TF_Status* status) {
  const auto call =
      capi::NamedOrError(s, input_names, ninputs, output_names, noutputs,
                         target_oper_names, ntargets, status);
  if (!call) return;
  TF_SessionPRunSetup(s->session, call->inputs.data(), ninputs,
                      call->outputs.data(), noutputs, call->targets.data(),
                      ntargets, handle, status);
}

void TF_PRun(TF_DeprecatedSession* s, const char* handle,
             const char** input_names, TF_Tensor** inputs, int ninputs,
             const char** output_names, TF_Tensor** outputs, int noutputs,
             const char** target_oper_names, int ntargets, TF_Status* status) {
  const auto call =
      capi::NamedOrError(s, input_names, ninputs, output_names, noutputs,
                         target_oper_names, ntargets, status);
  if (call) {
    TF_SessionPRun(s->session, handle, call->inputs.data(), inputs, ninputs,
                   call->outputs.data(), outputs, noutputs,
                   call->targets.data(), ntargets, status);
  }
}

TF_DeviceList* TF_DeprecatedSessionListDevices(TF_DeprecatedSession* session,
                                               TF_Status* status) {
  return TF_SessionListDevices(session ? session->session : nullptr, status);
}
