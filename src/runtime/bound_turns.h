// Turns of a loop on small values as lists of bound calls on fixed memory
// (op/passes/binds_calls.h): nothing is allocated, checked or counted between
// them, so that a call takes a few nanoseconds.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "op/passes/binds_calls.h"
#include "runtime/executable.h"
#include "runtime/program.h"

namespace headrace {

// Immutable; thread-safe.
class BoundTurns {
 public:
  // `turn` (optimised, not fused): fetch i is the next feed i, the fetch behind
  // these tells whether another turn follows. Null where some call has effects
  // or holds state, makes something large, or whose shape is not known for
  // certain: such loops run as TurnPlan does it, with the same bits.
  // Kernels of `turn` may be bound.
  static std::unique_ptr<BoundTurns> Make(Program& turn);
  ~BoundTurns();

  // Whether the variables are what the turns were bound for.
  bool Fit(absl::Span<const Tensor> state) const;
  // `state`: variables that fit, before and after. At least one turn.
  Status Run(const RunServices& services, std::vector<Tensor>* state) const;

  // Of one turn, for tests.
  int num_calls() const { return static_cast<int>(calls_.size()); }
  int num_kernel_calls() const {
    return static_cast<int>(std::count_if(
        calls_.begin(), calls_.end(),
        [](const TurnCall& c) { return c.bound.run == nullptr; }));
  }
  // Those made once, before the turns.
  int num_moved_out() const { return moved_out_ ? moved_out_->num_steps() : 0; }

 private:
  class Maker;
  struct KernelCall;
  struct Workspace;
  // Where a value lies in turns 0, 2, 4 ... and in turns 1, 3, 5 ...: a
  // variable has two memories, of which a turn reads one and writes the other.
  struct Value {
    DType dtype;
    Shape shape;
    int64_t place[2] = {-1, -1};  // in the workspace's memory, in bytes
    int held = -1;                // or a tensor of its own, which may be large
    size_t bytes() const { return shape.num_elements() * DTypeSize(dtype); }
  };
  // A call of every turn.
  struct TurnCall {
    BoundCall bound;                    // `run` is null: by the kernel
    const BindsCalls* binds = nullptr;  // where `bound` may fail
    std::shared_ptr<Kernel> kernel;
    ResolvedOpPtr op;
    std::string name;
    bool guess = false;  // IsGuess: the rule runs in every turn
    absl::InlinedVector<int, 3> inputs, outputs;  // among values_
    bool may_fail() const { return !bound.run || binds; }
  };
  // A value that is the same in all turns: a constant, what fetch `moved` of
  // moved_out_ gives, or variable `feed`.
  struct Steady {
    int value;
    int feed = -1, moved = -1;
    Tensor constant;
  };
  struct Variable {
    int feed;
    int value;
  };

  BoundTurns() = default;
  StatusOr<std::unique_ptr<Workspace>> NewWorkspace() const;
  StatusOr<std::unique_ptr<Workspace>> Acquire() const;
  void Release(std::unique_ptr<Workspace> w) const;
  // Appends the calls of turns of that parity.
  void Bind(Workspace& w, int parity) const;
  void BindKernel(Workspace& w, const TurnCall& call, int parity,
                  BoundCall* bound) const;
  void Give(Workspace& w, const Steady& steady, const Tensor& t) const;
  Status SetSteady(Workspace& w, absl::Span<const Tensor> state) const;
  // Returns the parity of the turn that would be next.
  StatusOr<int> RunTurns(Workspace& w) const;
  // What was wrong in the turn before, where anything was.
  Status TurnStatus(const Workspace& w, int parity) const;

  std::vector<Value> values_;
  std::vector<TurnCall> calls_;
  std::vector<Steady> steady_;
  std::vector<Variable> variables_;              // those that change
  std::vector<std::pair<int, int>> read_feeds_;  // feed, value
  std::unique_ptr<Executable> moved_out_;        // its feeds: all variables
  size_t num_variables_ = 0;                     // that change or stay
  int truth_ = -1;                               // among values_
  int num_held_ = 0;
  std::vector<int> may_fail_;  // among calls_
  int64_t memory_bytes_ = 0;
  int64_t turns_between_looks_ = 1;
  mutable std::atomic<Workspace*> spare_{nullptr};
};

}  // namespace headrace
