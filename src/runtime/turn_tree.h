// A loop's turn as a tree on one set of values: the bodies of its branches and
// of the loops in it are written out, with what is known where they are called.
// What bound turns are made of (bound_turns.h).
#pragma once

#include <memory>
#include <vector>

#include "op/passes/binds_rows.h"
#include "runtime/program.h"

namespace headrace {

struct TurnItem;

// Calls in order.
struct TurnBlock {
  int id;
  std::vector<TurnItem> items;
};

// One way that a branch may go.
struct TurnWay {
  TurnBlock block;
  absl::InlinedVector<ValueId, 2> results;  // one an output of the branch
};

// A loop within a turn.
struct TurnLoop {
  // The variables that change; the others are the very values that came in.
  // Before the loop, in a turn, what they are next, and behind the loop.
  std::vector<ValueId> first, variables, next, last;
  // Tests whether there is a first turn; `truth` is a turn's own test.
  TurnBlock test;
  ValueId first_truth, truth;
  // What is the same in all turns: made in the first.
  TurnBlock once;
  TurnBlock turn;
};

// A call; of a branch or loop its inputs and outputs are those of `ways` and
// `loop`, but for input 0 of a branch, which chooses.
struct TurnItem {
  Call call;
  std::vector<TurnWay> ways;
  std::unique_ptr<TurnLoop> loop;
};

// Of a branch: whether input 0 is the number of the way, else whether it is the
// first of two.
bool ChoosesByIndex(const ResolvedOp& op);

struct TurnTree {
  // Null where some call has effects or state, makes something large or of a
  // shape that is not known, or calls a function that was not found.
  // `turn`: optimised; fetch i is the next feed i, the last one tells whether
  // another turn follows.
  static std::unique_ptr<TurnTree> Read(const Program& turn);

  // Small enough for a turn, and of known shape.
  bool IsSmall(ValueId v) const;
  // Handed on as it is.
  bool IsSteadyVariable(size_t i) const { return steady[program.feeds[i]]; }

  // A variable that is a list of equal elements. Calls change it where it lies,
  // as each of its values is read by nothing behind the call that changes it.
  struct List {
    int feed;
    std::shared_ptr<Kernel> kernel;  // of one of its calls; null: there is none
    const BindsRows* calls = nullptr;  // the same kernel
    DType dtype = DType::kInvalid;     // of elements, where calls touch any
    Shape shape;
    bool writes = false;  // elements are set
  };

  // All values. Its calls are those that are the same in all turns.
  Program program;
  TurnBlock turn;
  // Per value: what a reshape looks at (such calls are left out), else itself;
  // whether it is the same in all turns; the block that makes it, or -1.
  std::vector<ValueId> base;
  std::vector<bool> steady;
  std::vector<int> home;
  std::vector<List> lists;
  std::vector<int> list_of;  // per value: among `lists`, or -1
  // Loops within loops, the outermost one included.
  int depth = 1;
};

}  // namespace headrace
