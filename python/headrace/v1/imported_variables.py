"""Variables as VariableDefs, and variables of nodes that a graph already has."""

from headrace.context import stack
from headrace.framework import dtypes, tensor_shape, variables
from headrace.framework.support import protos
from headrace.graph import graph_variables
from headrace.v1.collections import GraphKeys

COLLECTIONS = frozenset(
    (
        GraphKeys.GLOBAL_VARIABLES,
        GraphKeys.LOCAL_VARIABLES,
        GraphKeys.MODEL_VARIABLES,
        GraphKeys.METRIC_VARIABLES,
        GraphKeys.TRAINABLE_VARIABLES,
        GraphKeys.MOVING_AVERAGE_VARIABLES,
        GraphKeys.GLOBAL_STEP,
    )
)


def is_variable(value):
    return isinstance(
        value, (graph_variables.GraphVariable, graph_variables.RefVariable)
    )


def to_proto(variable, export_scope=None):
    """The VariableDef of a graph's variable, names without the scope before them; None
    for one that is not in that scope."""
    by_reference = isinstance(variable, graph_variables.RefVariable)
    handle = variable if by_reference else variable.handle
    scope = f"{export_scope.rstrip('/')}/" if export_scope else ""
    if not handle.name.startswith(scope):
        return None
    read = variable.value() if by_reference else variable._graph_element()
    proto = protos.VariableDef(
        variable_name=handle.name.removeprefix(scope),
        initializer_name=variable.initializer.name.removeprefix(scope),
        snapshot_name=read.name.removeprefix(scope),
        is_resource=not by_reference,
        trainable=variable.trainable,
        synchronization=variable.synchronization.value,
        aggregation=variable.aggregation.value,
    )
    if variable.initial_value is not None:
        proto.initial_value_name = variable.initial_value.name.removeprefix(scope)
    info = getattr(variable, "_save_slice_info", None)
    if info is not None:
        proto.save_slice_info_def.CopyFrom(info.to_proto(export_scope))
    return proto


def from_proto(proto, import_scope=None):
    """The variable of the current graph's nodes that a VariableDef names."""
    data = proto.SerializeToString()
    return from_bytes(stack.default_graph(), data, import_scope, {})


def from_bytes(graph, data, scope, known):
    """The variable of a serialised VariableDef; `known` keeps those made before."""
    proto = protos.VariableDef.FromString(data)
    if proto.variable_name not in known:

        def element(name):
            if not name:
                return None
            return graph.as_graph_element(f"{scope}/{name}" if scope else name)

        make = _resource if proto.is_resource else _reference
        known[proto.variable_name] = make(element, proto)
    return known[proto.variable_name]


def _resource(element, proto):
    made = graph_variables.GraphVariable.__new__(graph_variables.GraphVariable)
    handle = element(proto.variable_name)
    node = handle.op
    made._constraint = None
    made._synchronization = variables.VariableSynchronization(proto.synchronization)
    made._aggregation = variables.VariableAggregation(proto.aggregation)
    made._shared_name = node.name
    made._set_up(
        handle,
        dtypes.as_dtype(node.get_attr("dtype")),
        tensor_shape.TensorShape(node.get_attr("shape")),
        proto.trainable,
    )
    variables._by_handle[handle._id] = made
    made._initializer = element(proto.initializer_name)
    made._value = element(proto.snapshot_name)
    made._initial_value = element(proto.initial_value_name)
    return made


def _reference(element, proto):
    made = graph_variables.RefVariable.__new__(graph_variables.RefVariable)
    made.trainable, made.constraint = proto.trainable, None
    made.synchronization = variables.VariableSynchronization(proto.synchronization)
    made.aggregation = variables.VariableAggregation(proto.aggregation)
    made._reference = element(proto.variable_name)
    made.initializer = element(proto.initializer_name)
    made._snapshot = element(proto.snapshot_name)
    made.initial_value = element(proto.initial_value_name)
    return made
