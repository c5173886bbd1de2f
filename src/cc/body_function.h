// A function whose body is C++, with its traces.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/fork_mutex.h"
#include "cc/function_state.h"
#include "function/retraces.h"
#include "function/trace_cache.h"
#include "function/traces.h"
#include "function/tracing_lock.h"
#include "headrace/function.h"

namespace headrace::tf::internal {

// Thread-safe. What the body throws goes through.
class BodyFunction final : public FunctionState {
 public:
  BodyFunction(Function::StructuredBody body, FunctionOptions options);

  ValueList Call(const Signature& call, BodyTracePtr* trace) override;
  BodyTracePtr TraceOf(const Signature& call) override { return For(call); }
  BodyTracePtr ConcreteFor(const Signature& specs) override;
  // The trace that serves a call, made where there is none.
  BodyTracePtr For(const Signature& call);

  int trace_count() const override;
  std::vector<std::string> explain_retraces() const override;
  std::string name() const override { return options_.name; }
  const std::vector<std::string>& arg_names() const {
    return options_.arg_names;
  }

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
