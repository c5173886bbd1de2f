#include "serving/start/recorder.h"

#include "serving/metrics/metrics.h"

namespace headrace::serving {

namespace {

constexpr char kGrpc[] = "GRPC";
constexpr char kRest[] = "REST";

// `count`: whether the stock server's metrics count it, under the name `api`.
void Record(const std::string& model, const Answered& answered,
            StringView entrypoint, StringView api, bool count) {
  const double us =
      std::chrono::duration<double, std::micro>(answered.time).count();
  const StringView code = metrics::CodeName(answered.status);
  if (count) {
    metrics::RequestCount(model, code)->Increment();
    if (answered.status.ok()) {
      metrics::RequestLatency(model, api, entrypoint)->Record(us);
    }
  }
  metrics::RequestLabels labels;
  labels.model_name = model;
  labels.version = answered.spec.version().value();
  labels.signature = answered.spec.signature_name();
  labels.method = answered.method;
  labels.entrypoint = entrypoint;
  labels.status = code;
  metrics::DetailedRequestLatency(labels)->Record(us);
}

}  // namespace

void GrpcRecorder::Began(const std::string& model) {
  metrics::InFlight(model)->Add(1);
}

void GrpcRecorder::Ended(const std::string& model, const Answered& answered) {
  metrics::InFlight(model)->Add(-1);
  // As in the stock server these are not counted with the others.
  const bool apart =
      answered.method == "MultiInference" || answered.method == "SessionRun";
  Record(model, answered, kGrpc, answered.method, !apart);
}

void RecordRest(const Answered& answered) {
  const bool get = answered.method == "status" || answered.method == "metadata";
  Record(answered.spec.name(), answered, kRest, get ? "" : answered.method,
         true);
}

}  // namespace headrace::serving
