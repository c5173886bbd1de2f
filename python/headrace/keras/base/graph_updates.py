"""Updates as operations of a plain graph, where nothing runs by itself."""

from headrace._load import _headrace
from headrace.context import stack


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
    if optimizer.use_ema:
        raise NotImplementedError("use_ema is not supported in graphs of TensorFlow 1")
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
            if variable.constraint is not None:
                ordered.next()
                variable.assign(variable.constraint(variable), read_value=False)
            operations += ordered.end()
        with graph.control_dependencies(operations):
            ordered = Ordered(graph)
            optimizer._after(rates)
            operations += ordered.end()
        with graph.control_dependencies(operations):
            return optimizer.iterations.assign_add(1, read_value=False)


def keep(variable):
    """Notes a layer's variable of a plain graph, for the session that Keras runs it in."""
    graph = None if _headrace.is_eager() else stack.current()
    if graph is not None:
        graph.__dict__.setdefault("_keras_variables", []).append(variable)
