"""Variables as VariableDefs, and variables of nodes that a graph already has."""

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


def to_proto(variable):
    """The VariableDef of a graph's variable."""
    proto = protos.VariableDef(
        initializer_name=variable.initializer.name,
        initial_value_name=variable.initial_value.name,
        trainable=variable.trainable,
    )
    if isinstance(variable, graph_variables.RefVariable):
        proto.variable_name = variable.name
        proto.snapshot_name = variable.value().name
    else:
        proto.variable_name = variable.handle.name
        proto.snapshot_name = variable._graph_element().name
        proto.is_resource = True
    info = getattr(variable, "_save_slice_info", None)
    if info is not None:
        proto.save_slice_info_def.CopyFrom(info.to_proto())
    return proto


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
    made._synchronization = variables.VariableSynchronization.AUTO
    made._aggregation = variables.VariableAggregation.NONE
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
    made._reference = element(proto.variable_name)
    made.initializer = element(proto.initializer_name)
    made._snapshot = element(proto.snapshot_name)
    made.initial_value = element(proto.initial_value_name)
    return made
