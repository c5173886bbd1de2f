#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "absl/strings/strip.h"
#include "autodiff/function_gradient.h"
#include "bind/call/op_call.h"
#include "bind/function/tape_object.h"
#include "bind/python/call_stops.h"
#include "bind/python/graph_object.h"
#include "bind/value/tensor_object.h"
#include "bind/value/variable_object.h"
#include "function/call_event.h"
#include "op/function_caller.h"
#include "op/resource.h"
#include "vectorize/vectorize.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

std::vector<Value> Values(nb::sequence items) {
  std::vector<Value> out;
  for (nb::handle o : items) out.push_back(ValueOrHandle(o));
  return out;
}

void CheckBody(PyGraph& g, absl::Span<const Value> values) {
  for (const Value& v : values) {
    // A value of another graph would have to be captured first; it cannot be
    // named from here.
    if (!v || !v.is_symbolic() || v.graph() != g.graph()) {
      throw nb::value_error(
          "a function's arguments and results are tensors "
          "of its own graph");
    }
  }
}

// make_concrete(graph, name, args, results, trainable, keep_effects): the
// function of the graph whose last arguments are those captures that are not
// among `args`. Effects that the results do not need are part of it where
// `keep_effects` is true. Of `borrowed`, captured variables, it does not keep
// the objects alive, and calls fail once one is gone. `attrs`: the
// function's own.
ConcreteCore MakeConcrete(PyGraph& g, const std::string& name,
                          nb::sequence args, nb::sequence results,
                          nb::sequence trainable, bool keep_effects,
                          nb::sequence borrowed, nb::dict attrs) {
  std::vector<Value> inner = Values(args), out = Values(results), captures;
  CheckBody(g, inner);
  CheckBody(g, out);
  size_t given = inner.size();
  for (const GraphBuilder::Capture& c : g.builder().captures()) {
    bool is_arg = false;
    for (size_t i = 0; i < given; ++i)
      is_arg = is_arg || inner[i].id() == c.inner.id();
    if (is_arg) continue;
    inner.push_back(c.inner);
    captures.push_back(c.outer);
  }
  FunctionPtr f =
      MakeFunction(name, g.builder(), inner, out, keep_effects, AttrsOf(attrs));
  // Calls find the function by its name from here on; the library holds it
  // weakly.
  Status added = GlobalFunctions().Add(f);
  if (!added.ok()) ThrowStatus(added);
  auto made = std::make_shared<ConcreteFunction>(
      std::move(f), std::move(captures), Values(trainable));
  std::vector<ConcreteFunction::Borrowed> variables;
  for (nb::handle o : borrowed) {
    if (!IsVariable(o.ptr())) throw nb::type_error("variables are wanted");
    variables.push_back({nb::cast<std::string>(o.attr("_shared_name")),
                         LifeOf(o.ptr()), HandleOf(o.ptr()).id()});
  }
  made->SetBorrowed(std::move(variables));
  return {std::move(made)};
}

// "f" of "__inference_f_12".
StringView ShortName(StringView name) {
  absl::ConsumePrefix(&name, "__inference_");
  const size_t number = name.rfind('_');
  return number == 0 ? name : name.substr(0, number);
}

