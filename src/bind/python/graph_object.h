// Graphs in Python: building them, their nodes, functions made of them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "bind/python/python.h"
#include "function/concrete_function.h"
#include "graph/builder.h"

namespace headrace::bind {

// A graph and the builder that grows it; tf.Graph holds one.
class PyGraph {
 public:
  explicit PyGraph(bool is_function);
  // A view of a function's body, which no longer grows.
  explicit PyGraph(std::shared_ptr<Graph> body);
  const std::shared_ptr<Graph>& graph() const { return graph_; }
  GraphBuilder& builder() const { return *builder_; }
  void Finalize(bool finalized);
  bool finalized() const;

 private:
  std::shared_ptr<Graph> graph_;
  std::unique_ptr<GraphBuilder> builder_;
};

// A node with what keeps it alive.
struct NodeRef {
  std::shared_ptr<Graph> graph;
  Node* node;
};

// A ConcreteFunction in Python; its Python face adds structure.
struct ConcreteCore {
  std::shared_ptr<ConcreteFunction> function;
};

// The value of a Tensor or the handle of a variable; throws a TypeError.
Value ValueOrHandle(nanobind::handle o);
nanobind::object WrapObject(Value v);
[[noreturn]] void ThrowStatus(const Status& s, bool in_graph = false);

// {name: bool, str or list of str} as attributes.
AttrMap AttrsOf(nanobind::dict given);

void AddGraph(nanobind::module_& m);
// Adds the base of tf.function's objects; false with an error set.
bool AddFunctionType(PyObject* module);
void AddConcreteFunction(nanobind::module_& m);
void AddTraces(nanobind::module_& m);
void AddSession(nanobind::module_& m);
void AddGraphDef(nanobind::module_& m);
void AddFlowContexts(nanobind::module_& m);

}  // namespace headrace::bind
