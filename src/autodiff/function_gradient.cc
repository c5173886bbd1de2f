#include "autodiff/function_gradient.h"

#include "autodiff/graph_backward.h"
#include "base/mutex.h"
#include "base/stack_room.h"
#include "op/registry.h"

namespace headrace {
namespace {

// Results that gradients can come back to.
bool TakesGradient(DType d) {
  return IsFloating(d) || IsComplex(d) || d == DType::kVariant;
}

// Builds a way back; the lengths of the forward function's lists are asked
// there, so that a number crosses in a list's place.
class BackwardBuilder : public GraphBuilder {
 public:
  explicit BackwardBuilder(std::shared_ptr<Graph> forward)
      : GraphBuilder(std::make_shared<Graph>(), Kind::kFunction),
        forward_(std::move(forward), Kind::kFunction) {}

  Status Emit(const ResolvedOpPtr& op, absl::Span<const Value> inputs,
              ValueList* outputs) override {
    const bool there = op->def().Has(OpTrait::kMeasuresList) &&
                       inputs[0].is_symbolic() &&
                       inputs[0].graph() == forward_.graph();
    return there ? forward_.Emit(op, inputs, outputs)
                 : GraphBuilder::Emit(op, inputs, outputs);
  }

 private:
  GraphBuilder forward_;
};

StatusOr<FunctionGradientPtr> Differentiate(const FunctionPtr& f,
                                            const FunctionLibrary* library) {
  const SandboxScope scope(f->body->sandbox());  // what is made is in it
  HR_ASSIGN_OR_RETURN(std::shared_ptr<Function> forward,
                      CloneInlined(*f, library));
  auto result = std::make_shared<FunctionGradient>();
  BackwardBuilder builder(forward->body);
  EmitterScope emit(&builder);
  StopRecording quiet;
  GraphBackward walk(forward->body, OriginsOf(*forward));
  std::vector<Value> args;
  for (Node* n : forward->args) {
    if (IsDifferentiable(n->output_type(0))) walk.Seek(Edge{n, 0});
  }
  size_t plain_results = forward->results.size();
  for (size_t i = 0; i < plain_results; ++i) {
    Value out = forward->body->Output(forward->results[i]);
    if (!TakesGradient(out.dtype())) continue;
    HR_ASSIGN_OR_RETURN(
        Value g, builder.AddPlaceholder("gradient", out.dtype(), out.shape(),
                                        out.shared_handle_data()));
    result->grad_results.push_back(static_cast<int>(i));
    args.push_back(g);
    Gradient arriving;
    arriving.dense = g;
    walk.Arrive(forward->results[i], std::move(arriving));
  }
  HR_RETURN_IF_ERROR(walk.Back());
  OpScope s;
  std::vector<Value> grads;
  for (Node* n : forward->args) {
    Gradient g;
    if (IsDifferentiable(n->output_type(0))) g = walk.Take(Edge{n, 0});
    HR_RETURN_IF_ERROR(walk.status());
    FunctionGradient::Places& places = result->arg_grads.emplace_back();
    const std::pair<const Value*, int*> parts[] = {
        {&g.dense, &places.dense},
        {&g.values, &places.values},
        {&g.indices, &places.indices},
        {&g.dense_shape, &places.dense_shape}};
    for (auto [part, place] : parts) {
      if (!*part) continue;
      HR_ASSIGN_OR_RETURN(Value inside, builder.Import(*part));
      *place = static_cast<int>(grads.size());
      grads.push_back(inside);
    }
  }
  HashMap<Edge, int> kept;
  for (const GraphBuilder::Capture& c : builder.captures()) {
    args.push_back(c.inner);
    // The forward function could not hand such a value out.
    if (!c.outer.is_symbolic() || c.outer.graph() != forward->body) {
      return Internal("a gradient reads a value from outside its function");
    }
    Edge e = EdgeOf(c.outer);
    auto arg = std::find(forward->args.begin(), forward->args.end(), e.node);
    if (arg != forward->args.end()) {
      result->sources.push_back(
          {true, static_cast<int>(arg - forward->args.begin())});
      continue;
    }
    auto [it, added] =
        kept.emplace(e, static_cast<int>(forward->results.size()));
    if (added) {
      forward->results.push_back(e);
      forward->result_names.push_back(
          absl::StrCat("intermediate_", it->second));
    }
    result->sources.push_back({false, it->second});
  }
  forward->name = FunctionLibrary::NewName("__forward_" + f->name);
  result->backward = MakeFunction(
      FunctionLibrary::NewName("__backward_" + f->name), builder, args, grads);
  result->forward = forward;
  auto again = std::make_shared<Function>();
  again->name = FunctionLibrary::NewName("__again_" + f->name);
  // The same body without control outputs: computed again, nothing takes
  // effect.
  again->body = forward->body;
  again->args = forward->args;
  again->arg_names = forward->arg_names;
  again->results = forward->results;
  again->result_names = forward->result_names;
  ShareOrigins(*forward, *again);
  result->recompute = again;
  HR_RETURN_IF_ERROR(GlobalFunctions().Add(result->forward));
  HR_RETURN_IF_ERROR(GlobalFunctions().Add(result->recompute));
  HR_RETURN_IF_ERROR(GlobalFunctions().Add(result->backward));
  HR_ASSIGN_OR_RETURN(result->forward_call, CallOf(*result->forward));
  HR_ASSIGN_OR_RETURN(result->recompute_call, CallOf(*result->recompute));
  HR_ASSIGN_OR_RETURN(result->backward_call, CallOf(*result->backward));
  return FunctionGradientPtr(std::move(result));
}

// The functions whose gradients this thread is making, innermost first.
struct InTheMaking {
  InTheMaking(const Function* f, const FunctionLibrary* l)
      : function(f), library(l), around(innermost) {
    innermost = this;
  }
  ~InTheMaking() { innermost = around; }
  InTheMaking(const InTheMaking&) = delete;
  InTheMaking& operator=(const InTheMaking&) = delete;
  static bool Has(const Function* f) {
    for (InTheMaking* m = innermost; m; m = m->around) {
      if (m->function == f) return true;
    }
    return false;
  }

