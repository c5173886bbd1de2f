#include "headrace/function.h"

#include <map>

#include "autodiff/function_gradient.h"
#include "base/mutex.h"
#include "cc/trace.h"

namespace headrace::tf {

using internal::Access;
using internal::Check;

namespace {

// One trace: a function, and what it captured of its surroundings.
struct Trace {
  FunctionPtr function;
  ResolvedOpPtr call;
  std::vector<Value> captures;
};

std::string SignatureOf(const std::vector<Value>& args) {
  std::string key;
  for (const Value& v : args) {
    absl::StrAppend(&key, DTypeName(v.dtype()), v.shape().ToString(), ";");
  }
  return key;
}

Trace Record(const Function::Body& body, const std::vector<Value>& args) {
  std::vector<internal::ArgSpec> specs;
  for (const Value& v : args) specs.push_back(internal::SpecOf(v));
  internal::Recorded recorded = internal::Record("__inference_f", specs, body);
  Trace trace;
  trace.call = Check(CallOf(*recorded.function));
  trace.function = std::move(recorded.function);
  trace.captures = std::move(recorded.captures);
  return trace;
}

}  // namespace

struct Function::State {
  explicit State(Body b) : body(std::move(b)) {}
  const Body body;
  Mutex mutex;
  std::map<std::string, Trace> traces ABSL_GUARDED_BY(mutex);
  int count ABSL_GUARDED_BY(mutex) = 0;
};

Function::Function(Body body)
    : state_(std::make_shared<State>(std::move(body))) {}

int Function::trace_count() const {
  MutexLock lock(state_->mutex);
  return state_->count;
}

std::vector<Tensor> Function::operator()(
    const std::vector<Tensor>& args, const Cancellation& cancellation) const {
  const CancellationScope scope(cancellation);
  return (*this)(args);
}

std::vector<Tensor> Function::operator()(
    const std::vector<Tensor>& args) const {
  std::vector<Value> inputs = internal::ValuesOf(args);
  std::string key = SignatureOf(inputs);
  Trace trace;
  {
    MutexLock lock(state_->mutex);
    auto it = state_->traces.find(key);
    if (it == state_->traces.end()) {
      trace = Record(state_->body, inputs);
      ++state_->count;
      it = state_->traces.emplace(key, trace).first;
    }
    trace = it->second;
  }
  internal::TellCapturesRead(trace.captures);
  inputs.insert(inputs.end(), trace.captures.begin(), trace.captures.end());
  ValueList outputs =
      Check(CallDifferentiably(trace.function, inputs, nullptr, trace.call));
  std::vector<Tensor> results;
  for (Value& v : outputs) results.push_back(Access::Wrap(std::move(v)));
  return results;
}

}  // namespace headrace::tf
