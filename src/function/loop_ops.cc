// While and its stateless twin; runtime/loop_plan.h runs them.
// The gradient: the loop grows a counter and a list for every value of an
// iteration that the way back reads; the way back is a loop that counts down
// and takes the values from the lists' ends.
#include "autodiff/written_function.h"
#include "base/cancellation.h"
#include "base/hash_map.h"
#include "function/by_calls.h"
#include "function/callee.h"
#include "op/op.h"
#include "runtime/loop_plan.h"
#include "vectorize/written_body.h"

namespace headrace {
namespace {

// Where the body's backward function finds one of its sources.
struct SourcePlace {
  enum Kind { kInvariant, kList } kind;
  int index;  // of the loop variable, or of the list
};

struct LoopParts {
  FunctionPtr cond, body;
  FunctionGradientPtr gradient;  // of the body
  int vars = 0;
  std::vector<SourcePlace> places;  // one a source of the backward function
  // Per list: forward's result, or the argument when `of_arg`.
  struct List {
    bool of_arg;
    int index;
    DType dtype;
    Shape shape;
    std::shared_ptr<const HandleData> handle;
  };
  std::vector<List> lists;

  int counter() const { return vars; }
  int list(int i) const { return vars + 1 + i; }
};

bool IsInvariant(const Function& body, int var) {
  return body.results[var] == Edge{body.args[var], 0};
}

StatusOr<LoopParts> Study(GradientContext& g) {
  const FunctionLibrary* library = LibraryOf(g);
  LoopParts loop;
  HR_ASSIGN_OR_RETURN(loop.cond,
                      FindFunction(library, g.op().attr<FuncRef>("cond").name));
  HR_ASSIGN_OR_RETURN(loop.body,
                      FindFunction(library, g.op().attr<FuncRef>("body").name));
  HR_ASSIGN_OR_RETURN(loop.gradient, GradientOf(loop.body, library));
  loop.vars = g.num_outputs();
  if (static_cast<int>(loop.body->args.size()) != loop.vars ||
      static_cast<int>(loop.body->results.size()) != loop.vars) {
    return InvalidArgument("the body of a loop over ", loop.vars,
                           " values has ", loop.body->args.size(),
                           " arguments and ", loop.body->results.size(),
                           " results");
  }
  HashMap<std::pair<bool, int>, int> known;
  for (const FunctionGradient::Source& source : loop.gradient->sources) {
    // The same in every turn: the way back reads it once instead of from a
    // list.
    if (source.is_arg && IsInvariant(*loop.body, source.index)) {
      loop.places.push_back({SourcePlace::kInvariant, source.index});
      continue;
    }
    auto [it, added] = known.emplace(std::pair(source.is_arg, source.index),
                                     static_cast<int>(loop.lists.size()));
    if (added) {
      Edge e = source.is_arg
                   ? Edge{loop.gradient->forward->args[source.index], 0}
                   : loop.gradient->forward->results[source.index];
      DType d = e.node->output_type(e.index);
      // A list could not keep it: handles of a body's own resources end with
      // the turn.
      if (d == DType::kResource) {
        return Unimplemented(
            "the gradient of a loop whose body makes a resource");
      }
      loop.lists.push_back({source.is_arg, source.index, d,
                            e.node->output_shape(e.index),
                            e.node->output_handle(e.index)});
    }
    loop.places.push_back({SourcePlace::kList, it->second});
  }
  return loop;
}

Value ElementShape(OpScope& s, const LoopParts::List& list) {
  if (!list.shape.fully_known() || list.dtype == DType::kVariant) {
    return s.Int32(-1);
  }
  std::vector<int32_t> dims(list.shape.dims().begin(), list.shape.dims().end());
  return s.Int32s(dims);
}

// Arguments of the grown loop's functions: variables, counter, lists.
void GrownArgs(const LoopParts& loop, GradientContext& g, ArgTypes* types,
               ArgHandles* handles) {
  for (int i = 0; i < loop.vars; ++i) {
    Node* arg = loop.body->args[i];
    types->push_back({arg->output_type(0), arg->output_shape(0)});
    std::shared_ptr<const HandleData> h = arg->output_handle(0);
    handles->push_back(h ? h : g.input(i).shared_handle_data());
  }
  types->push_back({DType::kInt32, Shape()});
  handles->push_back(nullptr);
  for (const LoopParts::List& list : loop.lists) {
    types->push_back({DType::kVariant, Shape()});
    handles->push_back(std::make_shared<const HandleData>(
        HandleData{{list.dtype, list.shape}}));
  }
}

Status Grow(const LoopParts& loop, GradientContext& g, Node* node) {
  if (node->num_outputs() >=
      loop.list(0) + static_cast<int>(loop.lists.size())) {
    return OkStatus();
  }
  ArgTypes types;
  ArgHandles handles;
  GrownArgs(loop, g, &types, &handles);
  HR_ASSIGN_OR_RETURN(
      FunctionPtr cond,
      WriteFunction("__while_cond", types, handles,
                    [&](OpScope& s, absl::Span<const Value> args,
                        std::vector<Value>* results) {
                      ValueList truth = CallFunction(
                          s, loop.cond, args.subspan(0, loop.vars));
                      if (s.ok()) results->push_back(truth[0]);
                      return s.status();
                    }));
  HR_ASSIGN_OR_RETURN(
      FunctionPtr body,
      WriteFunction(
          "__while_body", types, handles,
          [&](OpScope& s, absl::Span<const Value> args,
              std::vector<Value>* results) {
            ValueList all = CallFunction(s, loop.gradient->forward,
                                         args.subspan(0, loop.vars));
            HR_RETURN_IF_ERROR(s.status());
            // What stays the same is handed on as it is, so that gradients of
            // this loop see it too.
            for (int i = 0; i < loop.vars; ++i) {
              results->push_back(IsInvariant(*loop.body, i) ? args[i] : all[i]);
            }
            results->push_back(s("AddV2", {args[loop.counter()], s.Int32(1)}));
            for (size_t i = 0; i < loop.lists.size(); ++i) {
              const LoopParts::List& list = loop.lists[i];
              results->push_back(
                  s("TensorListPushBack",
                    {args[loop.list(static_cast<int>(i))],
                     list.of_arg ? args[list.index] : all[list.index]},
                    {{"element_dtype", list.dtype}}));
            }
            return s.status();
          }));
  // The new inputs belong to the loop's own graph, whoever emits now.
  GraphBuilder builder(g.output(0).graph(), GraphBuilder::Kind::kPlain);
  std::vector<Value> added;
  std::vector<DType> all_types;
  {
    EmitterScope emit(&builder);
    StopRecording quiet;
    OpScope s;
    added.push_back(s.Int32(0));
    for (const LoopParts::List& list : loop.lists) {
      added.push_back(s("EmptyTensorList", {ElementShape(s, list), s.Int32(-1)},
                        {{"element_dtype", list.dtype}}));
    }
    HR_RETURN_IF_ERROR(s.status());
  }
  for (const auto& [d, shape] : types) all_types.push_back(d);
  AttrMap attrs = g.op().attrs();
  attrs.Set("cond", FuncRef{cond->name, nullptr});
  attrs.Set("body", FuncRef{body->name, nullptr});
  attrs.Set("T", all_types);
  attrs.Set("output_shapes", std::vector<Shape>());
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr grown,
                      ResolveOp(g.op().def(), all_types, attrs));
  GrowCall(g, node, grown, added);
  for (size_t i = 0; i < types.size(); ++i) {
    if (static_cast<int>(i) < loop.vars) continue;
    node->set_output_shape(static_cast<int>(i), types[i].second);
    node->set_output_handle(static_cast<int>(i), handles[i]);
  }
  return OkStatus();
}

// The way back's loop: [counter, gradients..., lists..., invariants...].
struct BackLoop {
  std::vector<int> vars;        // loop variables with a gradient
  std::vector<int> invariants;  // that the backward function reads
  int gradient(size_t i) const { return 1 + static_cast<int>(i); }
};

Status BackBody(const LoopParts& loop, const BackLoop& back, OpScope& s,
                absl::Span<const Value> args, std::vector<Value>* results) {
  size_t at = 1 + back.vars.size();
  absl::Span<const Value> lists = args.subspan(at, loop.lists.size());
  absl::Span<const Value> invariants = args.subspan(at + loop.lists.size());
  std::vector<Value> popped, shorter;
  for (size_t i = 0; i < loop.lists.size(); ++i) {
    ValueList pair =
        s.All("TensorListPopBack", {lists[i], ElementShape(s, loop.lists[i])},
              {{"element_dtype", loop.lists[i].dtype}});
    HR_RETURN_IF_ERROR(s.status());
    shorter.push_back(pair[0]);
    const LoopParts::List& list = loop.lists[i];
    if (pair[1].is_symbolic()) {
      pair[1].node()->set_output_shape(1, list.shape);
      if (list.handle) pair[1].node()->set_output_handle(1, list.handle);
      pair[1] = pair[1].graph()->Output(pair[1].node(), 1);
    }
    popped.push_back(pair[1]);
  }
  std::vector<Value> inputs;
  for (int result : loop.gradient->grad_results) {
    auto it = std::find(back.vars.begin(), back.vars.end(), result);
    inputs.push_back(args[back.gradient(it - back.vars.begin())]);
  }
  for (const SourcePlace& place : loop.places) {
    if (place.kind == SourcePlace::kList) {
      inputs.push_back(popped[place.index]);
    } else {
      auto it = std::find(back.invariants.begin(), back.invariants.end(),
                          place.index);
      inputs.push_back(invariants[it - back.invariants.begin()]);
    }
  }
  ValueList found = CallFunction(s, loop.gradient->backward, inputs);
  HR_RETURN_IF_ERROR(s.status());
  const std::vector<Gradient> arriving = ArgGradients(*loop.gradient, found);
  results->push_back(s("Sub", {args[0], s.Int32(1)}));
  for (size_t i = 0; i < back.vars.size(); ++i) {
    int var = back.vars[i];
    const Value& before = args[back.gradient(i)];
    bool resource = loop.body->args[var]->output_type(0) == DType::kResource;
    if (!arriving[var]) {
      results->push_back(resource ? before : ZerosFor(s, before));
    } else {
      Value now = Densify(s, arriving[var]);
      // A variable's gradient is summed over the turns; a loop variable's goes
      // on to the turn before.
      results->push_back(resource ? s("AddV2", {before, now}) : now);
    }
  }
  results->insert(results->end(), shorter.begin(), shorter.end());
  results->insert(results->end(), invariants.begin(), invariants.end());
  return s.status();
}

BackLoop PlanBack(const LoopParts& loop) {
  BackLoop back;
  for (int i = 0; i < loop.vars; ++i) {
    DType d = loop.body->args[i]->output_type(0);
    bool taken = std::find(loop.gradient->grad_results.begin(),
                           loop.gradient->grad_results.end(),
                           i) != loop.gradient->grad_results.end();
    if (taken || (d == DType::kResource && loop.gradient->arg_grads[i])) {
      back.vars.push_back(i);
    }
  }
  for (const SourcePlace& place : loop.places) {
    if (place.kind == SourcePlace::kInvariant &&
        std::find(back.invariants.begin(), back.invariants.end(),
                  place.index) == back.invariants.end()) {
      back.invariants.push_back(place.index);
    }
  }
  return back;
}

Status GradientOfLoop(GradientContext& g) {
  HR_ASSIGN_OR_RETURN(Node * node, NodeOf(g));
  std::shared_ptr<Graph> graph = g.output(0).graph();
  HR_ASSIGN_OR_RETURN(LoopParts loop, Study(g));
  HR_RETURN_IF_ERROR(Grow(loop, g, node));
  BackLoop back = PlanBack(loop);
  std::vector<Value> inputs = {graph->Output(node, loop.counter())};
  for (int var : back.vars) {
    bool resource = g.input(var).dtype() == DType::kResource;
    inputs.push_back(resource ? ZerosFor(g, g.input(var))
                              : g.grad_or_zeros(var));
  }
  for (size_t i = 0; i < loop.lists.size(); ++i) {
    inputs.push_back(graph->Output(node, loop.list(static_cast<int>(i))));
  }
  for (int var : back.invariants) inputs.push_back(g.input(var));
  HR_RETURN_IF_ERROR(g.status());
  ArgTypes types;
  ArgHandles handles;
  Describe(inputs, &types, &handles);
  std::vector<DType> all_types;
  for (size_t i = 0; i < types.size(); ++i) {
    all_types.push_back(types[i].first);
    size_t which = i - 1;
    if (i >= 1 && which < back.vars.size()) {
      Node* arg = loop.body->args[back.vars[which]];
      if (arg->output_type(0) != DType::kResource) {
        types[i].second = arg->output_shape(0);
      }
    }
  }
  HR_ASSIGN_OR_RETURN(
      FunctionPtr cond,
      WriteFunction("__while_back_cond", types, handles,
                    [&](OpScope& s, absl::Span<const Value> args,
                        std::vector<Value>* results) {
                      results->push_back(s("Greater", {args[0], s.Int32(0)}));
                      return s.status();
                    }));
  HR_ASSIGN_OR_RETURN(
      FunctionPtr body,
      WriteFunction("__while_back_body", types, handles,
                    [&](OpScope& s, absl::Span<const Value> args,
                        std::vector<Value>* results) {
                      return BackBody(loop, back, s, args, results);
                    }));
  std::vector<Shape> shapes;
  for (const auto& [d, shape] : types) shapes.push_back(shape);
  ValueList found =
      g.All(body->is_stateful() ? "While" : "StatelessWhile", inputs,
            {{"cond", FuncRef{cond->name, nullptr}},
             {"body", FuncRef{body->name, nullptr}},
             {"output_shapes", shapes}});
  HR_RETURN_IF_ERROR(g.status());
  for (size_t i = 0; i < back.vars.size(); ++i) {
    g.set(back.vars[i], found[back.gradient(i)]);
  }
  return g.status();
}

// A loop whose variables are stacked where a row's differ from others'.
struct RowLoop {
  FunctionPtr cond, body;
  RowArgs args;
  bool ends_apart = false;  // rows leave it at turns of their own
};

// The shape of variable i for all rows: what the body says of one.
Shape ShapeOfVariable(const VectorizeContext& c, const Function& body, int i,
                      Stacking rows) {
  Shape shape = body.args[i]->output_shape(0);
  if (rows == Stacking::kStacked && shape.rank() >= 0) {
    shape.InsertDim(0, c.known_count());
  }
  return shape;
}

// Which variables are stacked: those that begin so, and those that come to
// depend on one that is.
StatusOr<RowLoop> PlanRows(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(CheckCall(c.op(), c.options().library));
  const FunctionLibrary* library = c.options().library;
  RowLoop loop;
  HR_ASSIGN_OR_RETURN(loop.cond,
                      FindFunction(library, c.op().attr<FuncRef>("cond").name));
  HR_ASSIGN_OR_RETURN(loop.body,
                      FindFunction(library, c.op().attr<FuncRef>("body").name));
  for (const RowValue& v : c.inputs()) loop.args.Add(v);
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < c.num_inputs(); ++i) {
      const Stacking rows = loop.args.rows[i];
      loop.args.types[i].second = ShapeOfVariable(c, *loop.body, i, rows);
    }
    HR_ASSIGN_OR_RETURN(
        std::vector<Stacking> truth,
        RowsOfResults(loop.cond, loop.args, c.count(), c.options()));
    HR_ASSIGN_OR_RETURN(
        std::vector<Stacking> found,
        RowsOfResults(loop.body, loop.args, c.count(), c.options()));
    loop.ends_apart = truth[0] == Stacking::kStacked;
    for (int i = 0; i < c.num_inputs(); ++i) {
      Stacking& rows = loop.args.rows[i];
      if (loop.ends_apart && !IsInvariant(*loop.body, i)) {
        found[i] = WiderOf(found[i], Stacking::kStacked);
      }
      if (rows != Stacking::kShared || found[i] == rows) continue;
      rows = found[i];
      changed = true;
    }
  }
  return loop;
}

