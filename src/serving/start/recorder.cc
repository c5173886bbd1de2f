#include "serving/start/recorder.h"

#include "serving/metrics/metrics.h"

namespace headrace::serving {

constexpr char kGrpc[] = "GRPC";

void GrpcRecorder::Began(const std::string& model) {
  metrics::InFlight(model)->Add(1);
}

void GrpcRecorder::Ended(const std::string& model, const Answered& answered) {
  metrics::InFlight(model)->Add(-1);
  const double us =
      std::chrono::duration<double, std::micro>(answered.time).count();
  const StringView code = metrics::CodeName(answered.status);
  // As in the stock server MultiInference is not counted with the others.
  if (answered.method != "MultiInference") {
    metrics::RequestCount(model, code)->Increment();
    if (answered.status.ok()) {
      metrics::RequestLatency(model, answered.method, kGrpc)->Record(us);
    }
  }
  metrics::RequestLabels labels;
  labels.model_name = model;
  labels.version = answered.spec.version().value();
  labels.signature = answered.spec.signature_name();
  labels.method = answered.method;
  labels.entrypoint = kGrpc;
  labels.status = code;
  metrics::DetailedRequestLatency(labels)->Record(us);
}

}  // namespace headrace::serving
