// What kernels of ops that call functions share.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "op/function_caller.h"
#include "op/kernel.h"
#include "op/shape_context.h"

namespace headrace {

// A function that a kernel calls, bound at its first run.
class Callee {
 public:
  explicit Callee(FuncRef ref) : ref_(std::move(ref)) {}

  StatusOr<BoundFunction*> Get(const RunServices& services) {
    FunctionCaller* caller = &CallerOf(services);
    MutexLock lock(mutex_);
    if (!bound_ || caller != caller_) {
      HR_ASSIGN_OR_RETURN(bound_, caller->BindLoosely(ref_));
      caller_ = caller;
    }
    return bound_.get();
  }

 private:
  const FuncRef ref_;
  Mutex mutex_;
  FunctionCaller* caller_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::shared_ptr<BoundFunction> bound_ ABSL_GUARDED_BY(mutex_);
};

// Calls the function with the inputs from `first_input` on.
Status CallWith(KernelContext& c, Callee& callee, int first_input);

// Shapes that the caller wrote into `output_shapes`, else what all possible
// callees agree on, where they are known process-wide.
Status CalledShapes(ShapeContext& c);

}  // namespace headrace