// The loop's inputs in the form that its variables have, and the count.
StatusOr<std::vector<Value>> StartRows(VectorizeContext& c, RowLoop* loop) {
  std::vector<Value> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) {
    HR_ASSIGN_OR_RETURN(Value v,
                        AsRows(c.inputs()[i], loop->args.rows[i], c.count()));
    if (loop->args.rows[i] == Stacking::kInList) {
      loop->args.handles[i] = v.shared_handle_data();
    }
    inputs.push_back(std::move(v));
  }
  return inputs;
}

Status EmitRowLoop(VectorizeContext& c, const RowLoop& loop,
                   const FunctionPtr& cond, const FunctionPtr& body,
                   absl::Span<const Value> inputs) {
  std::vector<Shape> shapes;
  for (const Node* n : body->args) shapes.push_back(n->output_shape(0));
  ValueList outputs = c.All(
      cond->is_stateful() || body->is_stateful() ? "While" : "StatelessWhile",
      inputs,
      {{"cond", FuncRef{cond->name, nullptr}},
       {"body", FuncRef{body->name, nullptr}},
       {"output_shapes", shapes},
       {"parallel_iterations", c.op().int_attr("parallel_iterations")}});
  HR_RETURN_IF_ERROR(c.status());
  for (int i = 0; i < c.num_inputs(); ++i) {
    c.set(i, outputs[i], loop.args.rows[i]);
  }
  return OkStatus();
}

