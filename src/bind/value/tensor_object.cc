#include "bind/value/tensor_object.h"

#include <new>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "graph/graph.h"

namespace headrace::bind {

PyTypeObject* tensor_type = nullptr;
PyTypeObject* eager_type = nullptr;
PyTypeObject* symbolic_type = nullptr;

namespace {

[[gnu::hot]] PyObject* NewTensor(PyTypeObject* type) {
  auto* o = PyObject_GC_New(TensorObject, type);
  if (o == nullptr) return nullptr;
  new (&o->value) Value;
  o->dict = nullptr;
  o->weak_references = nullptr;
  o->owner = nullptr;
  return reinterpret_cast<PyObject*>(o);
}

thread_local int processor = 0;

absl::flat_hash_map<const Graph*, PyObject*>& GraphOwners() {
  static auto* owners = new absl::flat_hash_map<const Graph*, PyObject*>;
  return *owners;
}

void HoldGraph(PyObject* tensor) {
  auto* o = reinterpret_cast<TensorObject*>(tensor);
  if (o->value.graph()->is_body) return;
  auto it = GraphOwners().find(o->value.graph().get());
  if (it == GraphOwners().end()) return;
  PyObject* graph = PyWeakref_GetObject(it->second);
  if (graph == Py_None) return;
  o->owner = Py_NewRef(graph);
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
  Py_XDECREF(old);
}

void SetProcessor(int index) { processor = index; }

[[gnu::hot]] PyObject* WrapValue(Value v) {
  if (!v) Py_RETURN_NONE;
  const bool symbolic = v.is_symbolic();
  PyObject* o = NewTensor(symbolic ? symbolic_type : eager_type);
  if (o) reinterpret_cast<TensorObject*>(o)->value = std::move(v);
  if (o && symbolic) HoldGraph(o);
  if (processor != 0 && o && !symbolic) [[unlikely]] {
    Ref index(PyLong_FromLong(processor));
    if (!index || PyObject_SetAttrString(o, "_processor", index.get()) < 0) {
      Py_CLEAR(o);
    }
  }
  return o;
}

}  // namespace headrace::bind
