// A traced function with what it captured, ready to be called.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/types/span.h"
#include "graph/builder.h"
#include "graph/function.h"
#include "op/emitter.h"
#include "runtime/executable.h"

namespace headrace {

// A function's place in the process-wide library: there while this lives.
// Whoever traced a call of the function keeps its registration.
class Registration {
 public:
  // Also holds `kept` (the registrations of what the body calls). AlreadyExists
  // when another function has the name.
  static StatusOr<std::shared_ptr<Registration>> Make(
      FunctionPtr f, std::vector<std::shared_ptr<void>> kept);
  ~Registration();
  const FunctionPtr& function() const { return function_; }

 private:
  Registration(FunctionPtr f, std::vector<std::shared_ptr<void>> kept)
      : function_(std::move(f)), kept_(std::move(kept)) {}
  FunctionPtr function_;
  std::vector<std::shared_ptr<void>> kept_;
};

// Immutable but for its executable, made at the first run. Thread-safe. The
// function's arguments are the caller's, then one a capture.
class ConcreteFunction {
 public:
  // `captures`: the outer values of the last arguments, held. `trainable`:
  // handles of variables that tapes should watch when it is called.
  ConcreteFunction(std::shared_ptr<Registration> registration,
                   std::vector<Value> captures, std::vector<Value> trainable);

  const FunctionPtr& function() const { return registration_->function(); }
  const std::shared_ptr<Registration>& registration() const {
    return registration_;
  }
  const std::vector<Value>& captures() const { return captures_; }
  // Other values in place of the captured ones, as many and of their types.
  Status SetCaptures(std::vector<Value> captures);
  int num_args() const {
    return static_cast<int>(function()->args.size() - captures_.size());
  }

  // Calls it with `args` (one an argument, captures left out). Runs when this
  // thread's emitter is eager, else records a call; tapes are told of either.
  // InvalidArgument for wrong numbers and types.
  Status Call(absl::Span<const Value> args, ValueList* outputs);

 private:
  Status Run(absl::Span<const Value> args, ValueList* outputs);
  StatusOr<Executable*> MakeReady();
  Status Check(absl::Span<const Value> args) const;

  std::shared_ptr<Registration> registration_;
  std::vector<Value> captures_;
  std::vector<Value> trainable_;
  std::vector<DType> arg_types_;
  std::mutex mutex_;  // guards making executable_
  std::shared_ptr<Executable> executable_;
  std::atomic<Executable*> ready_{nullptr};  // executable_, once made
};

}  // namespace headrace