  const Function* const function;
  const FunctionLibrary* const library;
  InTheMaking* const around;
  static thread_local InTheMaking* innermost;
};
thread_local InTheMaking* InTheMaking::innermost = nullptr;

}  // namespace

const FunctionLibrary* LibraryInUse() {
  return InTheMaking::innermost ? InTheMaking::innermost->library : nullptr;
}

StatusOr<FunctionGradientPtr> GradientOf(const FunctionPtr& f,
                                         const FunctionLibrary* library) {
  {
    MutexLock lock(f->derived_mutex);
    // The lock is not held while the gradient is made, which differentiates
    // callees and may run the user's code; two threads may both make it.
    if (f->derived.gradient) return f->derived.gradient;
  }
  // Without this look recursion would differentiate itself until the stack
  // ends.
  if (InTheMaking::Has(f.get())) {
    return Unimplemented("the gradient of function ", f->name,
                         ", which calls itself");
  }
  HR_RETURN_IF_ERROR(CheckStackRoom("gradients of functions"));
  InTheMaking making(f.get(), library);
  HR_ASSIGN_OR_RETURN(FunctionGradientPtr made, Differentiate(f, library));
  MutexLock lock(f->derived_mutex);
  FunctionGradientPtr& kept = f->derived.gradient;
  // The first one stays: nodes name it by now.
  if (!kept) kept = std::move(made);  // else another thread was first
  return kept;
}

ValueList CallFunction(OpScope& s, const FunctionPtr& f,
                       absl::Span<const Value> inputs, ResolvedOpPtr call) {
  ValueList outputs;
  if (!s.ok()) return ValueList(f->results.size());
  if (!call) {
    StatusOr<ResolvedOpPtr> made = CallOf(*f);
    if (!made.ok()) {
      s.Fail(made.status());
      return ValueList(f->results.size());
    }
    call = *std::move(made);
  }
  Status emitted = Emit(call, inputs, &outputs);
  if (!emitted.ok()) {
    s.Fail(emitted);
    return ValueList(f->results.size());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_symbolic()) continue;
    // The call's rule knows functions of the process alone, but the inputs of
    // this call, too.
    const Edge& e = f->results[i];
    StatusOr<Shape> both =
        MergeShapes(outputs[i].shape(), e.node->output_shape(e.index));
    if (both.ok()) SetShape(outputs[i], *both);
  }
  return outputs;
}

