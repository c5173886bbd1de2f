#include "bind/function/named_gradient.h"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>
#include <vector>

#include "autodiff/function_gradient.h"
#include "base/mutex.h"
#include "bind/function/tape_object.h"
#include "bind/python/graph_object.h"
#include "bind/python/status.h"
#include "bind/value/attr_value.h"
#include "op/no_such_gradient.h"
#include "op/registry.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

nb::list Outputs(const GradientContext& g) {
  nb::list out;
  for (const Value& v : g.outputs()) out.append(WrapObject(v));
  return out;
}

nb::list Inputs(const GradientContext& g) {
  nb::list in;
  for (const Value& v : g.inputs()) in.append(WrapObject(v));
  return in;
}

nb::dict Attributes(const ResolvedOp& op) {
  nb::dict attrs;
  for (const auto& [name, value] : op.attrs()) {
    nb::object o = nb::steal(FromAttr(value));
    if (!o.is_valid()) nb::raise_python_error();
    attrs[name.c_str()] = o;
  }
  return attrs;
}

// Names may come from other programs' graphs: an entry of tf.custom_gradient
// serves the graph that it was made for, and copies of that.
bool Fits(nb::handle entry, GradientContext& g, const CopiedFrom* copied) {
  uint64_t id = nb::cast<uint64_t>(entry.attr("graph_id"));
  // Entries of tf.RegisterGradient are made for no graph and fit all.
  if (id == 0) return true;
  const auto* graph = reinterpret_cast<const Graph*>(id);
  // Without a copy the node itself is at hand, whose graph must be the entry's.
  return copied ? copied->IsOf(graph) : g.output(0).graph().get() == graph;
}

// What an outer value that a written function captured is in the walk's graph.
StatusOr<Value> GradientPlace(GradientContext& g, const Value& outer,
                              const CopiedFrom& copied,
                              const PyGraph* recorded) {
  const std::shared_ptr<Graph>& graph = g.output(0).graph();
  // First the copy of the value itself, then that of the argument by which the
  // graph captured it.
  if (outer.is_symbolic()) {
    if (outer.graph() == graph) return outer;
    if (auto e = copied.Find(outer)) return graph->Output(*e);
  }
  if (recorded) {
    for (const GraphBuilder::Capture& c : recorded->builder().captures()) {
      if (c.outer.id() != outer.id()) continue;
      if (auto e = copied.Find(c.inner)) return graph->Output(*e);
    }
  }
  // A symbolic value that was not copied is out of reach; an eager one is a
  // number and becomes a constant.
  if (outer.is_symbolic()) {
    return InvalidArgument(
        "a gradient function reads ", outer.node()->name(), ":", outer.index(),
        ", a tensor of a graph around the one whose gradient it gives, which "
        "captured no such value; hand it to the function with the gradient as "
        "an argument");
  }
  if (copied.captures_values) return outer;
  // An eager value cannot change any more, so a constant says as much.
  Value constant = g.Const(outer.tensor());
  HR_RETURN_IF_ERROR(g.status());
  return constant;
}

Gradient Placed(nb::handle place, const ValueList& values) {
  Gradient out;
  auto at = [&](nb::handle i) {
    if (i.is_none()) return Value();
    size_t index = nb::cast<size_t>(i);
    if (index >= values.size()) throw nb::index_error("no such gradient");
    return values[index];
  };
  if (nb::isinstance<nb::tuple>(place)) {
    nb::tuple parts = nb::borrow<nb::tuple>(place);
    out.values = at(parts[0]);
    out.indices = at(parts[1]);
    out.dense_shape = at(parts[2]);
  } else {
    out.dense = at(place);
  }
  return out;
}

Status WrongCount(size_t found, const GradientContext& g) {
  return InvalidArgument(found, " gradients for the ", g.num_inputs(),
                         " inputs of a ", g.op().name());
}

// Next to the node that was recorded: emits right here.
Status CallDirectly(nb::handle entry, GradientContext& g) {
  nb::list gradients;
  for (int i = 0; i < g.num_outputs(); ++i) {
    gradients.append(FromGradient(g.raw_grad(i)));
  }
  // User code runs in here, perhaps for long: see Park.
  nb::list found = nb::cast<nb::list>(OrPark([&]() -> nb::object {
    if (g.output(0).is_symbolic()) {
      return entry.attr("direct")(Outputs(g), gradients);
    }
    // Values have no operation that could tell of their call.
    return entry.attr("at_once")(g.op().name(), Inputs(g), Outputs(g),
                                 Attributes(g.op()), gradients);
  }));
  if (nb::len(found) != static_cast<size_t>(g.num_inputs())) {
    return WrongCount(nb::len(found), g);
  }
  for (int i = 0; i < g.num_inputs(); ++i) g.set(i, ToGradient(found[i]));
  return g.status();
}

