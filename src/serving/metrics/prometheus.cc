#include "serving/metrics/prometheus.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>

#include "serving/metrics/metrics.h"

namespace headrace::serving::metrics {
namespace {

std::string PrometheusName(StringView name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') || c == '_';
    out.push_back(plain ? c : ':');
  }
  return out;
}

void AppendLabel(StringView name, StringView value, std::string* out) {
  absl::StrAppend(out, name, "=\"");
  for (const char c : value) {
    if (c == '\n') {
      out->append("\\n");
      continue;
    }
    if (c == '\\' || c == '"') out->push_back('\\');
    out->push_back(c);
  }
  out->push_back('"');
}

std::string LabelText(const std::vector<const char*>& names,
                      const LabelValues& values) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out.push_back(',');
    AppendLabel(names[i], values[i], &out);
  }
  return out;
}

// The shortest text that reads back as the number.
std::string NumberText(double x) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, x);
  return std::string(text, end.ptr);
}

void AppendHistogram(const std::string& name, const std::string& labels,
                     const Histogram& h, std::string* out) {
  const std::vector<int64_t> counts = h.counts();
  int64_t sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    sum += counts[i];
    char limit[32] = "+Inf";
    if (i < h.limits().size()) {
      std::snprintf(limit, sizeof limit, "%.6g", h.limits()[i]);
    }
    absl::StrAppend(out, name, "_bucket{", labels, labels.empty() ? "" : ",",
                    "le=\"", limit, "\"} ", sum, "\n");
  }
  absl::StrAppend(out, name, "_sum{", labels, "} ", NumberText(h.sum()), "\n");
  absl::StrAppend(out, name, "_count{", labels, "} ", sum, "\n");
}

void AppendFamily(const AnyFamily& family, std::string* out) {
  const std::string name = PrometheusName(family.name());
  bool begun = false;
  const auto labels_of = [&](const LabelValues& values) {
    if (!begun) absl::StrAppend(out, "# TYPE ", name, " ", family.kind(), "\n");
    begun = true;
    return LabelText(family.labels(), values);
  };
  family.Visit({[&](const LabelValues& values, const Counter& c) {
                  absl::StrAppend(out, name, "{", labels_of(values), "} ",
                                  c.value(), "\n");
                },
                [&](const LabelValues& values, const Gauge& g) {
                  absl::StrAppend(out, name, "{", labels_of(values), "} ",
                                  NumberText(g.value()), "\n");
                },
                [&](const LabelValues& values, const Histogram& h) {
                  AppendHistogram(name, labels_of(values), h, out);
                }});
}

// Bytes of this process in memory; 0 where the system does not tell.
double ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  long total = 0, resident = 0;
  const int read = std::fscanf(file, "%ld %ld", &total, &resident);
  std::fclose(file);
  if (read != 2) return 0;
  return static_cast<double>(resident) *
         static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::string PrometheusText() {
  ProcessResidentBytes()->Set(ResidentBytes());
  return PrometheusText(AllFamilies());
}

std::string PrometheusText(absl::Span<AnyFamily* const> families) {
  std::string out;
  for (const AnyFamily* family : families) AppendFamily(*family, &out);
  return out;
}

}  // namespace headrace::serving::metrics
