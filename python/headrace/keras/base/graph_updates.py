"""Updates as operations of a plain graph, where nothing runs by itself."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import stack
from headrace.keras.base.keras_tensor import KerasTensor


class Updating:
    """What layers know of the operations that change what they keep."""

    def add_update(self, updates):
        """Notes operations that change what the layer keeps, to be run with training
        steps; eagerly they have been run, and functions are called."""
        for update in tf.nest.flatten(updates):
            if callable(update):
                update = update()
            if self._notes_updates() and update is not None:
                self._keras.updates.append(getattr(update, "op", update))

    def _notes_updates(self):
        return stack.plain_graph() is not None

    @property
    def updates(self):
        """A list of the operations that add_update() noted here and below: none of
        layers that are neither trainable nor stateful."""
        return [
            update
            for layer in self._flatten_layers()
            if not layer._is_metric and (layer.trainable or layer.stateful)
            for update in layer._keras.updates
        ]

    def get_updates_for(self, inputs):
        """Those of `updates` that depend on the inputs; with None those that depend on
        nothing that the layer was called with."""
        return self._depending(self.updates, inputs)

    def get_losses_for(self, inputs):
        """Those of `losses` that depend on the inputs; with None those that depend on
        nothing that the layer was called with."""
        return self._depending(self.losses, inputs)

    @property
    def _graph_inputs(self):
        """The tensors of the graph that the layer was called with."""
        nodes = self._keras.inbound
        return [x for n in nodes for x in n.parents if not isinstance(x, KerasTensor)]

    def _depending(self, elements, inputs):
        sources = self._graph_inputs if inputs is None else tf.nest.flatten(inputs)
        return [e for e in elements if needs(e, sources) == (inputs is not None)]


def waits_for(element, is_one):
    """Whether a tensor or operation of a graph is, or waits for, an operation of which
    is_one(it) holds."""
    todo, seen = [getattr(element, "op", element)], set()
    while todo:
        op = todo.pop()
        if is_one(op):
            return True
        if op.name not in seen:
            seen.add(op.name)
            todo += [t.op for t in op.inputs] + list(op.control_inputs)
    return False


def needs(element, sources):
    """Whether a tensor or operation of a graph is computed from one of some tensors."""
    parts = tf.nest.flatten(list(sources), expand_composites=True)
    names = {t.op.name for t in parts if not isinstance(t, _headrace.EagerTensor)}
    return waits_for(element, lambda op: op.name in names)


class Ordered:
    """The operations that change one variable: each step waits for those before.

    Such operations have no outputs, which tells them from all others.
    """

    def __init__(self, graph):
        self._graph = graph
        self._seen = graph._core.num_nodes
        self._outer = graph._core.control_inputs()
        self._nodes = []

    def next(self):
        """What is added from here on waits for what was added so far."""
        core = self._graph._core
        for i in range(self._seen, core.num_nodes):
            node = core.node(i)
            if not node.num_outputs and node.type != "NoOp":
                self._nodes.append(node)
        self._seen = core.num_nodes
        core.set_control_inputs(self._outer + self._nodes)

    def end(self):
        """The operations."""
        self.next()
        self._graph._core.set_control_inputs(self._outer)
        return [self._graph._operation(node) for node in self._nodes]


def apply(optimizer, gradients, variables, name):
    """The operation that updates all variables and counts the step."""
    graph = stack.current()
    rates, operations = {}, []
    with graph.name_scope(name or optimizer._name):
        for variable in variables:
            if variable.dtype not in rates:
                rates[variable.dtype] = optimizer._coefficients(variable.dtype)
        for gradient, variable in zip(gradients, variables):
            ordered = Ordered(graph)
            known = rates[variable.dtype]
            optimizer._apply_one(gradient, variable, known, ordered.next)
            if not optimizer.use_ema:
                ordered.next()
                _constrain(variable)
            operations += ordered.end()
        with graph.control_dependencies(operations):
            ordered = Ordered(graph)
            optimizer._after(rates)
            if optimizer.use_ema:  # averages come before constraints
                optimizer._average(variables, ordered.next)
                ordered.next()
                for variable in variables:
                    _constrain(variable)
            operations += ordered.end()
        with graph.control_dependencies(operations):
            return optimizer.iterations.assign_add(1, read_value=False)


def _constrain(variable):
    if variable.constraint is not None:
        variable.assign(variable.constraint(variable), read_value=False)
