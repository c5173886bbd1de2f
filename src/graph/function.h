// Functions: graphs with named inputs and outputs, and libraries of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/fork_mutex.h"
#include "base/hash_map.h"
#include "graph/graph.h"

namespace headrace {

class Executable;         // runtime/executable.h
class LoopPlan;           // runtime/loop_plan.h
struct FunctionGradient;  // autodiff/function_gradient.h
class Origins;            // autodiff/named_gradient.h

// Immutable once in a library.
struct Function {
  std::string name;
  std::shared_ptr<Graph> body;
  std::vector<Node*> args;  // nodes of one output that stand for inputs
  std::vector<std::string> arg_names;
  std::vector<Edge> results;
  std::vector<std::string> result_names;
  // Nodes that must run whether or not a result needs them, in order.
  std::vector<Node*> control_outputs;
  AttrMap attrs;         // "_noinline" and the like
  std::string gradient;  // name of a function registered as its gradient
  // A loop whose body the function is.
  struct Loop {
    std::weak_ptr<const Function> cond;
    std::shared_ptr<const LoopPlan> plan;
  };
  // What higher rooms make of the function, once, and keep with it.
  struct Derived {
    std::shared_ptr<Executable> executable;
    std::vector<Loop> loops;
    std::shared_ptr<const FunctionGradient> gradient;
    std::shared_ptr<const Origins> origins;
    // What the front end keeps alive with the function.
    std::shared_ptr<void> kept;
  };
  mutable ForkMutex derived_mutex;
  mutable Derived derived ABSL_GUARDED_BY(derived_mutex);
  // The same with some of its arguments and results left out. With a lock of
  // their own, as they are asked for while what is derived is made.
  mutable ForkMutex narrowed_mutex;
  mutable std::vector<std::shared_ptr<const Function>> narrowed
      ABSL_GUARDED_BY(narrowed_mutex);

  std::vector<DType> arg_types() const;
  std::vector<DType> result_types() const;
  bool is_stateful() const;
};
using FunctionPtr = std::shared_ptr<const Function>;

// Name -> function. Thread-safe. A graph's library falls back to the
// process-wide one, where traced functions are found.
class FunctionLibrary {
 public:
  // Weak: functions are found as long as somebody else holds them (who made
  // them, and the graphs whose nodes name them).
  enum class Hold { kStrong, kWeak };
  explicit FunctionLibrary(Hold hold = Hold::kStrong) : hold_(hold) {}
  // AlreadyExists when another function has the name.
  Status Add(FunctionPtr f);
  FunctionPtr Find(StringView name) const;  // or null
  void Remove(StringView name);
  std::vector<std::string> Names() const;
  // A name that nothing in the process has: "prefix_17".
  static std::string NewName(StringView prefix);

 private:
  struct Entry {
    FunctionPtr strong;
    std::weak_ptr<const Function> weak;
  };
  void DropDead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Hold hold_;
  mutable ForkMutex mutex_;
  HashMap<std::string, Entry> functions_ ABSL_GUARDED_BY(mutex_);
  size_t drop_at_ ABSL_GUARDED_BY(mutex_) = 1024;
};
// The process-wide library; it holds weakly.
FunctionLibrary& GlobalFunctions();

// In `library` (may be null), else process-wide; NotFound otherwise.
StatusOr<FunctionPtr> FindFunction(const FunctionLibrary* library,
                                   StringView name);

// Whether what `sandbox` (may be null) restricts is not to have the function's
// body written out in it: the body has a sandbox of its own, to be entered.
bool RunsApart(const Function& f, const SandboxPtr& sandbox);

// True for PartitionedCall, If, Case, While and their stateful twins: what they
// take and give is what their functions say.
bool IsFunctionCall(const OpDef& op);
// InvalidArgument where what such a call takes and gives (counts, types) is not
// what its functions do. Functions that are not found are passed over, and so
// are other ops.
Status CheckCall(const ResolvedOp& op, const FunctionLibrary* library);

// What is known of a result of a call.
struct CalledResult {
  Shape shape;  // of unknown rank where the functions that may be called differ
  std::shared_ptr<const HandleData> handle;
};
// Of a call's results, what its functions say; nothing for loops, and where a
// function is not found.
std::vector<CalledResult> ResultsOfCall(const ResolvedOp& op,
                                        const FunctionLibrary* library);

// True for ops that must run for their effect even when nobody reads their
// outputs (assignments, prints; not reads, handles or random numbers).
bool HasSideEffect(const OpDef& op);

}  // namespace headrace
