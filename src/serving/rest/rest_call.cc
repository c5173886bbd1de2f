#include "serving/rest/rest_call.h"

#include "base/guard.h"
#include "serving/answer/method_names.h"
#include "serving/answer/target.h"
#include "serving/json/examples_body.h"
#include "serving/json/json_writer.h"
#include "serving/json/predict_answer.h"
#include "serving/json/predict_body.h"
#include "serving/json/proto_answers.h"
#include "serving/request_log/logged.h"
#include "tensor/tensor_proto.h"

namespace headrace::serving {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = RestRoute::Kind;

const char* MethodOf(Kind kind) {
  switch (kind) {
    case Kind::kClassify:
      return "classify";
    case Kind::kRegress:
      return "regress";
    case Kind::kPredict:
      return "predict";
    case Kind::kStatus:
      return "status";
    default:
      return "metadata";
  }
}

// Shared by who reads a request, who runs it and who answers it.
struct RestCall {
  RestCall(std::shared_ptr<const RestContext> shared, HttpResponder to)
      : context(std::move(shared)), responder(std::move(to)) {}

  // Once, in any thread.
  void Finish(const Status& s, std::string body) {
    HttpResponse response;
    if (s.ok()) {
      response.body = std::move(body);
    } else {
      response = ErrorResponse(s);
    }
    if (context->options.answered) {
      context->options.answered(
          {MethodOf(route.kind), route.spec, s, Clock::now() - start});
    }
    responder.Send(std::move(response));
  }
  // With what make() gives, or its error.
  template <typename Make>
  void FinishWith(Make&& make) {
    std::string body;
    const Status s = Guarded("an answer", [&]() -> Status {
      HR_ASSIGN_OR_RETURN(body, make());
      return OkStatus();
    });
    Finish(s, std::move(body));
  }

  const std::shared_ptr<const RestContext> context;
  const HttpResponder responder;
  const Clock::time_point start = Clock::now();
  RestRoute route;
  CallPtr call;
};
using RestCallPtr = std::shared_ptr<RestCall>;

// The request and the answer as Predict has them, for the log. What cannot be
// told is not logged.
class PredictKept {
 public:
  void Begin(RequestLogs* logs, const ModelSpec& spec,
             const Signature& signature, const Tensors& inputs) {
    if (logs == nullptr) return;
    log_ = logs->Sampled(spec.name());
    if (log_ == nullptr) return;
    const Status s = Guarded("logging a request", [&] {
      kept_ = std::make_shared<PredictionLog>();
      auto* request = kept_->mutable_predict_log()->mutable_request();
      *request->mutable_model_spec() = spec;
      request->mutable_model_spec()->set_signature_name(signature.key);
      return Tell(signature.inputs, inputs, request->mutable_inputs());
    });
    if (!s.ok()) log_ = nullptr;
  }
  // Once.
  void End(const Target& target, const Tensors& outputs) const {
    if (log_ == nullptr) return;
    Guarded("logging a request", [&] {
      auto* response = kept_->mutable_predict_log()->mutable_response();
      SetSpec(target, response->mutable_model_spec());
      HR_RETURN_IF_ERROR(Tell(target.signature->outputs, outputs,
                              response->mutable_outputs()));
      const ModelSpec used = response->model_spec();
      log_->Log(used, std::move(*kept_));
      return OkStatus();
    }).IgnoreError();
  }

 private:
  template <typename Map>
  static Status Tell(const std::vector<Argument>& arguments,
                     const Tensors& tensors, Map* map) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      HR_RETURN_IF_ERROR(
          TensorToTypedProto(tensors[i], &(*map)[arguments[i].name]));
    }
    return OkStatus();
  }

  RequestLogPtr log_;  // null: not kept
  std::shared_ptr<PredictionLog> kept_;
};

// The inputs of a body, and the signature's defaults for those it lacks.
StatusOr<PredictBody::Inputs> InputsOf(const PredictBody& body,
                                       const Signature& signature) {
  const auto& defaults = signature.def->defaults();
  if (defaults.empty()) return body.Read(signature.inputs);
  std::vector<bool> may_lack;
  for (const Argument& a : signature.inputs) {
    may_lack.push_back(defaults.contains(a.name));
  }
  HR_ASSIGN_OR_RETURN(PredictBody::Inputs inputs,
                      body.Read(signature.inputs, may_lack));
  for (size_t i = 0; i < inputs.tensors.size(); ++i) {
    if (inputs.tensors[i].dtype() != DType::kInvalid) continue;
    const std::string& name = signature.inputs[i].name;
    StatusOr<Tensor> value = TensorFromProto(defaults.at(name));
    if (!value.ok()) return InvalidArgument("tensor parsing error: ", name);
    inputs.tensors[i] = *std::move(value);
  }
  return inputs;
}

