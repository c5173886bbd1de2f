// What the REST port has besides the stock server's paths.
#pragma once

#include <functional>
#include <string>

#include "serving/model/workers.h"
#include "serving/rest/rest_front.h"

namespace headrace::serving {

// GET of `path`: the metrics, for Prometheus.
RestExtra MetricsPath(std::string path);
// GET /v2/health/live: 200. GET /v2/health/ready: 200 while `ready` says so,
// else 503.
RestExtra HealthPaths(std::function<bool()> ready);
// GET /v1/config: the config in force, as JSON. POST: one to take its place, as
// JSON, or as text proto where the Content-Type is text/plain.
RestExtra ConfigPath(Models& models, Workers& workers);

}  // namespace headrace::serving
