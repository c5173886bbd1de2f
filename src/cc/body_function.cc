#include "cc/body_function.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "absl/strings/ascii.h"
#include "base/mutex.h"
#include "base/stack_room.h"
#include "cc/trace.h"
#include "function/call_event.h"

namespace headrace::tf::internal {
namespace {

std::atomic<uint64_t> age_of_traces{0};

// The graph that this thread is making, or null.
std::shared_ptr<const Graph> GraphInTheMaking() {
  const auto* builder = dynamic_cast<GraphBuilder*>(CurrentEmitter());
  return builder ? builder->graph() : nullptr;
}

// A part's path as a name: x['a'][0] is x_a_0.
std::string FlatName(const std::string& path) {
  std::string name;
  for (const char c : path) {
    if (absl::ascii_isalnum(c) || c == '_') {
      name += c;
    } else if (!name.empty() && name.back() != '_' && c != ']' && c != '\'') {
      name += '_';
    }
  }
  return name;
}

// The placeholders of a trace for these tokens.
std::vector<ArgSpec> ArgSpecsOf(TokenSpan tokens,
                                const std::vector<std::string>& names) {
  std::vector<ArgSpec> specs;
  for (const SignaturePart& part : PartsOfCall(tokens, names)) {
    size_t at = part.at;
    SignatureItem item = ReadItem(tokens, &at);
    if (item.tag == Signature::kTensor) {
      specs.push_back(
          {item.dtype, item.shape, item.behind, FlatName(part.path)});
    } else if (item.tag == Signature::kVariable) {
      specs.push_back({headrace::DType::kResource, Shape(),
                       std::make_shared<const HandleData>(
                           HandleData{{item.dtype, item.shape}}),
                       FlatName(part.path)});
    }
  }
  return specs;
}

// Holds a function's lock while it lives.
class ABSL_SCOPED_LOCKABLE Tracing {
 public:
  // Throws, and holds nothing, where the thread should stop.
  explicit Tracing(TracingLock& lock) ABSL_EXCLUSIVE_LOCK_FUNCTION(lock)
      : lock_(lock) {
    Check(lock_.Acquire());
  }
  ~Tracing() ABSL_UNLOCK_FUNCTION() { lock_.Release(); }
  Tracing(const Tracing&) = delete;

 private:
  TracingLock& lock_;
};

Tokens Copied(TokenSpan tokens) { return {tokens.begin(), tokens.end()}; }

// How `now` differs from an older trace's arguments.
std::vector<Retraces::Change> ChangesOf(TokenSpan before, TokenSpan now,
                                        const std::vector<std::string>& names) {
  const std::vector<SignaturePart> old = PartsOfCall(before, names);
  const std::vector<SignaturePart> parts = PartsOfCall(now, names);
  std::vector<Retraces::Change> changes;
  for (size_t i = 0; i < old.size() || i < parts.size(); ++i) {
    const std::string a = i < old.size() ? old[i].text : "nothing";
    const std::string b = i < parts.size() ? parts[i].text : "nothing";
    const std::string& path = i < parts.size() ? parts[i].path : old[i].path;
    const bool moved = i < old.size() && old[i].path != path;
    if (a != b || moved) {
      changes.push_back({path, moved ? old[i].path + ": " + a : a, b});
    }
  }
  return changes;
}

}  // namespace

void ForgetTraces() { ++age_of_traces; }

bool BodyTrace::IsAtHome() const {
  if (age != age_of_traces.load(std::memory_order_relaxed)) return false;
  return !home || home == GraphInTheMaking();
}

ValueList BodyTrace::Call(absl::Span<const Value> leaves) const {
  ValueList outputs;
  Check(function->Call(leaves, &outputs, keep));
  // A variable that it gives is known by its handle, to tapes above all.
  const headrace::Function& f = *function->function();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].dtype() != headrace::DType::kResource) [[likely]]
      continue;
    const size_t at =
        std::find(f.args.begin(), f.args.end(), f.results[i].node) -
        f.args.begin();
    if (at == f.args.size()) continue;
    outputs[i] = at < leaves.size() ? leaves[at]
                                    : function->captures()[at - leaves.size()];
  }
  return outputs;
}

