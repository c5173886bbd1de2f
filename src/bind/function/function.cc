// tf.function's objects: a call whose signature was traced before runs its
// plan without entering Python code.
// Python.h first, as structmember.h needs it.
// clang-format off
#include "bind/python/python.h"
#include <structmember.h>
// clang-format on

#include <cstddef>
#include <new>
#include <string>
#include <vector>

#include "bind/call/op_call.h"
#include "bind/function/call_key.h"
#include "bind/function/tape_object.h"
#include "bind/python/call_stops.h"
#include "bind/python/graph_object.h"
#include "bind/python/graph_stack.h"
#include "bind/python/status.h"
#include "bind/value/convert.h"
#include "bind/value/tensor_object.h"
#include "function/call_event.h"
#include "function/trace_cache.h"
#include "op/after_emit.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

enum class Kind { kPositional, kEither, kVarPositional, kKeyword, kVarKeyword };

struct Parameter {
  Ref name;
  Kind kind;
  Ref given_default;  // null: required
};

// A trace and the calls it fits.
struct Trace {
  bool Fits(const CallKey& call) const { return key.Matches(call); }

  KeptKey key;
  Ref concrete;  // Python's ConcreteFunction
  std::shared_ptr<ConcreteFunction> function;
  Ref results;        // structure with leaf numbers, or null: Python packs
  Ref gradients;      // entries that the trace's nodes name, or null
  bool used = false;  // since Python last asked
};

// So many signatures are known natively; Python knows more traces.
constexpr size_t kMostTraces = 64;

struct State {
  std::vector<Parameter> parameters;
  TraceCache<Trace> traces;
  int64_t calls = 0;  // that ran a known trace, since Python asked
};

struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  State* state;
  PyObject* dict;
  PyObject* weak_references;
};

bool run_eagerly = false;

// What else than arguments decides which trace serves a call of this thread:
// Python says, 0 is nothing.
constinit thread_local uint64_t call_context = 0;

FunctionObject* Cast(PyObject* o) {
  return reinterpret_cast<FunctionObject*>(o);
}

// The arguments by parameter; what varargs and keywords gather is held.
struct Bound {
  absl::InlinedVector<PyObject*, 24> slots;
  Ref gathered, keywords;
};

enum class Binding { kDone, kWrong, kError };

int FindParameter(const State& s, PyObject* name) {
  int n = static_cast<int>(s.parameters.size());
  for (int i = 0; i < n; ++i) {
    const Parameter& p = s.parameters[i];
    if (p.kind != Kind::kEither && p.kind != Kind::kKeyword) continue;
    if (p.name.get() == name) return i;
    if (PyUnicode_Compare(p.name.get(), name) == 0) return i;
  }
  return -1;
}

Binding BindKeywords(const State& s, PyObject* const* values, PyObject* names,
                     Bound* b) {
  Py_ssize_t n = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject* name = PyTuple_GetItem(names, k);
    int at = FindParameter(s, name);
    // A parameter by name and by place, too: refused by Python, in its words.
    if (at >= 0) {
      // kWrong leaves the message to Python's own binding (_refuse).
      if (b->slots[at]) return Binding::kWrong;
      b->slots[at] = values[k];
    } else if (b->keywords) {
      if (PyDict_SetItem(b->keywords.get(), name, values[k]) < 0) {
        return Binding::kError;
      }
    } else {
      return Binding::kWrong;
    }
  }
  return Binding::kDone;
}

Binding BindCall(const State& s, PyObject* const* args, Py_ssize_t positional,
                 PyObject* names, Bound* b) {
  size_t n = s.parameters.size();
  b->slots.assign(n, nullptr);
  Py_ssize_t next = 0;
  for (size_t i = 0; i < n; ++i) {
    Kind kind = s.parameters[i].kind;
    if (kind == Kind::kPositional || kind == Kind::kEither) {
      if (next < positional) b->slots[i] = args[next++];
    } else if (kind == Kind::kVarPositional) {
      b->gathered = Ref(PyTuple_New(positional - next));
      if (!b->gathered) return Binding::kError;
      for (Py_ssize_t j = 0; next < positional; ++j) {
        PyTuple_SetItem(b->gathered.get(), j,
                        Ref::Borrow(args[next++]).release());
      }
      b->slots[i] = b->gathered.get();
    } else if (kind == Kind::kVarKeyword) {
      b->keywords = Ref(PyDict_New());
      if (!b->keywords) return Binding::kError;
      b->slots[i] = b->keywords.get();
    }
  }
  if (next < positional) return Binding::kWrong;
  Binding bound = BindKeywords(s, args + positional, names, b);
  if (bound != Binding::kDone) return bound;
  for (size_t i = 0; i < n; ++i) {
    if (b->slots[i]) continue;
    b->slots[i] = s.parameters[i].given_default.get();
    if (b->slots[i] == nullptr) return Binding::kWrong;
  }
  return Binding::kDone;
}

