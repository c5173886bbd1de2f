// Loops as the engine runs them: one program holds a turn and the condition on
// what it made, without the variables that nobody asks for.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "runtime/deferred_sums.h"
#include "runtime/program.h"
#include "runtime/turns.h"

namespace headrace {

// Gives the While calls of `p` kernels of their own, and drops the loops'
// variables that no result, effect or condition needs. Loops whose functions
// are not found or do not fit are left alone (the run reports it), and so are
// those that `budget` has nothing left for.
void PlanLoops(Program& p, const FunctionLibrary* library, PlanBudget* budget);

// A While whose functions are known. Thread-safe; its plans, made at the first
// run, are shared by all.
class LoopKernel : public Kernel {
 public:
  struct Parts {
    Program cond, body;  // feeds: the variables; body's fetches: the next ones
    std::vector<FunctionPtr> functions;  // kept for what the programs name
  };
  explicit LoopKernel(Parts parts) : parts_(std::move(parts)) {}

  Status Run(KernelContext& c) override;
  bool own_outputs() const override { return true; }

 private:
  struct Plan {
    std::unique_ptr<Executable> cond;
    std::unique_ptr<TurnPlan> turn;
    DeferredSums sums;
  };
  StatusOr<const Plan*> GetPlan();
  // One turn's values, to be summed up.
  static Status Push(const Plan& plan, const Turns& turns, LoopSums* sums);
  static Status RunTurns(const Plan& plan, const KernelContext& c,
                         std::vector<Tensor>* state);

  Mutex mutex_;
  // The programs, until they are planned.
  Parts parts_ ABSL_GUARDED_BY(mutex_);
  // Never changes once it is made.
  std::unique_ptr<Plan> plan_ ABSL_GUARDED_BY(mutex_);
};

// Whether a loop goes on: a non-zero number, true, or a non-empty string or
// tensor.
StatusOr<bool> Truth(const Tensor& t);

}  // namespace headrace