void BodyTrace::Give(absl::Span<const Value> outputs, Taken result) const {
  const Reader::Source source{.tokens = gives, .values = outputs};
  Reader reader(&source);
  try {
    result.put_together(reader, result.value);
  } catch (const Misread& e) {
    throw Error(e.code(), absl::StrCat("Function ", name, ": ", e.what()));
  }
}

bool BodyFunction::Known::Fits(TokenSpan call) const {
  return std::equal(tokens.begin(), tokens.end(), call.begin(), call.end()) &&
         trace->IsAtHome();
}

BodyFunction::BodyFunction(Function::StructuredBody body,
                           FunctionOptions options)
    : body_(std::move(body)), options_(std::move(options)) {
  if (!options_.input_signature) return;
  // Throws for sizes that no shape has.
  for (const TensorSpec& s : *options_.input_signature) Core(s.shape);
}

ValueList BodyFunction::Call(const Signature& call, BodyTracePtr* trace) {
  std::optional<CallEvent> event;
  int before = 0;
  if (timeline::On()) [[unlikely]] {
    event.emplace(name());
    before = trace_count();
  }
  *trace = For(call);
  ValueList outputs = (*trace)->Call(call.leaves());
  if (event) event->SetTraces(before, trace_count());
  return outputs;
}

BodyTracePtr BodyFunction::For(const Signature& call) {
  {
    MutexLock lock(mutex_);
    if (Known* known = known_.Find(call.tokens())) [[likely]] {
      known->used = true;
      return known->trace;
    }
  }
  const Tokens wanted = Constrained(call.tokens());
  BodyTracePtr trace = Found(wanted);
  if (!trace) {
    Tracing making(tracing_);
    // Another thread may have traced the same signature meanwhile.
    trace = Found(wanted);
    if (!trace) trace = Made(wanted);
  }
  Remember(call.tokens(), trace);
  return trace;
}

BodyTracePtr BodyFunction::ConcreteFor(const Signature& specs) {
  const Tokens wanted = Constrained(specs.tokens());
  Tracing making(tracing_);
  {
    MutexLock lock(mutex_);
    for (const BodyTracePtr& t : traces_.all()) {
      if (t->takes == wanted && t->IsAtHome()) return t;
    }
  }
  BodyTracePtr found = Found(wanted);
  return found ? found : Made(wanted);
}

int BodyFunction::trace_count() const {
  MutexLock lock(mutex_);
  return count_;
}

std::vector<std::string> BodyFunction::explain_retraces() const {
  MutexLock lock(mutex_);
  return retraces_.told();
}

// The signature with what input_signature says of its tensors.
Tokens BodyFunction::Constrained(TokenSpan call) const {
  if (!options_.input_signature) return Copied(call);
  const std::vector<TensorSpec>& specs = *options_.input_signature;
  Signature wanted;
  size_t next = 0;
  for (size_t at = 0, end; at < call.size(); at = end) {
    end = BehindItem(call, at);
    if (TagAt(call, at) != Signature::kTensor) {
      for (size_t i = at; i < end; ++i) wanted.AddToken(call[i]);
      continue;
    }
    if (next < specs.size()) {
      wanted.AddSpec(Core(specs[next].dtype), Core(specs[next].shape));
    }
    ++next;
  }
  if (next != specs.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                absl::StrCat("Function ", name(), ": its input_signature has ",
                             specs.size(), " tensors, got ", next));
  }
  if (!Serves(wanted.tokens(), call)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        absl::StrCat(
            "Function ", name(), ": its input_signature does not fit: ",
            Misfit(wanted.tokens(), call, options_.arg_names).message()));
  }
  return Copied(wanted.tokens());
}

BodyTracePtr BodyFunction::Found(TokenSpan wanted) {
  MutexLock lock(mutex_);
  const BodyTracePtr* found = traces_.Find(
      [&](const BodyTracePtr& t) {
        return Serves(t->takes, wanted) && t->IsAtHome();
      },
      [](const BodyTracePtr& a, const BodyTracePtr& b) {
        return Serves(b->takes, a->takes);
      });
  return found ? *found : nullptr;
}

