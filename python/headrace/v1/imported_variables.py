"""Variables as VariableDefs, and variables of nodes that a graph already has."""

from headrace.context import stack
from headrace.framework import dtypes, tensor_shape, variables
from headrace.framework.support import protos
from headrace.framework.support.save_slice_info import SaveSliceInfo
from headrace.graph import graph_variables, ref_variables
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
    return isinstance(value, (graph_variables.GraphVariable, ref_variables.RefVariable))


def to_proto(variable, export_scope=None):
    """The VariableDef of a graph's variable, whose names begin below a scope; None of
    one that is not under it."""
    prefix = f"{export_scope}/" if export_scope else ""
    node = variable.name.partition(":")[0]
    if node != export_scope and not node.startswith(prefix):
        return None
    proto = protos.VariableDef(
        initializer_name=variable.initializer.name.removeprefix(prefix),
        trainable=variable.trainable,
        synchronization=variable.synchronization.value,
        aggregation=variable.aggregation.value,
    )
    if variable.initial_value is not None:
        proto.initial_value_name = variable.initial_value.name.removeprefix(prefix)
    if isinstance(variable, ref_variables.RefVariable):
        named, snapshot = variable, variable.value()
    else:
        named, snapshot = variable.handle, variable._graph_element()
        proto.is_resource = True
    proto.variable_name = named.name.removeprefix(prefix)
    proto.snapshot_name = snapshot.name.removeprefix(prefix)
    info = getattr(variable, "_save_slice_info", None)
    if info is not None:
        proto.save_slice_info_def.CopyFrom(info.to_proto(export_scope))
    return proto


def from_proto(variable_def, import_scope=None):
    """The variable of a VariableDef, of nodes of the default graph under a scope."""
    graph = stack.default_graph()

    def element(name):
        if not name:
            return None
        return graph.as_graph_element(
            f"{import_scope}/{name}" if import_scope else name
        )

    make = _resource if variable_def.is_resource else _reference
    made = make(element, variable_def)
    if variable_def.HasField("save_slice_info_def"):
        made._save_slice_info = SaveSliceInfo(
            save_slice_info_def=variable_def.save_slice_info_def,
            import_scope=import_scope,
        )
    return made


def from_bytes(graph, data, scope, known):
    """The variable of a serialised VariableDef; `known` keeps those made before."""
    proto = protos.VariableDef.FromString(data)
    if proto.variable_name not in known:
        with graph.as_default():
            known[proto.variable_name] = from_proto(proto, scope)
    return known[proto.variable_name]


def _ways(proto):
    """How copies are brought together, as a VariableDef says."""
    return (
        variables.VariableSynchronization(proto.synchronization),
        variables.VariableAggregation(proto.aggregation),
    )


def _resource(element, proto):
    made = graph_variables.GraphVariable.__new__(graph_variables.GraphVariable)
    handle = element(proto.variable_name)
    node = handle.op
    made._constraint = None
    made._synchronization, made._aggregation = _ways(proto)
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
    made = ref_variables.RefVariable.__new__(ref_variables.RefVariable)
    made.trainable, made.constraint = proto.trainable, None
    made.synchronization, made.aggregation = _ways(proto)
    made._caching_device = None
    made._reference = element(proto.variable_name)
    made.initializer = element(proto.initializer_name)
    made._snapshot = element(proto.snapshot_name)
    made.initial_value = element(proto.initial_value_name)
    return made