// From JSON to tensors to the runner: an error says that nothing runs.
Status StartPredict(const RestCallPtr& rest, StringView text) {
  HR_ASSIGN_OR_RETURN(const PredictBody body, PredictBody::Parse(text));
  HR_ASSIGN_OR_RETURN(const std::string name, body.SignatureName());
  HR_ASSIGN_OR_RETURN(ServablePtr servable,
                      rest->context->models.Find(rest->route.spec));
  const Signature* signature = servable->signature(name);
  if (signature == nullptr) {
    return InvalidArgument("Serving signature name: \"",
                           name.empty() ? kDefaultSignature : name,
                           "\" not found in signature def");
  }
  HR_ASSIGN_OR_RETURN(PredictBody::Inputs inputs, InputsOf(body, *signature));
  if (rest->context->answers.check_method_names) {
    HR_RETURN_IF_ERROR(CheckPredictMethod(*signature));
  }
  HR_ASSIGN_OR_RETURN(RunnerPtr runner,
                      servable->RunnerOf(*signature, signature->AllOutputs()));
  PredictKept kept;
  kept.Begin(rest->context->options.logs, rest->route.spec, *signature,
             inputs.tensors);
  const PredictFormat format = inputs.format;
  Runner& run = *runner;
  run.Run(rest->call, std::move(inputs.tensors),
          // The version stays loaded until it has answered.
          [rest, target = Target{std::move(servable), signature},
           runner = std::move(runner), kept = std::move(kept),
           format](StatusOr<Tensors> result) {
            rest->FinishWith([&]() -> StatusOr<std::string> {
              HR_RETURN_IF_ERROR(result.status());
              kept.End(target, *result);
              return WritePredictAnswer(format, target.signature->outputs,
                                        *result);
            });
          });
  return OkStatus();
}

// Classify or Regress of answers.h, whose request holds examples.
template <typename Request, typename Response, typename Function>
Status StartExamples(const RestCallPtr& rest, StringView text,
                     Function* function,
                     std::string (*to_json)(const Response&)) {
  HR_ASSIGN_OR_RETURN(ExamplesBody body, ReadExamplesBody(text));
  Request request;
  *request.mutable_model_spec() = rest->route.spec;
  request.mutable_model_spec()->set_signature_name(
      std::move(body.signature_name));
  *request.mutable_input() = std::move(body.input);
  Done<Response> done = [rest, to_json](StatusOr<Response> response) {
    rest->FinishWith([&]() -> StatusOr<std::string> {
      HR_RETURN_IF_ERROR(response.status());
      return to_json(*response);
    });
  };
  function(rest->context->models, rest->context->answers, rest->call, request,
           Logged(rest->context->options.logs, request, std::move(done)));
  return OkStatus();
}

StatusOr<std::string> ModelStatus(const RestCall& rest) {
  GetModelStatusResponse response;
  HR_RETURN_IF_ERROR(rest.context->models.StatusOf(rest.route.spec, &response));
  return ProtoJson(response);
}

StatusOr<std::string> Metadata(const RestCall& rest) {
  tensorflow::serving::GetModelMetadataRequest request;
  *request.mutable_model_spec() = rest.route.spec;
  request.add_metadata_field("signature_def");
  tensorflow::serving::GetModelMetadataResponse response;
  HR_RETURN_IF_ERROR(
      GetModelMetadata(rest.context->models, request, &response));
  return MetadataJson(response);
}

// An error says that the call has not been answered and is not going to be.
Status Start(const RestCallPtr& rest, StringView body) {
  using namespace tensorflow::serving;
  switch (rest->route.kind) {
    case Kind::kPredict:
      return StartPredict(rest, body);
    case Kind::kClassify:
      return StartExamples<ClassificationRequest, ClassificationResponse>(
          rest, body, Classify, ClassifyJson);
    case Kind::kRegress:
      return StartExamples<RegressionRequest, RegressionResponse>(
          rest, body, Regress, RegressJson);
    default:
      break;
  }
  if (rest->route.spec.name().empty()) {
    return InvalidArgument("Missing model name in request.");
  }
  rest->FinishWith([&] {
    return rest->route.kind == Kind::kStatus ? ModelStatus(*rest)
                                             : Metadata(*rest);
  });
  return OkStatus();
}

}  // namespace

void RunRestCall(std::shared_ptr<const RestContext> context,
                 const HttpRequest& request, HttpResponder responder) {
  const std::chrono::milliseconds timeout(context->options.timeout_ms);
  auto rest = std::make_shared<RestCall>(std::move(context), responder);
  Status s = Guarded("a request", [&]() -> Status {
    HR_ASSIGN_OR_RETURN(rest->route, RouteOf(request.method, request.path));
    rest->call = std::make_shared<Call>(rest->start + timeout);
    responder.OnClose([call = rest->call] { call->stop().Cancel(); });
    Workers* const workers = rest->context->options.workers;
    if (workers == nullptr ||
        !rest->context->models.FindWaits(rest->route.spec)) {
      return Start(rest, request.body);
    }
    workers->Run([rest, body = std::string(request.body)] {
      const StopScope scope(&rest->call->stop());
      const Status started =
          Guarded("a request", [&] { return Start(rest, body); });
      if (!started.ok()) rest->Finish(started, "");
    });
    return OkStatus();
  });
  if (!s.ok()) rest->Finish(s, "");
}

HttpResponse ErrorResponse(const Status& s) {
  HttpResponse response;
  response.status = HttpStatusOf(s);
  response.body = JsonError(s.message());
  return response;
}

}  // namespace headrace::serving
