// --monitoring_config_file: whether and where metrics are told.
#pragma once

#include <string>

#include "base/status.h"
#include "tensorflow_serving/config/monitoring_config.pb.h"

namespace headrace::serving::metrics {

inline constexpr char kDefaultMetricsPath[] = "/monitoring/prometheus/metrics";

// The path is filled in where the file gives none. InvalidArgument for a file
// that is no MonitoringConfig and for a path that does not begin with a slash.
StatusOr<tensorflow::serving::MonitoringConfig> ReadMonitoringConfig(
    const std::string& path);

}  // namespace headrace::serving::metrics
