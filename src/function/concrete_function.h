// A traced function with what it captured, ready to be called.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/fork_mutex.h"
#include "graph/builder.h"
#include "graph/function.h"
#include "op/emitter.h"
#include "runtime/executable.h"

namespace headrace {

// Holds its function. Immutable but for its executable, made at the first run.
// Thread-safe. The function's arguments are the caller's, then one a capture.
class ConcreteFunction {
 public:
  // `captures`: the outer values of the last arguments, held. `trainable`:
  // handles of variables that tapes should watch when it is called.
  ConcreteFunction(FunctionPtr function, std::vector<Value> captures,
                   std::vector<Value> trainable);

  const FunctionPtr& function() const { return function_; }
  const std::vector<Value>& captures() const { return captures_; }
  const std::vector<Value>& trainable() const { return trainable_; }
  // A variable among the captures that somebody else keeps: when its life has
  // ended, calls are FailedPrecondition.
  struct Borrowed {
    std::string name;
    std::weak_ptr<void> life;
    uint64_t handle;  // the captured value's id
  };
  void SetBorrowed(std::vector<Borrowed> variables) {
    borrowed_ = std::move(variables);
  }
  // Other values in place of the captured ones, as many and of their types.
  Status SetCaptures(std::vector<Value> captures);
  // A time limit of each call that runs, DeadlineExceeded beyond it; at most a
  // hundred years. Not while it is called.
  void SetTimeout(std::chrono::nanoseconds timeout);
  int num_args() const {
    return static_cast<int>(function()->args.size() - captures_.size());
  }

  // Calls it with `args` (one an argument, captures left out). Runs when this
  // thread's emitter is eager, else records a call; tapes are told of either.
  // InvalidArgument for wrong numbers and types, FailedPrecondition where a
  // borrowed variable is gone. Tapes hold `keep` as long as
  // they may go back through the call.
  Status Call(absl::Span<const Value> args, ValueList* outputs,
              std::shared_ptr<void> keep = nullptr);

 private:
  Status CallInTime(absl::Span<const Value> args, ValueList* outputs,
                    std::shared_ptr<void> keep);
  Status Run(absl::Span<const Value> args, ValueList* outputs);
  // False where it is to run here.
  StatusOr<bool> RunElsewhere(absl::Span<const Value> args, ValueList* outputs);
  StatusOr<Executable*> MakeReady();
  Status Check(absl::Span<const Value> args) const;
  Status CheckBorrowed() const;

  FunctionPtr function_;
  std::vector<Value> captures_;
  std::vector<Value> trainable_;
  std::vector<Borrowed> borrowed_;
  std::vector<DType> arg_types_;
  std::optional<std::chrono::nanoseconds> timeout_;
  ForkMutex mutex_;
  std::shared_ptr<Executable> executable_ ABSL_GUARDED_BY(mutex_);
  std::atomic<Executable*> ready_{nullptr};  // executable_, once made
};

}  // namespace headrace
