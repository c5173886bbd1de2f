// Traced functions: tf.function.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/cancellation.h"
#include "headrace/tensor.h"

namespace headrace::tf {

struct FunctionOptions {
  // A time limit of each call that runs, kDeadlineExceeded beyond it (tracing
  // does not count); zero or less is over already, at most a hundred years. A
  // call inside another traced function is a part of that one's.
  std::optional<std::chrono::nanoseconds> timeout = {};
};

// A C++ function of tensors, run once per signature (dtypes and shapes of its
// arguments) to record a graph, which later calls run as one optimised plan.
// Variables and tensors of the surroundings are captured by reference and kept
// alive by the function; C++ side effects happen while tracing only. Gradients
// flow through calls. Copies share their traces, which are never dropped: a
// function that is called with ever new shapes keeps a graph for each.
//
// Safe to call from several threads: plans run side by side, tracing is done by
// one thread at a time. The body may call the function itself (with another
// signature; kResourceExhausted where the stack ends).
class HR_API Function {
 public:
  using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  // `body` gets as many tensors as a call passes and may return any number,
  // also none. What it throws, the call that traces throws; the next call
  // traces anew.
  explicit Function(Body body, FunctionOptions options = {});

  // Throws the Error of the first op that fails, and what tracing throws.
  // Inside another traced function the call becomes a node of that one's graph.
  std::vector<Tensor> operator()(const std::vector<Tensor>& args) const;
  // The same, ended by an Error (kCancelled, kDeadlineExceeded) where
  // `cancellation` says so.
  std::vector<Tensor> operator()(const std::vector<Tensor>& args,
                                 const Cancellation& cancellation) const;
  // How often the body was run. Traces that failed do not count.
  int trace_count() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A traced function of N tensors that gives one tensor:
//   auto f = tf::function<2>([](auto& x) { return x[0] * x[1]; });
// and called as f(a, b).
template <int N>
// A traced function of N tensors that gives one tensor:
//   auto f = tf::function<2>([](auto& x) { return x[0] * x[1]; });
// and called as f(a, b). Arguments are whatever converts to Tensor: numbers
// become scalars of their own C++ type, and so signatures of their own. All
// else is as for Function.
class TypedFunction {
 public:
  template <typename F>
  explicit TypedFunction(F body, FunctionOptions options = {})
      : function_(
            [body](const std::vector<Tensor>& args) {
              return std::vector<Tensor>{body(args)};
            },
            options) {}
  template <typename... Args>
  Tensor operator()(const Args&... args) const {
    static_assert(sizeof...(Args) == N, "one argument a tensor");
    return function_({Tensor(args)...})[0];
  }
  int trace_count() const { return function_.trace_count(); }

 private:
  Function function_;
};
template <int N, typename F>
TypedFunction<N> function(F body, FunctionOptions options = {}) {
  return TypedFunction<N>(std::move(body), options);
}

}  // namespace headrace::tf
