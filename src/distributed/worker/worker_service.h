// The methods of tensorflow.WorkerService.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "distributed/worker/worker.h"

namespace headrace::distributed {

// By path. Calls under way hold the worker.
std::map<std::string, Method> WorkerMethods(std::shared_ptr<Worker> worker);

}  // namespace headrace::distributed
