"""tf.Operation: a node of a graph."""

from headrace._load import _headrace
from headrace.context import call_stacks, sessions
from headrace.context.properties import read_only
from headrace.framework import tensor as tensor_module
from headrace.framework.support import protos
from headrace.graph import device_functions, graph


class Operation:
    """One call of an operation in a graph. Two are equal when they are one node."""

    def __init__(self, graph, node):
        self._graph = graph
        self._node = node

    graph = read_only("_graph", "The graph that has the operation.")
    name = read_only("_node.name", "The full name, scopes included.")
    type = read_only("_node.type", 'The name of its op: "MatMul".')

    @property
    def device(self):
        """The device that was asked for; "" for none."""
        device_functions.place(self._graph)
        return self._node.device

    @property
    def inputs(self):
        """The tensors that it reads, control inputs not among them: a tuple."""
        return tuple(self._node.inputs())

    @property
    def outputs(self):
        """The tensors that it makes: a list."""
        return [self._node.output(i) for i in range(self._node.num_outputs)]

    @property
    def control_inputs(self):
        """The operations that run before it: a list."""
        return [self._graph._operation(n) for n in self._node.control_inputs()]

    @property
    def _control_outputs(self):
        return [self._graph._operation(n) for n in self._node.consumers(-1)]

    _id = read_only("_node.id")

    @property
    def node_def(self):
        """The operation as a NodeDef."""
        device_functions.place(self._graph)
        return protos.NodeDef.FromString(_headrace.export_node(self._node))

    @property
    def op_def(self):
        """Its op as an OpDef."""
        return protos.OpDef.FromString(_headrace.export_op(self._node))

    @property
    def traceback(self):
        """(file, line, function) of the Python calls that made it, outermost first."""
        return call_stacks.frames(self._graph._core.call_stack(self._node.id))

    def get_attr(self, name):
        """The attribute's value: of a function, or of a list of them, NameAttrLists."""
        value = self._node.attr(name)
        if isinstance(value, str):
            return self.node_def.attr[name].func
        if isinstance(value, list) and value and isinstance(value[0], str):
            return list(self.node_def.attr[name].list.func)
        return value

    def _clear_attr(self, name):  # upstream's name; its tests ask for it
        """Gives an attribute its default."""
        self._node.clear_attr(name)

    def values(self):
        """The tensors that it makes."""
        return tuple(self.outputs)

    def colocation_groups(self):
        """What it is placed with, [b"loc:@NAME"]: its own group where it names none."""
        if "_class" in self._node.attr_names():
            named = self._node.attr("_class")
            return [g if isinstance(g, bytes) else g.encode() for g in named]
        return [b"loc:@" + self.name.encode()]

    def run(self, feed_dict=None, session=None):
        """Runs the operation in `session`, or in the default one."""
        sessions.of(session, self._graph, "operation", "run()").run(self, feed_dict)

    def _add_control_input(self, op):
        self._node.add_control_input(op._node)

    def _add_control_inputs(self, ops):
        for op in ops:
            self._add_control_input(op)

    def _update_input(self, index, tensor):
        self._node.set_input(index, tensor)

    def _set_device(self, device):
        self._node.set_device(device)

    def __eq__(self, other):
        if not isinstance(other, Operation):
            return NotImplemented
        return self._graph is other._graph and self._node.id == other._node.id

    def __hash__(self):
        return hash((self._node.graph_id, self._node.id))

    def __repr__(self):
        return f"<tf.Operation '{self.name}' type={self.type}>"

    def __str__(self):
        return str(self.node_def)


def _op(self):
    return self.graph._operation(_headrace.node_of(self))


def _graph(self):
    return graph.of(self)


def _device(self):
    """The name of the device asked for: "" where none is."""
    device_functions.place(graph.of(self))
    return _headrace.node_of(self).device


def _consumers(self):
    """A list of the operations of the graph that take this tensor."""
    node, index = _headrace.node_of(self), _headrace.output_index(self)
    return [self.graph._operation(n) for n in node.consumers(index)]


def _eval(self, feed_dict=None, session=None):
    """The value that a run gives, as NumPy; of the default session without one.

    ValueError where there is no session, or one of another graph.
    """
    return sessions.of(session, self.graph, "tensor", "eval()").run(self, feed_dict)


tensor_module._attach(
    tensor_module.SymbolicTensor,
    {
        "op": property(_op, doc="The Operation that makes this tensor."),
        "graph": property(_graph, doc="The Graph of this tensor."),
        "value_index": property(_headrace.output_index, doc="Which output it is."),
        "device": property(_device),
        "consumers": _consumers,
        "eval": _eval,
    },
)
