// Graphs and functions as serialised protos, both ways.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bind/python/call_stops.h"
#include "bind/python/graph_object.h"
#include "bind/python/serialized.h"
#include "graph/attr_proto.h"
#include "graph/export.h"
#include "graph/import.h"
#include "op/registry.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

// `function`: what the graph is the body of, or null.
nb::bytes ExportGraphBytes(PyGraph& g, bool add_shapes,
                           const ConcreteCore* function) {
  tensorflow::GraphDef def;
  ExportOptions options;
  options.add_shapes = add_shapes;
  options.effect_order = true;
  if (function && function->function->function()->body == g.graph()) {
    options.effects_of = function->function->function().get();
    StatusOr<const OpDef*> nothing = LookUpOp("NoOp");
    if (!nothing.ok()) ThrowStatus(nothing.status());
    options.nothing = *nothing;
  }
  Status s = ExportGraph(*g.graph(), options, &def);
  if (!s.ok()) ThrowStatus(s);
  return Serialized(def);
}

nb::bytes ExportNodeBytes(const NodeRef& n) {
  tensorflow::NodeDef def;
  Status s = ExportNode(*n.node, {}, &def);
  if (!s.ok()) ThrowStatus(s);
  return Serialized(def);
}

nb::bytes OpDefBytes(const OpDef& op) {
  tensorflow::OpDef def;
  Status s = OpDefToProto(op, &def);
  if (!s.ok()) ThrowStatus(s);
  return Serialized(def);
}

nb::bytes ExportOpBytes(const NodeRef& n) { return OpDefBytes(n.node->def()); }

nb::bytes ExportOpNamed(const std::string& name) {
  StatusOr<const OpDef*> op = LookUpOp(name);
  if (!op.ok()) ThrowStatus(op.status());
  return OpDefBytes(**op);
}

nb::bytes ExportFunctionBytes(const ConcreteCore& c) {
  tensorflow::FunctionDef def;
  Status s = ExportFunction(*c.function->function(), &def);
  if (!s.ok()) ThrowStatus(s);
  return Serialized(def);
}

// The C++ side of tf.import_graph_def: (returned, unused keys of the map),
// where a returned element is a tensor or a node.
nb::tuple ImportGraph(PyGraph& g, nb::bytes bytes, const std::string& prefix,
                      bool uniquify_names, nb::dict input_map,
                      std::vector<std::string> return_elements) {
  // The import grows the graph past the builder, which would have refused.
  if (g.finalized()) {
    PyErr_SetString(PyExc_RuntimeError,
                    "Graph is finalized and cannot be modified.");
    nb::raise_python_error();
  }
  ImportOptions options;
  options.prefix = prefix;
  options.uniquify_names = uniquify_names;
  // As tf.device() around the import asks for.
  options.default_device = g.builder().device();
  options.return_elements = std::move(return_elements);
  for (auto [key, value] : input_map) {
    Value v = ValueOrHandle(value);
    if (!v.is_symbolic() || v.graph() != g.graph()) {
      throw nb::value_error("a value of input_map is of another graph");
    }
    options.input_map.emplace_back(nb::cast<std::string>(key), EdgeOf(v));
  }
  ImportResults results;
  const CallStops stops;
  Status s = ImportGraphBytes(StringView(bytes.c_str(), bytes.size()), options,
                              g.graph().get(), &results);
  // Upstream raises ValueError for graphs that do not fit together.
  if (!s.ok()) ThrowStatus(s, /*in_graph=*/true);
  nb::list returned, unused;
  for (const Edge& e : results.returned) {
    // Without an output it is an operation that was asked for.
    if (e.index < 0) {
      returned.append(NodeRef{g.graph(), e.node});
    } else {
      returned.append(WrapObject(g.graph()->Output(e)));
    }
  }
  for (const std::string& name : results.unused_inputs) unused.append(name);
  return nb::make_tuple(returned, unused);
}

}  // namespace

void AddGraphDef(nb::module_& m) {
  m.def("export_graph", &ExportGraphBytes, nb::arg("graph"),
        nb::arg("add_shapes"), nb::arg("function").none());
  m.def("export_node", &ExportNodeBytes);
  m.def("export_op", &ExportOpBytes);
  m.def("export_op_named", &ExportOpNamed);
  m.def("export_function", &ExportFunctionBytes);
  m.def("import_graph", &ImportGraph);
}

}  // namespace headrace::bind