// In a copy: a function written for the graph of then is called with what its
// captures are here.
Status CallWritten(nb::handle entry, GradientContext& g,
                   const CopiedFrom& copied) {
  nb::list gradients;
  std::vector<Value> inputs;
  // What arrives as slices is made dense (grad): a function's arguments are
  // tensors.
  for (int i = 0; i < g.num_outputs(); ++i) {
    Value v = g.grad(i);
    HR_RETURN_IF_ERROR(g.status());
    // None holds the place; the function has no argument for it.
    gradients.append(v ? WrapObject(v) : nb::none());
    if (v) inputs.push_back(std::move(v));
  }
  nb::object written =
      OrPark([&] { return entry.attr("written")(Outputs(g), gradients); });
  const auto* core = nb::cast<const ConcreteCore*>(written[0]);
  nb::list places = nb::cast<nb::list>(written[1]);
  if (nb::len(places) != static_cast<size_t>(g.num_inputs())) {
    return WrongCount(nb::len(places), g);
  }
  const PyGraph* recorded = nullptr;
  nb::object graph = entry.attr("core");
  if (!graph.is_none()) recorded = nb::cast<const PyGraph*>(graph);
  for (const Value& outer : core->function->captures()) {
    HR_ASSIGN_OR_RETURN(Value v, GradientPlace(g, outer, copied, recorded));
    inputs.push_back(std::move(v));
  }
  FunctionPtr f = core->function->function();
  nb::object inside = written[2];  // entries that the function names
  // Entries die with whoever holds them: the written function lives as long as
  // its trace, and may be differentiated itself.
  if (!inside.is_none() && nb::len(inside) > 0) {
    // Another thread may be making the function's gradient.
    MutexLock lock(f->derived_mutex);
    f->derived.kept = KeptObject(std::move(inside));
  }
  // As a call, not written out: the function is traced once, however often a
  // graph is copied.
  ValueList results = CallFunction(g, f, inputs);
  HR_RETURN_IF_ERROR(g.status());
  for (int i = 0; i < g.num_inputs(); ++i) g.set(i, Placed(places[i], results));
  return OkStatus();
}

Status CallEntry(PyObject* entry, GradientContext& g,
                 const CopiedFrom* copied) {
  WithGil locked;
  try {
    if (!Fits(entry, g, copied)) {
      return NoGradient("gradient registry has no entry for: ",
                        *GradientNameOf(g.op()), " of this graph");
    }
    return copied ? CallWritten(entry, g, *copied) : CallDirectly(entry, g);
  } catch (nb::python_error& e) {
    // The status is only the way out; who asked for the gradient finds Python's
    // exception set.
    e.restore();  // raised again by whoever asked for the gradient
  } catch (nb::builtin_exception& e) {
    PyErr_SetString(PyExc_TypeError, e.what());
  } catch (const nb::cast_error&) {
    PyErr_SetString(PyExc_TypeError,
                    "a gradient function's entry is malformed");
  }
  return Unknown("the gradient function raised");
}

NamedGradient AsNamedGradient(nb::object entry) {
  return [kept = KeptObject(std::move(entry))](GradientContext& g,
                                               const CopiedFrom* copied) {
    return CallEntry(kept.get(), g, copied);
  };
}

NamedGradient Find(StringView name) {
  WithGil locked;
  // Imported at the first question: most programs name no gradients.
  static PyObject* find = Import("eager.named_gradients", "find").release();
  // Names come from files and need not be UTF-8; no entry has a name that was
  // replaced in.
  Ref text(PyUnicode_DecodeUTF8(
      name.data(), static_cast<Py_ssize_t>(name.size()), "replace"));
  Ref entry;
  if (find && text) {
    entry =
        Ref(Called<PyObject_CallFunctionObjArgs>(find, text.get(), nullptr));
  }
  // A finder has no error to give: the name counts as unknown, with a note on
  // stderr.
  if (!entry) PyErr_WriteUnraisable(find);
  if (!entry || entry.get() == Py_None) return nullptr;
  return AsNamedGradient(nb::steal(entry.release()));
}

// An IdentityN whose gradient is the named one.
nb::list IdentitiesWithGradient(nb::sequence tensors, const std::string& name) {
  std::vector<Value> values;
  for (nb::handle o : tensors) values.push_back(ValueOrHandle(o));
  StatusOr<const OpDef*> def = LookUpOp("IdentityN");
  if (!def.ok()) ThrowStatus(def.status());
  ValueList outputs;
  Status s =
      Emit(**def, values, {{std::string(kGradientAttr), name}}, &outputs);
  if (!s.ok()) ThrowStatus(s, true);
  nb::list out;
  for (Value& v : outputs) out.append(WrapObject(std::move(v)));
  return out;
}

}  // namespace

void AddNamedGradients(nb::module_& m) {
  SetNamedGradientFinder(&Find);
  m.def("identities_with_gradient", &IdentitiesWithGradient);
  m.def("register_gradient", [](const std::string& name, nb::object entry) {
    Status s = RegisterNamedGradient(name, AsNamedGradient(std::move(entry)));
    if (!s.ok()) ThrowStatus(s);
  });
  m.def("has_gradient", [](const std::string& op) {
    const OpDef* def = FindOp(op);
    return def && def->gradient_kind != GradientKind::kNone;
  });
}

}  // namespace headrace::bind
