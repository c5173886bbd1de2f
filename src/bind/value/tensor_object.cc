#include "bind/value/tensor_object.h"

#include <new>
#include <utility>

#include "base/hash_map.h"
#include "graph/graph.h"
#include "op/processor.h"

namespace headrace::bind {

PyTypeObject* tensor_type = nullptr;
PyTypeObject* eager_type = nullptr;
PyTypeObject* symbolic_type = nullptr;

namespace {

[[gnu::hot]] PyObject* NewTensor(PyTypeObject* type) {
  // Not tracked by the collector yet, see SetAttribute: most tensors never are.
  auto* o = PyObject_GC_New(TensorObject, type);
  if (o == nullptr) return nullptr;
  // PyObject_GC_New runs no constructors.
  new (&o->value) Value;
  o->dict = nullptr;
  o->weak_references = nullptr;
  o->owner = nullptr;
  return reinterpret_cast<PyObject*>(o);
}

HashMap<const Graph*, PyObject*>& GraphOwners() {
  static auto* owners = new HashMap<const Graph*, PyObject*>;
  return *owners;
}

void HoldGraph(PyObject* tensor) {
  auto* o = reinterpret_cast<TensorObject*>(tensor);
  // Bodies live with their functions; a tensor that held the graph of one would
  // keep every trace alive.
  if (o->value.graph()->is_body) return;
  auto it = GraphOwners().find(o->value.graph().get());
  if (it == GraphOwners().end()) return;
  // Weak in the table and strong in tensors: a tf.Graph lives as long as its
  // tensors, not for ever.
  PyObject* graph = PyWeakref_GetObject(it->second);
  if (graph == Py_None) return;
  o->owner = Py_NewRef(graph);
  // Only tensors with an owner can be part of a cycle.
  PyObject_GC_Track(tensor);
}

}  // namespace

void SetGraphOwner(uint64_t address, PyObject* weak) {
  const auto* key = reinterpret_cast<const Graph*>(address);
  PyObject* old = nullptr;
  if (weak != nullptr) {
    old = std::exchange(GraphOwners()[key], Py_NewRef(weak));
  } else if (auto it = GraphOwners().find(key); it != GraphOwners().end()) {
    old = it->second;
    GraphOwners().erase(it);
  }
  // Behind the change of the table, as dropping it may run Python code that
  // comes back here.
  Py_XDECREF(old);
}

void SetProcessor(int index) { SetThisProcessor(index); }

[[gnu::hot]] PyObject* WrapValue(Value v) {
  if (!v) Py_RETURN_NONE;
  const bool symbolic = v.is_symbolic();
  PyObject* o = NewTensor(symbolic ? symbolic_type : eager_type);
  if (o) reinterpret_cast<TensorObject*>(o)->value = std::move(v);
  if (o && symbolic) HoldGraph(o);
  // Nearly always 0: only tf.config's logical devices set another.
  if (ThisProcessor() != 0 && o && !symbolic) [[unlikely]] {
    Ref index(PyLong_FromLong(ThisProcessor()));
    if (!index || PyObject_SetAttrString(o, "_processor", index.get()) < 0) {
      Py_CLEAR(o);
    }
  }
  return o;
}

}  // namespace headrace::bind
