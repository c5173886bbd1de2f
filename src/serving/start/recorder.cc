#include "serving/start/recorder.h"

#include "serving/metrics/metrics.h"

namespace headrace::serving {

namespace {

constexpr char kGrpc[] = "GRPC";
constexpr char kRest[] = "REST";

// `count`: whether the stock server's metrics count it, under the name `api`.
void Record(const std::string& model, const ModelSpec& spec, StringView method,
            StringView entrypoint, StringView api, bool count,
            const Status& status, std::chrono::nanoseconds time) {
  const double us = std::chrono::duration<double, std::micro>(time).count();
  const StringView code = metrics::CodeName(status);
  if (count) {
    metrics::RequestCount(model, code)->Increment();
    if (status.ok())
      metrics::RequestLatency(model, api, entrypoint)->Record(us);
  }
  metrics::RequestLabels labels;
  labels.model_name = model;
  labels.version = spec.version().value();
  labels.signature = spec.signature_name();
  labels.method = method;
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
  // As in the stock server MultiInference is not counted with the others.
  Record(model, answered.spec, answered.method, kGrpc, answered.method,
         answered.method != "MultiInference", answered.status, answered.time);
}

void RecordRest(const ModelSpec& spec, StringView method, const Status& status,
                std::chrono::nanoseconds time) {
  const bool get = method == "status" || method == "metadata";
  Record(spec.name(), spec, method, kRest, get ? "" : method, true, status,
         time);
}

}  // namespace headrace::serving
