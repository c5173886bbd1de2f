// Where requests run: small models on the thread that read the request, others
// on threads of their own, so that nobody waits behind a long run for a short
// answer.
#pragma once

#include "serving/model/runner.h"
#include "serving/model/workers.h"

namespace headrace::serving {

// `workers` outlives it.
RunnerPtr Dispatched(RunnerPtr runner, Workers* workers);

}  // namespace headrace::serving
