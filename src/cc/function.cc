#include "headrace/function.h"

#include <algorithm>
#include <atomic>

#include "base/fork_mutex.h"
#include "base/mutex.h"
#include "base/stack_room.h"
#include "cc/trace.h"
#include "function/call_event.h"
#include "function/concrete_function.h"
#include "function/signature.h"
#include "function/trace_cache.h"

namespace headrace::tf {

using internal::Access;
using internal::Check;

namespace {

// The graph that this thread is making, or null.
const Graph* GraphInTheMaking() {
  const auto* builder = dynamic_cast<GraphBuilder*>(CurrentEmitter());
  return builder ? builder->graph().get() : nullptr;
}

}  // namespace

// A trace and the calls it fits.
struct FunctionTrace {
  bool Fits(const Signature& call) const {
    return std::equal(tokens.begin(), tokens.end(), call.tokens().begin(),
                      call.tokens().end()) &&
           // A trace that captured tensors of a graph can only be called while
           // that graph is made: elsewhere they have no value.
           (graph == nullptr || graph == GraphInTheMaking());
  }

  std::vector<uint64_t> tokens;
  const Graph* graph = nullptr;  // whose tensors it captured, if any
  std::unique_ptr<ConcreteFunction> function;
};

namespace {

std::unique_ptr<FunctionTrace> MakeTrace(const Function::Body& body,
                                         const Signature& call) {
  // A body that calls itself with the same signature traces itself again,
  // without end.
  Check(CheckStackRoom("traces of functions"));
  std::vector<internal::ArgSpec> specs;
  for (const Value& v : call.leaves()) specs.push_back(internal::SpecOf(v));
  internal::Recorded recorded = internal::Record("__inference_f", specs, body);
  auto trace = std::make_unique<FunctionTrace>();
  trace->tokens.assign(call.tokens().begin(), call.tokens().end());
  std::vector<Value> variables;
  for (const Value& v : recorded.captures) {
    if (v.is_symbolic()) trace->graph = GraphInTheMaking();
    if (v.dtype() == headrace::DType::kResource) variables.push_back(v);
  }
  trace->function = std::make_unique<ConcreteFunction>(
      std::move(recorded.function), std::move(recorded.captures),
      std::move(variables));
  return trace;
}

}  // namespace

struct Function::State {
  State(Body b, FunctionOptions o) : body(std::move(b)), options(o) {}

  // The trace for a call, made where there is none. Traces are never dropped.
  ConcreteFunction& For(const Signature& call) {
    if (const FunctionTrace* t = Find(call)) return *t->function;
    // Looked for again under the lock: another thread may have traced the same
    // signature meanwhile.
    MutexLock making(tracing);
    if (const FunctionTrace* t = Find(call))
      return *t->function;  // made meanwhile
    std::unique_ptr<FunctionTrace> made = MakeTrace(body, call);
    if (options.timeout) made->function->SetTimeout(*options.timeout);
    MutexLock lock(mutex);
    return *traces.Add(std::move(made))->function;
  }
  std::vector<Tensor> Call(const std::vector<Tensor>& args) {
    Signature call;
    for (const Tensor& t : args) call.AddTensor(Access::ValueOf(t));
    ValueList outputs;
    Check(For(call).Call(call.leaves(), &outputs));
    std::vector<Tensor> results;
    results.reserve(outputs.size());
    for (Value& v : outputs) results.push_back(Access::Wrap(std::move(v)));
    return results;
  }
  const FunctionTrace* Find(const Signature& call) {
    MutexLock lock(mutex);
    return traces.Find(call);
  }
  int count() const {
    MutexLock lock(mutex);
    return static_cast<int>(traces.all().size());
  }

  const Body body;
  const FunctionOptions options;
  // Held while the body runs, which may call the function for another
  // signature; so each is traced once.
  RecursiveMutex tracing ABSL_ACQUIRED_BEFORE(mutex);
  mutable ForkMutex mutex;
  TraceCache<FunctionTrace> traces ABSL_GUARDED_BY(mutex);
};

Function::Function(Body body, FunctionOptions options)
    : state_(std::make_shared<State>(std::move(body), options)) {}

int Function::trace_count() const { return state_->count(); }

std::vector<Tensor> Function::operator()(
    const std::vector<Tensor>& args, const Cancellation& cancellation) const {
  const CancellationScope scope(cancellation);
  return (*this)(args);
}

std::vector<Tensor> Function::operator()(
    const std::vector<Tensor>& args) const {
  if (!timeline::On()) [[likely]]
    return state_->Call(args);
  CallEvent event("f");
  const int before = trace_count();
  std::vector<Tensor> results = state_->Call(args);
  event.SetTraces(before, trace_count());
  return results;
}

}  // namespace headrace::tf
