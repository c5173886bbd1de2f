// TF_SessionRun.
#include <algorithm>
#include <optional>

#include "base/timeline.h"
#include "c/buffer.h"
#include "c/session.h"
#include "c/status.h"
#include "c/tensor.h"
#include "formats/step_stats.h"
#include "graph/step_labels.h"
#include "op/processor.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace headrace::capi {
namespace {

struct RunSettings {
  int64_t timeout_ms = 0;
  bool trace = false;
};

StatusOr<RunSettings> SettingsOf(const TF_Session& session,
                                 const TF_Buffer* options,
                                 const TF_Buffer* metadata) {
  RunSettings settings{session.config.timeout_ms, false};
  if (options == nullptr) return settings;
  tensorflow::RunOptions read;
  HR_RETURN_IF_ERROR(
      ReadProto(options->data, options->length, "RunOptions", &read));
  if (read.timeout_in_ms() > 0) settings.timeout_ms = read.timeout_in_ms();
  settings.trace =
      metadata && read.trace_level() > tensorflow::RunOptions::NO_TRACE;
  return settings;
}

// What TF_SessionRun is called with, its lists checked.
struct RunCall {
  TF_Session* session;
  const TF_Output* inputs;
  int ninputs;
  const TF_Output* outputs;
  int noutputs;
  const TF_Operation* const* targets;
  int ntargets;

  Status CheckLists(const void* values, const void* results) const {
    HR_RETURN_IF_ERROR(NotNull(session, "session"));
    HR_RETURN_IF_ERROR(CheckList(inputs, ninputs, "inputs"));
    HR_RETURN_IF_ERROR(CheckList(values, ninputs, "input values"));
    HR_RETURN_IF_ERROR(CheckList(outputs, noutputs, "outputs"));
    HR_RETURN_IF_ERROR(CheckList(results, noutputs, "output values"));
    if (noutputs + ntargets == 0) {
      return InvalidArgument(
          "Must specify at least one target to fetch or execute.");
    }
    return CheckList(targets, ntargets, "targets");
  }

  // Their operations are the graph's.
  template <typename Tensors>
  Status ReadFeeds(TF_Tensor* const* values, Tensors* feeds) const {
    for (int i = 0; i < ninputs; ++i) {
      HR_ASSIGN_OR_RETURN(Tensor t, ToTensor(values[i]));
      const DType wanted =
          BaseType(inputs[i].oper->node->output_type(inputs[i].index));
      if (t.dtype() != wanted) {
        return InvalidArgument("Expects arg[", i, "] to be ", DTypeName(wanted),
                               " but ", DTypeName(t.dtype()), " is provided");
      }
      feeds->push_back(std::move(t));
    }
    return OkStatus();
  }

  StatusOr<Request> ReadRequest() const {
    HR_ASSIGN_OR_RETURN(Request request,
                        RequestOf(session, inputs, ninputs, outputs, noutputs,
                                  targets, ntargets));
    for (const Edge& e : request.fetches) {
      if (std::find(request.feeds.begin(), request.feeds.end(), e) !=
          request.feeds.end()) {
        return InvalidArgument(e.node->name(), ":", e.index,
                               " is both fed and fetched.");
      }
    }
    return request;
  }