// A turn of those rows that go on. Variables: the loop's own, the count, and
// whether each row goes on.
Status TurnOfSome(const RowLoop& loop, const VectorizeOptions& options,
                  OpScope& s, absl::Span<const Value> in,
                  std::vector<Value>* results) {
  const size_t vars = loop.args.rows.size();
  Value rows = s("Where", {in[vars + 1]});
  Value flat =
      s("Squeeze", {rows}, {{"squeeze_dims", std::vector<int64_t>{1}}});
  Value count = s("Size", {flat});
  std::vector<RowValue> some;
  for (size_t i = 0; i < vars; ++i) {
    RowValue v = {in[i], loop.args.rows[i]};
    if (!v.shared()) v.value = s("GatherV2", {v.value, flat, s.Int32(0)});
    some.push_back(std::move(v));
  }
  HR_RETURN_IF_ERROR(s.status());
  HR_ASSIGN_OR_RETURN(std::vector<RowValue> next,
                      Vectorize(loop.body, some, count, options));
  HR_ASSIGN_OR_RETURN(std::vector<RowValue> truth,
                      Vectorize(loop.cond, next, count, options));
  HR_ASSIGN_OR_RETURN(Value on, AsRows(truth[0], Stacking::kStacked, count));
  for (size_t i = 0; i < vars; ++i) {
    if (loop.args.rows[i] == Stacking::kShared) {
      results->push_back(in[i]);
      continue;
    }
    HR_ASSIGN_OR_RETURN(Value v, AsRows(next[i], Stacking::kStacked, count));
    results->push_back(s("TensorScatterUpdate", {in[i], rows, v}));
  }
  results->push_back(in[vars]);
  results->push_back(s("TensorScatterUpdate", {in[vars + 1], rows, on}));
  return s.status();
}

