// Turns of a loop on small values as lists of bound calls on fixed memory
// (op/passes/binds_calls.h): nothing is allocated, checked or counted between
// them, so that a call takes a few nanoseconds.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "op/passes/binds_indexed.h"
#include "op/passes/binds_rows.h"
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
  static std::unique_ptr<BoundTurns> Make(const Program& turn);
  ~BoundTurns();

  // Whether the variables are what the turns were bound for.
  bool Fit(absl::Span<const Tensor> state) const;
  // `state`: variables that fit, before and after. At least one turn.
  Status Run(const RunServices& services, std::vector<Tensor>* state) const;

  // Of one turn, those of branches and loops in it included, for tests.
  int num_calls() const { return num_calls_; }
  int num_kernel_calls() const { return num_kernel_calls_; }
  // Those made once, before the turns.
  int num_moved_out() const { return moved_out_ ? moved_out_->num_steps() : 0; }

 private:
  friend class BoundTurnsMaker;  // runtime/turns_maker.cc
  struct KernelCall;
  struct LoopRun;
  struct Workspace;
  struct Loop;
  // Where a value lies. A variable of a loop has two memories, of which a turn
  // reads one and writes the other: a value in them lies at place[0] in turns
  // 0, 2, 4 ... and at place[1] in turns 1, 3, 5 ... of the loop of `level`.
  struct Value {
    DType dtype;
    Shape shape;
    int64_t place[2] = {-1, -1};  // in the workspace's memory, in bytes
    int held = -1;                // or a tensor of its own, which may be large
    int level = 0;                // loops around the loop
    int list = -1;                // or among lists_: its rows
    size_t bytes() const { return shape.num_elements() * DTypeSize(dtype); }
  };
  struct TurnCall {
    BoundCall bound;                    // `run` is null: by the kernel
    const BindsCalls* binds = nullptr;  // where `bound` may fail
    // What `bound` looks up, where it indexes; `inputs` are its operands.
    std::shared_ptr<const IndexedCall> indexed;
    std::shared_ptr<Kernel> kernel;
    ResolvedOpPtr op;
    // Its own, and those of the calls of functions that it is part of.
    absl::InlinedVector<std::string, 1> names;
    bool guess = false;  // IsGuess: the rule runs in every turn
    absl::InlinedVector<int, 3> inputs, outputs;  // among values_
    std::shared_ptr<const Loop> loop;  // of inputs[0]: whether it has turns
    bool may_fail() const {
      return binds || kernel_call() || loop || (indexed && indexed->may_fail());
    }
    bool kernel_call() const { return !bound.run && !loop; }
  };
  // What runs from one end to the other, but for what branches jump over.
  struct Calls {
    std::vector<TurnCall> calls;
    std::vector<int> may_fail;  // among `calls`
    double ns = 1;              // that it takes, a high guess
  };
  struct Loop {
    int level = 0;
    Calls once;  // before the first turn
    Calls turn;
    int truth = -1;  // among values_: whether another turn follows
    struct Result {
      int variable, to;  // among values_
    };
    std::vector<Result> results;
    int64_t turns_between_looks = 1;
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
  // A variable that is a list, of elements of one type and shape.
  struct List {
    int feed;
    std::shared_ptr<Kernel> kernel;  // `calls`
    const BindsRows* calls;
    DType dtype;
    Shape shape;
    bool writes, steady;
  };

  BoundTurns() = default;
  StatusOr<std::unique_ptr<Workspace>> NewWorkspace() const;
  StatusOr<std::unique_ptr<Workspace>> Acquire() const;
  void Release(std::unique_ptr<Workspace> w) const;
  // The calls for turns whose parities are bits of `odd`, by level.
  BoundCall* Bind(Workspace& w, const Calls& list, uint32_t odd) const;
  void BindKernel(Workspace& w, const TurnCall& call, uint32_t odd,
                  BoundCall* bound) const;
  LoopRun& BindLoop(Workspace& w, const Loop& loop, uint32_t odd) const;
  void* At(const Workspace& w, int value, uint32_t odd) const;
  void Give(Workspace& w, const Steady& steady, const Tensor& t) const;
  Status SetSteady(Workspace& w, absl::Span<const Tensor> state) const;

  std::vector<Value> values_;
  Loop loop_;
  std::vector<Steady> steady_;
  std::vector<Variable> variables_;  // those that change
  std::vector<List> lists_;
  std::vector<std::pair<int, int>> read_feeds_;  // feed, value
  std::unique_ptr<Executable> moved_out_;        // its feeds: all variables
  std::deque<std::vector<int64_t>> jumps_;       // of branches by index
  size_t num_variables_ = 0;                     // that change or stay
  int num_held_ = 0;
  int num_calls_ = 0, num_kernel_calls_ = 0;
  int64_t memory_bytes_ = 0;
  mutable std::atomic<Workspace*> spare_{nullptr};
};

}  // namespace headrace
