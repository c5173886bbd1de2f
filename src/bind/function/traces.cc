// The rules of which traces a Function keeps, why it traces again and who may
// trace, with Python's ConcreteFunctions for traces.
#include "function/traces.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/python/graph_object.h"
#include "bind/python/python.h"
#include "bind/python/unlocked.h"
#include "function/retraces.h"
#include "function/tracing_lock.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

struct HeldTrace {
  bool operator==(const HeldTrace& o) const { return concrete.is(o.concrete); }
  nb::object concrete;
};
using PyTraces = Traces<HeldTrace>;

nb::object TraceObject(const HeldTrace* held) {
  return held ? held->concrete : nb::none();
}

nb::list AllTraces(const PyTraces& traces) {
  nb::list all;
  for (const HeldTrace& t : traces.all()) all.append(t.concrete);
  return all;
}

// find(serves, is_below): see Traces.
nb::object FindTrace(PyTraces& traces, nb::callable serves,
                     nb::callable is_below) {
  return TraceObject(traces.Find(
      [&](const HeldTrace& t) { return nb::cast<bool>(serves(t.concrete)); },
      [&](const HeldTrace& a, const HeldTrace& b) {
        return nb::cast<bool>(is_below(a.concrete, b.concrete));
      }));
}

// joined(function): what it gives for the newest trace for which that is not
// None.
nb::object JoinedTraces(const PyTraces& traces, nb::callable joined) {
  const auto found =
      traces.Joined([&](const HeldTrace& t) -> std::optional<nb::object> {
        nb::object o = joined(t.concrete);
        return o.is_none() ? std::nullopt : std::optional(std::move(o));
      });
  return found.value_or(nb::none());
}

// Gives the one that had to go, or None.
nb::object AddTrace(PyTraces& traces, nb::object concrete) {
  const std::optional<HeldTrace> gone = traces.Add({std::move(concrete)});
  return TraceObject(gone ? &*gone : nullptr);
}

// reason([(path, before, now)]), see Retraces.
std::string ReasonOf(const std::vector<nb::tuple>& changes) {
  // Users' own reprs may hold lone surrogates, which have no UTF-8.
  const auto text = [](nb::handle s) {
    const Ref encoded(
        PyUnicode_AsEncodedString(s.ptr(), "utf-8", "backslashreplace"));
    if (!encoded) nb::raise_python_error();
    return std::string(PyBytes_AsString(encoded.get()));
  };
  std::vector<Retraces::Change> all;
  for (const nb::tuple& c : changes) {
    all.push_back({text(c[0]), text(c[1]), text(c[2])});
  }
  return Retraces::Reason(all);
}

// Waits without the GIL; raises what ends the wait.
void EnterTracing(TracingLock& lock) {
  if (lock.TryAcquire()) return;
  RunUnlocked([&] { return lock.Acquire(); });
}

int TraverseTraces(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const HeldTrace& t : nb::inst_ptr<PyTraces>(self)->all()) {
    Py_VISIT(t.concrete.ptr());
  }
  return 0;
}

int ClearTraces(PyObject* self) {
  // Destroyed behind the change, as destructors run Python.
  const PyTraces old = std::exchange(*nb::inst_ptr<PyTraces>(self), PyTraces());
  return 0;
}

PyType_Slot traces_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(TraverseTraces)},
    {Py_tp_clear, reinterpret_cast<void*>(ClearTraces)},
    {0, nullptr}};

}  // namespace

void AddTraces(nb::module_& m) {
  nb::class_<PyTraces> traces(m, "Traces", nb::type_slots(traces_slots));
  nb::enum_<PyTraces::Sizes>(traces, "Sizes")
      .value("EXACT", PyTraces::Sizes::kExact)
      .value("OPEN", PyTraces::Sizes::kOpen)
      .value("OPEN_IF_IT_CAN", PyTraces::Sizes::kOpenIfItCan);
  traces.def(nb::init<>())
      .def("sizes_of_next", &PyTraces::SizesOfNext)
      .def("sizes_stay", &PyTraces::SizesStay)
      .def("all", &AllTraces)
      .def("find", &FindTrace)
      .def("joined", &JoinedTraces)
      .def("use", [](PyTraces& t,
                     nb::object concrete) { t.Use({std::move(concrete)}); })
      .def("add", &AddTrace)
      .def("remove", [](PyTraces& t, nb::object concrete) {
        const std::optional<HeldTrace> gone = t.Remove({std::move(concrete)});
      });
  nb::class_<TracingLock>(m, "TracingLock")
      .def(nb::init<>())
      .def("__enter__", &EnterTracing)
      .def("__exit__", [](TracingLock& lock, nb::args) { lock.Release(); });
  nb::class_<Retraces> retraces(m, "Retraces");
  retraces.attr("MOST_COMPARED") = Retraces::kMostCompared;
  retraces.def(nb::init<>())
      .def_static("nearest", &Retraces::Nearest)
      .def_static("reason", &ReasonOf)
      .def("add", &Retraces::Add)
      .def("told", &Retraces::told);
}

}  // namespace headrace::bind
