// What runs requests: one signature of a version, with chosen outputs.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "serving/model/call.h"
#include "tensor/tensor.h"

namespace headrace::serving {

using Tensors = std::vector<Tensor>;
// Called once, in any thread, perhaps before the function returns that was
// given it.
using RunDone = std::function<void(StatusOr<Tensors>)>;

// Thread-safe. Lives as long as its version.
class Runner {
 public:
  virtual ~Runner() = default;
  // One tensor for each of the signature's inputs, in their order; gives one
  // for each output. DeadlineExceeded and Cancelled by the call's stop.
  virtual void Run(CallPtr call, Tensors inputs, RunDone done) = 0;
};
using RunnerPtr = std::shared_ptr<Runner>;

}  // namespace headrace::serving
