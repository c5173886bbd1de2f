// Sums over the turns of a loop, made once behind it. A loop variable that each
// turn adds a product of matrices to, and that nothing else reads, is
//
//   start + sum over t of A_t^T B_t = start + A^T B
//
// with the rows of all A_t (and B_t) below one another: one large product in
// place of many small ones, each followed by a sum as large as the result.
#pragma once

#include <memory>
#include <vector>

#include "op/kernel.h"
#include "runtime/program.h"

namespace headrace {

// What the turns add to a variable: a function of the stacked operands.
struct DeferredSum {
  int variable = 0;
  ResolvedOpPtr op, add;
  std::shared_ptr<Kernel> kernel, add_kernel;
  std::vector<int> operands;      // of op: among what is stacked
  std::vector<Tensor> constants;  // of op, behind the operands
};

struct DeferredSums {
  std::vector<DeferredSum> sums;  // in the order in which they are added
  std::vector<int> stacked;       // the turn's fetches of which rows are kept
};

// Takes such sums out of `turn` (optimised, not fused): their variables become
// the same from turn to turn, and what is to be stacked is fetched behind all
// other fetches.
DeferredSums DeferSums(Program& turn);

// The sums while a loop runs. What was stacked is added up when it is much, at
// places that depend on the shapes alone.
class LoopSums {
 public:
  // Both must outlive it.
  LoopSums(const DeferredSums& plan, const RunServices& services);

  // Takes a turn's values, one a `stacked`.
  Status Push(absl::Span<const Tensor* const> values);
  // Adds to the loop's variables what all turns gave.
  Status Finish(std::vector<Tensor>* variables);

 private:
  struct Stack {
    Tensor memory;  // [room, ...]
    int64_t rows = 0;
  };
  // True when the values' rows fit behind those stacked.
  bool Fits(absl::Span<const Tensor* const> values) const;
  Status MakeRoom(absl::Span<const Tensor* const> values);
  Status Flush();

  const DeferredSums& plan_;
  const RunServices& services_;
  std::vector<Stack> stacks_;
  std::vector<Tensor> sums_;  // so far
};

}  // namespace headrace
