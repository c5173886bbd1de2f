"""TensorFlow 1's variables, which operations take by reference."""

import functools

from headrace._load import _headrace, raw
from headrace.context import late, sessions, stack
from headrace.context.properties import read_only
from headrace.framework import (
    conversion,
    dtypes,
    slices,
    tensor_shape,
    variables,
)
from headrace.framework.indexed_slices import IndexedSlices
from headrace.framework.support import scattering
from headrace.framework.support.save_slice_info import SaveSliceInfo
from headrace.graph import graph_variables, guarded_values
from headrace.graph.by_identity import ByIdentity

_NONE = variables.VariableAggregation.NONE
_AUTO = variables.VariableSynchronization.AUTO


def _initial(graph, value, dtype):
    """The first value as a tensor of the graph."""
    if callable(value):
        with graph.name_scope("Initializer"):
            return graph_variables.to_tensor(value(), dtype)
    value = graph_variables.to_tensor(value, dtype)
    graph_variables.check_outside(graph, value, by_function=False)
    return value


def _of_rows(op, doc):
    """A method that changes rows by IndexedSlices."""

    def scatter(self, sparse_delta, use_locking=False, name=None):
        return self._scatter(op, sparse_delta, use_locking, name)

    return scattering.named(scatter, op, doc)


class RefVariable(ByIdentity, graph_variables.MayBeSlice):
    """TensorFlow 1's variable: operations take it by reference.

    Assignments give the reference behind the change, or the operation where
    `read_value` is False.
    """

    SaveSliceInfo = SaveSliceInfo
    _distribute_strategy = None

    def __init__(
        self,
        initial_value=None,
        trainable=None,
        collections=None,
        validate_shape=True,
        caching_device=None,
        name=None,
        variable_def=None,
        dtype=None,
        constraint=None,
        synchronization=_AUTO,
        aggregation=_NONE,
        shape=None,
    ):
        if initial_value is None and variable_def is None:
            raise ValueError("initial_value must be specified.")
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        variables.check_arguments(initial_value, variable_def, constraint)
        graph = stack.current()
        self.synchronization, self.aggregation = synchronization, aggregation
        self.trainable = variables.trains(trainable, synchronization)
        self.constraint = constraint
        self._caching_device = caching_device
        dtype = None if dtype is None else dtypes.as_dtype(dtype)
        with (
            graph.control_dependencies(None),
            graph.name_scope(name or "Variable") as scope,
        ):
            by_function = callable(initial_value)
            with graph_variables.beside_itself(graph, scope, by_function):
                value = _initial(graph, initial_value, dtype)
            self._make(graph, scope, value, shape, validate_shape, by_function)
        graph_variables.collect(graph, self, collections, self.trainable)

    def _make(self, graph, scope, value, shape, validate_shape, by_function):
        """Adds the nodes: the variable, its assignment and the value that is read."""
        if shape is not None:
            shape = tensor_shape.as_shape(shape)
        else:
            shape = value.shape if validate_shape else tensor_shape.TensorShape(None)
        if validate_shape and not shape.is_fully_defined():
            raise ValueError(f"initial_value must have a shape specified: {value}")
        self.initial_value = value
        with graph_variables.beside_itself(graph, scope, by_function):
            self._reference = raw.VariableV2(shape=shape, dtype=value.dtype, name=scope)
        first = guarded_values.guarded(graph, value, scope.rstrip("/"))
        self.initializer = raw.Assign(
            self._reference,
            first,
            validate_shape=validate_shape,
            name=f"{scope}Assign/",
        ).op
        cached = self._caching_device
        with (
            graph.colocate_with(self.op),
            graph_variables.where_it_is_read(graph, cached),
        ):
            self._snapshot = raw.Identity(self._reference, name=f"{scope}read/")

    dtype = read_only("_reference.dtype")
    shape = read_only("_reference.shape")

    def _operand(self):
        return self._snapshot

    def set_shape(self, shape):
        """Says more of the shape than is known; ValueError for another one."""
        self._reference.set_shape(shape)
        self._snapshot.set_shape(shape)

    name = read_only("_reference.name")

    @property
    def _shared_name(self):
        return self.name.rpartition(":")[0]

    op = read_only("_reference.op")
    graph = read_only("_reference.graph")
    device = read_only("_reference.device")

    def value(self):
        """The value that the graph reads once a run."""
        return self._snapshot

    def read_value(self):
        """The value at the place of the graph where this is called."""
        return raw.Identity(self._reference, name="read")

    def initialized_value(self):
        """The value, the first one where it has none yet."""
        graph_variables.check_first(self.initial_value)
        return late.cond(
            raw.IsVariableInitialized(self._reference),
            self.read_value,
            lambda: self.initializer.inputs[1],
        )

    def _ref(self):
        return self._reference

    def _reference_node(self):
        self._self_node = _headrace.new_reference_node(
            self, self._shared_name, self.dtype.base_dtype, self.shape
        )
        return self._self_node

    _restored_from = graph_variables.GraphVariable._restored_from

    def _starts_with(self, operation):
        """That operation gives it its first value."""
        self.initializer, self.initial_value = operation, operation.inputs[1]

    def _as_graph_element(self):
        return self._reference

    def eval(self, session=None):
        """The value in `session`, or the default one."""
        return self._reference.eval(session=session)

    def load(self, value, session=None):
        """Assigns the value in `session`, or the default one."""
        session = sessions.of(session, self.graph, "operation", "load()")
        session.run(self.initializer, {self.initializer.inputs[1]: value})

    def __tf_tensor__(self, dtype=None, name=None):
        return self._snapshot

    def _changed(self, op, *inputs, **attributes):
        return getattr(raw, op)(self._reference, *inputs, **attributes)

    def _assigned(self, op, value, use_locking, name, read_value):
        result = self._changed(op, value, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def assign(self, value, use_locking=False, name=None, read_value=True):
        """Replaces the value."""
        return self._assigned("Assign", value, use_locking, name, read_value)

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        """Adds to the value."""
        return self._assigned("AssignAdd", delta, use_locking, name, read_value)

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        """Subtracts from the value."""
        return self._assigned("AssignSub", delta, use_locking, name, read_value)

    def count_up_to(self, limit):
        """The value before it is raised by one; OutOfRangeError once it is `limit`."""
        return self._changed("CountUpTo", limit=limit)

    def _scatter(self, op, sparse_delta, use_locking, name):
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(f"sparse_delta is not IndexedSlices: {sparse_delta}")
        indices, values = sparse_delta.indices, sparse_delta.values
        return self._changed(op, indices, values, use_locking=use_locking, name=name)

    def _scatter_nd(self, op, indices, updates, name):
        return self._changed(op, indices, updates, use_locking=True, name=name)

    scatter_add = _of_rows("ScatterAdd", "Adds slices to rows.")
    scatter_sub = _of_rows("ScatterSub", "Takes slices from rows.")
    scatter_mul = _of_rows("ScatterMul", "Multiplies rows by slices.")
    scatter_div = _of_rows("ScatterDiv", "Divides rows by slices.")
    scatter_max = _of_rows("ScatterMax", "The larger of rows and slices.")
    scatter_min = _of_rows("ScatterMin", "The smaller of rows and slices.")
    scatter_update = _of_rows("ScatterUpdate", "Puts slices in the place of rows.")
    scatter_nd_add = scattering.of_elements("ScatterNdAdd", "Adds to parts.")
    scatter_nd_sub = scattering.of_elements("ScatterNdSub", "Subtracts from parts.")
    scatter_nd_max = scattering.of_elements("ScatterNdMax", "The larger of parts.")
    scatter_nd_min = scattering.of_elements("ScatterNdMin", "The smaller of parts.")
    scatter_nd_update = scattering.of_elements("ScatterNdUpdate", "Replaces parts.")

    def batch_scatter_update(self, sparse_delta, use_locking=False, name=None):
        """Puts slices in the place of rows, in each part of a batch its own."""
        given = conversion.convert_to_tensor(sparse_delta.indices)
        indices, values = slices.batch_indices(given), sparse_delta.values
        return self._changed(
            "ScatterNdUpdate", indices, values, use_locking=use_locking, name=name
        )

    def __getitem__(self, key):
        part = self._snapshot[key]
        part.assign = functools.partial(self._assign_part, key)
        return part

    def _assign_part(self, key, value, name=None):
        return slices.assign_part_of_reference(self._reference, key, value, name)

    @staticmethod
    def from_proto(variable_def, import_scope=None):
        """The variable of a VariableDef, whose nodes the default graph has."""
        return late.variable_from_proto(variable_def, import_scope)

    def to_proto(self, export_scope=None):
        """The variable as a VariableDef; None where it is not under `export_scope`."""
        return late.variable_to_proto(self, export_scope)