namespace {

// What g.backward is called with.
std::vector<Value> BackwardInputs(OpScope& s, const FunctionGradient& g,
                                  absl::Span<const Value> args,
                                  absl::Span<const Value> results,
                                  absl::Span<const Gradient> gradients) {
  std::vector<Value> inputs;
  for (int i : g.grad_results) {
    inputs.push_back(gradients[i] ? Densify(s, gradients[i])
                                  : ZerosFor(s, results[i]));
  }
  for (const FunctionGradient::Source& source : g.sources) {
    inputs.push_back(source.is_arg ? args[source.index]
                                   : results[source.index]);
  }
  return inputs;
}

}  // namespace

std::vector<Gradient> ArgGradients(const FunctionGradient& g,
                                   absl::Span<const Value> outputs) {
  auto at = [&](int place) { return place < 0 ? Value() : outputs[place]; };
  std::vector<Gradient> gradients;
  for (const FunctionGradient::Places& p : g.arg_grads) {
    gradients.push_back(
        {at(p.dense), at(p.values), at(p.indices), at(p.dense_shape)});
  }
  return gradients;
}

std::vector<Gradient> CallBackward(OpScope& s, const FunctionGradient& g,
                                   absl::Span<const Value> args,
                                   absl::Span<const Value> results,
                                   absl::Span<const Gradient> gradients) {
  std::vector<Value> inputs = BackwardInputs(s, g, args, results, gradients);
  std::vector<Gradient> arg_gradients(g.arg_grads.size());
  if (!s.ok()) return arg_gradients;
  ValueList outputs = CallFunction(s, g.backward, inputs, g.backward_call);
  return s.ok() ? ArgGradients(g, outputs) : arg_gradients;
}

namespace {

// The way back through a call of g.forward: `results` are all of its results.
// Itself a call that gradients flow through.
Status GoBack(const FunctionGradient& g, absl::Span<const Value> args,
              absl::Span<const Value> results,
              absl::Span<const Gradient> gradients,
              const FunctionLibrary* library, const std::shared_ptr<void>& keep,
              std::vector<Gradient>* arg_gradients) {
  OpScope s;
  std::vector<Value> inputs = BackwardInputs(s, g, args, results, gradients);
  HR_RETURN_IF_ERROR(s.status());
  HR_ASSIGN_OR_RETURN(
      ValueList grads,
      CallDifferentiably(g.backward, inputs, library, g.backward_call, keep));
  *arg_gradients = ArgGradients(g, grads);
  return OkStatus();
}

}  // namespace

StatusOr<ValueList> CallDifferentiably(const FunctionPtr& f,
                                       absl::Span<const Value> args,
                                       const FunctionLibrary* library,
                                       ResolvedOpPtr call,
                                       std::shared_ptr<void> keep) {
  OpScope s;
  if (!HasRecorders()) {
    ValueList outputs = CallFunction(s, f, args, std::move(call));
    HR_RETURN_IF_ERROR(s.status());
    return outputs;
  }
  HR_ASSIGN_OR_RETURN(FunctionGradientPtr g, GradientOf(f, library));
  ValueList all;
  {
    // Tapes are told of the call as a whole; its inside would be recorded
    // twice.
    StopRecording quiet;
    all = CallFunction(s, g->forward, args, g->forward_call);
    HR_RETURN_IF_ERROR(s.status());
  }
  size_t plain = f->results.size();
  std::vector<Value> kept_args(args.begin(), args.end());
  std::vector<Value> kept(all.begin(), all.end());
  auto backward = [g, kept_args, kept, library, plain, keep](
                      absl::Span<const Gradient> gradients,
                      std::vector<Gradient>* results) -> Status {
    bool inside = false;  // something arrives at an intermediate
    for (size_t i = plain; i < gradients.size(); ++i) {
      inside = inside || gradients[i];
    }
    if (!inside) {
      return GoBack(*g, kept_args, kept, gradients, library, keep, results);
    }
    // A gradient of a gradient: what the way back read has a way back of its
    // own, through the forward function with its intermediates as results.
    // Its values are computed again, without effects.
    HR_ASSIGN_OR_RETURN(FunctionGradientPtr second,
                        GradientOf(g->forward, library));
    // Tapes are told, as a third order goes back through them.
    HR_ASSIGN_OR_RETURN(
        ValueList again,
        CallDifferentiably(second->recompute, kept_args, library,
                           second->recompute_call, keep));
    return GoBack(*second, kept_args, again, gradients, library, keep, results);
  };
  TellCustom(f->name, kept_args, kept, backward);
  return ValueList(all.begin(), all.begin() + plain);
}

}  // namespace headrace
