// The services of the gRPC port.
#pragma once

#include "rpc/server.h"
#include "serving/answer/answers.h"
#include "serving/answer/observer.h"
#include "serving/model/workers.h"
#include "serving/request_log/request_logs.h"

namespace headrace::serving {

// tensorflow.serving.PredictionService and ModelService. All that is given
// outlives the methods; `observer` and `logs` may be null. Reloads, and
// requests that a model has to be loaded for, run on `workers`.
void AddPredictionService(Models& models, const AnswerOptions& options,
                          Workers& workers, AnswerObserver* observer,
                          RpcMethods* methods, RequestLogs* logs = nullptr);
// tensorflow.serving.SessionService, on `workers`. The models are loaded with
// ServableOptions::session.
void AddSessionService(Models& models, const AnswerOptions& options,
                       Workers& workers, AnswerObserver* observer,
                       RequestLogs* logs, RpcMethods* methods);
void AddModelService(Models& models, Workers& workers, RpcMethods* methods);

// grpc.health.v1.Health: SERVING while `ready` says so, for "" and the names of
// the services.
void AddHealthService(std::function<bool()> ready,
                      std::vector<std::string> services, RpcMethods* methods);

// grpc.reflection.v1alpha.ServerReflection, of what `methods` has by then and
// itself.
void AddReflectionService(RpcMethods* methods);

}  // namespace headrace::serving
