// All metrics of the server. A call looks its cell up (some 100 ns); who
// records often keeps what it got. Texts of latencies say their unit.
#pragma once

#include <optional>
#include <vector>

#include "serving/metrics/family.h"

namespace headrace::serving::metrics {

// --- Those of the stock server. ---
// Predict, Classify and Regress over gRPC; every request over REST. `status` is
// a code's name: CodeName.
CounterPtr RequestCount(StringView model, StringView status);
// Microseconds of requests that succeeded. `entrypoint` is "GRPC" or "REST";
// `api` "Predict", "Classify" and "Regress" with the one, the verb in lower
// case with the other ("" for GET).
HistogramPtr RequestLatency(StringView model, StringView api,
                            StringView entrypoint);
// Microseconds of the run alone. `runtime` is "TF1".
HistogramPtr RuntimeLatency(StringView model, StringView api,
                            StringView runtime = "TF1");
// Examples of a request of MultiInference, and of all of them.
HistogramPtr RequestExampleCounts(StringView model);
CounterPtr RequestExampleCountTotal(StringView model);
CounterPtr RequestLogCount(StringView model, StringView status_code);
// Microseconds.
HistogramPtr ModelWarmupLatency(StringView model_path, StringView status);
CounterPtr ModelWarmupRecordsRead(StringView model_path, StringView status);
// Microseconds that a task waited.
HistogramPtr BatchQueuingLatency(StringView thread_pool_name);
CounterPtr BatchWrappedRunCount();
// Rows that a batch was filled up with.
HistogramPtr BatchPaddingSize(int64_t execution_batch_size);
// Rows of a request, and of a batch as it runs.
HistogramPtr BatchInputSize();
HistogramPtr BatchProcessedSize();
// 1 for a version with assets.extra/mlmd_uuid, whose text is `uuid`.
GaugePtr MlmdMap(StringView model, int64_t version, StringView uuid);
CounterPtr GraphRuns();
// Microseconds, summed.
CounterPtr LoadLatency(StringView model_path);
CounterPtr LoadAttemptCount(StringView model_path, StringView status);

// --- Ours. ---
// What request_latency is told by, as Prometheus' labels are.
struct RequestLabels {
  StringView model_name;
  int64_t version = 0;
  StringView signature, method, entrypoint, status;
};
// Microseconds, of requests that failed, too.
HistogramPtr DetailedRequestLatency(const RequestLabels& labels);
GaugePtr InFlight(StringView model);
// Tasks that wait in a batch queue, and rows of the batches that ran.
GaugePtr QueueDepth(StringView model, int64_t version, StringView signature);
HistogramPtr BatchSize(StringView model, int64_t version, StringView signature);
GaugePtr ModelMemoryBytes(StringView model, int64_t version);
GaugePtr ModelLoadSeconds(StringView model, int64_t version);
// Read when the metrics are told.
GaugePtr ProcessResidentBytes();

// All of them, by name.
const std::vector<AnyFamily*>& AllFamilies();

// A code as labels have it: "OK", "INVALID_ARGUMENT".
StringView CodeName(const Status& status);

// Drops the cells of a version that was unloaded.
void ForgetVersion(StringView model, int64_t version);

// The value of a metric's first cell, as HandleReloadConfigRequest asks for; of
// a histogram, how many it counted. None where there is no such metric.
std::optional<int64_t> FirstCell(StringView name);

}  // namespace headrace::serving::metrics