// call(args, keep): tapes hold `keep`, unless None, as long as they may go
// back.
nb::list CallConcrete(const ConcreteCore& c, nb::sequence args,
                      nb::object keep) {
  std::vector<Value> values;
  for (nb::handle o : args) {
    // Here, as the call below sees handles only.
    if (IsVariable(o.ptr())) TouchVariable(o.ptr());
    values.push_back(ValueOrHandle(o));
  }
  ValueList outputs;
  Status s;
  bool eager = CurrentEmitter()->is_eager();
  std::optional<CallEvent> event;
  if (timeline::On()) [[unlikely]]
    event.emplace(ShortName(c.function->function()->name));
  std::shared_ptr<void> kept;
  // Only tapes go back; without one nothing need be held.
  if (!keep.is_none() && HasRecorders()) kept = KeptObject(std::move(keep));
  {
    // While tracing the call only adds a node; the graph's Python side needs
    // the GIL.
    const CallStops stops;
    s = stops.status();
    WithoutGil unlocked(eager);
    if (s.ok()) s = c.function->Call(values, &outputs, std::move(kept));
  }
  if (!s.ok()) {
    // An exception of Python inside (a callback, Ctrl-C) goes on as it is.
    if (!PyErr_Occurred() && !(eager && RaiseOutOfScope(values))) {
      RaiseOpError(s, nullptr, c.function->function()->name);
    }
    nb::raise_python_error();
  }
  if (event) event->SetConcrete();
  nb::list out;
  for (Value& v : outputs) out.append(WrapObject(std::move(v)));
  return out;
}

// Throws an exception of Python inside (of a callback, Ctrl-C) as it is, what
// has the code `refusal` as a ValueError, and else the error of `s`.
[[noreturn]] void Refuse(const Status& s,
                         absl::StatusCode refusal = absl::StatusCode::kOk) {
  if (PyErr_Occurred()) nb::raise_python_error();
  if (s.code() == refusal) {
    throw nb::value_error(std::string(s.message()).c_str());
  }
  ThrowStatus(s, !CurrentEmitter()->is_eager());
}

// for_rows(args, stacked, count, loops, warn): what the function gives for each
// of `count` rows, stacked. `stacked` says which arguments have a row for each;
// captures have none. `warn` is called with the text about each op that is done
// in a loop. ValueError where something has no form for all rows.
nb::list CallForRows(const ConcreteCore& c, nb::sequence args,
                     const std::vector<bool>& stacked, nb::handle count,
                     bool loops, nb::object warn) {
  std::vector<Value> values = Values(args);
  if (values.size() != stacked.size()) {
    throw nb::value_error("for_rows: one flag an argument is wanted");
  }
  std::vector<RowValue> rows;
  for (size_t i = 0; i < values.size(); ++i) {
    rows.push_back(
        {values[i], stacked[i] ? Stacking::kStacked : Stacking::kShared});
  }
  for (const Value& v : c.function->captures()) rows.push_back({v});
  VectorizeOptions options;
  options.loops = loops;
  if (!warn.is_none()) {
    options.warn = [&](const std::string& text) { warn(text); };
  }
  const Value rows_count = ValueOrHandle(count);
  StatusOr<FunctionPtr> f =
      FunctionForRows(c.function->function(), rows, rows_count, options);
  if (!f.ok()) Refuse(f.status(), absl::StatusCode::kUnimplemented);
  values.clear();
  for (const RowValue& v : rows) values.push_back(v.value);
  values.push_back(rows_count);
  const bool eager = CurrentEmitter()->is_eager();
  StatusOr<ValueList> results = [&]() -> StatusOr<ValueList> {
    const CallStops stops;
    HR_RETURN_IF_ERROR(stops.status());
    WithoutGil unlocked(eager);
    return CallDifferentiably(*f, values, nullptr);
  }();
  if (!results.ok()) Refuse(results.status());
  nb::list out;
  for (Value& v : *results) out.append(WrapObject(std::move(v)));
  return out;
}

// rows_of(tensors): (arguments, stacked, count), those of for_rows, for a map
// over the rows of tensors; `count` is an int where it is known.
nb::tuple RowsOfTensors(nb::sequence tensors) {
  StatusOr<MappedRows> rows = RowsOf(Values(tensors));
  if (!rows.ok()) Refuse(rows.status(), absl::StatusCode::kInvalidArgument);
  nb::list args, stacked;
  for (RowValue& v : rows->args) {
    stacked.append(!v.shared());
    args.append(WrapObject(std::move(v.value)));
  }
  const Tensor* known = CurrentEmitter()->KnownValue(rows->count);
  nb::object count = known ? nb::cast(known->scalar<int32_t>())
                           : WrapObject(std::move(rows->count));
  return nb::make_tuple(args, stacked, count);
}

