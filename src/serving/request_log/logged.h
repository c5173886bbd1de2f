// A request on its way, to be kept with its answer.
#pragma once

#include <memory>
#include <utility>

#include "base/guard.h"
#include "serving/answer/answers.h"
#include "serving/answer/specs.h"
#include "serving/request_log/request_logs.h"

namespace headrace::serving {

// The part of a log that is of a request's kind.
inline auto* PartFor(const tensorflow::serving::PredictRequest&,
                     PredictionLog* log) {
  return log->mutable_predict_log();
}
inline auto* PartFor(const tensorflow::serving::ClassificationRequest&,
                     PredictionLog* log) {
  return log->mutable_classify_log();
}
inline auto* PartFor(const tensorflow::serving::RegressionRequest&,
                     PredictionLog* log) {
  return log->mutable_regress_log();
}
inline auto* PartFor(const tensorflow::serving::MultiInferenceRequest&,
                     PredictionLog* log) {
  return log->mutable_multi_inference_log();
}
inline auto* PartFor(const tensorflow::serving::SessionRunRequest&,
                     PredictionLog* log) {
  return log->mutable_session_run_log();
}

// `done`, which besides logs the request (a copy of it) with its response.
// Requests that fail are not logged, nor those that there is no memory to copy.
template <typename Request, typename Response>
Done<Response> LoggedTo(RequestLogPtr log, const Request& request,
                        Done<Response> done) {
  if (log == nullptr) return done;
  struct Kept {
    Request request;
    PredictionLog log;
  };
  std::shared_ptr<Kept> kept;
  const Status copied = Guarded("logging a request", [&] {
    kept = std::make_shared<Kept>();
    kept->request = request;
    return OkStatus();
  });
  if (!copied.ok()) return done;
  return [log = std::move(log), kept = std::move(kept),
          done = std::move(done)](StatusOr<Response> response) {
    if (response.ok()) {
      Guarded("logging a request", [&] {
        auto* part = PartFor(kept->request, &kept->log);
        *part->mutable_request() = std::move(kept->request);
        *part->mutable_response() = *response;
        log->Log(SpecOf(*response), std::move(kept->log));
        return OkStatus();
      }).IgnoreError();
    }
    done(std::move(response));
  };
}

// The same where the model has a log and the request is sampled; `logs` may be
// null.
template <typename Request, typename Response>
Done<Response> Logged(RequestLogs* logs, const Request& request,
                      Done<Response> done) {
  if (logs == nullptr) return done;
  return LoggedTo<Request, Response>(logs->Sampled(SpecOf(request).name()),
                                     request, std::move(done));
}

}  // namespace headrace::serving
