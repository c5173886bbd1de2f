"""Branches and loops as TensorFlow 1 has them: the contexts that nodes are made in.

The native context brings values in and says what nodes wait for
(src/graph/flow_context.h); these objects are what the collections COND_CONTEXT and
WHILE_CONTEXT hold, and what a MetaGraphDef keeps of them.
"""

from headrace._load import _headrace
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.framework.support import protos
from headrace.graph.graph_keys import GraphKeys


def wanted():
    """Whether branches and loops are made of TensorFlow 1's nodes here."""
    graph = stack.current()
    return (
        graph is not None
        and not graph.building_function
        and not stack.control_flow_v2_enabled()
    )


class entered:
    """A context manager: nodes are made in `context` (None: in none).

    `by_hand`: nothing is brought in for them, and they wait for what they read alone.
    """

    def __init__(self, graph, context, by_hand=False):
        self._graph, self._context, self._by_hand = graph, context, by_hand

    def __enter__(self):
        graph = self._graph
        self._native = _headrace.flow_context(graph._core)
        self._outer = graph._flow_context
        graph._flow_context = self._context
        native = self._context and self._context._native
        _headrace.set_flow_context(graph._core, native, self._by_hand)

    def __exit__(self, *error):
        self._graph._flow_context = self._outer
        _headrace.set_flow_context(self._graph._core, *self._native)
        return False


class ControlFlowContext:
    """What branches and loops share.

    Attributes:
      name: unique in the graph.
      outer_context: the context around, or None.
    """

    def __init__(self, graph, name, outer):
        self._graph = graph
        self._name = name
        self._outer = outer
        self._nested = []
        if outer is not None:
            outer._nested.append(self)

    name = read_only("_name")
    outer_context = read_only("_outer")

    def entered(self, by_hand=False):
        """A context manager in which nodes are made in this context."""
        return entered(self._graph, self, by_hand)

    def bring_in(self, tensor):
        """The tensor as nodes in here may read it."""
        return self._native.bring_in(tensor)

    def _collect(self):
        """Puts an outermost context into its collection; others are in its proto."""
        if self._outer is None:
            self._graph.add_to_collection(self._collection, self)

    def _ids(self):
        found = {self._native.id}
        for nested in self._nested:
            found |= nested._ids()
        return found

    def _values_def(self, strip):
        """All that nodes in here know, by name."""
        inside, names = self._ids(), set()
        core = self._graph._core
        for i in range(core.num_nodes):
            node = core.node(i)
            context = _headrace.flow_context_of(core, node)
            if context is not None and context.id in inside:
                names |= {node.output(k).name for k in range(node.num_outputs)}
        values = protos.ValuesDef()
        for outer, inner in self._native.externals():
            names |= {outer.name, inner.name}
            if outer is not self._pivot_tensor():
                values.external_values[strip(outer.name)] = strip(inner.name)
        values.values.extend(sorted(map(strip, names)))
        return values

    def _restore_values(self, values, named):
        """Says what is in here, of a proto's values; `named` finds a tensor."""
        core = self._graph._core
        outside = set(values.external_values)
        for name in values.values:
            if name not in outside:
                _headrace.set_flow_context_of(core, named(name).op._node, self._native)
        for outer, inner in sorted(values.external_values.items()):
            self._native.add_external(named(outer), named(inner))

    def _nested_protos(self, export_scope):
        for nested in self._nested:
            proto = protos.ControlFlowContextDef()
            getattr(proto, nested._field).CopyFrom(nested.to_proto(export_scope))
            yield proto

    def _restore_nested(self, nested, import_scope):
        for proto in nested:
            kind = proto.WhichOneof("ctxt")
            _KINDS[kind]._restored(
                self._graph, getattr(proto, kind), import_scope, self
            )

    @classmethod
    def from_proto(cls, context_def, import_scope=None):
        """The context that a proto tells of, in the current graph."""
        return cls._restored(stack.default_graph(), context_def, import_scope, None)


def _stripping(scope):
    """A function that takes a name scope off names."""
    prefix = scope + "/" if scope else ""
    return lambda name: name.removeprefix(prefix)


def _in_scope(name, scope):
    return f"{scope}/{name}" if scope else name


def _finding(graph, scope):
    return lambda name: graph.get_tensor_by_name(_in_scope(name, scope))


