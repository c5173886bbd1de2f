#include "serving/metrics/metrics.h"

#include <algorithm>

namespace headrace::serving::metrics {
namespace {

// scale * growth^i, for i from 0 to count - 1.
std::vector<double> Exponential(double scale, double growth, int count) {
  std::vector<double> limits;
  double limit = scale;
  for (int i = 0; i < count; ++i, limit *= growth) limits.push_back(limit);
  return limits;
}
std::vector<double> Latencies() { return Exponential(10, 1.8, 33); }
std::vector<double> BatchSizes() { return Exponential(1, 2, 14); }

#define HR_STOCK(name) "/tensorflow/serving/" name
#define HR_BATCHING(name) "/tensorflow/serving/batching_session/" name
#define HR_OURS(name) "/headrace/serving/" name

// The metrics: name, labels in the order in which they are told, limits of
// buckets.
struct Table {
  Family<Counter> request_count{HR_STOCK("request_count"),
                                {"model_name", "status"}};
  Family<Histogram> request_latency{HR_STOCK("request_latency"),
                                    {"model_name", "API", "entrypoint"},
                                    Latencies()};
  Family<Histogram> runtime_latency{HR_STOCK("runtime_latency"),
                                    {"model_name", "API", "runtime"},
                                    Latencies()};
  Family<Histogram> request_example_counts{
      HR_STOCK("request_example_counts"), {"model"}, Exponential(1, 2, 15)};
  Family<Counter> request_example_count_total{
      HR_STOCK("request_example_count_total"), {"model"}};
  Family<Counter> request_log_count{HR_STOCK("request_log_count"),
                                    {"model_name", "status_code"}};
  Family<Histogram> model_warmup_latency{
      HR_STOCK("model_warmup_latency"), {"model_path", "status"}, Latencies()};
  Family<Counter> model_warmup_records_read{
      HR_STOCK("model_warmup_records_read"), {"model_path", "status"}};
  Family<Histogram> queuing_latency{HR_BATCHING("queuing_latency"),
                                    {"thread_pool_name"},
                                    Exponential(100, 1.2, 52)};
  Family<Counter> wrapped_run_count{HR_BATCHING("wrapped_run_count"), {}};
  Family<Histogram> padding_size{
      HR_BATCHING("padding_size"), {"execution_batch_size"}, BatchSizes()};
  Family<Histogram> input_batch_size{
      HR_BATCHING("input_batch_size"), {}, BatchSizes()};
  Family<Histogram> processed_batch_size{
      HR_BATCHING("processed_batch_size"), {}, BatchSizes()};
  // The stock server's labels and, as a value of Prometheus is a number, the
  // text.
  Family<Gauge> mlmd_map{HR_STOCK("mlmd_map"),
                         {"model_name", "version", "mlmd_uuid"}};
  Family<Counter> graph_runs{"/tensorflow/core/graph_runs", {}};
  Family<Counter> load_latency{"/tensorflow/cc/saved_model/load_latency",
                               {"model_path"}};
  Family<Counter> load_attempt_count{
      "/tensorflow/cc/saved_model/load_attempt_count",
      {"model_path", "status"}};

  Family<Histogram> detailed_latency{
      HR_OURS("request_latency"),
      {"model_name", "version", "signature", "method", "entrypoint", "status"},
      Latencies()};
  Family<Gauge> in_flight{HR_OURS("in_flight"), {"model_name"}};
  Family<Gauge> queue_depth{HR_OURS("queue_depth"),
                            {"model_name", "version", "signature"}};
  Family<Histogram> batch_size{HR_OURS("batch_size"),
                               {"model_name", "version", "signature"},
                               BatchSizes()};
  Family<Gauge> model_memory_bytes{HR_OURS("model_memory_bytes"),
                                   {"model_name", "version"}};
  Family<Gauge> model_load_seconds{HR_OURS("model_load_seconds"),
                                   {"model_name", "version"}};
  Family<Gauge> process_resident_bytes{HR_OURS("process_resident_bytes"), {}};

  std::vector<AnyFamily*> all = {&request_count,
                                 &request_latency,
                                 &runtime_latency,
                                 &request_example_counts,
                                 &request_example_count_total,
                                 &request_log_count,
                                 &model_warmup_latency,
                                 &model_warmup_records_read,
                                 &queuing_latency,
                                 &wrapped_run_count,
                                 &padding_size,
                                 &input_batch_size,
                                 &processed_batch_size,
                                 &mlmd_map,
                                 &graph_runs,
                                 &load_latency,
                                 &load_attempt_count,
                                 &detailed_latency,
                                 &in_flight,
                                 &queue_depth,
                                 &batch_size,
                                 &model_memory_bytes,
                                 &model_load_seconds,
                                 &process_resident_bytes};

