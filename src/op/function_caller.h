// The door by which a kernel (a dataset's map, If, While) calls a function of
// the graph or of the user; runtime/ implements it.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"
#include "op/attr.h"
#include "tensor/tensor.h"

namespace headrace {

struct RunServices;

// A function bound once and called many times. Thread-safe.
class BoundFunction {
 public:
  virtual ~BoundFunction() = default;
  // Runs with `inputs` (moved from; captures included) and fills `outputs`.
  virtual Status Call(const RunServices& services, absl::Span<Tensor> inputs,
                      std::vector<Tensor>* outputs) = 0;
  virtual int num_inputs() const = 0;
  virtual int num_outputs() const = 0;
};

class FunctionCaller {
 public:
  virtual ~FunctionCaller() = default;
  // NotFound when the name is unknown. The function stays valid while held.
  virtual StatusOr<std::shared_ptr<BoundFunction>> Bind(
      const FuncRef& function) = 0;
};

// Set once by runtime/ at start: resolves names in the process-wide library.
void SetDefaultFunctionCaller(FunctionCaller* caller);
FunctionCaller* DefaultFunctionCaller();

}  // namespace headrace
