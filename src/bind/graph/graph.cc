#include "graph/graph.h"

#include <nanobind/stl/string.h>

#include <string>

#include "autodiff/named_gradient.h"
#include "bind/graph/call_stacks.h"
#include "bind/python/call_stops.h"
#include "bind/python/graph_object.h"
#include "bind/python/graph_stack.h"
#include "bind/python/status.h"
#include "bind/value/after_ops.h"
#include "bind/value/attr_value.h"
#include "bind/value/dtype_object.h"
#include "bind/value/tensor_object.h"
#include "bind/value/variable_object.h"
#include "eager/eager_emitter.h"
#include "graph/node_float_ops.h"
#include "graph/partial.h"
#include "op/thread_emitter.h"

namespace nb = nanobind;

namespace headrace::bind {

AttrMap AttrsOf(nb::dict given) {
  AttrMap attrs;
  for (auto [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    // Before ints and texts: a bool is an int to Python.
    if (nb::isinstance<nb::bool_>(value)) {
      attrs.Set(name, nb::cast<bool>(value));
    } else if (nb::isinstance<nb::list>(value)) {
      std::vector<std::string> texts;
      for (nb::handle text : value)
        texts.push_back(nb::cast<std::string>(text));
      attrs.Set(name, std::move(texts));
    } else {
      attrs.Set(name, nb::cast<std::string>(value));
    }
  }
  return attrs;
}
namespace {

// Refuses to grow a finalised graph, with the Python error that says so.
class Builder : public GraphBuilder {
 public:
  using GraphBuilder::GraphBuilder;
  Status Emit(const ResolvedOpPtr& op, absl::Span<const Value> inputs,
              ValueList* outputs) override {
    // The status for C++ in between, Python's error for the caller.
    if (finalized) {
      PyErr_SetString(PyExc_RuntimeError,
                      "Graph is finalized and cannot be modified.");
      return FailedPrecondition("Graph is finalized and cannot be modified.");
    }
    ResolvedOpPtr named = op;
    // Only inside of gradient_override_map.
    if (!gradients.empty()) [[unlikely]] {
      HR_ASSIGN_OR_RETURN(named, WithGradient(op));
    }
    HR_RETURN_IF_ERROR(GraphBuilder::Emit(named, inputs, outputs));
    // Captures of its inputs may have come before it.
    stacks.Record(graph()->num_nodes() - 1);
    return OkStatus();
  }
  bool finalized = false;
  HashMap<std::string, std::string> gradients;  // names, by op
  CallStacks stacks;

 private:
  StatusOr<ResolvedOpPtr> WithGradient(const ResolvedOpPtr& op) const {
    auto it = gradients.find(op->name());
    // A name that the node has already was given for itself, and stands.
    if (it == gradients.end() || GradientNameOf(*op)) return op;
    AttrMap attrs = op->attrs();
    attrs.Set(kGradientAttr, it->second);
    return ResolveOp(op->def(), op->input_types(), attrs);
  }
};

Builder& BuilderOf(PyGraph& g) { return static_cast<Builder&>(g.builder()); }

struct Entered {
  std::unique_ptr<EmitterScope> scope;
  GraphBuilder* builder;  // null: eager
};
struct EnteredByThread {
  std::vector<Entered> stack;
};
// Kept where EmitterScopes are: by thread, as each builds its own graphs.
std::vector<Entered>& Stack() { return OwnObject<EnteredByThread>().stack; }

void PushGraph(PyGraph& g) {
  BuilderOf(g).stacks.Enter();
  Stack().push_back(
      {std::make_unique<EmitterScope>(&g.builder()), &g.builder()});
}
void PushEager() {
  Stack().push_back({std::make_unique<EmitterScope>(EagerEmitter()), nullptr});
}
// The builder entered last; nullptr where none was, or eager code last.
Builder* TopBuilder() {
  if (Stack().empty()) return nullptr;
  return static_cast<Builder*>(Stack().back().builder);
}

// What stands around the caller's caller is the outer part of stacks until
// PopBase: a context manager calls both, for the function that it is used in.
void PushBase() {
  if (Builder* b = TopBuilder()) b->stacks.Enter();
}
void PopBase() {
  if (Builder* b = TopBuilder()) b->stacks.Leave();
}

void PopEmitter() {
  if (Stack().empty()) throw nb::value_error("no graph was entered");
  PopBase();  // the stack was recorded for the graph that is left
  Stack().pop_back();
}

// Where graphs are built unless told otherwise, each thread has a default one:
// context/stack.py makes it when the thread first builds something.
constinit thread_local GraphBuilder* default_graph
    [[gnu::tls_model("initial-exec")]] = nullptr;

Emitter* DefaultGraph() {
  // Threads of the engine's own have no default graph.
  if (default_graph == nullptr && Py_IsInitialized() && HoldsGil()) {
    Ref make = Import("context.stack", "thread_graph");
    Ref made(make ? Called<PyObject_CallNoArgs>(make.get()) : nullptr);
    // There is nobody to raise to: emitters are asked for in the middle of
    // everything.
    if (!made) PyErr_WriteUnraisable(make.get());
  }
  return default_graph ? static_cast<Emitter*>(default_graph) : EagerEmitter();
}

void SetDefaultGraph(nb::handle g) {
  default_graph = g.is_none() ? nullptr : &nb::cast<PyGraph&>(g).builder();
}

bool graphs_by_default = false;

void BuildGraphsByDefault(bool on) {
  graphs_by_default = on;
  SetDefaultEmitterOfThreads(on ? DefaultGraph : nullptr);
}

// placeholder(name, dtype, shape, like, attrs): `like` tells what is behind a
// handle.
nb::object Placeholder(PyGraph& g, const std::string& name, nb::handle dtype,
                       nb::handle shape, nb::handle like, nb::dict attrs) {
  Shape s;
  if (!AsShape(shape.ptr(), &s)) nb::raise_python_error();
  DType d = AsDType(dtype.ptr());
  if (d == DType::kInvalid) throw nb::type_error("a placeholder has a dtype");
  std::shared_ptr<const HandleData> handle;
  // A capture of a resource knows what it holds, as shapes of reads depend on
  // it.
  if (!like.is_none()) handle = ValueOrHandle(like).shared_handle_data();
  AttrMap own = AttrsOf(attrs);
  std::swap(own, g.builder().node_attrs());
  StatusOr<Value> v = g.builder().AddPlaceholder(name, d, s, std::move(handle));
  std::swap(own, g.builder().node_attrs());
  // As while tracing: a bad shape is ValueError.
  if (!v.ok()) ThrowStatus(v.status(), true);
  return WrapObject(*v);
}

nb::object CallStack(PyGraph& g, int id) {
  PyObject* o = BuilderOf(g).stacks.Get(id);
  if (o == nullptr) nb::raise_python_error();
  return nb::steal(o);
}

nb::list Captures(PyGraph& g) {
  nb::list out;
  for (const GraphBuilder::Capture& c : g.builder().captures()) {
    out.append(nb::make_tuple(WrapObject(c.outer), WrapObject(c.inner)));
  }
  return out;
}

nb::object Capture(PyGraph& g, nb::handle o) {
  StatusOr<Value> v = g.builder().Import(ValueOrHandle(o));
  if (!v.ok()) ThrowStatus(v.status(), true);
  return WrapObject(*v);
}

// The gradients of ops added from now on: {op type: name}.
void OverrideGradients(PyGraph& g, nb::dict names) {
  HashMap<std::string, std::string> gradients;
  // Taken over as a whole: leaving the `with` block sets what was before.
  for (auto [type, name] : names) {
    gradients[nb::cast<std::string>(type)] = nb::cast<std::string>(name);
  }
  BuilderOf(g).gradients = std::move(gradients);
}

// What nodes made from now on get beside their own attributes: truths, texts
// and lists of texts, by names with an underscore before them.
void SetNodeAttrs(PyGraph& g, nb::dict attrs) {
  g.builder().node_attrs() = AttrsOf(attrs);
}

nb::object FindNode(PyGraph& g, const std::string& name) {
  Node* n = g.graph()->FindNode(name);
  return n ? nb::cast(NodeRef{g.graph(), n}) : nb::none();
}

NodeRef NodeAt(PyGraph& g, int id) {
  if (id < 0 || id >= g.graph()->num_nodes()) {
    throw nb::index_error("no such node");
  }
  return {g.graph(), g.graph()->node(id)};
}

void SetControlInputs(PyGraph& g, nb::sequence nodes) {
  std::vector<Node*> list;
  for (nb::handle o : nodes) {
    NodeRef n = nb::cast<NodeRef>(o);
    if (n.graph != g.graph()) {
      throw nb::value_error("a control input of another graph");
    }
    list.push_back(n.node);
  }
  g.builder().SetControlInputs(std::move(list));
}

nb::list ControlInputs(PyGraph& g) {
  nb::list out;
  for (Node* n : g.builder().control_inputs()) {
    out.append(NodeRef{g.graph(), n});
  }
  return out;
}

// --- nodes

nb::object Output(const NodeRef& n, int i) {
  if (i < 0 || i >= n.node->num_outputs()) {
    throw nb::index_error("no such output");
  }
  return WrapObject(n.graph->Output(n.node, i));
}

nb::list Inputs(const NodeRef& n) {
  nb::list out;
  for (const Edge& e : n.node->inputs()) {
    out.append(WrapObject(n.graph->Output(e)));
  }
  return out;
}

nb::list NodeControls(const NodeRef& n) {
  nb::list out;
  for (Node* c : n.node->control_inputs()) out.append(NodeRef{n.graph, c});
  return out;
}

nb::object Attr(const NodeRef& n, const std::string& name) {
  const AttrValue* v = n.node->op().attrs().Find(name);
  if (v == nullptr) {
    throw nb::value_error(
        ("Operation '" + n.node->name() + "' has no attr named '" + name + "'.")
            .c_str());
  }
  PyObject* o = FromAttr(*v);
  if (o == nullptr) nb::raise_python_error();
  return nb::steal(o);
}

// The attribute has its default from now on; ValueError where it has none.
// The container of a node's state, unless it names one; nothing for nodes
// without.
void SetContainer(const NodeRef& n, const std::string& container) {
  const ResolvedOp& op = n.node->op();
  const std::string* own = op.attrs().Get<std::string>("container");
  if (own == nullptr || !own->empty()) return;
  AttrMap attrs = op.attrs();
  attrs.Set("container", container);
  StatusOr<ResolvedOpPtr> made = ResolveOp(op.def(), op.input_types(), attrs);
  if (!made.ok()) ThrowStatus(made.status());
  n.node->set_op(*std::move(made));
}

void ClearAttr(const NodeRef& n, const std::string& name) {
  const ResolvedOp& op = n.node->op();
  const AttrDef* def = op.def().FindAttr(name);
  if (def == nullptr || !def->has_default) {
    throw nb::value_error(("Operation '" + n.node->name() +
                           "' has no attr named '" + name +
                           "' that it can do without.")
                              .c_str());
  }
  AttrMap attrs;
  for (const auto& [other, value] : op.attrs()) {
    if (other != name) attrs.Set(other, value);
  }
  StatusOr<ResolvedOpPtr> cleared =
      ResolveOp(op.def(), op.input_types(), attrs);
  if (!cleared.ok()) ThrowStatus(cleared.status(), true);
  n.node->set_op(*std::move(cleared));
}

nb::list AttrNames(const NodeRef& n) {
  nb::list out;
  for (const auto& [name, value] : n.node->op().attrs()) out.append(name);
  return out;
}

// Input i is `tensor` from now on: what goes round in a loop is made after what
// it goes to.
void SetInput(NodeRef& n, int i, nb::handle tensor) {
  const Value& v = ValueOf(tensor.ptr());
  if (i < 0 || i >= n.node->num_inputs() || v.graph() != n.graph ||
      v.dtype() != n.node->op().input_types()[i]) {
    throw nb::value_error("no such input, or a tensor that does not fit it");
  }
  n.node->SetInput(i, EdgeOf(v));
}

// Nodes that read output i (i < 0: that wait for the node).
nb::list Consumers(const NodeRef& n, int index) {
  nb::list out;
  // Nodes do not know their readers: asked rarely, so the graph is searched.
  for (int i = 0; i < n.graph->num_nodes(); ++i) {
    Node* user = n.graph->node(i);
    if (index < 0) {
      bool waits = false;
      for (Node* c : user->control_inputs()) waits = waits || c == n.node;
      if (waits) out.append(NodeRef{n.graph, user});
      continue;
    }
    for (const Edge& e : user->inputs()) {  // once for each, as upstream
      if (e.node == n.node && e.index == index) {
        out.append(NodeRef{n.graph, user});
      }
    }
  }
  return out;
}

const Value& Symbolic(nb::handle o) {
  if (!IsTensor(o.ptr()) || !ValueOf(o.ptr()) ||
      !ValueOf(o.ptr()).is_symbolic()) {
    throw nb::type_error("a symbolic tensor is wanted");
  }
  return ValueOf(o.ptr());
}

NodeRef NodeOf(nb::handle tensor) {
  const Value& v = Symbolic(tensor);
  return {v.graph(), v.node()};
}

// Python asks functions of device contexts about what was added, and the like.
Status SettleNodes(const OpDef*, StringView, absl::Span<const Value>,
                   ValueList*) {
  if (CurrentEmitter()->is_eager()) return OkStatus();
  WithGil locked;
  const Ref settle = Import("graph.graph", "settle_new");
  const Ref done(settle ? Called<PyObject_CallNoArgs>(settle.get()) : nullptr);
  if (done) return OkStatus();
  return InvalidArgument("a device function failed");  // raised by who emitted
}

// A tensor's known value as an eager one, or None.
nb::object KnownValue(nb::handle tensor) {
  const Value& v = Symbolic(tensor);
  // A constant has one output.
  const Tensor* t = v.index() == 0 ? v.node()->constant() : nullptr;
  return t ? WrapObject(Value(*t)) : nb::none();
}

nb::object PartialShape(nb::handle tensor) {
  PyObject* s = ShapeObject(PartialShapeOf(EdgeOf(Symbolic(tensor))));
  if (s == nullptr) nb::raise_python_error();
  return nb::steal(s);
}

uint64_t Address(const std::shared_ptr<Graph>& g) {
  // The address tells graphs apart while they live, and Python's tables let go
  // of it when one dies.
  return reinterpret_cast<uintptr_t>(g.get());
}

void AddNode(nb::module_& m) {
  nb::class_<NodeRef>(m, "Node")
      .def_prop_ro("name", [](const NodeRef& n) { return n.node->name(); })
      .def_prop_ro("type", [](const NodeRef& n) { return n.node->def().name; })
      .def_prop_ro("device", [](const NodeRef& n) { return n.node->device(); })
      .def_prop_ro("id", [](const NodeRef& n) { return n.node->id(); })
      .def_prop_ro("graph_id",
                   [](const NodeRef& n) { return Address(n.graph); })
      .def_prop_ro("num_outputs",
                   [](const NodeRef& n) { return n.node->num_outputs(); })
      .def_prop_ro("is_stateful",
                   [](const NodeRef& n) { return n.node->def().is_stateful; })
      .def_prop_ro(
          "has_effect",
          [](const NodeRef& n) { return HasSideEffect(n.node->def()); })
      // None for an op without a rule, -1 where shapes are not known.
      .def_prop_ro("float_ops",
                   [](const NodeRef& n) -> nb::object {
                     const auto count = FloatOpsOf(*n.node);
                     return count ? nb::cast(*count) : nb::none();
                   })
      .def("output", &Output)
      .def("inputs", &Inputs)
      .def("control_inputs", &NodeControls)
      .def(
          "add_control_input",
          [](NodeRef& n, const NodeRef& c) { n.node->AddControlInput(c.node); })
      .def("set_input", &SetInput)
      .def("set_device",
           [](NodeRef& n, const std::string& d) { n.node->set_device(d); })
      .def("attr", &Attr)
      .def("clear_attr", &ClearAttr)
      .def("set_container", &SetContainer)
      .def("attr_names", &AttrNames)
      .def("consumers", &Consumers);
  m.def("node_of", &NodeOf);
  m.def("settle_new_nodes", [](bool on) {
    SetAfterOp(AfterOp::kSettleNodes, on ? &SettleNodes : nullptr);
  });
  m.def("output_index", [](nb::handle t) { return Symbolic(t).index(); });
  m.def("graph_id", [](nb::handle t) { return Address(Symbolic(t).graph()); });
  m.def("in_function_body",
        [](nb::handle t) { return Symbolic(t).graph()->is_body; });
  m.def("known_value", &KnownValue);
  m.def("partial_shape", &PartialShape);
}

}  // namespace

uint64_t ParentGraph() {
  const auto number = [](GraphBuilder* b) -> uint64_t {
    return b ? reinterpret_cast<uintptr_t>(b->graph().get()) : 0;
  };
  const std::vector<Entered>& stack = Stack();
  // Function bodies are passed over: their captures go on to the graph around
  // all of them.
  for (size_t i = stack.size(); i-- > 0;) {
    GraphBuilder* b = stack[i].builder;
    if (b == nullptr || !b->is_function()) return number(b);
  }
  // In TensorFlow 1 the thread's default graph is around everything.
  if (!graphs_by_default) return 0;
  DefaultGraph();
  return number(default_graph);
}

std::vector<GraphBuilder*> EnteredBuilders() {
  std::vector<GraphBuilder*> found;
  const std::vector<Entered>& stack = Stack();
  for (size_t i = stack.size(); i-- > 0;) {
    // An eager scope: nothing beyond can be captured from here.
    if (stack[i].builder == nullptr) return found;
    found.push_back(stack[i].builder);
    // A plain graph captures nothing, so that the walk ends with it.
    if (!found.back()->is_function()) return found;
  }
  if (graphs_by_default) {
    DefaultGraph();
    if (default_graph) found.push_back(default_graph);
  }
  return found;
}

PyGraph::PyGraph(bool is_function)
    : graph_([] {
        const CallStops stops;  // a safe mode's, where one is entered
        return std::make_shared<Graph>();
      }()),
      builder_(std::make_unique<Builder>(
          graph_, is_function ? GraphBuilder::Kind::kFunction
                              : GraphBuilder::Kind::kPlain)) {}

PyGraph::PyGraph(std::shared_ptr<Graph> body)
    : graph_(std::move(body)),
      builder_(
          std::make_unique<Builder>(graph_, GraphBuilder::Kind::kFunction)) {
  Finalize(true);
}

void PyGraph::Finalize(bool finalized) {
  BuilderOf(*this).finalized = finalized;
}
bool PyGraph::finalized() const {
  return static_cast<const Builder&>(*builder_).finalized;
}

void ThrowStatus(const Status& s, bool in_graph) {
  // A callback may have raised; that error says more.
  if (!PyErr_Occurred()) RaiseStatus(s, in_graph);
  nb::raise_python_error();
}

Value ValueOrHandle(nb::handle o) {
  if (IsTensor(o.ptr())) return ValueOf(o.ptr());
  if (IsVariable(o.ptr())) return HandleOf(o.ptr());
  throw nb::type_error("a tensor or variable is wanted");
}

nb::object WrapObject(Value v) {
  PyObject* o = WrapValue(std::move(v));
  if (o == nullptr) nb::raise_python_error();
  return nb::steal(o);
}

void AddGraph(nb::module_& m) {
  AddNode(m);
  nb::class_<PyGraph>(m, "GraphCore")
      .def(nb::init<bool>(), nb::arg("is_function"))
      .def_prop_ro("id", [](PyGraph& g) { return Address(g.graph()); })
      .def_prop_ro("num_nodes",
                   [](PyGraph& g) { return g.graph()->num_nodes(); })
      .def_prop_rw(
          "scope", [](PyGraph& g) { return g.builder().scope(); },
          [](PyGraph& g, std::string s) { g.builder().set_scope(s); })
      .def_prop_rw(
          "device", [](PyGraph& g) { return g.builder().device(); },
          [](PyGraph& g, std::string d) { g.builder().set_device(d); })
      .def_prop_rw("finalized", &PyGraph::finalized, &PyGraph::Finalize)
      .def("unique_scope",
           [](PyGraph& g, const std::string& base) {
             return g.builder().UniqueScope(base);
           })
      .def("unique_name",
           [](PyGraph& g, const std::string& name, bool mark) {
             return g.graph()->UniqueName(g.builder().scope() + name, mark);
           })
      .def("placeholder", &Placeholder, nb::arg("name"), nb::arg("dtype"),
           nb::arg("shape").none(), nb::arg("like").none(),
           nb::arg("attrs") = nb::dict())
      .def("captures", &Captures)
      .def("call_stack", &CallStack)
      .def("capture", &Capture)
      .def("override_gradients", &OverrideGradients)
      .def("set_node_attrs", &SetNodeAttrs)
      .def("find", &FindNode)
      .def("node", &NodeAt)
      .def("set_control_inputs", &SetControlInputs)
      .def("control_inputs", &ControlInputs)
      .def(
          "set_seed",
          [](PyGraph& g, nb::object seed) {
            g.graph()->has_seed = !seed.is_none();
            if (!seed.is_none()) g.graph()->seed = nb::cast<int64_t>(seed);
          },
          nb::arg("seed").none());
  m.def(
      "set_graph_owner",
      [](uint64_t address, nb::handle graph) {
        SetGraphOwner(address, graph.is_none() ? nullptr : graph.ptr());
      },
      nb::arg("address"), nb::arg("graph").none());
  m.def("set_default_graph", &SetDefaultGraph, nb::arg("graph").none());
  m.def("build_graphs_by_default", &BuildGraphsByDefault);
  m.def("push_graph", &PushGraph);
  m.def("push_eager", &PushEager);
  m.def("pop_emitter", &PopEmitter);
  m.def("push_base", &PushBase);
  m.def("pop_base", &PopBase);
}

}  // namespace headrace::bind
