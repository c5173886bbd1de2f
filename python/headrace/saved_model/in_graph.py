"""A model loaded into the graph that a session runs.

Its variables and tables are the graph's: initializers give them what the model's
checkpoint has, and functions that the model was saved with take them in place of what
they captured where the model was read.
"""

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import conversion, dtypes, variables
from headrace.framework.trackable import node_of
from headrace.graph.graph_keys import GraphKeys
from headrace.graph.graph_variables import GraphVariable, collect
from headrace.train import graph_checkpoint


class _LoadedVariable(GraphVariable):
    """A variable whose initializer reads the checkpoint of its model."""

    _initializer = _initial_value = None

    def __init__(self, name, dtype, shape, trainable, synchronization, aggregation):
        # No first value is given, which the base asks for.
        self._constraint = None
        self._synchronization = variables.VariableSynchronization(synchronization)
        self._aggregation = variables.VariableAggregation(aggregation)
        graph = stack.current()
        with (
            graph.control_dependencies(None),
            graph.name_scope(name or "Variable") as scope,
        ):
            self._add_nodes(graph, scope, dtype, shape, trainable)
        # As upstream has it, who trains a loaded model names its variables.
        collect(graph, self, None, trainable=False)

    def _restored_from(self, prefix, key):
        super()._restored_from(prefix, key)
        if self._initializer is None:
            self._starts_with(self._restoring)


class GraphObjects:
    """The objects of one model, native in `native`, that are the current graph's."""

    def __init__(self, native):
        self._native = native
        self._inside = {}  # id of what functions captured -> the graph's tensor

    def variable(self, i, what):
        """Object `i`, a variable; `what` the file has to say of it."""
        made = _LoadedVariable(*what)
        self._inside[self._native.value(i)._id] = made.handle
        return made

    def constant(self, i):
        """Object `i`, a constant or the path of an asset, as a tensor."""
        value = self._native.value(i)
        if value._id not in self._inside:
            self._inside[value._id] = conversion.constant(value.numpy(), value.dtype)
        return self._inside[value._id]

    def asset(self, i):
        """Object `i`, the path of a file of the model, as a tensor."""
        path = self.constant(i)
        stack.current().add_to_collection(GraphKeys.ASSET_FILEPATHS, path)
        return path

    def made_by(self, i, create):
        """The handle of resource `i`, which the function `create` makes."""
        self.take_in(create.concrete_functions[0])
        handle = create.of_tensors([])[0]
        self._inside[self._native.value(i)._id] = handle
        return handle

    def take_in(self, concrete):
        """The concrete function captures what the graph has from here on."""
        core = concrete._core
        core.set_captured_inputs([self._captured(t) for t in core.captured_inputs()])

    def _captured(self, outer):
        if not isinstance(outer, _headrace.EagerTensor):
            return outer
        inside = self._inside.get(outer._id)
        if inside is None and outer.dtype not in (dtypes.resource, dtypes.variant):
            inside = conversion.constant(outer.numpy(), outer.dtype)
            self._inside[outer._id] = inside
        return outer if inside is None else inside

    @staticmethod
    def begin_with(initialize):
        """What fills a table runs with the graph's initializers of tables."""
        initialize.of_tensors([])
        graph = stack.current()
        graph.add_to_collection(GraphKeys.TABLE_INITIALIZERS, graph._last_operation())


def restore(root, folder, partial):
    """Variables begin with what the checkpoint of the model has for them; so do objects
    with values of their own, by initializers of tables. AssertionError for variables
    that it lacks, unless `partial`."""
    operations = graph_checkpoint.begin(folder)
    status = _headrace.restore_graph(folder, node_of(root), [], False)
    if not partial and (missing := status.check_consumed()):
        raise AssertionError(missing)
    status.expect_partial()
    graph = stack.current()
    known = {v._initializer for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)}
    for operation in operations:
        if operation not in known:
            graph.add_to_collection(GraphKeys.TABLE_INITIALIZERS, operation)
