// The gRPC service of the Open Inference Protocol.
#pragma once

#include <memory>

#include "rpc/server.h"
#include "serving/answer/observer.h"
#include "serving/model/workers.h"
#include "serving/v2/model_facts.h"

namespace headrace::serving {

// inference.GRPCInferenceService. `workers` outlives the methods: loads, and
// requests that a model has to be loaded for, run on them. `observer`, which
// may be null, is told of "ModelInfer".
void AddInferenceService(std::shared_ptr<InferenceServer> server,
                         Workers& workers, AnswerObserver* observer,
                         RpcMethods* methods);

}  // namespace headrace::serving