Status LoopThatEndsApart(VectorizeContext& c, const RowLoop& loop,
                         std::vector<Value> inputs) {
  VectorizeOptions inner = c.options();
  ++inner.depth;
  std::vector<RowValue> start;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (loop.args.rows[i] == Stacking::kInList) {
      return c.Refuse(
          "its rows leave a loop over TensorLists at turns of "
          "their own.");
    }
    start.push_back({inputs[i], loop.args.rows[i]});
  }
  HR_ASSIGN_OR_RETURN(std::vector<RowValue> truth,
                      Vectorize(loop.cond, start, c.count(), inner));
  HR_ASSIGN_OR_RETURN(Value on,
                      AsRows(truth[0], Stacking::kStacked, c.count()));
  ArgTypes types = loop.args.types;
  ArgHandles handles = loop.args.handles;
  types.push_back({DType::kInt32, Shape()});
  types.push_back({on.dtype(), Shape{c.known_count()}});
  handles.resize(types.size());
  HR_ASSIGN_OR_RETURN(
      FunctionPtr cond,
      WriteFunction("__some_rows_cond", types, handles,
                    [&](OpScope& s, absl::Span<const Value> in,
                        std::vector<Value>* results) {
                      results->push_back(s("Any", {in.back(), s.Int32s({0})}));
                      return s.status();
                    }));
  HR_ASSIGN_OR_RETURN(FunctionPtr body,
                      WriteFunction("__some_rows_body", types, handles,
                                    [&](OpScope& s, absl::Span<const Value> in,
                                        std::vector<Value>* results) {
                                      return TurnOfSome(loop, inner, s, in,
                                                        results);
                                    }));
  inputs.push_back(c.count());
  inputs.push_back(on);
  return EmitRowLoop(c, loop, cond, body, inputs);
}

