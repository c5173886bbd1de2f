#include "function/concrete_function.h"

#include <algorithm>

#include "autodiff/function_gradient.h"
#include "base/cancellation.h"
#include "base/mutex.h"
#include "op/function_caller.h"
#include "op/remote_place.h"
#include "op/resource.h"
#include "runtime/ran_functions.h"

namespace headrace {

ConcreteFunction::ConcreteFunction(FunctionPtr function,
                                   std::vector<Value> captures,
                                   std::vector<Value> trainable)
    : function_(std::move(function)),
      captures_(std::move(captures)),
      trainable_(std::move(trainable)),
      arg_types_(function_->arg_types()) {}

Status ConcreteFunction::SetCaptures(std::vector<Value> captures) {
  if (captures.size() != captures_.size()) {
    return InvalidArgument("expected ", captures_.size(), " captures, got ",
                           captures.size());
  }
  for (size_t i = 0; i < captures.size(); ++i) {
    if (captures[i].dtype() != captures_[i].dtype()) {
      return InvalidArgument("capture ", i, " is a ",
                             DTypeName(captures_[i].dtype()),
                             " tensor, it cannot become a ",
                             DTypeName(captures[i].dtype()), " tensor");
    }
  }
  captures_ = std::move(captures);
  std::erase_if(borrowed_, [this](const Borrowed& b) {
    return std::none_of(captures_.begin(), captures_.end(),
                        [&b](const Value& v) { return v.id() == b.handle; });
  });
  return OkStatus();
}

[[gnu::hot]] Status ConcreteFunction::CheckBorrowed() const {
  for (const Borrowed& b : borrowed_) {
    if (!b.life.expired()) [[likely]]
      continue;
    return FailedPrecondition(
        "Error while reading resource variable ", b.name,
        " from Container: localhost. The variable is gone: a concrete function "
        "holds its variables weakly, so somebody has to keep them as long as ",
        function()->name, " is called.");
  }
  return OkStatus();
}

[[gnu::hot]] Status ConcreteFunction::Check(
    absl::Span<const Value> args) const {
  size_t n = arg_types_.size() - captures_.size();
  if (args.size() != n) [[unlikely]] {
    return InvalidArgument("Function ", function()->name, " takes ", n,
                           " arguments, got ", args.size());
  }
  for (size_t i = 0; i < n; ++i) {
    if (args[i].dtype() == arg_types_[i]) [[likely]]
      continue;
    return InvalidArgument("cannot compute ", function()->name, " as input #",
                           i, "(zero-based) was expected to be a ",
                           DTypeName(arg_types_[i]), " tensor but is a ",
                           DTypeName(args[i].dtype()), " tensor");
  }
  return OkStatus();
}

void ConcreteFunction::SetTimeout(std::chrono::nanoseconds timeout) {
  constexpr std::chrono::nanoseconds kMost = std::chrono::hours(24 * 365 * 100);
  timeout_ = std::min(timeout, kMost);
}

[[gnu::hot]] Status ConcreteFunction::Call(absl::Span<const Value> args,
                                           ValueList* outputs,
                                           std::shared_ptr<void> keep) {
  if (!timeout_ || !CurrentEmitter()->is_eager()) [[likely]]
    return CallInTime(args, outputs, std::move(keep));
  const CancellationToken token(CancellationToken::Clock::now() + *timeout_);
  const StopScope scope(&token);
  return CallInTime(args, outputs, std::move(keep));
}

[[gnu::hot]] Status ConcreteFunction::CallInTime(absl::Span<const Value> args,
                                                 ValueList* outputs,
                                                 std::shared_ptr<void> keep) {
  HR_RETURN_IF_ERROR(Check(args));
  HR_RETURN_IF_ERROR(CheckBorrowed());
  // The short road: no tape, no graph being built, so the plan runs and nobody
  // need know of the call.
  if (!HasRecorders() && CurrentEmitter()->is_eager()) [[likely]] {
    return Run(args, outputs);
  }
  // Tapes watch variables when they are read; inside the call they would not
  // see it.
  for (const Value& handle : trainable_) TellVariableAccessed(handle);
  std::vector<Value> all(args.begin(), args.end());
  all.insert(all.end(), captures_.begin(), captures_.end());
  HR_ASSIGN_OR_RETURN(*outputs, CallDifferentiably(function(), all, nullptr,
                                                   nullptr, std::move(keep)));
  return OkStatus();
}

StatusOr<Executable*> ConcreteFunction::MakeReady() {
  MutexLock lock(mutex_);
  if (!executable_) {
    HR_ASSIGN_OR_RETURN(executable_, ExecutableOf(function(), nullptr));
    // Behind the plan's making: Run() reads it without the lock.
    ready_.store(executable_.get(), std::memory_order_release);
  }
  return executable_.get();
}

StatusOr<bool> ConcreteFunction::RunElsewhere(absl::Span<const Value> args,
                                              ValueList* outputs) {
  std::vector<const Tensor*> inputs;
  for (absl::Span<const Value> some : {args, absl::MakeConstSpan(captures_)}) {
    for (const Value& v : some) inputs.push_back(&v.tensor());
  }
  const auto place = PlaceFor(inputs);
  std::vector<Tensor> results;
  bool ran = false;
  if (const auto tasks = ConnectedTasks()) {
    HR_ASSIGN_OR_RETURN(ran, tasks->Call(function_, place, inputs, &results));
  }
  if (!ran) {
    if (!place) return false;
    HR_RETURN_IF_ERROR(place->Call(function_, inputs, &results));
  }
  outputs->clear();
  for (Tensor& t : results) outputs->emplace_back(std::move(t));
  return true;
}

[[gnu::hot]] Status ConcreteFunction::Run(absl::Span<const Value> args,
                                          ValueList* outputs) {
  if (RemotePlace::Any()) [[unlikely]] {
    HR_ASSIGN_OR_RETURN(const bool ran, RunElsewhere(args, outputs));
    if (ran) return OkStatus();
  }
  Executable* executable = ready_.load(std::memory_order_acquire);
  if (executable == nullptr) [[unlikely]] {
    HR_ASSIGN_OR_RETURN(executable, MakeReady());
  }
  absl::InlinedVector<Tensor, 8> feeds;
  feeds.reserve(args.size() + captures_.size());
  for (absl::Span<const Value> some : {args, absl::MakeConstSpan(captures_)}) {
    for (const Value& v : some) {
      if (v.is_symbolic()) [[unlikely]] {
        return InvalidArgument("a tensor of a graph (", v.node()->name(), ":",
                               v.index(), ") has no value outside it");
      }
      feeds.push_back(v.tensor());
    }
  }
  RunServices services;
  services.resources = &DefaultResources();
  services.functions = DefaultFunctionCaller();
  std::vector<Tensor> fetches;
  const FunctionRunNote note(function_);
  HR_RETURN_IF_ERROR(
      executable->Run(services, absl::MakeSpan(feeds), &fetches));
  outputs->clear();
  for (Tensor& t : fetches) outputs->emplace_back(std::move(t));
  return OkStatus();
}

}  // namespace headrace