// Calls self.<method>(args, kwargs) with the call's own arguments.
PyObject* CallSlowly(PyObject* self, const char* method, PyObject* const* args,
                     Py_ssize_t positional, PyObject* names) {
  Ref tuple(PyTuple_New(positional)), dict(PyDict_New());
  if (!tuple || !dict) return nullptr;
  for (Py_ssize_t i = 0; i < positional; ++i) {
    PyTuple_SetItem(tuple.get(), i, Ref::Borrow(args[i]).release());
  }
  Py_ssize_t n = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (PyDict_SetItem(dict.get(), PyTuple_GetItem(names, i),
                       args[positional + i]) < 0) {
      return nullptr;
    }
  }
  return Called<PyObject_CallMethod>(self, method, "OO", tuple.get(),
                                     dict.get());
}

// `shape` with leaf numbers replaced by tensors: new reference.
[[gnu::hot]] PyObject* PackResults(PyObject* shape, ValueList& values) {
  if (PyLong_CheckExact(shape)) {
    size_t i = PyLong_AsSize_t(shape);
    // Copied, not moved: a result may stand in several places.
    if (i < values.size()) return WrapValue(values[i]);
    PyErr_SetString(PyExc_RuntimeError, "a traced function lost a result");
    return nullptr;
  }
  if (PyTuple_CheckExact(shape)) {
    Py_ssize_t n = PyTuple_Size(shape);
    Ref out(PyTuple_New(n));
    for (Py_ssize_t i = 0; out && i < n; ++i) {
      PyObject* item = PackResults(PyTuple_GetItem(shape, i), values);
      if (item == nullptr) return nullptr;
      PyTuple_SetItem(out.get(), i, item);
    }
    return out.release();
  }
  if (PyList_CheckExact(shape)) {
    Py_ssize_t n = PyList_Size(shape);
    Ref out(PyList_New(n));
    for (Py_ssize_t i = 0; out && i < n; ++i) {
      PyObject* item = PackResults(PyList_GetItem(shape, i), values);
      if (item == nullptr) return nullptr;
      PyList_SetItem(out.get(), i, item);
    }
    return out.release();
  }
  if (PyDict_CheckExact(shape)) {
    Ref out(PyDict_New());
    PyObject *key, *value;
    Py_ssize_t at = 0;
    // The structure is the trace's own; nobody changes it while it is walked.
    while (out && PyDict_Next(shape, &at, &key, &value)) {
      Ref item(PackResults(value, values));
      if (!item || PyDict_SetItem(out.get(), key, item.get()) < 0) {
        return nullptr;
      }
    }
    return out.release();
  }
  return Ref::Borrow(shape).release();
}

PyObject* Pack(PyObject* concrete, PyObject* results, ValueList& values) {
  // Without a structure the results need Python: composite tensors, named
  // tuples.
  if (results) return PackResults(results, values);
  Ref list(PyList_New(0));
  for (Value& v : values) {
    Ref item(WrapValue(std::move(v)));
    if (!list || !item || PyList_Append(list.get(), item.get()) < 0) {
      return nullptr;
    }
  }
  return Called<PyObject_CallMethod>(concrete, "_pack", "O", list.get());
}

// Who will ask for the trace's gradients holds them: graphs being built, now,
// and tapes, which are given *keep. False with an error set.
bool HandOnGradients(PyObject* gradients, std::shared_ptr<void>* keep) {
  // Entries are held weakly by name, see the engine's page: who may ask must
  // hold them.
  if (HasRecorders()) *keep = KeptObject(nb::borrow(gradients));
  if (CurrentEmitter()->is_eager()) return true;
  static PyObject* keep_named =
      Import("eager.named_gradients", "keep").release();
  if (keep_named == nullptr) return false;
  Ref done(
      Called<PyObject_CallFunctionObjArgs>(keep_named, gradients, nullptr));
  return static_cast<bool>(done);
}

