// The metrics as Prometheus reads them, as the stock server tells them.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "serving/metrics/family.h"

namespace headrace::serving::metrics {

inline constexpr char kPrometheusContentType[] = "text/plain";

// All metrics that have a cell. Sorted by name, then by labels' values.
std::string PrometheusText();
// Of these metrics alone.
std::string PrometheusText(absl::Span<AnyFamily* const> families);

}  // namespace headrace::serving::metrics
