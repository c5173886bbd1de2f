#include "serving/start/paths.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/match.h"
#include "base/guard.h"
#include "serving/json/proto_answers.h"
#include "serving/metrics/prometheus.h"
#include "serving/proto_file.h"

namespace headrace::serving {
namespace {

StatusOr<ModelServerConfig> ConfigIn(const std::string& body, bool is_text) {
  ModelServerConfig config;
  if (is_text) {
    HR_RETURN_IF_ERROR(ReadProtoConfig(body, "the request's body", &config));
    return config;
  }
  const auto parsed =
      google::protobuf::util::JsonStringToMessage(body, &config);
  if (!parsed.ok()) {
    return InvalidArgument(
        "the body is no ModelServerConfig: ",
        StringView(parsed.message().data(), parsed.message().size()));
  }
  return config;
}

HttpResponse ConfigResponse(Models& models) {
  HttpResponse response;
  StatusOr<std::string> json = ProtoJson(models.Config());
  if (!json.ok()) return ErrorResponse(json.status());
  response.body = *std::move(json);
  return response;
}

void Replace(Models& models, const std::string& body, bool is_text,
             const HttpResponder& responder) {
  HttpResponse response;
  const Status s = Guarded("a reload", [&]() -> Status {
    HR_ASSIGN_OR_RETURN(const ModelServerConfig config,
                        ConfigIn(body, is_text));
    HR_RETURN_IF_ERROR(models.Reload(config));
    HR_ASSIGN_OR_RETURN(response.body, ProtoJson(models.Config()));
    return OkStatus();
  });
  responder.Send(s.ok() ? std::move(response) : ErrorResponse(s));
}

}  // namespace

RestExtra MetricsPath(std::string path) {
  return [path = std::move(path)](const HttpRequest& request,
                                  HttpResponder responder) {
    if (request.path != path || request.method != "GET") return false;
    HttpResponse response;
    response.content_type = metrics::kPrometheusContentType;
    response.body = metrics::PrometheusText();
    responder.Send(std::move(response));
    return true;
  };
}

RestExtra HealthPaths(std::function<bool()> ready) {
  return [ready = std::move(ready)](const HttpRequest& request,
                                    HttpResponder responder) {
    const bool live = request.path == "/v2/health/live";
    if (!live && request.path != "/v2/health/ready") return false;
    if (request.method != "GET") return false;
    HttpResponse response;
    response.status = live || ready() ? 200 : 503;
    responder.Send(std::move(response));
    return true;
  };
}

RestExtra ConfigPath(Models& models, Workers& workers) {
  return
      [&models, &workers](const HttpRequest& request, HttpResponder responder) {
        if (request.path != "/v1/config") return false;
        if (request.method == "GET") {
          responder.Send(ConfigResponse(models));
          return true;
        }
        if (request.method != "POST") return false;
        const bool is_text =
            absl::StartsWith(request.header("Content-Type"), "text/plain");
        workers.Run([&models, body = std::string(request.body), is_text,
                     responder] { Replace(models, body, is_text, responder); });
        return true;
      };
}

}  // namespace headrace::serving
