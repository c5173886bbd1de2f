// PredictionService.Predict.
#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "base/guard.h"
#include "serving/answer/answers.h"
#include "serving/answer/method_names.h"
#include "serving/answer/target.h"
#include "tensor/tensor_proto.h"

namespace headrace::serving {
namespace {

using tensorflow::serving::PredictRequest;
using tensorflow::serving::PredictResponse;

Status NoPredictSignature(const std::string& key) {
  return FailedPrecondition("Serving signature key \"", key, "\" not found.");
}

// The names of `a` that `b` lacks.
std::string Missing(const std::set<std::string>& a,
                    const std::set<std::string>& b) {
  std::vector<std::string> missing;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(),
                      std::back_inserter(missing));
  return absl::StrJoin(missing, ",");
}

Status CheckNumber(const PredictRequest& request, const Signature& signature) {
  const int sent = request.inputs_size();
  const int wanted = static_cast<int>(signature.inputs.size());
  const bool may_lack = !signature.def->defaults().empty();
  if (sent == wanted || (sent < wanted && may_lack)) return OkStatus();
  std::set<std::string> given, known;
  for (const auto& [name, tensor] : request.inputs()) given.insert(name);
  for (const Argument& a : signature.inputs) known.insert(a.name);
  return InvalidArgument(
      "input size does not match signature: ", sent, "!=", wanted, " len({",
      absl::StrJoin(given, ","), "}) != len({", absl::StrJoin(known, ","),
      "}). Sent extra: {", Missing(given, known), "}. Missing but required: {",
      Missing(known, given), "}.");
}

Status CheckNames(const PredictRequest& request, const Signature& signature) {
  for (const auto& [name, tensor] : request.inputs()) {
    if (PlaceOf(signature.inputs, name) >= 0) continue;
    return InvalidArgument("Inputs contains invalid name. It has ", name,
                           ", expected are {", JoinedNames(signature.inputs),
                           "}.");
  }
  return OkStatus();
}

StatusOr<Tensors> InputsOf(const PredictRequest& request,
                           const Signature& signature) {
  HR_RETURN_IF_ERROR(CheckNumber(request, signature));
  Tensors tensors;
  for (const Argument& a : signature.inputs) {
    auto given = request.inputs().find(a.name);
    const tensorflow::TensorProto* proto = nullptr;
    if (given != request.inputs().end()) {
      proto = &given->second;
    } else if (auto it = signature.def->defaults().find(a.name);
               it != signature.def->defaults().end()) {
      proto = &it->second;
    } else {
      auto info = signature.def->inputs().find(a.name);
      return InvalidArgument(
          "Signature input alias: ", a.name, "(feed name: ",
          info == signature.def->inputs().end() ? "" : info->second.name(),
          ") not found in request and no default value provided. Inputs "
          "expected to be in the set {",
          JoinedNames(signature.inputs), "}.");
    }
    StatusOr<Tensor> t = TensorFromProto(*proto);
    // Beyond the request's limit.
    if (absl::IsResourceExhausted(t.status()) && InSandbox()) {
      return t.status();
    }
    if (!t.ok()) return InvalidArgument("tensor parsing error: ", a.name);
    tensors.push_back(*std::move(t));
  }
  HR_RETURN_IF_ERROR(CheckNames(request, signature));
  return tensors;
}

// Places of the outputs that are asked for: all of them where no filter is.
StatusOr<std::vector<int>> FilteredOutputs(const PredictRequest& request,
                                           const Signature& signature) {
  if (request.output_filter().empty()) return signature.AllOutputs();
  std::vector<int> places;
  for (const std::string& name : request.output_filter()) {
    const int place = PlaceOf(signature.outputs, name);
    if (place < 0) {
      return InvalidArgument("output tensor alias not found in signature: ",
                             name, " Outputs expected to be in the set {",
                             JoinedNames(signature.outputs), "}.");
    }
    if (std::find(places.begin(), places.end(), place) != places.end()) {
      return InvalidArgument("duplicate output tensor alias: ", name);
    }
    places.push_back(place);
  }
  // So that every order of a filter shares one plan.
  std::sort(places.begin(), places.end());
  return places;
}

StatusOr<PredictResponse> ResponseOf(const Target& target,
                                     const std::vector<int>& places,
                                     const Tensors& outputs,
                                     bool tensor_content) {
  PredictResponse response;
  SetSpec(target, response.mutable_model_spec());
  for (size_t i = 0; i < places.size(); ++i) {
    auto& proto =
        (*response
              .mutable_outputs())[target.signature->outputs[places[i]].name];
    HR_RETURN_IF_ERROR(tensor_content ? TensorToProto(outputs[i], &proto)
                                      : TensorToTypedProto(outputs[i], &proto));
  }
  return response;
}

struct Prepared {
  Target target;
  Tensors inputs;
  std::vector<int> places;
  RunnerPtr runner;
};

Status Prepare(Models& models, const AnswerOptions& options, Call& call,
               const PredictRequest& request, Prepared* p) {
  HR_ASSIGN_OR_RETURN(p->target,
                      FindTarget(models, request.has_model_spec(),
                                 request.model_spec(), &NoPredictSignature));
  const Signature& signature = *p->target.signature;
  if (options.check_method_names) {
    HR_RETURN_IF_ERROR(CheckPredictMethod(signature));
  }
  {
    const SandboxScope limit(call.LimitedTo(options.max_request_memory_bytes));
    HR_ASSIGN_OR_RETURN(p->inputs, InputsOf(request, signature));
  }
  HR_ASSIGN_OR_RETURN(p->places, FilteredOutputs(request, signature));
  HR_ASSIGN_OR_RETURN(p->runner,
                      p->target.servable->RunnerOf(signature, p->places));
  return OkStatus();
}

}  // namespace

void Predict(Models& models, const AnswerOptions& options, CallPtr call,
             const PredictRequest& request, Done<PredictResponse> done) {
  Prepared p;
  Status s = Guarded("a request", [&] {
    return Prepare(models, options, *call, request, &p);
  });
  if (!s.ok()) return done(std::move(s));
  Runner& runner = *p.runner;
  // The runner is kept by what it calls: it may be the last to know it.
  runner.Run(std::move(call), std::move(p.inputs),
             [target = std::move(p.target), places = std::move(p.places),
              keep = std::move(p.runner), done = std::move(done),
              content = options.tensor_content](StatusOr<Tensors> outputs) {
               if (!outputs.ok()) return done(outputs.status());
               StatusOr<PredictResponse> response;
               const Status told = Guarded("a response", [&] {
                 response = ResponseOf(target, places, *outputs, content);
                 return response.status();
               });
               done(told.ok() ? std::move(response) : told);
             });
}

}  // namespace headrace::serving
