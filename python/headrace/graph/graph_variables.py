"""Variables of a plain graph: a session runs their initializers and reads."""

import functools

from headrace._load import _headrace, raw
from headrace.context import late, sessions, stack
from headrace.context.properties import read_only
from headrace.framework import (
    conversion,
    dtypes,
    slices,
    tensor,
    tensor_shape,
    variables,
)
from headrace.graph import initial_values
from headrace.graph.graph_keys import GraphKeys


def _initial(graph, value, dtype):
    """The first value as a tensor of the graph."""
    if not callable(value):
        return _to_tensor(value, dtype)
    with graph.name_scope("Initializer"):
        return _to_tensor(value(), dtype)


def _to_tensor(value, dtype):
    if isinstance(value, _headrace.VariableBase):
        value = value._read()
    elif isinstance(value, RefVariable):
        value = value.value()
    return conversion.convert_to_tensor(value, dtype=dtype, name="initial_value")


def _collect(graph, variable, keys, trainable):
    keys = [GraphKeys.GLOBAL_VARIABLES] if keys is None else list(keys)
    trained = GraphKeys.TRAINABLE_VARIABLES
    if trainable and trained not in keys:
        keys.append(trained)
    graph.add_to_collections(keys, variable)


class _MayBeSlice:
    """A variable that may be a part of a larger one, as savers then see it."""

    _save_slice_info = None

    def _set_save_slice_info(self, save_slice_info):
        """Makes it the part that a SaveSliceInfo says."""
        self._save_slice_info = save_slice_info

    def _get_save_slice_info(self):
        return self._save_slice_info


