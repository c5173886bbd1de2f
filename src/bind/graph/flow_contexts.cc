// Branches and loops of TensorFlow 1, for control_flow/flow_contexts.py, which
// builds them.
#include <nanobind/stl/string.h>

#include "bind/python/graph_object.h"
#include "bind/python/status.h"
#include "bind/value/tensor_object.h"
#include "graph/builder.h"
#include "graph/flow_context.h"

namespace nb = nanobind;

namespace headrace::bind {
namespace {

// A context and the graph that has it.
struct FlowRef {
  nb::object graph;
  FlowContext* context;
};

nb::object Wrapped(PyGraph& g, FlowContext* c) {
  if (c == nullptr) return nb::none();
  return nb::cast(FlowRef{nb::find(g), c});
}

FlowContext* ContextIn(PyGraph& g, nb::handle o) {
  if (o.is_none()) return nullptr;
  FlowRef& c = nb::cast<FlowRef&>(o);
  if (!c.graph.is(nb::find(g))) {
    throw nb::value_error("a context of another graph");
  }
  return c.context;
}

LoopContext& LoopOf(FlowRef& c) {
  auto* loop = dynamic_cast<LoopContext*>(c.context);
  if (loop == nullptr) throw nb::type_error("a loop's context is wanted");
  return *loop;
}

nb::object Checked(StatusOr<Value> v) {
  if (!v.ok()) ThrowStatus(v.status(), true);
  return WrapObject(*std::move(v));
}

nb::object AddBranch(PyGraph& g, nb::handle outer, nb::handle pred,
                     nb::handle pivot, int branch) {
  return Wrapped(g, g.builder().NewContext<BranchContext>(
                        ContextIn(g, outer), ValueOrHandle(pred),
                        ValueOrHandle(pivot), branch));
}

nb::object AddLoop(PyGraph& g, nb::handle outer, const std::string& frame,
                   int parallel_iterations, bool back_prop) {
  return Wrapped(
      g, g.builder().NewContext<LoopContext>(ContextIn(g, outer), frame,
                                             parallel_iterations, back_prop));
}

nb::list Externals(FlowRef& c) {
  nb::list out;
  for (const FlowContext::External& e : c.context->externals()) {
    out.append(nb::make_tuple(WrapObject(e.outer), WrapObject(e.inner)));
  }
  return out;
}

}  // namespace

void AddFlowContexts(nb::module_& m) {
  nb::class_<FlowRef>(m, "FlowContext")
      .def_prop_ro(
          "id",
          [](FlowRef& c) { return reinterpret_cast<uintptr_t>(c.context); })
      .def("bring_in",
           [](FlowRef& c, nb::handle t) {
             return Checked(c.context->Import(ValueOrHandle(t)));
           })
      .def("enter",
           [](FlowRef& c, nb::handle t) {
             return Checked(LoopOf(c).Enter(ValueOrHandle(t), false));
           })
      .def("set_pivot",
           [](FlowRef& c, const NodeRef& n) { c.context->set_pivot(n.node); })
      .def("externals", &Externals)
      .def("add_external", [](FlowRef& c, nb::handle outer, nb::handle inner) {
        c.context->AddExternal(ValueOrHandle(outer), ValueOrHandle(inner));
      });
  // The shape of a value is this, whatever was inferred.
  m.def("replace_shape", [](nb::handle tensor, nb::handle shape) {
    Shape s;
    if (!AsShape(shape.ptr(), &s)) nb::raise_python_error();
    SetShape(ValueOrHandle(tensor), s);
  });
  m.def("add_branch_context", &AddBranch, nb::arg("graph"),
        nb::arg("outer").none(), nb::arg("pred"), nb::arg("pivot"),
        nb::arg("branch"));
  m.def("add_loop_context", &AddLoop, nb::arg("graph"), nb::arg("outer").none(),
        nb::arg("frame"), nb::arg("parallel_iterations"), nb::arg("back_prop"));
  m.def("flow_context", [](PyGraph& g) {
    return nb::make_tuple(Wrapped(g, g.builder().context()),
                          g.builder().by_hand());
  });
  m.def(
      "set_flow_context",
      [](PyGraph& g, nb::handle c, bool by_hand) {
        g.builder().set_context(ContextIn(g, c), by_hand);
      },
      nb::arg("graph"), nb::arg("context").none(), nb::arg("by_hand"));
  m.def("flow_context_of", [](PyGraph& g, const NodeRef& n) {
    return Wrapped(g, g.builder().ContextOf(*n.node));
  });
  m.def("set_flow_context_of", [](PyGraph& g, const NodeRef& n, FlowRef& c) {
    g.builder().SetContextOf(*n.node, c.context);
  });
  m.def("is_in_loop", [](PyGraph& g, const NodeRef& n) {
    const FlowContext* c = g.builder().OutputContextOf(*n.node);
    return c && c->loop();
  });
  // An Exit's outputs are seen in the context around its loop.
  m.def("output_flow_context_of", [](PyGraph& g, const NodeRef& n) {
    return Wrapped(g, g.builder().OutputContextOf(*n.node));
  });
}

}  // namespace headrace::bind
