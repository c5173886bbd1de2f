// The door by which a kernel (a dataset's map, If, While) calls a function of
// the graph or of the user; runtime/ implements it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"
#include "op/attr.h"
#include "tensor/tensor.h"

namespace headrace {

class FunctionLibrary;  // graph/function.h
struct RunServices;

// Repeated runs of one function by one caller (a loop), which keep what a
// single run would take and give back. Used by one thread at a time.
class FunctionRun {
 public:
  virtual ~FunctionRun() = default;
  // As BoundFunction::Call.
  virtual Status Run(absl::Span<Tensor> inputs,
                     std::vector<Tensor>* outputs) = 0;
};

// A function bound once and called many times. Thread-safe.
class BoundFunction {
 public:
  virtual ~BoundFunction() = default;
  // `services` must outlive the run, the function too.
  virtual StatusOr<std::unique_ptr<FunctionRun>> Begin(
      const RunServices& services) = 0;
  // Runs with `inputs` (moved from; captures included) and fills `outputs`.
  virtual Status Call(const RunServices& services, absl::Span<Tensor> inputs,
                      std::vector<Tensor>* outputs) = 0;
  virtual int num_inputs() const = 0;
  virtual int num_outputs() const = 0;
  // Some op of it has effects or state, or reads what others change.
  virtual bool is_stateful() const = 0;
  // The first results are the first inputs, as they are, and there are no
  // others.
  virtual bool is_identity() const = 0;
  // The same function whose random numbers begin anew, where it draws some;
  // else null.
  virtual StatusOr<std::shared_ptr<BoundFunction>> Renewed() = 0;
};

class FunctionCaller {
 public:
  virtual ~FunctionCaller() = default;
  // NotFound when the name is unknown. The function lives while the result is
  // held.
  virtual StatusOr<std::shared_ptr<BoundFunction>> Bind(
      const FuncRef& function) = 0;
  // As Bind, but holds nothing: for kernels, which are part of a plan of what
  // holds the function. Functions that call themselves would else hold
  // themselves. Calls are NotFound once the function is gone.
  virtual StatusOr<std::shared_ptr<BoundFunction>> BindLoosely(
      const FuncRef& function) = 0;
  // Where names are looked up before the process-wide library; may be null.
  virtual const FunctionLibrary* library() const = 0;
};

// Set once by runtime/ at start: resolves names in the process-wide library.
void SetDefaultFunctionCaller(FunctionCaller* caller);
FunctionCaller* DefaultFunctionCaller();
// That of the run, else the default.
FunctionCaller& CallerOf(const RunServices& services);

}  // namespace headrace