class GraphVariable(_MayBeSlice, variables.ResourceVariable):
    """A variable whose handle is a node. As upstream in graphs, it equals only itself
    and so may be a key, as in feeds."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__
    __ne__ = object.__ne__

    def __init__(self, *args, collections=None, **kwargs):
        self._collections = collections
        super().__init__(*args, **kwargs)

    def _begin(self, initial_value, name, dtype, shape, validate_shape, trainable):
        graph = stack.current()
        with (
            graph.control_dependencies(None),
            graph.name_scope(name or "Variable") as scope,
        ):
            with graph.name_scope("Initializer"):
                value = initial_value() if callable(initial_value) else initial_value
                value = _to_tensor(value, dtype)
            if shape is not None or validate_shape:
                shape = self._declared_shape(value, shape)
            else:
                shape = tensor_shape.TensorShape(None)
            self._make(graph, scope, value, shape, trainable)
        _collect(graph, self, self._collections, trainable)

    def _make(self, graph, scope, value, shape, trainable):
        """Adds the nodes: handle, whether it has a value, first value, read."""
        self._shared_name = scope.rstrip("/")
        self._initial_value = value
        handle = raw.VarHandleOp(
            dtype=value.dtype, shape=shape, shared_name=self._shared_name, name=scope
        )
        self._set_up(handle, value.dtype, shape, trainable)
        variables._by_handle[handle._id] = self
        with graph.name_scope("IsInitialized"):
            raw.VarIsInitializedOp(handle)
        raw.AssignVariableOp(handle, value, name=f"{scope}Assign/")
        self._initializer = graph._last_operation()
        with graph.name_scope("Read"):
            self._value = self._read()

    def _graph_element(self):
        return self._value

    def _restored_from(self, prefix, key):
        """A checkpoint that was restored has the value of `key` for this."""
        late.restored_from(self, prefix, key)

    def _starts_with(self, operation):
        """That operation gives it its first value."""
        self._initializer = operation
        self._initial_value = operation.inputs[1]

    def to_proto(self, export_scope=None):
        """The VariableDef that names the variable's nodes, without `export_scope` before
        them; None for a variable outside of that scope."""
        return late.variable_proto(self, export_scope)

    initializer = read_only(
        "_initializer", "The operation that gives it its first value."
    )
    create = read_only("_initializer")
    initial_value = read_only("_initial_value")

    def initialized_value(self):
        """The value, the first one where it has none yet."""
        if self._initial_value is None:
            raise ValueError("The variable has no initial value.")
        return late.cond(
            self.is_initialized(), self.read_value, lambda: self._initial_value
        )

    def eval(self, session=None):
        return self._value.eval(session=session)

    def load(self, value, session=None):
        """Assigns the value in `session`."""
        session = sessions.of(session, self.graph, "operation", "load()")
        feed = {self.initializer.inputs[1]: value}
        session.run(self.initializer, feed)

    def _assigned(self, read_value):
        """The value after the operation just made, or that operation."""
        op = stack.current()._last_operation()
        if not read_value:
            return op
        with stack.current().control_dependencies([op]):
            return self._read()

    device = read_only("handle.device")

    def __deepcopy__(self, memo):
        raise NotImplementedError(
            "__deepcopy__() is only available when eager execution is enabled."
        )


class RefVariable(_MayBeSlice):
    """TensorFlow 1's variable: operations take it by reference."""

    def __init__(
        self,
        initial_value=None,
        trainable=None,
        collections=None,
        validate_shape=True,
        name=None,
        variable_def=None,
        dtype=None,
        constraint=None,
        shape=None,
        synchronization=variables.VariableSynchronization.AUTO,
        aggregation=variables.VariableAggregation.NONE,
        **unsupported,
    ):
        variables.check_arguments(initial_value, variable_def, constraint)
        graph = stack.current()
        if trainable is None:
            trainable = synchronization != variables.VariableSynchronization.ON_READ
        self.trainable = bool(trainable)
        self.synchronization, self.aggregation = synchronization, aggregation
        self.constraint = constraint
        dtype = None if dtype is None else dtypes.as_dtype(dtype)
        with (
            graph.control_dependencies(None),
            graph.name_scope(name or "Variable") as scope,
        ):
            value = _initial(graph, initial_value, dtype)
            declared = value.shape if validate_shape else tensor_shape.TensorShape(None)
            if shape is not None:
                declared = tensor_shape.as_shape(shape)
            self.initial_value = value
            self._reference = raw.VariableV2(
                shape=declared, dtype=value.dtype, name=scope
            )
            self.initializer = raw.Assign(
                self._reference,
                initial_values.guarded(scope.rstrip("/"), value),
                validate_shape=validate_shape,
                name=f"{scope}Assign/",
            ).op
            self._snapshot = raw.Identity(self._reference, name=f"{scope}read/")
        _collect(graph, self, collections, self.trainable)

    dtype = read_only("_reference.dtype")
    shape = read_only("_reference.shape")

    def get_shape(self):
        return self.shape

    name = read_only("_reference.name")

    @property
    def _shared_name(self):
        return self.name.rpartition(":")[0]

    op = read_only("_reference.op")
    graph = read_only("_reference.graph")
    device = read_only("_reference.device")

    def value(self):
        return self._snapshot

    def read_value(self):
        return raw.Identity(self._reference, name="read")

    to_proto, load = GraphVariable.to_proto, GraphVariable.load

    def initialized_value(self):
        """The value, the first one where it has none yet."""
        if self.initial_value is None:
            raise ValueError("The variable has no initial value.")
        return late.cond(
            raw.IsVariableInitialized(self._reference),
            self.read_value,
            lambda: self.initial_value,
        )

    def _ref(self):
        return self._reference

    def _reference_node(self):
        self._self_node = _headrace.new_reference_node(
            self, self._shared_name, self.dtype.base_dtype, self.shape
        )
        return self._self_node

    _restored_from = GraphVariable._restored_from

    def _starts_with(self, operation):
        """That operation gives it its first value."""
        self.initializer, self.initial_value = operation, operation.inputs[1]

    def _as_graph_element(self):
        return self._reference

    def eval(self, session=None):
        return self._reference.eval(session=session)

    def __tf_tensor__(self, dtype=None, name=None):
        return self._snapshot

    def _update(self, op, value, use_locking, name, read_value):
        result = _headrace.raw_op(op)(
            ref=self._reference, value=value, use_locking=use_locking, name=name
        )
        return result if read_value else result.op

    def assign(self, value, use_locking=False, name=None, read_value=True):
        return self._update("Assign", value, use_locking, name, read_value)

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        return self._update("AssignAdd", delta, use_locking, name, read_value)

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        return self._update("AssignSub", delta, use_locking, name, read_value)

    def ref(self):
        return tensor.Reference(self)

    def __getitem__(self, key):
        part = self._snapshot[key]
        part.assign = functools.partial(self._assign_part, key)
        return part

    def _assign_part(self, key, value, name=None):
        return slices.assign_part(self, key, value, name, reference=self._reference)

    def __iter__(self):
        raise TypeError("'Variable' object is not iterable.")

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other

    def __repr__(self):
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    __array_priority__ = 100


def _add_operators():
    names = "add sub mul truediv floordiv mod pow matmul and or xor".split()
    names = [prefix + n for n in names for prefix in ("", "r")]
    for name in names + ["lt", "le", "gt", "ge"]:

        def binary(self, other, method=f"__{name}__"):
            return getattr(self._snapshot, method)(other)

        setattr(RefVariable, f"__{name}__", binary)
    for name in ("neg", "abs", "invert"):

        def unary(self, method=f"__{name}__"):
            return getattr(self._snapshot, method)()

        setattr(RefVariable, f"__{name}__", unary)


_add_operators()
