#include "serving/v2/infer.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/guard.h"
#include "serving/answer/target.h"
#include "serving/v2/datatypes.h"
#include "tensor/tensor_proto.h"

namespace headrace::serving {
namespace {

Status NoInferSignature(const std::string& key) {
  return FailedPrecondition("Serving signature key \"", key, "\" not found.");
}

struct PreparedInfer {
  Target target;
  Tensors inputs;
  std::vector<int> places;   // of the outputs, sorted, each once
  std::vector<int> answers;  // places among those, as they were asked for
  RunnerPtr runner;
};

Status CheckInputType(const NamedTensor& given, const Argument& wanted,
                      const std::string& model) {
  if (given.tensor.dtype() == wanted.dtype) return OkStatus();
  const StringView name = DatatypeOf(wanted.dtype);
  return InvalidArgument("input '", given.name, "' of model '", model,
                         "' is of datatype ",
                         name.empty() ? DTypeName(wanted.dtype) : name,
                         ", not ", DatatypeOf(given.tensor.dtype()));
}

Status GatherInputs(InferRequest& request, PreparedInfer* p) {
  const Signature& signature = *p->target.signature;
  const std::string& model = request.spec.name();
  std::vector<bool> seen(signature.inputs.size());
  p->inputs.resize(signature.inputs.size());
  for (NamedTensor& given : request.inputs) {
    const int place = PlaceOf(signature.inputs, given.name);
    if (place < 0) {
      return InvalidArgument("unexpected input '", given.name, "' for model '",
                             model, "': its inputs are {",
                             JoinedNames(signature.inputs), "}");
    }
    if (seen[place]) {
      return InvalidArgument("input '", given.name, "' is given twice");
    }
    HR_RETURN_IF_ERROR(CheckInputType(given, signature.inputs[place], model));
    seen[place] = true;
    p->inputs[place] = std::move(given.tensor);
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) continue;
    const std::string& name = signature.inputs[i].name;
    const auto it = signature.def->defaults().find(name);
    if (it == signature.def->defaults().end()) {
      return InvalidArgument("input '", name, "' of model '", model,
                             "' is missing");
    }
    HR_ASSIGN_OR_RETURN(p->inputs[i], TensorFromProto(it->second));
  }
  return OkStatus();
}

Status GatherOutputs(const InferRequest& request, PreparedInfer* p) {
  const Signature& signature = *p->target.signature;
  if (request.outputs.empty()) {
    p->places = p->answers = signature.AllOutputs();
    return OkStatus();
  }
  std::vector<int> asked;
  for (const std::string& name : request.outputs) {
    const int place = PlaceOf(signature.outputs, name);
    if (place < 0) {
      return InvalidArgument("unexpected output '", name, "' for model '",
                             request.spec.name(), "': its outputs are {",
                             JoinedNames(signature.outputs), "}");
    }
    if (std::find(asked.begin(), asked.end(), place) != asked.end()) {
      return InvalidArgument("output '", name, "' is asked for twice");
    }
    asked.push_back(place);
  }
  // So that every order of the same outputs shares one plan.
  p->places = asked;
  std::sort(p->places.begin(), p->places.end());
  for (const int place : asked) {
    p->answers.push_back(static_cast<int>(
        std::lower_bound(p->places.begin(), p->places.end(), place) -
        p->places.begin()));
  }
  return OkStatus();
}

Status PrepareInfer(Models& models, InferRequest& request, PreparedInfer* p) {
  HR_ASSIGN_OR_RETURN(
      p->target, FindTarget(models, true, request.spec, &NoInferSignature));
  HR_RETURN_IF_ERROR(GatherInputs(request, p));
  HR_RETURN_IF_ERROR(GatherOutputs(request, p));
  HR_ASSIGN_OR_RETURN(
      p->runner, p->target.servable->RunnerOf(*p->target.signature, p->places));
  return OkStatus();
}

InferAnswer AnswerOf(const Target& target, const std::vector<int>& places,
                     const std::vector<int>& answers, Tensors outputs) {
  InferAnswer answer;
  SetSpec(target, &answer.spec);
  for (const int i : answers) {
    answer.outputs.push_back(
        {target.signature->outputs[places[i]].name, std::move(outputs[i])});
  }
  return answer;
}

}  // namespace

StatusOr<ModelSpec> SpecOfModel(StringView name, StringView version) {
  ModelSpec spec;
  spec.set_name(std::string(name));
  if (version.empty()) return spec;
  if (!absl::ascii_isdigit(static_cast<unsigned char>(version[0])) &&
      version[0] != '-') {
    spec.set_version_label(std::string(version));
    return spec;
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(version, &number) || number < 0) {
    return InvalidArgument("'", version, "' is no version of a model");
  }
  spec.mutable_version()->set_value(number);
  return spec;
}

void Infer(Models& models, CallPtr call, InferRequest request,
           Done<InferAnswer> done) {
  PreparedInfer p;
  const Status s =
      Guarded("a request", [&] { return PrepareInfer(models, request, &p); });
  if (!s.ok()) return done(s);
  Runner& runner = *p.runner;
  // The runner is kept by what it calls: it may be the last to know it.
  runner.Run(std::move(call), std::move(p.inputs),
             [target = std::move(p.target), places = std::move(p.places),
              answers = std::move(p.answers), keep = std::move(p.runner),
              done = std::move(done)](StatusOr<Tensors> outputs) {
               if (!outputs.ok()) return done(outputs.status());
               InferAnswer answer;
               const Status told = Guarded("a response", [&] {
                 answer =
                     AnswerOf(target, places, answers, *std::move(outputs));
                 return OkStatus();
               });
               if (!told.ok()) return done(told);
               done(std::move(answer));
             });
}

}  // namespace headrace::serving