nb::list CapturedInputs(const ConcreteCore& c) {
  nb::list out;
  for (const Value& v : c.function->captures()) out.append(WrapObject(v));
  return out;
}

// evaluate(graph, tensors, feeds, values): what part of a graph gives now.
nb::list Evaluate(PyGraph& g, nb::sequence tensors, nb::sequence feeds,
                  nb::sequence values) {
  std::vector<Value> wanted = Values(tensors), fed = Values(feeds);
  CheckBody(g, wanted);
  CheckBody(g, fed);
  std::vector<Edge> in, out;
  for (const Value& v : fed) in.push_back(EdgeOf(v));
  for (const Value& v : wanted) out.push_back(EdgeOf(v));
  std::vector<Tensor> given, results;
  for (const Value& v : Values(values)) given.push_back(v.tensor());
  StatusOr<std::unique_ptr<Executable>> e =
      Executable::Make(*g.graph(), in, out, {}, g.graph()->library().get());
  if (!e.ok()) ThrowStatus(e.status());
  RunServices services;
  services.resources = &DefaultResources();
  // The graph may call functions that were traced in this process.
  services.functions = DefaultFunctionCaller();
  Status s = (*e)->Run(services, absl::MakeSpan(given), &results);
  if (!s.ok()) ThrowStatus(s);
  nb::list list;
  for (Tensor& t : results) list.append(WrapObject(Value(std::move(t))));
  return list;
}

// The body with the tensors of its arguments and of its results.
nb::tuple BodyOf(const ConcreteCore& c) {
  const Function& f = *c.function->function();
  nb::list inputs, outputs;
  for (Node* n : f.args) inputs.append(WrapObject(f.body->Output(n, 0)));
  for (const Edge& e : f.results) outputs.append(WrapObject(f.body->Output(e)));
  return nb::make_tuple(PyGraph(f.body), inputs, outputs);
}

std::string DebugPlan(const ConcreteCore& c) {
  auto e = ExecutableOf(c.function->function(), nullptr);
  if (!e.ok()) ThrowStatus(e.status());
  return (*e)->DebugString();
}

}  // namespace

void AddConcreteFunction(nb::module_& m) {
  nb::class_<ConcreteCore>(m, "ConcreteCore")
      .def_prop_ro(
          "name",
          [](const ConcreteCore& c) { return c.function->function()->name; })
      .def_prop_ro("is_stateful",
                   [](const ConcreteCore& c) {
                     return c.function->function()->is_stateful();
                   })
      .def("captured_inputs", &CapturedInputs)
      .def("set_captured_inputs",
           [](ConcreteCore& c, nb::sequence values) {
             Status s = c.function->SetCaptures(Values(values));
             if (!s.ok()) ThrowStatus(s);
           })
      .def("for_rows", &CallForRows, nb::arg("args"), nb::arg("stacked"),
           nb::arg("count"), nb::arg("loops"), nb::arg("warn").none())
      .def("set_timeout",
           [](ConcreteCore& c, double seconds) {
             c.function->SetTimeout(TimeOf(seconds));
           })
      .def("body", &BodyOf)
      .def("plan", &DebugPlan)
      .def("call", &CallConcrete, nb::arg("args"), nb::arg("keep").none());
  m.def("make_concrete", &MakeConcrete, nb::arg("graph"), nb::arg("name"),
        nb::arg("args"), nb::arg("results"), nb::arg("trainable"),
        nb::arg("keep_effects") = true, nb::arg("borrowed") = nb::tuple(),
        nb::arg("attrs") = nb::dict());
  m.def("rows_of", &RowsOfTensors);
  m.def("evaluate", &Evaluate);
  m.def("count_functions", [] { return GlobalFunctions().Names().size(); });
  m.def("new_function_name", [](const std::string& prefix) {
    return FunctionLibrary::NewName(prefix);
  });
}

}  // namespace headrace::bind
