// Gradients of functions: a forward function that also returns what the way
// back needs, and a backward function.
#pragma once

#include <memory>
#include <vector>

#include "autodiff/named_gradient.h"
#include "graph/builder.h"
#include "graph/function.h"
#include "op/gradient.h"

namespace headrace {

// Immutable. Holds its functions, which the process-wide library finds.
struct FunctionGradient {
  // What an argument of `backward` is, behind the gradients.
  struct Source {
    bool is_arg;  // the function's argument `index`; else forward's result
    int index;
  };
  FunctionPtr forward;    // the function's results, then intermediates
  FunctionPtr recompute;  // forward without effects
  FunctionPtr backward;   // (gradients of grad_results, sources) -> gradients
  ResolvedOpPtr forward_call, recompute_call, backward_call;  // calls of each
  std::vector<int> grad_results;  // results whose gradients it takes
  std::vector<Source> sources;
  // Where an argument's gradient stands among backward's results, -1 for what
  // it has not: dense, or in slices.
  struct Places {
    int dense = -1;
    int values = -1, indices = -1, dense_shape = -1;
    explicit operator bool() const { return dense >= 0 || values >= 0; }
  };
  std::vector<Places> arg_grads;  // one an argument
};
using FunctionGradientPtr = std::shared_ptr<const FunctionGradient>;

// Where functions are found that are called in what this thread is making a
// gradient of; null for process-wide alone.
const FunctionLibrary* LibraryInUse();

// Made at the first call and kept with the function; Unimplemented where that
// calls itself. `library` (may be null) is where calls inside find their
// functions. Gradients of resource arguments (variables) are like what is
// behind them, or slices of it.
StatusOr<FunctionGradientPtr> GradientOf(const FunctionPtr& f,
                                         const FunctionLibrary* library);

// Emits a call of `f`, output shapes set. `call` is CallOf(f), where the
// caller kept it: eager code binds its plan once then.
ValueList CallFunction(OpScope& s, const FunctionPtr& f,
                       absl::Span<const Value> inputs,
                       ResolvedOpPtr call = nullptr);

// The gradients of the arguments, of what a call of backward gave.
std::vector<Gradient> ArgGradients(const FunctionGradient& g,
                                   absl::Span<const Value> outputs);
// Emits backward's call. `results` are all of forward's; gradients are one a
// result of the function (null: none). Returns one gradient an argument.
std::vector<Gradient> CallBackward(OpScope& s, const FunctionGradient& g,
                                   absl::Span<const Value> args,
                                   absl::Span<const Value> results,
                                   absl::Span<const Gradient> gradients);

// Calls `f` on `args` so that gradients flow back, whichever emitter is at
// work: when recorders listen, calls forward and tells them how to go back.
// They hold `keep` as long as they may go back (what f's named gradients need).
StatusOr<ValueList> CallDifferentiably(const FunctionPtr& f,
                                       absl::Span<const Value> args,
                                       const FunctionLibrary* library,
                                       ResolvedOpPtr call = nullptr,
                                       std::shared_ptr<void> keep = nullptr);

// A copy of `f` of its own, calls of functions written out in place.
StatusOr<std::shared_ptr<Function>> CloneInlined(
    const Function& f, const FunctionLibrary* library);
// Where the nodes with named gradients of a copied function came from; null
// for other functions. Lives as long as `f`.
const Origins* OriginsOf(const Function& f);
// Tells `to`, which has the same body, what is known of `from`.
void ShareOrigins(const Function& from, const Function& to);

struct GraphGradientOptions {
  // The builders of the graph that the gradients are added to and of those
  // around it, innermost first; values may be of any of them.
  absl::Span<GraphBuilder* const> builders;
  // Values behind which nothing is sought.
  absl::Span<const Value> stop;
  bool place_with_ops = false;  // what a call's gradient makes: with the call
  // Whether the gradients that one call makes wait for each other.
  bool gate_calls = false;
};
// d(targets)/d(sources), emitted through the current emitter (tf.gradients).
// Inside a function's body the way back goes through what it captured, out to
// the graphs around it.
StatusOr<std::vector<Gradient>> GraphGradients(
    absl::Span<const Value> targets, absl::Span<const Value> sources,
    absl::Span<const Gradient> output_gradients,
    const GraphGradientOptions& options);

}  // namespace headrace
