// Traced functions: tf.function.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/cancellation.h"
#include "headrace/structure.h"
#include "headrace/tensor.h"

namespace headrace::tf {
namespace internal {
class FunctionState;  // the library's own
struct BodyTrace;
struct FunctionAccess;
}  // namespace internal

struct FunctionOptions {
  // For messages, and what the functions of the graph are named after.
  std::string name = "f";
  // What messages call the arguments: args[0] and so on without.
  std::vector<std::string> arg_names = {};
  // Sizes that differ between two calls are left open from the second trace on.
  // Otherwise the first 128 traces are exact.
  bool reduce_retracing = false;
  // What the tensors of every call are like, in order: calls whose tensors are
  // not are kInvalidArgument, and all run the same trace where their structure
  // and values are the same.
  std::optional<std::vector<TensorSpec>> input_signature = {};
  // A time limit of each call that runs, kDeadlineExceeded beyond it (tracing
  // does not count); zero or less is over already, at most a hundred years. A
  // call inside another traced function is a part of that one's.
  std::optional<std::chrono::nanoseconds> timeout = {};
};

// One trace, ready to be called. A handle; thread-safe. Keeps the trace and
// what it captured alive, whatever its Function drops.
class HR_API ConcreteFunction {
 public:
  // The name of the graph's function, the process's only one.
  std::string name() const;
  // The tensors that it takes, without captures: "x", "batch_image", "args_0".
  std::vector<std::string> arg_names() const;
  // What they are like, and what it gives.
  std::vector<TensorSpec> inputs() const;
  std::vector<TensorSpec> outputs() const;
  // Tensors and variables' handles of the surroundings, in order of first use.
  std::vector<Tensor> captured_inputs() const;
  // "x: TensorSpec(...), training: True -> result: TensorSpec(...)".
  std::string signature() const;

  // By structure: values must be those it was traced with, tensors fit their
  // specs; kInvalidArgument, naming the argument, where they do not or R is
  // another structure than the results'.
  template <typename R = Tensor, typename... Args>
  R Call(const Args&... args) const {
    const auto all = std::tie(args...);
    using All = std::tuple<const Args&...>;
    const internal::Given given = internal::GivenAll<All>(all);
    return internal::Result<R>([&](internal::Taken to) { Run(given, to); });
  }
  // By the tensors alone, in the order of arg_names() or by these names. All
  // results, flat. kInvalidArgument where tensors are missing or too many.
  std::vector<Tensor> CallFlat(const std::vector<Tensor>& tensors) const;
  std::vector<Tensor> CallNamed(
      const std::map<std::string, Tensor>& tensors) const;

 private:
  friend class Function;
  explicit ConcreteFunction(std::shared_ptr<const internal::BodyTrace> trace)
      : trace_(std::move(trace)) {}
  void Run(internal::Given args, internal::Taken result) const;
  std::shared_ptr<const internal::BodyTrace> trace_;
};

// A function whose body is run once per signature to record a graph, which
// later calls run as one optimised plan. The signature is the dtypes and shapes
// of the tensors among the arguments, their structure and the values in it
// (structure.h). Variables and tensors of the surroundings are captured by
// reference and kept alive by the function; C++ side effects happen while
// tracing only. Gradients flow through calls, to any order. Copies share their
// traces.
//
// A function keeps at most 128 traces. Those beyond leave open the sizes in
// which they differ from another (unless the body cannot be traced so), and the
// one that was not called lately goes, as in Python.
//
// Safe to call from several threads: plans run side by side, one thread traces
// at a time, but for functions that trace each other. The body may call the
// function (with another signature; kResourceExhausted where the stack ends).
class HR_API Function {
 public:
  using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  // `body` gets as many tensors as a call passes and may return any number,
  // also none. What it throws, the call that traces throws; the next call
  // traces anew. tf::function() below is for other arguments and results.
  explicit Function(Body body, FunctionOptions options = {});
  // `body` reads its arguments and writes its results.
  using StructuredBody =
      std::function<void(internal::Reader& args, internal::Parts& results)>;
  static Function OfStructures(StructuredBody body, FunctionOptions options);

  // Throws the Error of the first op that fails, and what tracing throws.
  // Inside another traced function the call becomes a node of that one's graph.
  std::vector<Tensor> operator()(const std::vector<Tensor>& args) const;
  // The same, ended by an Error (kCancelled, kDeadlineExceeded) where
  // `cancellation` says so.
  std::vector<Tensor> operator()(const std::vector<Tensor>& args,
                                 const Cancellation& cancellation) const;
  // With any structures for arguments, its results as an R. kInvalidArgument,
  // naming the part, where the results are another structure.
  template <typename R = Tensor, typename... Args>
  R Call(const Args&... args) const {
    const auto all = std::tie(args...);
    using All = std::tuple<const Args&...>;
    const internal::Given given = internal::GivenAll<All>(all);
    return internal::Result<R>([&](internal::Taken to) { Run(given, to); });
  }