[[gnu::hot]] PyObject* Run(const Trace& t, absl::Span<const Value> leaves) {
  // The trace may be dropped meanwhile.
  std::shared_ptr<ConcreteFunction> f = t.function;
  Ref concrete = t.concrete, results = t.results;
  std::shared_ptr<void> keep;
  if (t.gradients && !HandOnGradients(t.gradients.get(), &keep)) [[unlikely]] {
    return nullptr;
  }
  ValueList outputs;
  Status s;
  const bool eager = CurrentEmitter()->is_eager();
  {
    const CallStops stops;
    s = stops.status();
    WithoutGil unlocked(eager);
    if (s.ok()) [[likely]]
      s = f->Call(leaves, &outputs, std::move(keep));
    // The call ran without an emitter, which would have told the callbacks.
    if (s.ok() && eager)
      s = TellAfterEmit(nullptr, f->function()->name, leaves, &outputs);
  }
  if (s.ok()) [[likely]]
    return Pack(concrete.get(), results.get(), outputs);
  // An exception of Python inside stands as it is.
  if (!PyErr_Occurred() && !(eager && RaiseOutOfScope(leaves))) {
    RaiseOpError(s, nullptr, f->function()->name);
    PyObject *type, *value, *trace;
    // _explain adds notes to the exception, so that it must not be pending
    // while Python runs.
    PyErr_Fetch(&type, &value, &trace);
    Ref ignored(Called<PyObject_CallMethod>(concrete.get(), "_explain", "O",
                                            value ? value : Py_None));
    // An explanation that fails must not hide the error.
    if (!ignored) PyErr_Clear();
    PyErr_Restore(type, value, trace);
  }
  return nullptr;
}

// Python's answer to a new signature: (concrete, core, results or None,
// leaves or None). Leaves given: for this call only, not to be kept.
PyObject* RunResolved(State& s, const CallKey& key, PyObject* answer) {
  PyObject *concrete, *core, *results, *leaves;
  if (!PyArg_ParseTuple(answer, "OOOO", &concrete, &core, &results, &leaves)) {
    return nullptr;
  }
  ConcreteCore* c = nullptr;
  if (!nb::try_cast(nb::handle(core), c) || c == nullptr) {
    PyErr_SetString(PyExc_TypeError, "a ConcreteCore is wanted");
    return nullptr;
  }
  Ref gradients(PyObject_GetAttrString(concrete, "_gradients"));
  if (!gradients) return nullptr;
  auto t = std::make_unique<Trace>(
      Trace{KeptKey(key), Ref::Borrow(concrete), c->function,
            results == Py_None ? Ref() : Ref::Borrow(results),
            gradients.get() == Py_None ? Ref() : std::move(gradients)});
  if (leaves == Py_None) {
    const Trace& added = *s.traces.Add(std::move(t));
    s.traces.Trim(kMostTraces);
    // Destroyed behind the call, as destructors run Python.
    const std::vector<std::unique_ptr<Trace>> old = s.traces.TakeDropped();
    return Run(added, key.leaves());
  }
  std::vector<Value> values;
  for (Py_ssize_t i = 0, n = PySequence_Size(leaves); i < n; ++i) {
    Ref item(PySequence_GetItem(leaves, i));
    if (!item || !IsTensor(item.get())) {
      PyErr_SetString(PyExc_TypeError, "leaves are tensors");
      return nullptr;
    }
    values.push_back(ValueOf(item.get()));
  }
  return Run(*t, values);
}

PyObject* Resolve(PyObject* self, const Bound& b, const CallKey& key) {
  Ref slots(PyTuple_New(b.slots.size())), leaves(PyList_New(0));
  if (!slots || !leaves) return nullptr;
  for (size_t i = 0; i < b.slots.size(); ++i) {
    PyTuple_SetItem(slots.get(), i, Ref::Borrow(b.slots[i]).release());
  }
  for (const Value& v : key.leaves()) {
    Ref t(WrapValue(v));
    if (!t || PyList_Append(leaves.get(), t.get()) < 0) return nullptr;
  }
  Ref answer(Called<PyObject_CallMethod>(self, "_resolve", "OO", slots.get(),
                                         leaves.get()));
  if (!answer) return nullptr;
  Ref result(RunResolved(*Cast(self)->state, key, answer.get()));
  if (!result) return nullptr;
  Ref concrete(PySequence_GetItem(answer.get(), 0));
  if (!concrete) return nullptr;
  Ref told(Called<PyObject_CallMethod>(self, "_ran", "O", concrete.get()));
  return told ? result.release() : nullptr;
}

