#include "serving/metrics/monitoring_config.h"

#include "serving/proto_file.h"

namespace headrace::serving::metrics {

StatusOr<tensorflow::serving::MonitoringConfig> ReadMonitoringConfig(
    const std::string& path) {
  tensorflow::serving::MonitoringConfig config;
  HR_RETURN_IF_ERROR(ReadProtoFile(path, &config));
  auto* prometheus = config.mutable_prometheus_config();
  if (prometheus->path().empty()) prometheus->set_path(kDefaultMetricsPath);
  if (prometheus->path()[0] != '/') {
    return InvalidArgument("prometheus_config.path must begin with a slash: ",
                           prometheus->path());
  }
  return config;
}

}  // namespace headrace::serving::metrics
