#include "serving/v2/inference_paths.h"

#include "absl/strings/match.h"
#include "base/guard.h"
#include "serving/json/json_text.h"
#include "serving/json/json_writer.h"
#include "serving/json/predict_body.h"
#include "serving/rest/route.h"
#include "serving/v2/infer_body.h"
#include "serving/v2/v2_json.h"
#include "serving/v2/v2_route.h"

namespace headrace::serving {
namespace {

using ServerHandle = std::shared_ptr<InferenceServer>;

constexpr char kHeaderLength[] = "Inference-Header-Content-Length";

// What all requests share.
struct PathContext {
  ServerHandle server;
  Workers& workers;
  const InferencePathOptions options;
};
using PathContextPtr = std::shared_ptr<const PathContext>;

// One inference under way.
struct InferCall {
  PathContextPtr context;
  HttpResponder responder;
  ModelSpec spec;  // as it was asked for; then as it was used
  InferReply reply;
  CallPtr call;
  Call::Clock::time_point start = Call::Clock::now();

  // Once, in any thread.
  void End(const Status& s, HttpResponse response) {
    const auto time = Call::Clock::now() - start;
    (void)Guarded("statistics", [&] {
      context->server->statistics.Note(spec, s, time);
      return OkStatus();
    });
    if (context->options.answered) {
      context->options.answered({"infer", spec, s, time});
    }
    responder.Send(s.ok() ? std::move(response) : ErrorResponse(s));
  }
};
using InferCallPtr = std::shared_ptr<InferCall>;

void SendAnswer(const InferCallPtr& infer, StatusOr<InferAnswer> answer) {
  HttpResponse response;
  const Status s = Guarded("an answer", [&]() -> Status {
    HR_RETURN_IF_ERROR(answer.status());
    infer->spec = answer->spec;
    HR_ASSIGN_OR_RETURN(InferAnswerBody body,
                        WriteInferBody(infer->reply, *answer));
    response.body = std::move(body.bytes);
    if (body.binary) {
      response.content_type = "application/octet-stream";
      response.headers.emplace_back(kHeaderLength,
                                    absl::StrCat(body.json_bytes));
    }
    return OkStatus();
  });
  infer->End(s, std::move(response));
}

void RunInfer(const InferCallPtr& infer, StringView text,
              StringView header_length) {
  InferRequest request;
  const Status s = Guarded("a request", [&]() -> Status {
    HR_ASSIGN_OR_RETURN(InferBody body, ReadInferBody(text, header_length));
    infer->spec.set_signature_name(body.request.spec.signature_name());
    request = std::move(body.request);
    request.spec = infer->spec;
    infer->reply = std::move(body.reply);
    return OkStatus();
  });
  if (!s.ok()) return infer->End(s, {});
  Infer(infer->context->server->models, infer->call, std::move(request),
        [infer](StatusOr<InferAnswer> answer) {
          SendAnswer(infer, std::move(answer));
        });
}

void StartInferCall(const PathContextPtr& context, const V2Route& route,
                    const HttpRequest& request, HttpResponder responder) {
  auto infer = std::make_shared<InferCall>(InferCall{context, responder});
  StatusOr<ModelSpec> spec = SpecOfModel(route.model, route.version);
  if (!spec.ok()) return infer->End(spec.status(), {});
  infer->spec = *std::move(spec);
  infer->call = std::make_shared<Call>(
      infer->start + std::chrono::milliseconds(context->options.timeout_ms));
  responder.OnClose([call = infer->call] { call->stop().Cancel(); });
  const StringView header_length = request.header(kHeaderLength);
  if (!context->server->models.FindWaits(infer->spec)) {
    return RunInfer(infer, request.body, header_length);
  }
  context->workers.Run([infer, body = std::string(request.body),
                        length = std::string(header_length)] {
    const StopScope scope(&infer->call->stop());
    RunInfer(infer, body, length);
  });
}

// What a request that is no inference asks for, taken from its connection.
struct Asked {
  V2Route route;
  std::string body, signature;
};

StatusOr<bool> ReadyOnly(const std::string& body) {
  if (body.empty()) return false;
  constexpr StringView kMembers[] = {"ready"};
  HR_ASSIGN_OR_RETURN(const JsonBody json, CheckJson(body, kMembers));
  HR_RETURN_IF_ERROR(CheckIsObject(json));
  const StringView value = json.members[0].value;
  if (value.empty()) return false;
  const JsonKind kind = JsonKindOf(value);
  if (kind == JsonKind::kTrue || kind == JsonKind::kFalse) {
    return kind == JsonKind::kTrue;
  }
  return InvalidArgument("'ready' is to be true or false, not ",
                         JsonExcerpt(value));
}

// The parameters of a load or unload, into the message that gRPC has for it.
template <typename Request>
StatusOr<Request> RepositoryRequest(const Asked& asked) {
  Request request;
  if (!asked.body.empty()) {
    constexpr StringView kMembers[] = {"parameters"};
    HR_ASSIGN_OR_RETURN(const JsonBody json, CheckJson(asked.body, kMembers));
    HR_RETURN_IF_ERROR(CheckIsObject(json));
    const StringView object = json.members[0].value;
    if (!object.empty() && JsonKindOf(object) != JsonKind::kObject) {
      return InvalidArgument("'parameters' is to be an object, not ",
                             JsonExcerpt(object));
    }
    if (!object.empty()) {
      JsonReader at(object);
      for (bool more = at.Enter(); more; more = at.Next()) {
        auto& value = (*request.mutable_parameters())[JsonString(at.Key())];
        const JsonKind kind = at.kind();
        if (kind == JsonKind::kTrue || kind == JsonKind::kFalse) {
          value.set_bool_param(kind == JsonKind::kTrue);
        }
        at.Skip();
      }
    }
  }
  request.set_model_name(asked.route.model);
  return request;
}

StatusOr<std::string> AnswerAsked(InferenceServer& server, const Asked& asked) {
  using Kind = V2Route::Kind;
  const V2Route& route = asked.route;
  switch (route.kind) {
    case Kind::kServer:
      return ServerMetadataJson(ServerMetadata());
    case Kind::kReady: {
      HR_ASSIGN_OR_RETURN(const bool ready,
                          ModelReady(server, route.model, route.version));
      if (ready) return std::string();
      return Unavailable("the model '", route.model, "' is not ready");
    }
    case Kind::kStatistics: {
      HR_ASSIGN_OR_RETURN(const auto statistics,
                          ModelStatistics(server, route.model, route.version));
      return StatisticsJson(statistics);
    }
    case Kind::kIndex: {
      inference::RepositoryIndexRequest request;
      HR_ASSIGN_OR_RETURN(const bool ready, ReadyOnly(asked.body));
      request.set_ready(ready);
      HR_ASSIGN_OR_RETURN(const auto index, RepositoryIndex(server, request));
      return IndexJson(index);
    }
    case Kind::kLoad: {
      HR_ASSIGN_OR_RETURN(
          const auto request,
          RepositoryRequest<inference::RepositoryModelLoadRequest>(asked));
      HR_RETURN_IF_ERROR(RepositoryLoad(server, request));
      return std::string();
    }
    case Kind::kUnload: {
      HR_ASSIGN_OR_RETURN(
          const auto request,
          RepositoryRequest<inference::RepositoryModelUnloadRequest>(asked));
      HR_RETURN_IF_ERROR(RepositoryUnload(server, request));
      return std::string();
    }
    default: {
      HR_ASSIGN_OR_RETURN(
          const auto metadata,
          ModelMetadata(server, route.model, route.version, asked.signature));
      return ModelMetadataJson(metadata);
    }
  }
}

void SendAsked(InferenceServer& server, const Asked& asked,
               const HttpResponder& responder) {
  HttpResponse response;
  const Status s = Guarded("a request", [&]() -> Status {
    HR_ASSIGN_OR_RETURN(response.body, AnswerAsked(server, asked));
    return OkStatus();
  });
  responder.Send(s.ok() ? std::move(response) : ErrorResponse(s));
}

// Where metadata is of another signature than the default one.
StatusOr<std::string> SignatureIn(StringView query) {
  constexpr StringView kName = "signature_name=";
  if (query.empty()) return std::string();
  if (absl::StartsWith(query, kName)) {
    return PercentDecoded(query.substr(kName.size()));
  }
  return InvalidArgument("the query '", query, "' is not supported");
}

void StartAsked(const PathContextPtr& context, V2Route route,
                const HttpRequest& request, const HttpResponder& responder) {
  StatusOr<std::string> signature = SignatureIn(request.query);
  if (!signature.ok()) {
    return responder.Send(ErrorResponse(signature.status()));
  }
  Asked asked{std::move(route), std::string(request.body),
              *std::move(signature)};
  const V2Route::Kind kind = asked.route.kind;
  if (kind == V2Route::Kind::kServer || kind == V2Route::Kind::kReady) {
    return SendAsked(*context->server, asked, responder);
  }
  auto call = std::make_shared<Call>(
      Call::Clock::now() +
      std::chrono::milliseconds(context->options.timeout_ms));
  responder.OnClose([call] { call->stop().Cancel(); });
  context->workers.Run([context, asked = std::move(asked), responder, call] {
    const StopScope scope(&call->stop());
    SendAsked(*context->server, asked, responder);
  });
}

HttpResponse ErrorOfStatus(int status, const std::string& text) {
  HttpResponse response;
  response.status = status;
  response.body = JsonError(text);
  return response;
}

}  // namespace

RestExtra InferencePaths(std::shared_ptr<InferenceServer> server,
                         Workers& workers, InferencePathOptions options) {
  const PathContextPtr context(
      new PathContext{std::move(server), workers, std::move(options)});
  return [context](const HttpRequest& request, HttpResponder responder) {
    if (request.path != "/v2" && !absl::StartsWith(request.path, "/v2/")) {
      return false;
    }
    std::optional<V2Route> route = V2RouteOf(request.path);
    if (!route) {
      responder.Send(
          ErrorOfStatus(404, absl::StrCat("there is no path ", request.path)));
    } else if (request.method != route->Method()) {
      responder.Send(ErrorOfStatus(
          405, absl::StrCat(request.path, " is for ", route->Method())));
    } else if (route->kind == V2Route::Kind::kInfer) {
      StartInferCall(context, *route, request, std::move(responder));
    } else {
      StartAsked(context, *std::move(route), request, responder);
    }
    return true;
  };
}

}  // namespace headrace::serving