// A new trace; where it pays, one that serves tensors of other shapes too.
BodyTracePtr BodyFunction::Made(const Tokens& wanted) {
  Table::Sizes sizes;
  std::optional<Tokens> open;
  {
    MutexLock lock(mutex_);
    sizes = traces_.SizesOfNext(options_.reduce_retracing);
    if (sizes != Table::Sizes::kExact) {
      open = traces_.Joined(
          [&](const BodyTracePtr& t) { return Join(t->takes, wanted); });
    }
  }
  if (!open || *open == wanted) return Trace(wanted);
  if (sizes == Table::Sizes::kOpen) return Trace(*open);
  // Nobody asked for it: where the body wants to know the shapes, it does.
  try {
    return Trace(*open);
  } catch (const std::exception&) {
    BodyTracePtr exact = Trace(wanted);
    MutexLock lock(mutex_);
    traces_.SizesStay();
    return exact;
  }
}

BodyTracePtr BodyFunction::Trace(const Tokens& takes) {
  // A body that calls itself with the same signature traces itself again,
  // without end.
  Check(CheckStackRoom("traces of functions"));
  auto trace = std::make_shared<BodyTrace>();
  trace->takes = takes;
  trace->age = age_of_traces;
  trace->name = name();
  trace->arg_names = options_.arg_names;
  Recorded recorded =
      Record("__inference_" + name(), ArgSpecsOf(takes, options_.arg_names),
             [&](const std::vector<Tensor>& args) {
               return RunBody(args, trace.get());
             });
  std::vector<Value> variables;
  for (const Value& v : recorded.captures) {
    if (v.is_symbolic()) trace->home = GraphInTheMaking();
    if (v.dtype() == headrace::DType::kResource) variables.push_back(v);
  }
  trace->function = std::make_shared<headrace::ConcreteFunction>(
      std::move(recorded.function), std::move(recorded.captures),
      std::move(variables));
  if (options_.timeout) trace->function->SetTimeout(*options_.timeout);
  Keep(trace);
  return trace;
}

std::vector<Tensor> BodyFunction::RunBody(const std::vector<Tensor>& args,
                                          BodyTrace* trace) const {
  const std::vector<Value> values = ValuesOf(args);
  const Reader::Source source{.tokens = trace->takes,
                              .values = values,
                              .is_call = true,
                              .names = options_.arg_names};
  Reader reader(&source);
  Signature results;
  Parts parts(&results);
  try {
    body_(reader, parts);
  } catch (const Misread& e) {
    throw Error(e.code(), absl::StrCat("Function ", name(), ": ", e.what()));
  }
  trace->gives = Copied(results.tokens());
  return TensorsOf(results.leaves());
}

void BodyFunction::Keep(const BodyTracePtr& trace) {
  // Destroyed behind the lock.
  std::vector<std::unique_ptr<Known>> forgotten;
  std::optional<BodyTracePtr> gone;
  MutexLock lock(mutex_);
  ++count_;
  const std::vector<BodyTracePtr>& all = traces_.all();
  std::vector<std::vector<Retraces::Change>> differences;
  std::vector<size_t> counts;
  const size_t first =
      all.size() - std::min(all.size(), Retraces::kMostCompared);
  for (size_t i = first; i < all.size(); ++i) {
    differences.push_back(
        ChangesOf(all[i]->takes, trace->takes, options_.arg_names));
    counts.push_back(differences.back().size());
  }
  if (const std::optional<size_t> nearest = Retraces::Nearest(counts)) {
    retraces_.Add(count_, Retraces::Reason(differences[*nearest]));
  }
  for (const auto& known : known_.all()) {
    if (std::exchange(known->used, false)) traces_.Use(known->trace);
  }
  gone = traces_.Add(trace);
  if (!gone) return;
  known_.Clear();  // it may be among them
  forgotten = known_.TakeDropped();
}

void BodyFunction::Remember(TokenSpan tokens, const BodyTracePtr& trace) {
  std::vector<std::unique_ptr<Known>> forgotten;
  auto known = std::make_unique<Known>(Known{Copied(tokens), trace});
  MutexLock lock(mutex_);
  known_.Add(std::move(known));
  known_.Trim(kMostKnown);
  forgotten = known_.TakeDropped();
}

}  // namespace headrace::tf::internal
