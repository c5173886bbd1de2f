// What a tf::Function is a handle of: a function with its traces, whatever
// language its body is written in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cc/structure.h"
#include "function/concrete_function.h"
#include "headrace/function.h"

namespace headrace::tf::internal {

// A trace with the structures of what it takes and gives. Immutable.
struct BodyTrace {
  // Whether it can be called here and now: tensors that it captured of a graph
  // have a value while that graph is made alone.
  bool IsAtHome() const;
  // Throws for wrong numbers and types, and what running it throws.
  ValueList Call(absl::Span<const Value> leaves) const;
  // Puts results of a call where a structure of them is wanted;
  // kInvalidArgument where that is another one than `gives`.
  void Give(absl::Span<const Value> outputs, Taken result) const;

  std::shared_ptr<headrace::ConcreteFunction> function;
  Tokens takes;      // a tuple of the arguments; sizes may be open
  Tokens gives;      // the function's results are the tensors in it
  std::string name;  // the function's
  std::vector<std::string> arg_names;  // of the first arguments; for messages
  std::shared_ptr<const Graph> home;   // whose tensors it captured, or null
  uint64_t age = 0;                    // of ForgetTraces, as it was made
  // What the gradients of calls need beside the function, held by tapes that
  // may ask for them; or null.
  std::shared_ptr<void> keep;
};
using BodyTracePtr = std::shared_ptr<const BodyTrace>;

// Traces of before serve no call of a function any more: what they found no
// longer holds.
void ForgetTraces();

class NamedFunction;  // named_functions.h

// Thread-safe. Throws what tracing and running throw.
class FunctionState {
 public:
  virtual ~FunctionState() = default;

  // Calls the trace for a signature, made where there is none, and tells which
  // it was (what it gives, at least).
  virtual ValueList Call(const Signature& call, BodyTracePtr* trace) = 0;
  // That trace, which is not called.
  virtual BodyTracePtr TraceOf(const Signature& call) {
    return ConcreteFor(call);
  }
  // The trace for arguments that need no values: that of exactly their sizes,
  // where there is one.
  virtual BodyTracePtr ConcreteFor(const Signature& specs) = 0;

  virtual int trace_count() const = 0;
  virtual std::vector<std::string> explain_retraces() const = 0;
  virtual std::string name() const = 0;
  // What the table of names holds of it; `self` is a pointer to this.
  virtual std::shared_ptr<const NamedFunction> Named(
      const std::shared_ptr<FunctionState>& self) const;
};
using FunctionStatePtr = std::shared_ptr<FunctionState>;

struct FunctionAccess {
  static const FunctionStatePtr& StateOf(const Function& f) { return f.state_; }
  static Function Wrap(FunctionStatePtr state) {
    return Function(std::move(state));
  }
};

}  // namespace headrace::tf::internal
