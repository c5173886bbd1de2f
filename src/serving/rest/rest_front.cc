#include "serving/rest/rest_front.h"

#include "absl/strings/match.h"
#include "serving/rest/rest_call.h"

namespace headrace::serving {
namespace {

HttpResponse NotThere() {
  HttpResponse response;
  response.status = 404;
  response.content_type = "text/html";
  response.body =
      "<html><head><title>404 Not Found</title></head>"
      "<body><h1>Not Found</h1></body></html>\n";
  return response;
}

// What browsers ask before they let a page of another origin ask.
HttpResponse Preflight(const HttpRequest& request) {
  const StringView origin = request.header("origin");
  const bool known = absl::StrContains(origin, "http://") ||
                     absl::StrContains(origin, "https://");
  HttpResponse response;
  if (!known) {
    response = ErrorResponse(
        InvalidArgument("Malformed request: OPTIONS ", request.path));
  }
  return response;
}

using Headers = std::vector<std::pair<std::string, std::string>>;

// What lets pages of other origins read an answer.
Headers CorsHeaders(const RestOptions& options) {
  return {{"Access-Control-Allow-Origin", "*"},
          {"Access-Control-Allow-Methods", "GET, POST"},
          {"Access-Control-Allow-Headers",
           options.admit ? "Authorization, Content-Type" : "Content-Type"}};
}

// What a request is answered that may not go on.
std::optional<HttpResponse> Refusal(const RestOptions& options,
                                    const HttpRequest& head) {
  const Status s = options.admit(head);
  if (s.ok()) return std::nullopt;
  HttpResponse response = ErrorResponse(s);
  if (options.cors) response.headers = CorsHeaders(options);
  if (absl::IsUnauthenticated(s)) {
    response.headers.emplace_back("WWW-Authenticate",
                                  "Bearer realm=\"headrace\"");
  }
  return response;
}

void HandleRest(const std::shared_ptr<const RestContext>& context,
                const HttpRequest& request, HttpResponder responder) {
  const bool rest = IsRestPath(request.path);
  const bool cors = context->options.cors;
  if (cors) responder.AddHeaders(CorsHeaders(context->options));
  if (request.method == "OPTIONS" && (rest || cors)) {
    return responder.Send(Preflight(request));
  }
  for (const RestExtra& extra : context->options.extra) {
    if (extra(request, responder)) return;
  }
  if (!rest) return responder.Send(NotThere());
  RunRestCall(context, request, std::move(responder));
}

}  // namespace

StatusOr<std::unique_ptr<RestFront>> RestFront::Start(
    Models& models, const AnswerOptions& answers, const RestOptions& options) {
  if (options.max_body_bytes <= 0) {
    return InvalidArgument("a body of at most ", options.max_body_bytes,
                           " bytes is none");
  }
  HttpOptions http;
  http.port = options.port;
  http.threads = options.threads;
  http.timeout = std::chrono::milliseconds(options.timeout_ms);
  http.limits.body_bytes = options.max_body_bytes;
  http.tls = options.tls;
  std::shared_ptr<const RestContext> context(
      new RestContext{models, answers, options});
  if (options.admit) {
    http.admit = [context](const HttpRequest& head) {
      return Refusal(context->options, head);
    };
  }
  std::unique_ptr<RestFront> made(new RestFront);
  HR_ASSIGN_OR_RETURN(made->server_,
                      HttpServer::Start(http, [context = std::move(context)](
                                                  const HttpRequest& request,
                                                  HttpResponder responder) {
                        HandleRest(context, request, std::move(responder));
                      }));
  return made;
}

}  // namespace headrace::serving
