// What a graph becomes on its way to a plan: a list of calls in order, on
// numbered values. The passes rewrite it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/hash_map.h"
#include "graph/function.h"
#include "graph/graph.h"
#include "op/kernel.h"
#include "runtime/wait_order.h"

namespace headrace {

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

struct Program;

// One call. `kernel` is bound by the passes or at the end.
struct Call {
  ResolvedOpPtr op;
  absl::InlinedVector<ValueId, 4> inputs;
  absl::InlinedVector<ValueId, 2> outputs;
  std::string name;     // the node's, for errors and timelines
  bool effect = false;  // runs even if no output is read
  bool whole = false;   // somebody waits for all that it does
  bool dead = false;    // dropped by a pass
  std::shared_ptr<Kernel> kernel;
  // Which waiting calls it follows (of Program::waits), if it has effects or
  // waits itself; pure calls follow what they read.
  WaitSet behind;
  int32_t waiter = -1;  // its number among waiting calls, or -1
  // Within a loop, where they were found: what a branch may call, in order, or
  // a loop's condition and body.
  std::shared_ptr<const std::vector<Program>> bodies;
};

struct ProgramValue {
  DType dtype = DType::kInvalid;
  Shape shape = Shape::UnknownRank();
  Tensor constant;  // has a buffer when the value is known
};

struct Program {
  std::vector<Call> calls;  // in an order that runs
  std::vector<ProgramValue> values;
  std::vector<ValueId> feeds;
  std::vector<ValueId> fetches;
  SandboxPtr sandbox;  // that of the graph, or null
  // Calls that may wait while others run, in their order, those that passes
  // dropped too; none where all run one by one.
  WaitOrder waits;

  ValueId NewValue(DType dtype, Shape shape) {
    values.push_back({dtype, std::move(shape), {}});
    return static_cast<ValueId>(values.size()) - 1;
  }
};

// Binds the call's kernel unless it is bound; BindKernel's errors.
Status BindCall(Call& call);
// Binds kernels with state, which the programs that are copied from this one
// then share. What has no kernel is reported when all are bound.
void BindStateful(Program& p);

// True when the shape rule did not see all shapes and values that it asks for,
// or does not agree with what the graph says: it runs again at the run. The
// call's kernel must be bound.
bool IsGuess(const Program& p, const Call& call);
// InvalidArgument where a kernel made something else than the graph says.
Status CheckMadeType(DType made, DType said);
Status CheckMadeShape(const Shape& made, const Shape& said);
// The error of a call of that name, which it says, unless the call stands for
// many.
Status AtCall(const Status& s, const std::string& name);

// What one plan may cost beyond its graph's and its functions' own size:
// functions that call others twice, and these again, grow without bounds when
// they are written out. For one thread, while a plan is made.
class PlanBudget {
 public:
  // Whether a body of that many nodes may be written out. The first time a
  // function comes, it may; later ones draw on the budget.
  bool Spend(const Function& f, size_t nodes);

 private:
  // Nodes that bodies written out again may add to a plan: at some 8 us a node
  // (tracing, planning and binding) one to two seconds at most.
  int64_t left_ = 200'000;  // nodes
  HashSet<const Function*> seen_;
};

// The part of `graph` that fetches and targets need when `feeds` are given,
// calls of functions (found in `library`, else process-wide) written out in
// place, as far as `budget` goes (null: one of its own); other calls are made
// at the run. InvalidArgument for cycles, for placeholders that are not fed and
// for calls that their functions do not fit.
StatusOr<Program> MakeProgram(const Graph& graph, absl::Span<const Edge> feeds,
                              absl::Span<const Edge> fetches,
                              absl::Span<Node* const> targets,
                              const FunctionLibrary* library,
                              PlanBudget* budget = nullptr);

// --- Passes. Each keeps the program's meaning, errors and random streams
// included.
// Shapes that follow from those of feeds, and values of calls on constants, are
// computed now.
void FoldConstants(Program& p);
// That of one call, but for effects; true where its values are known and it
// need not run.
bool FoldCall(Program& p, const Call& call);
// Equal calls of ops without state are made once.
void MergeEqualCalls(Program& p);
// Drops calls that nothing needs.
void DropUnused(Program& p);
// Calls are replaced by what their ops say is simpler (op/passes/simplify.h),
// and broadcasts before ops that broadcast by themselves are left out.
void Simplify(Program& p);
// Branches and loops of whose results only some are read are made without what
// the others alone need, which is not run. MakeProgram has done so.
Status NarrowCalls(Program& p, const FunctionLibrary* library);
// Matrix products of which only some columns are read are made of these alone.
void NarrowProducts(Program& p);
// Transpositions around batches of matrix products are folded into these.
void ViewOperands(Program& p);
// All of these.
Status Optimise(Program& p);
// Cheap values that are read again far away are made again there.
void RecomputeCheap(Program& p);
// Chains of element-wise calls become one call that works in tiles.
Status FuseElementwise(Program& p);

}  // namespace headrace