class CondContext(ControlFlowContext):
    """One branch of a tf.cond: `branch` is 1 where `pred` is true, else 0."""

    _collection = GraphKeys.COND_CONTEXT
    _field = "cond_ctxt"

    def __init__(self, graph, name, outer, pred, pivot, branch):
        super().__init__(graph, name, outer)
        self._pred, self._pivot, self._branch = pred, pivot, branch
        around = outer and outer._native
        self._native = _headrace.add_branch_context(
            graph._core, around, pred, pivot, branch
        )

    pred = read_only("_pred", "What decides between the branches.")
    pivot = read_only("_pivot", "What lives where the branch is taken.")
    branch = read_only("_branch", "1 where it is taken when `pred` is true.")

    def _pivot_tensor(self):
        return self._pivot

    def _values_def(self, strip):
        values = super()._values_def(strip)
        values.external_values.pop(strip(self._pivot.name), None)
        return values

    def to_proto(self, export_scope=None):
        """The branch as a CondContextDef."""
        strip = _stripping(export_scope)
        return protos.CondContextDef(
            context_name=strip(self._name),
            pred_name=strip(self._pred.name),
            pivot_name=strip(self._pivot.name),
            branch=self._branch,
            values_def=self._values_def(strip),
            nested_contexts=self._nested_protos(export_scope),
        )

    @classmethod
    def _restored(cls, graph, proto, import_scope, outer):
        named = _finding(graph, import_scope)
        pred, pivot = named(proto.pred_name), named(proto.pivot_name)
        branch = (pred, pivot, proto.branch)
        name = _in_scope(proto.context_name, import_scope)
        context = cls(graph, name, outer, *branch)
        values = protos.ValuesDef()
        values.CopyFrom(proto.values_def)
        # It is made in the context around.
        values.external_values[proto.pivot_name] = proto.pivot_name
        context._restore_values(values, named)
        context._restore_nested(proto.nested_contexts, import_scope)
        return context


class WhileContext(ControlFlowContext):
    """A tf.while_loop: a frame."""

    _collection = GraphKeys.WHILE_CONTEXT
    _field = "while_ctxt"

    def __init__(
        self,
        graph,
        name,
        outer,
        most,
        parallel_iterations,
        back_prop,
        swap_memory,
        frame=None,
    ):
        super().__init__(graph, name, outer)
        self._parallel_iterations = parallel_iterations
        self._back_prop, self._swap_memory = back_prop, swap_memory
        self._maximum_iterations = most
        self._pivot_for_pred = self._pivot_for_body = self._pivot = None
        self._enters, self._exits = [], []
        around = outer and outer._native
        self._native = _headrace.add_loop_context(
            graph._core, around, frame or name, parallel_iterations, back_prop
        )

    parallel_iterations = read_only("_parallel_iterations")
    back_prop = read_only("_back_prop", "Whether gradients go through the loop.")
    swap_memory = read_only("_swap_memory", "Kept for others: memory is of one kind.")
    maximum_iterations = read_only("_maximum_iterations", "A tensor, or None.")
    pivot = read_only("_pivot", "The LoopCond.")
    loop_enters = read_only("_enters")
    loop_exits = read_only("_exits")

    def _pivot_tensor(self):
        return None

    def enter(self, tensor):
        """A value of the context around, in the loop's first turn."""
        self._enters.append(self._native.enter(tensor))
        return self._enters[-1]

    def begin_condition(self, merge):
        """What follows is the condition's, and waits for `merge`."""
        self._pivot_for_pred = merge
        self._native.set_pivot(merge.op._node)

    def begin_body(self, condition, first):
        """What follows is the body's, and waits for `first`."""
        self._pivot, self._pivot_for_body = condition, first
        self._native.set_pivot(first.op._node)

    def leave(self, exits):
        self._exits.extend(exits)

    def to_proto(self, export_scope=None):
        """The loop as a WhileContextDef."""
        strip = _stripping(export_scope)
        most = self._maximum_iterations
        return protos.WhileContextDef(
            context_name=strip(self._name),
            parallel_iterations=self._parallel_iterations,
            back_prop=self._back_prop,
            swap_memory=self._swap_memory,
            pivot_name=strip(self._pivot.name),
            pivot_for_pred_name=strip(self._pivot_for_pred.name),
            pivot_for_body_name=strip(self._pivot_for_body.name),
            loop_exit_names=[strip(t.name) for t in self._exits],
            loop_enter_names=[strip(t.name) for t in self._enters],
            maximum_iterations_name=None if most is None else strip(most.name),
            values_def=self._values_def(strip),
            nested_contexts=self._nested_protos(export_scope),
        )

    @classmethod
    def _restored(cls, graph, proto, import_scope, outer):
        named = _finding(graph, import_scope)
        most = proto.maximum_iterations_name
        enters = [named(name) for name in proto.loop_enter_names]
        context = cls(
            graph,
            _in_scope(proto.context_name, import_scope),
            outer,
            named(most) if most else None,
            proto.parallel_iterations,
            proto.back_prop,
            proto.swap_memory,
            enters[0].op.get_attr("frame_name").decode(),
        )
        context._enters = enters
        context.leave(named(name) for name in proto.loop_exit_names)
        context._pivot_for_pred = named(proto.pivot_for_pred_name)
        context.begin_body(named(proto.pivot_name), named(proto.pivot_for_body_name))
        context._restore_values(proto.values_def, named)
        context._restore_nested(proto.nested_contexts, import_scope)
        return context


_KINDS = {"cond_ctxt": CondContext, "while_ctxt": WhileContext}
