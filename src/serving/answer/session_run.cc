// SessionService.SessionRun.
#include <optional>

#include "base/guard.h"
#include "serving/answer/answers.h"
#include "serving/answer/target.h"
#include "tensor/tensor_proto.h"

namespace headrace::serving {
namespace {

using tensorflow::RunOptions;
using tensorflow::TensorInfo;
using tensorflow::serving::SessionRunRequest;
using tensorflow::serving::SessionRunResponse;

Status CheckRunOptions(const RunOptions& options) {
  if (options.trace_level() != RunOptions::NO_TRACE) {
    return Unimplemented("RunOptions.trace_level");
  }
  if (options.output_partition_graphs()) {
    return Unimplemented("RunOptions.output_partition_graphs");
  }
  return OkStatus();
}

// The tensors that names stand for, where they are those of a signature.
template <typename Infos>
Status ResolveAliases(const Infos& infos, std::vector<std::string>* names) {
  for (std::string& name : *names) {
    auto it = infos.find(name);
    if (it == infos.end()) {
      return InvalidArgument("tensor alias not found in signature: ", name);
    }
    name = it->second.name();
  }
  return OkStatus();
}

StatusOr<SessionNames> NamesOf(const SessionRunRequest& request,
                               const Servable& servable) {
  SessionNames names;
  for (const auto& feed : request.feed()) names.feeds.push_back(feed.name());
  names.fetches = {request.fetch().begin(), request.fetch().end()};
  names.targets = {request.target().begin(), request.target().end()};
  if (!request.tensor_name_is_alias()) return names;
  const std::string& key = request.model_spec().signature_name();
  const Signature* signature = servable.signature(key);
  if (signature == nullptr) {
    return FailedPrecondition("Serving signature key \"",
                              key.empty() ? kDefaultSignature : key,
                              "\" not found.");
  }
  HR_RETURN_IF_ERROR(ResolveAliases(signature->def->inputs(), &names.feeds));
  HR_RETURN_IF_ERROR(ResolveAliases(signature->def->outputs(), &names.fetches));
  return names;
}

StatusOr<Tensors> FeedsOf(const SessionRunRequest& request) {
  Tensors feeds;
  for (const auto& feed : request.feed()) {
    StatusOr<Tensor> t = TensorFromProto(feed.tensor());
    if (absl::IsResourceExhausted(t.status()) && InSandbox()) {
      return t.status();
    }
    if (!t.ok()) {
      return InvalidArgument("tensor parsing error: ", feed.name());
    }
    feeds.push_back(*std::move(t));
  }
  return feeds;
}

struct Asked {
  ServablePtr servable;
  RunnerPtr runner;
  Tensors feeds;
};

Status PrepareSession(Models& models, const AnswerOptions& options, Call& call,
                      const SessionRunRequest& request, Asked* asked) {
  if (!request.has_model_spec()) return InvalidArgument("Missing ModelSpec");
  HR_ASSIGN_OR_RETURN(asked->servable, models.Find(request.model_spec()));
  ModelSession* const session = asked->servable->session();
  if (session == nullptr) {
    return FailedPrecondition("the model was not loaded for sessions");
  }
  HR_RETURN_IF_ERROR(CheckRunOptions(request.options()));
  {
    const SandboxScope limit(call.LimitedTo(options.max_request_memory_bytes));
    HR_ASSIGN_OR_RETURN(asked->feeds, FeedsOf(request));
  }
  HR_ASSIGN_OR_RETURN(const SessionNames names,
                      NamesOf(request, *asked->servable));
  HR_ASSIGN_OR_RETURN(asked->runner, session->RunnerOf(names));
  return OkStatus();
}

Status TellFetches(const SessionRunRequest& request, const ServableId& id,
                   const Tensors& outputs, SessionRunResponse* response) {
  response->mutable_model_spec()->set_name(id.name);
  response->mutable_model_spec()->mutable_version()->set_value(id.version);
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto* tensor = response->add_tensor();
    tensor->set_name(request.fetch(static_cast<int>(i)));
    HR_RETURN_IF_ERROR(TensorToProto(outputs[i], tensor->mutable_tensor()));
  }
  return OkStatus();
}

}  // namespace

StatusOr<SessionRunResponse> SessionRun(Models& models,
                                        const AnswerOptions& options,
                                        const CallPtr& call,
                                        const SessionRunRequest& request) {
  Asked asked;
  SessionRunResponse response;
  HR_RETURN_IF_ERROR(Guarded("a request", [&]() -> Status {
    HR_RETURN_IF_ERROR(PrepareSession(models, options, *call, request, &asked));
    std::optional<Deadline> timeout;
    if (request.options().timeout_in_ms() > 0) {
      timeout.emplace(request.options().timeout_in_ms());
    }
    StatusOr<Tensors> outputs = Internal("a session did not answer");
    asked.runner->Run(
        call, std::move(asked.feeds),
        [&outputs](StatusOr<Tensors> given) { outputs = std::move(given); });
    HR_RETURN_IF_ERROR(outputs.status());
    return TellFetches(request, asked.servable->id(), *outputs, &response);
  }));
  return response;
}

}  // namespace headrace::serving
