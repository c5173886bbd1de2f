// A C++ function with its traces.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/fork_mutex.h"
#include "cc/structure.h"
#include "function/concrete_function.h"
#include "function/retraces.h"
#include "function/trace_cache.h"
#include "function/traces.h"
#include "function/tracing_lock.h"
#include "headrace/function.h"

namespace headrace::tf::internal {

// A trace with the structures of what it takes and gives. Immutable.
struct BodyTrace {
  // Whether it can be called here and now: tensors that it captured of a graph
  // have a value while that graph is made alone.
  bool IsAtHome() const;
  // Throws for wrong numbers and types, and what running it throws.
  ValueList Call(absl::Span<const Value> leaves) const;

  std::shared_ptr<headrace::ConcreteFunction> function;
  Tokens takes;      // a tuple of the arguments; sizes may be open
  Tokens gives;      // the function's results are the tensors in it
  std::string name;  // the function's
  std::vector<std::string> arg_names;  // of the first arguments; for messages
  std::shared_ptr<const Graph> home;   // whose tensors it captured, or null
};
using BodyTracePtr = std::shared_ptr<const BodyTrace>;

// Thread-safe. What the body throws goes through.
class BodyFunction {
 public:
  BodyFunction(Function::StructuredBody body, FunctionOptions options);

  // Calls the trace for a signature, made where there is none, and tells which
  // it was.
  ValueList Call(const Signature& call, BodyTracePtr* trace);
  // The trace for arguments that need no values: that of exactly their sizes,
  // where there is one.
  BodyTracePtr ConcreteFor(const Signature& specs);

  int trace_count() const;
  std::vector<std::string> explain_retraces() const;
  const std::string& name() const { return options_.name; }

 private:
  // A signature that was called, exactly as it was.
  struct Known {
    bool Fits(TokenSpan call) const;
    Tokens tokens;
    BodyTracePtr trace;
    bool used = false;  // since a trace was made
  };
  static constexpr size_t kMostKnown = 64;
  using Table = Traces<BodyTracePtr>;

  BodyTracePtr For(const Signature& call);
  Tokens Constrained(TokenSpan call) const;
  BodyTracePtr Found(TokenSpan wanted);
  BodyTracePtr Made(const Tokens& wanted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(tracing_);
  BodyTracePtr Trace(const Tokens& takes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(tracing_);
  std::vector<Tensor> RunBody(const std::vector<Tensor>& args,
                              BodyTrace* trace) const;
  void Keep(const BodyTracePtr& trace);
  void Remember(TokenSpan tokens, const BodyTracePtr& trace);

  const Function::StructuredBody body_;
  const FunctionOptions options_;
  // Held while the body runs, so that each signature is traced once.
  TracingLock tracing_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable ForkMutex mutex_;
  TraceCache<Known> known_ ABSL_GUARDED_BY(mutex_);
  Table traces_ ABSL_GUARDED_BY(mutex_);
  Retraces retraces_ ABSL_GUARDED_BY(mutex_);
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace headrace::tf::internal
