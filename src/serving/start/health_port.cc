#include "serving/start/health_port.h"

#include "serving/start/paths.h"

namespace headrace::serving {

StatusOr<std::unique_ptr<HttpServer>> OpenHealthPort(
    int port, std::function<bool()> ready, std::string metrics_path) {
  HttpOptions options;
  options.port = port;
  options.threads = 1;
  // A few probes, a few collectors: the files are for those who ask models.
  options.most_connections = 100;
  options.limits.body_bytes = 64 << 10;
  const std::vector<RestExtra> paths = {HealthPaths(std::move(ready)),
                                        MetricsPath(std::move(metrics_path))};
  return HttpServer::Start(
      options, [paths](const HttpRequest& request, HttpResponder responder) {
        for (const RestExtra& path : paths) {
          if (path(request, responder)) return;
        }
        responder.Send(ErrorResponse(NotFound(
            "the health port has no ", request.method, " ", request.path)));
      });
}

}  // namespace headrace::serving