  Table() {
    std::sort(all.begin(), all.end(), [](AnyFamily* a, AnyFamily* b) {
      return StringView(a->name()) < StringView(b->name());
    });
  }
};
#undef HR_STOCK
#undef HR_BATCHING
#undef HR_OURS

// Lives for ever: threads that end late may still record.
Table& The() {
  static Table* const table = new Table;
  return *table;
}

}  // namespace

CounterPtr RequestCount(StringView model, StringView status) {
  return The().request_count.At({model, status});
}
HistogramPtr RequestLatency(StringView model, StringView api,
                            StringView entrypoint) {
  return The().request_latency.At({model, api, entrypoint});
}
HistogramPtr RuntimeLatency(StringView model, StringView api,
                            StringView runtime) {
  return The().runtime_latency.At({model, api, runtime});
}
HistogramPtr RequestExampleCounts(StringView model) {
  return The().request_example_counts.At({model});
}
CounterPtr RequestExampleCountTotal(StringView model) {
  return The().request_example_count_total.At({model});
}
CounterPtr RequestLogCount(StringView model, StringView status_code) {
  return The().request_log_count.At({model, status_code});
}
HistogramPtr ModelWarmupLatency(StringView model_path, StringView status) {
  return The().model_warmup_latency.At({model_path, status});
}
CounterPtr ModelWarmupRecordsRead(StringView model_path, StringView status) {
  return The().model_warmup_records_read.At({model_path, status});
}
HistogramPtr BatchQueuingLatency(StringView thread_pool_name) {
  return The().queuing_latency.At({thread_pool_name});
}
CounterPtr BatchWrappedRunCount() { return The().wrapped_run_count.At({}); }
HistogramPtr BatchPaddingSize(int64_t execution_batch_size) {
  return The().padding_size.At({absl::StrCat(execution_batch_size)});
}
HistogramPtr BatchInputSize() { return The().input_batch_size.At({}); }
HistogramPtr BatchProcessedSize() { return The().processed_batch_size.At({}); }
GaugePtr MlmdMap(StringView model, int64_t version, StringView uuid) {
  return The().mlmd_map.At({model, absl::StrCat(version), uuid});
}
CounterPtr GraphRuns() { return The().graph_runs.At({}); }
CounterPtr LoadLatency(StringView model_path) {
  return The().load_latency.At({model_path});
}
CounterPtr LoadAttemptCount(StringView model_path, StringView status) {
  return The().load_attempt_count.At({model_path, status});
}
HistogramPtr DetailedRequestLatency(const RequestLabels& l) {
  return The().detailed_latency.At({l.model_name, absl::StrCat(l.version),
                                    l.signature, l.method, l.entrypoint,
                                    l.status});
}
GaugePtr InFlight(StringView model) { return The().in_flight.At({model}); }
GaugePtr QueueDepth(StringView model, int64_t version, StringView signature) {
  return The().queue_depth.At({model, absl::StrCat(version), signature});
}
HistogramPtr BatchSize(StringView model, int64_t version,
                       StringView signature) {
  return The().batch_size.At({model, absl::StrCat(version), signature});
}
GaugePtr ModelMemoryBytes(StringView model, int64_t version) {
  return The().model_memory_bytes.At({model, absl::StrCat(version)});
}
GaugePtr ModelLoadSeconds(StringView model, int64_t version) {
  return The().model_load_seconds.At({model, absl::StrCat(version)});
}
GaugePtr ProcessResidentBytes() { return The().process_resident_bytes.At({}); }

const std::vector<AnyFamily*>& AllFamilies() { return The().all; }

StringView CodeName(const Status& status) {
  static constexpr StringView kNames[] = {"OK",
                                          "CANCELLED",
                                          "UNKNOWN",
                                          "INVALID_ARGUMENT",
                                          "DEADLINE_EXCEEDED",
                                          "NOT_FOUND",
                                          "ALREADY_EXISTS",
                                          "PERMISSION_DENIED",
                                          "RESOURCE_EXHAUSTED",
                                          "FAILED_PRECONDITION",
                                          "ABORTED",
                                          "OUT_OF_RANGE",
                                          "UNIMPLEMENTED",
                                          "INTERNAL",
                                          "UNAVAILABLE",
                                          "DATA_LOSS",
                                          "UNAUTHENTICATED"};
  // code() maps the numbers that it does not know to kUnknown.
  return kNames[static_cast<size_t>(status.code())];
}

void ForgetVersion(StringView model, int64_t version) {
  const std::string number = absl::StrCat(version);
  for (AnyFamily* family : AllFamilies()) {
    // The model and its version are always the first two labels.
    if (family->labels().size() < 2 ||
        family->labels()[1] != StringView("version")) {
      continue;
    }
    family->Forget([&](const LabelValues& values) {
      return values[0] == model && values[1] == number;
    });
  }
}

std::optional<int64_t> FirstCell(StringView name) {
  for (const AnyFamily* family : AllFamilies()) {
    if (name != family->name()) continue;
    std::optional<int64_t> first;
    const auto keep = [&](int64_t value) {
      if (!first) first = value;
    };
    family->Visit(
        {[&](const LabelValues&, const Counter& c) { keep(c.value()); },
         [&](const LabelValues&, const Gauge& g) {
           keep(static_cast<int64_t>(g.value()));
         },
         [&](const LabelValues&, const Histogram& h) { keep(h.count()); }});
    return first.value_or(0);
  }
  return std::nullopt;
}

}  // namespace headrace::serving::metrics
