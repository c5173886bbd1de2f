#include "serving/rest/rest_call.h"

#include "base/guard.h"
#include "serving/answer/method_names.h"
#include "serving/json/examples_body.h"
#include "serving/json/json_writer.h"
#include "serving/json/predict_answer.h"
#include "serving/json/predict_body.h"
#include "serving/json/proto_answers.h"

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
    responder.Send(WithCors(std::move(response), context->options));
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
  HR_ASSIGN_OR_RETURN(PredictBody::Inputs inputs, body.Read(signature->inputs));
  if (rest->context->answers.check_method_names) {
    HR_RETURN_IF_ERROR(CheckPredictMethod(*signature));
  }
  HR_ASSIGN_OR_RETURN(RunnerPtr runner,
                      servable->RunnerOf(*signature, signature->AllOutputs()));
  const PredictFormat format = inputs.format;
  Runner& run = *runner;
  run.Run(rest->call, std::move(inputs.tensors),
          // The version stays loaded until it has answered.
          [rest, servable = std::move(servable), runner = std::move(runner),
           signature, format](StatusOr<Tensors> result) {
            rest->FinishWith([&]() -> StatusOr<std::string> {
              HR_RETURN_IF_ERROR(result.status());
              return WritePredictAnswer(format, signature->outputs, *result);
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
  function(rest->context->models, rest->context->answers, rest->call, request,
           [rest, to_json](StatusOr<Response> response) {
             rest->FinishWith([&]() -> StatusOr<std::string> {
               HR_RETURN_IF_ERROR(response.status());
               return to_json(*response);
             });
           });
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

HttpResponse WithCors(HttpResponse response, const RestOptions& options) {
  if (!options.cors) return response;
  response.headers.emplace_back("Access-Control-Allow-Origin", "*");
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
  response.headers.emplace_back(
      "Access-Control-Allow-Headers",
      options.admit ? "Authorization, Content-Type" : "Content-Type");
  return response;
}

HttpResponse ErrorResponse(const Status& s) {
  HttpResponse response;
  response.status = HttpStatusOf(s);
  response.body = JsonError(s.message());
  return response;
}

}  // namespace headrace::serving