  // The key of the plan, of numbers that need not be right: KeyOf's for a
  // request that is.
  StatusOr<TF_Session::Key> Key() const {
    TF_Session::Key key;
    bool mine = true;
    const auto add = [&](const TF_Operation* oper, int index) {
      if (oper == nullptr || oper->graph != session->graph) [[unlikely]] {
        mine = false;
        return;
      }
      key.push_back((static_cast<uint64_t>(oper->node->id()) + 1) << 32 |
                    static_cast<uint32_t>(index));
    };
    for (int i = 0; i < noutputs; ++i) add(outputs[i].oper, outputs[i].index);
    key.push_back(0);
    for (int i = 0; i < ntargets; ++i) {
      HR_RETURN_IF_ERROR(NodeOf(session->graph, targets[i]).status());
      key.push_back(targets[i]->node->id() + 1);
    }
    key.push_back(0);
    for (int i = 0; i < ninputs; ++i) add(inputs[i].oper, inputs[i].index);
    if (!mine) [[unlikely]] {
      HR_RETURN_IF_ERROR(EdgesOf(session->graph, outputs, noutputs).status());
      HR_RETURN_IF_ERROR(EdgesOf(session->graph, inputs, ninputs).status());
    }
    return key;
  }
};

Status SetResults(std::vector<Tensor> results, TF_Tensor** output_values) {
  for (size_t i = 0; i < results.size(); ++i) {
    StatusOr<TF_Tensor*> t = FromTensor(std::move(results[i]));
    if (!t.ok()) {
      while (i-- > 0) {
        TF_DeleteTensor(output_values[i]);
        output_values[i] = nullptr;
      }
      return t.status();
    }
    output_values[i] = *t;
  }
  return OkStatus();
}

Status RunInCluster(const RunCall& call, const TF_Buffer* options,
                    TF_Tensor* const* values, TF_Tensor** results,
                    TF_Buffer* metadata) {
  TF_Session& session = *call.session;
  HR_ASSIGN_OR_RETURN(const Request request, call.ReadRequest());
  tensorflow::RunOptions read;
  if (options) {
    HR_RETURN_IF_ERROR(
        ReadProto(options->data, options->length, "RunOptions", &read));
  }
  std::vector<Tensor> feeds, fetched;
  HR_RETURN_IF_ERROR(call.ReadFeeds(values, &feeds));
  const StopScope closing(&session.closing);
  tensorflow::RunMetadata said;
  HR_RETURN_IF_ERROR(
      session.cluster->Run(request, read, std::move(feeds), &fetched, &said));
  if (metadata) HR_RETURN_IF_ERROR(SetBuffer(metadata, said));
  return SetResults(std::move(fetched), results);
}

[[gnu::hot]] Status RunSession(const RunCall& call, const TF_Buffer* options,
                               TF_Tensor* const* values, TF_Tensor** results,
                               TF_Buffer* metadata) {
  HR_RETURN_IF_ERROR(call.CheckLists(values, results));
  TF_Session& session = *call.session;
  for (int i = 0; i < call.noutputs; ++i) results[i] = nullptr;
  if (metadata && metadata->data) {
    return InvalidArgument("Passing non-empty run_metadata is invalid.");
  }
  HR_RETURN_IF_ERROR(session.CheckOpen());
  if (session.cluster) [[unlikely]] {
    return RunInCluster(call, options, values, results, metadata);
  }
  HR_ASSIGN_OR_RETURN(RunSettings settings,
                      SettingsOf(session, options, metadata));
  const StopScope closing(&session.closing, /*paced=*/true);
  std::optional<Deadline> deadline;
  if (settings.timeout_ms > 0) deadline.emplace(settings.timeout_ms);
  HR_ASSIGN_OR_RETURN(TF_Session::Key key, call.Key());
  TF_Session::Plan plan = session.FindPlan(key);
  if (!plan) [[unlikely]] {
    HR_ASSIGN_OR_RETURN(const Request request, call.ReadRequest());
    HR_ASSIGN_OR_RETURN(plan, session.PlanOf(key, request));
  }
  absl::InlinedVector<Tensor, 4> feeds;
  HR_RETURN_IF_ERROR(call.ReadFeeds(values, &feeds));
  std::vector<Tensor> fetched;
  std::optional<timeline::OfThisThread> ran;
  if (settings.trace) ran.emplace();
  HR_RETURN_IF_ERROR(session.Run(*plan, absl::MakeSpan(feeds), &fetched));
  if (metadata) {
    tensorflow::RunMetadata said;
    if (ran) {
      AddStepStats(ran->events(), said.mutable_step_stats());
      MutexLock lock(session.graph->mutex);
      LabelInputs(*session.graph->graph, said.mutable_step_stats());
      SortByDevice(*session.graph->graph,
                   ProcessorNames(session.config.processors),
                   said.mutable_step_stats());
    }
    HR_RETURN_IF_ERROR(SetBuffer(metadata, said));
  }
  return SetResults(std::move(fetched), results);
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

void TF_SessionRun(TF_Session* session, const TF_Buffer* run_options,
                   const TF_Output* inputs, TF_Tensor* const* input_values,
                   int ninputs, const TF_Output* outputs,
                   TF_Tensor** output_values, int noutputs,
                   const TF_Operation* const* target_opers, int ntargets,
                   TF_Buffer* run_metadata, TF_Status* status) {
  const capi::RunCall call{session,  inputs,       ninputs, outputs,
                           noutputs, target_opers, ntargets};
  capi::Into(status, [&] {
    return capi::RunSession(call, run_options, input_values, output_values,
                            run_metadata);
  });
}
