// Loops as the engine runs them: one program holds a turn and the condition on
// what it made, without the variables that nobody asks for.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "runtime/bound/bound_turns.h"
#include "runtime/deferred_sums.h"
#include "runtime/program.h"
#include "runtime/turns.h"

namespace headrace {

// A loop's condition and body, ready to run. Immutable; thread-safe. Holds no
// function, as it is part of what functions hold: those that call themselves
// would else hold themselves.
class LoopPlan {
 public:
  struct Parts {
    Program cond, body;  // feeds: the variables; body's fetches: the next ones
  };
  static StatusOr<std::unique_ptr<LoopPlan>> Make(Parts parts);

  // Whether turns are bound calls, for variables that fit.
  bool bound() const { return bound_ != nullptr; }

  // `state`: the variables, before and after.
  Status Run(const RunServices& services, std::vector<Tensor>* state) const;

 private:
  LoopPlan() = default;
  Status RunTurns(const RunServices& services,
                  std::vector<Tensor>* state) const;
  // One turn's values, to be summed up.
  Status Push(const Turns& turns, LoopSums* sums) const;

  std::unique_ptr<Executable> cond_;
  std::unique_ptr<BoundTurns> bound_;  // where all turns are small; else null
  std::unique_ptr<TurnPlan> turn_;
  DeferredSums sums_;
};

// Appends `cond`, of the values that `turn` makes for the next one, and fetches
// its result behind them.
void AppendCondition(const Program& cond, Program* turn);

// Gives the While calls of `p` kernels of their own, and drops the loops'
// variables that no result, effect or condition needs. Loops whose functions
// are not found or do not fit are left alone (the run reports it), and so are
// those that `budget` has nothing left for.
void PlanLoops(Program& p, const FunctionLibrary* library, PlanBudget* budget);

// While, eager and planned. Thread-safe; the plan is made at the first run and
// shared by all.
class LoopKernel : public Kernel {
 public:
  // Finds the functions by name when it runs; their plan is kept with the body,
  // for all loops of these functions.
  explicit LoopKernel(const ResolvedOp&) {}
  // Of a loop that is part of a larger plan.
  explicit LoopKernel(LoopPlan::Parts parts)
      : parts_(std::make_unique<LoopPlan::Parts>(std::move(parts))) {}

  Status Run(KernelContext& c) override;
  bool own_outputs() const override { return true; }

 private:
  StatusOr<std::shared_ptr<const LoopPlan>> GetPlan(const KernelContext& c);

  Mutex mutex_;
  // The programs, until they are planned; null where names are looked up.
  std::unique_ptr<LoopPlan::Parts> parts_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const LoopPlan> plan_ ABSL_GUARDED_BY(mutex_);
  // What was found by name, and for whom; the body holds it.
  std::weak_ptr<const LoopPlan> found_ ABSL_GUARDED_BY(mutex_);
  const FunctionCaller* caller_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

// Whether a loop goes on: a non-zero number, true, or a non-empty string or
// tensor.
StatusOr<bool> Truth(const Tensor& t);

}  // namespace headrace
