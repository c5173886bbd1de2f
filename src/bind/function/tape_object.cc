#include "bind/function/tape_object.h"

#include <vector>

#include "autodiff/function_gradient.h"
#include "bind/python/call_stops.h"
#include "bind/python/graph_object.h"
#include "bind/python/graph_stack.h"
#include "bind/value/convert.h"
#include "bind/value/tensor_object.h"
#include "bind/value/variable_object.h"
#include "eager/tape.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

// Tensors as they are, variables as their handles.
Value Watched(nb::handle o) {
  if (IsTensor(o.ptr())) return ValueOf(o.ptr());
  if (IsVariable(o.ptr())) return HandleOf(o.ptr());
  throw nb::type_error("a tape watches tensors and variables");
}

nb::object Wrap(const Value& v) {
  PyObject* o = WrapValue(v);
  if (o == nullptr) nb::raise_python_error();
  return nb::steal(o);
}

}  // namespace

nb::object FromGradient(const Gradient& g) {
  if (!g) return nb::none();
  if (!g.is_slices()) return Wrap(g.dense);
  // Three parts: the shape may be unknown, and goes along for gradients of
  // gathers.
  return nb::make_tuple(Wrap(g.values), Wrap(g.indices), Wrap(g.dense_shape));
}

Gradient ToGradient(nb::handle o) {
  Gradient g;
  if (o.is_none()) return g;
  if (nb::isinstance<nb::tuple>(o)) {
    nb::tuple t = nb::borrow<nb::tuple>(o);
    g.values = Watched(t[0]);
    g.indices = Watched(t[1]);
    if (!t[2].is_none()) g.dense_shape = Watched(t[2]);
    return g;
  }
  g.dense = Watched(o);
  return g;
}

std::shared_ptr<PyObject> KeptObject(nb::object o) {
  return std::shared_ptr<PyObject>(o.release().ptr(), DropAnywhere);
}

namespace {

// None stands for no value, and for no values at all.
std::vector<Value> AllWatched(nb::handle sequence) {
  std::vector<Value> out;
  if (sequence.is_none()) return out;
  for (nb::handle o : sequence) {
    out.push_back(o.is_none() ? Value() : Watched(o));
  }
  return out;
}

nb::list AsList(const StatusOr<std::vector<Gradient>>& found,
                bool in_graph = false) {
  // A gradient function of Python may have raised: its exception goes before
  // the status.
  if (PyErr_Occurred()) nb::raise_python_error();
  if (!found.ok()) ThrowStatus(found.status(), in_graph);
  nb::list out;
  for (const Gradient& gradient : *found) out.append(FromGradient(gradient));
  return out;
}

// d(targets)/d(sources) of the current graph and those around it, added to it.
nb::list GradientsOfGraph(nb::sequence targets, nb::sequence sources,
                          nb::object given, nb::sequence stop,
                          bool place_with_ops, bool gate_calls) {
  const std::vector<GraphBuilder*> builders = EnteredBuilders();
  const std::vector<Value> stops = AllWatched(stop);
  std::vector<Gradient> arriving;
  if (!given.is_none()) {
    for (nb::handle o : given) arriving.push_back(ToGradient(o));
  }
  return AsList(
      GraphGradients(AllWatched(targets), AllWatched(sources), arriving,
                     {builders, stops, place_with_ops, gate_calls}),
      /*in_graph=*/true);
}

// A Python function of output gradients that gives input gradients.
BackwardFn PythonBackward(nb::callable f) {
  // Backward functions are copied with the tape's entries, on any thread; the
  // count is C++'s own, so that copying needs no GIL.
  std::shared_ptr<PyObject> kept = KeptObject(std::move(f));
  return [kept](absl::Span<const Gradient> given,
                std::vector<Gradient>* results) -> Status {
    // The walk may be inside of a call that has let go of the GIL.
    WithGil locked;
    try {
      nb::list arguments;
      for (const Gradient& g : given) arguments.append(FromGradient(g));
      nb::object out =
          OrPark([&] { return nb::handle(kept.get())(arguments); });
      results->clear();
      for (nb::handle o : out) results->push_back(ToGradient(o));
    } catch (nb::python_error& e) {
      e.restore();  // raised again by whoever asked for the gradient
      return Unknown("the gradient function raised");
    }
    return OkStatus();
  };
}

class PyTape {
 public:
  PyTape(bool persistent, bool watch_variables)
      : tape_(persistent, watch_variables) {}
  void Start() { tape_.Start(); }
  void Stop() { tape_.Stop(); }
  bool recording() const { return tape_.recording(); }
  void Reset() { tape_.Reset(); }
  void KeepVariables() { tape_.KeepVariables(); }
  void Watch(nb::handle o) { tape_.Watch(Watched(o)); }
  nb::list WatchedVariables() const {
    nb::list handles;
    for (const Value& v : tape_.watched_variables()) handles.append(Wrap(v));
    return handles;
  }
  nb::list Gradients(nb::sequence targets, nb::sequence sources,
                     nb::object given) {
    const CallStops stops;
    return AsList(tape_.Gradients(AllWatched(targets), AllWatched(sources),
                                  AllWatched(given)));
  }

 private:
  Tape tape_;
};

// Tells the tapes of a call whose gradient a Python function computes.
void RecordCustom(const char* name, nb::sequence inputs, nb::sequence outputs,
                  nb::callable backward) {
  // Nobody would ever call it.
  if (!HasRecorders()) return;
  std::vector<Value> in, out;
  for (nb::handle o : inputs) in.push_back(Watched(o));
  for (nb::handle o : outputs) out.push_back(Watched(o));
  TellCustom(name, in, out, PythonBackward(std::move(backward)));
}

// A `with` block in which no tape records.
class PyStopRecording {
 public:
  PyStopRecording() = default;
  PyStopRecording(const PyStopRecording&) = delete;
  // A stack, as one object may be entered several times, one `with` inside the
  // other.
  void Enter() { held_.push_back(std::make_unique<StopRecording>()); }
  void Exit() { held_.pop_back(); }

 private:
  std::vector<std::unique_ptr<StopRecording>> held_;
};

}  // namespace

void AddTape(nb::module_& m) {
  nb::class_<PyTape>(m, "Tape")
      .def(nb::init<bool, bool>(), nb::arg("persistent"),
           nb::arg("watch_variables"))
      .def("start", &PyTape::Start)
      .def("stop", &PyTape::Stop)
      .def("reset", &PyTape::Reset)
      .def("keep_variables", &PyTape::KeepVariables)
      .def("watch", &PyTape::Watch)
      .def("gradients", &PyTape::Gradients, nb::arg("targets"),
           nb::arg("sources"), nb::arg("output_gradients").none())
      .def_prop_ro("recording", &PyTape::recording)
      .def("watched_variables", &PyTape::WatchedVariables);
  nb::class_<PyStopRecording>(m, "StopRecording")
      .def(nb::init<>())
      .def("enter", &PyStopRecording::Enter)
      .def("exit", &PyStopRecording::Exit);
  m.def("graph_gradients", &GradientsOfGraph, nb::arg("targets"),
        nb::arg("sources"), nb::arg("output_gradients").none(), nb::arg("stop"),
        nb::arg("place_with_ops"), nb::arg("gate_calls"));
  m.def("record_custom", &RecordCustom);
  m.def("has_recorders", &HasRecorders);
}

}  // namespace headrace::bind