[[gnu::hot]] PyObject* CallUntimed(PyObject* self, PyObject* const* args,
                                   size_t nargsf, PyObject* names) {
  Py_ssize_t positional = PyVectorcall_NARGS(nargsf);
  // Asked at each call: functions that were made before the switch follow it,
  // too.
  if (run_eagerly) [[unlikely]] {
    return CallSlowly(self, "_call_python", args, positional, names);
  }
  State& s = *Cast(self)->state;
  Bound b;
  Binding bound = BindCall(s, args, positional, names, &b);
  if (bound == Binding::kError) return nullptr;
  if (bound == Binding::kWrong) {
    return CallSlowly(self, "_refuse", args, positional, names);
  }
  CallKey key;
  // Captures belong to the graph in which a function is called, so that each
  // graph has its traces.
  key.AddToken(ParentGraph());
  key.AddToken(call_context);
  for (PyObject* o : b.slots) {
    if (!key.Add(o)) return nullptr;
  }
  if (Trace* t = s.traces.Find(key)) [[likely]] {
    t->used = true;
    PyObject* result = Run(*t, key.leaves());
    // Python compares the calls with the traces, to warn of functions that
    // trace too often.
    if (result) [[likely]]
      ++s.calls;
    return result;
  }
  return Resolve(self, b, key);
}

// How many traces were made; -1 where that cannot be told.
int64_t TracesOf(PyObject* self) {
  Ref count(Called<PyObject_CallMethod>(self, "experimental_get_tracing_count",
                                        nullptr));
  const int64_t n = count ? PyLong_AsLongLong(count.get()) : -1;
  if (PyErr_Occurred()) PyErr_Clear();
  return n;
}

// The same as an event of the timeline.
[[gnu::cold]] PyObject* CallTimed(PyObject* self, PyObject* const* args,
                                  size_t nargsf, PyObject* names) {
  Ref name(PyObject_GetAttrString(self, "_name"));
  const char* text = name ? NameText(name.get()) : nullptr;
  if (text == nullptr) return nullptr;
  CallEvent event(text);
  const int64_t traces = TracesOf(self);
  Ref result(CallUntimed(self, args, nargsf, names));
  if (!result) return nullptr;
  if (run_eagerly) {
    event.SetEager();
  } else {
    event.SetTraces(traces, TracesOf(self));
  }
  return result.release();
}

[[gnu::hot]] PyObject* Call(PyObject* self, PyObject* const* args,
                            size_t nargsf, PyObject* names) {
  if (timeline::On()) [[unlikely]]
    return CallTimed(self, args, nargsf, names);
  return CallUntimed(self, args, nargsf, names);
}

// _set_up([(name, kind, (default,) or None)])
PyObject* SetUpFunction(PyObject* self, PyObject* parameters) {
  State& s = *Cast(self)->state;
  s.parameters.clear();
  for (Py_ssize_t i = 0, n = PySequence_Size(parameters); i < n; ++i) {
    Ref row(PySequence_GetItem(parameters, i));
    PyObject *name, *value;
    int kind;
    if (!row || !PyArg_ParseTuple(row.get(), "OiO", &name, &kind, &value)) {
      return nullptr;
    }
    Ref given;
    if (value != Py_None) given = Ref(PySequence_GetItem(value, 0));
    s.parameters.push_back(
        {Ref::Borrow(name), static_cast<Kind>(kind), std::move(given)});
  }
  Py_RETURN_NONE;
}

// The calls that needed no trace since this was last asked.
PyObject* TakeCalls(PyObject* self, PyObject*) {
  State& s = *Cast(self)->state;
  return PyLong_FromLongLong(std::exchange(s.calls, 0));
}

// The ConcreteFunctions that were run since this was last asked; some twice.
PyObject* TakeUsed(PyObject* self, PyObject*) {
  Ref out(PyList_New(0));
  for (const auto& t : Cast(self)->state->traces.all()) {
    if (!out) return nullptr;
    if (!std::exchange(t->used, false)) continue;
    if (PyList_Append(out.get(), t->concrete.get()) < 0) return nullptr;
  }
  return out.release();
}