  // The trace for such arguments, made where there is none; TensorSpecs stand
  // for tensors.
  template <typename... Args>
  ConcreteFunction GetConcreteFunction(const Args&... args) const {
    const auto all = std::tie(args...);
    return Concrete(internal::GivenAll<std::tuple<const Args&...>>(all));
  }

  // How often the body was run. Traces that failed do not count, those that
  // were dropped do.
  int trace_count() const;
  // Why it was traced again, the last 64 times: which argument changed from
  // what to what, against the most similar trace.
  std::vector<std::string> explain_retraces() const;
  std::string name() const;

 private:
  friend struct internal::FunctionAccess;
  explicit Function(std::shared_ptr<internal::FunctionState> state)
      : state_(std::move(state)) {}
  void Run(internal::Given args, internal::Taken result) const;
  ConcreteFunction Concrete(internal::Given args) const;

  std::shared_ptr<internal::FunctionState> state_;
};

// A Function of the arguments A that gives R, each a structure. Arguments are
// converted as C++ does it: a number that is passed for a Tensor becomes a
// scalar, one that is passed for an int is a value of the signature.
template <typename Signature>
class TracedFunction;
template <typename R, typename... A>
class TracedFunction<R(A...)> {
 public:
  explicit TracedFunction(std::function<R(const A&...)> body,
                          FunctionOptions options = {})
      : function_(Function::OfStructures(
            [body = std::move(body)](internal::Reader& args,
                                     internal::Parts& results) {
              args.TakeItems(sizeof...(A));
              // In braces, so that they are read in order.
              const std::tuple<A...> all{
                  StructureTraits<A>::PutTogether(args)...};
              if constexpr (std::is_void_v<R>) {
                std::apply(body, all);
                results.AddNone();
              } else {
                StructureTraits<R>::TakeApart(results, std::apply(body, all));
              }
            },
            std::move(options))) {}
  // Calls `function`, whatever its body is written in.
  explicit TracedFunction(Function function) : function_(std::move(function)) {}

  R operator()(const A&... args) const {
    return function_.Call<R, A...>(args...);
  }
  // Ended by an Error where `cancellation` says so.
  R CallWith(const Cancellation& cancellation, const A&... args) const {
    const CancellationScope scope(cancellation);
    return function_.Call<R, A...>(args...);
  }
  const Function& untyped() const { return function_; }
  operator const Function&() const { return function_; }  // NOLINT

  // As Function's.
  template <typename... Specs>
  ConcreteFunction GetConcreteFunction(const Specs&... specs) const {
    return function_.GetConcreteFunction(specs...);
  }
  int trace_count() const { return function_.trace_count(); }
  std::vector<std::string> explain_retraces() const {
    return function_.explain_retraces();
  }

 private:
  Function function_;
};

namespace internal {
template <typename F>
struct SignatureOf : SignatureOf<decltype(&F::operator())> {};
template <typename R, typename... A>
struct SignatureOf<R (*)(A...)> {
  using type = std::decay_t<R>(std::decay_t<A>...);
};
template <typename C, typename R, typename... A>
struct SignatureOf<R (C::*)(A...) const> : SignatureOf<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct SignatureOf<R (C::*)(A...)> : SignatureOf<R (*)(A...)> {};
}  // namespace internal

// A traced function of a function, or of an object with one operator() that is
// no template:
//   auto f = tf::function([](const tf::Tensor& x, int n) { return x * n; });
//   tf::Tensor y = f(x, 3);
template <typename F>
auto function(F body, FunctionOptions options = {}) {
  return TracedFunction<typename internal::SignatureOf<F>::type>(
      std::move(body), std::move(options));
}

// A traced function of N tensors that gives one tensor, of a body that takes
// them as a list, which may be a template:
//   auto f = tf::function<2>([](auto& x) { return x[0] * x[1]; });
// and called as f(a, b). Arguments are whatever converts to Tensor: numbers
// become scalars of their own C++ type, and so signatures of their own. All
// else is as for Function.
template <int N>
class TypedFunction {
 public:
  template <typename F>
  explicit TypedFunction(F body, FunctionOptions options = {})
      : function_(
            [body](const std::vector<Tensor>& args) {
              return std::vector<Tensor>{body(args)};
            },
            std::move(options)) {}
  template <typename... Args>
  Tensor operator()(const Args&... args) const {
    static_assert(sizeof...(Args) == N, "one argument a tensor");
    return function_({Tensor(args)...})[0];
  }
  int trace_count() const { return function_.trace_count(); }
  const Function& untyped() const { return function_; }

 private:
  Function function_;
};
template <int N, typename F>
TypedFunction<N> function(F body, FunctionOptions options = {}) {
  return TypedFunction<N>(std::move(body), std::move(options));
}

}  // namespace headrace::tf