Status VectorizeLoop(VectorizeContext& c) {
  HR_ASSIGN_OR_RETURN(RowLoop loop, PlanRows(c));
  HR_ASSIGN_OR_RETURN(std::vector<Value> inputs, StartRows(c, &loop));
  if (loop.ends_apart) return LoopThatEndsApart(c, loop, std::move(inputs));
  HR_ASSIGN_OR_RETURN(FunctionPtr cond,
                      WriteForRows(loop.cond, loop.args, {Stacking::kShared},
                                   c.count(), false, c.options()));
  HR_ASSIGN_OR_RETURN(FunctionPtr body,
                      WriteForRows(loop.body, loop.args, loop.args.rows,
                                   c.count(), true, c.options()));
  inputs.push_back(c.count());
  return EmitRowLoop(c, loop, cond, body, inputs);
}

OpBuilder WhileOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("input: T")
      .Output("output: T")
      .Attr("T: list(type) >= 0")
      .Attr("cond: func")
      .Attr("body: func")
      .Attr("output_shapes: list(shape) = []")
      .Attr("parallel_iterations: int = 10")
      .Doc(doc)
      .Role(OpRole::kLoop)
      .Shape(CalledShapes)
      .Gradient(GradientOfLoop)
      .Vectorize(VectorizeLoop)
      .Cpu(Bind<LoopKernel>);
  return b;
}
[[maybe_unused]] const OpRegistrar kLoopOps[] = {
    WhileOp("While",
            "Calls `body` on its own results while `cond` of them is true.")
        .Stateful(),
    WhileOp("StatelessWhile", "While, of functions without effects."),
};

}  // namespace

Status RunLoopByCalls(const ResolvedOp& op,
                      absl::Span<const Tensor* const> inputs,
                      const CallFunctionBy& call,
                      std::vector<Tensor>* outputs) {
  const FuncRef& cond = op.attr<FuncRef>("cond");
  const FuncRef& body = op.attr<FuncRef>("body");
  std::vector<Tensor> state;
  for (const Tensor* t : inputs) state.push_back(*t);
  while (true) {
    HR_RETURN_IF_ERROR(CheckStop());
    std::vector<Tensor> tested, next;
    HR_RETURN_IF_ERROR(call(cond, state, &tested));
    if (tested.size() != 1) {
      return InvalidArgument("the condition of a loop has ", tested.size(),
                             " results");
    }
    HR_ASSIGN_OR_RETURN(const bool goes_on, Truth(tested[0]));
    if (!goes_on) break;
    const size_t count = state.size();
    HR_RETURN_IF_ERROR(call(body, std::move(state), &next));
    if (next.size() != count) {
      return InvalidArgument("the body of a loop over ", count, " values has ",
                             next.size(), " results");
    }
    state = std::move(next);
  }
  *outputs = std::move(state);
  return OkStatus();
}

}  // namespace headrace