PyObject* Forget(PyObject* self, PyObject*) {
  TraceCache<Trace>& traces = Cast(self)->state->traces;
  traces.Clear();
  // Destroyed behind the change, as destructors run Python.
  const std::vector<std::unique_ptr<Trace>> old = traces.TakeDropped();
  Py_RETURN_NONE;
}

PyObject* NewFunction(PyTypeObject* type, PyObject*, PyObject*) {
  // The allocator of the type at hand, which may be a subclass written in
  // Python.
  auto alloc = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  Ref self(alloc(type, 0));
  if (!self) return nullptr;
  Cast(self.get())->vectorcall = Shield<Call>;
  Cast(self.get())->state = new State;
  return self.release();
}

int TraverseFunction(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(Cast(self)->dict);
  if (State* s = Cast(self)->state) {
    for (const auto& t : s->traces.all()) {
      Py_VISIT(t->concrete.get());
      Py_VISIT(t->gradients.get());
    }
    // Defaults are the user's objects, which may refer back to the function.
    for (const auto& p : s->parameters) Py_VISIT(p.given_default.get());
  }
  return 0;
}

int ClearFunction(PyObject* self) {
  Py_CLEAR(Cast(self)->dict);
  if (State* s = Cast(self)->state) {
    s->traces.Clear();
    const std::vector<std::unique_ptr<Trace>> old = s->traces.TakeDropped();
  }
  return 0;
}

void DeallocFunction(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  // Untracked first: the collector may run while the rest dies.
  PyObject_GC_UnTrack(self);
  if (Cast(self)->weak_references) PyObject_ClearWeakRefs(self);
  ClearFunction(self);
  delete std::exchange(Cast(self)->state, nullptr);
  auto release = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
  release(self);
  Py_DECREF(type);
}

PyObject* RunEagerly(PyObject*, PyObject* flag) {
  int truth = PyObject_IsTrue(flag);
  if (truth < 0) return nullptr;
  run_eagerly = truth;
  Py_RETURN_NONE;
}
PyObject* RunsEagerly(PyObject*, PyObject*) {
  return PyBool_FromLong(run_eagerly);
}

PyObject* SetCallContext(PyObject*, PyObject* number) {
  const uint64_t given = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred()) return nullptr;
  call_context = given;
  Py_RETURN_NONE;
}

PyMethodDef function_methods[] = {
    {"_set_up", Shield<SetUpFunction>, METH_O,
     "Tells the parameters: (name, kind, default)."},
    {"_take_calls", Shield<TakeCalls>, METH_NOARGS,
     "Calls that needed no trace."},
    {"_take_used", Shield<TakeUsed>, METH_NOARGS,
     "The concrete functions that ran since this was last asked."},
    {"_forget", Shield<Forget>, METH_NOARGS, "Drops all traces."},
    {}};
PyMemberDef function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, vectorcall),
     READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(FunctionObject, dict), READONLY,
     nullptr},
    {"__weaklistoffset__", T_PYSSIZET,
     offsetof(FunctionObject, weak_references), READONLY, nullptr},
    {}};
PyType_Slot function_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(Shield<NewFunction>)},
    {Py_tp_dealloc, reinterpret_cast<void*>(DeallocFunction)},
    {Py_tp_traverse, reinterpret_cast<void*>(TraverseFunction)},
    {Py_tp_clear, reinterpret_cast<void*>(ClearFunction)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_methods, function_methods},
    {Py_tp_members, function_members},
    {0, nullptr}};
PyType_Spec function_spec = {"headrace.FunctionBase", sizeof(FunctionObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                 Py_TPFLAGS_HAVE_GC |
                                 Py_TPFLAGS_HAVE_VECTORCALL,
                             function_slots};
PyMethodDef function_functions[] = {
    {"run_functions_eagerly", Shield<RunEagerly>, METH_O,
     "Whether tf.function calls Python instead of traces."},
    {"functions_run_eagerly", Shield<RunsEagerly>, METH_NOARGS,
     "What was last set."},
    {"set_call_context", Shield<SetCallContext>, METH_O,
     "A number that traces of this thread's calls belong to; 0: to none."},
    {}};

}  // namespace

bool AddFunctionType(PyObject* module) {
  PyObject* type = PyType_FromSpec(&function_spec);
  return type && PyModule_AddObjectRef(module, "FunctionBase", type) == 0 &&
         PyModule_AddFunctions(module, function_functions) == 0;
}

}  // namespace headrace::bind
