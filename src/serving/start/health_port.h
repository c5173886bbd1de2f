// --health_port: what probes and collectors of metrics ask, without TLS and
// without tokens.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serving/http/http_server.h"

namespace headrace::serving {

// GET /v2/health/live, /v2/health/ready and `metrics_path`; 404 for all else.
// Errors of HttpServer::Start.
StatusOr<std::unique_ptr<HttpServer>> OpenHealthPort(
    int port, std::function<bool()> ready, std::string metrics_path);

}  // namespace headrace::serving
