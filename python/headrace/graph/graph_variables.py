"""Variables of a plain graph: a session runs their initializers and reads."""

import contextlib

from headrace._load import _headrace, raw
from headrace.context import late, sessions, stack
from headrace.context.properties import read_only
from headrace.framework import conversion, tensor_shape, variables
from headrace.graph.graph_keys import GraphKeys
from headrace.graph.unread_variable import _UnreadVariable


def to_tensor(value, dtype):
    """A variable's first value as a tensor of the current graph."""
    if isinstance(value, _headrace.VariableBase):
        value = value._read()
    elif hasattr(value, "_reference"):
        value = value.value()
    return conversion.convert_to_tensor(value, dtype=dtype, name="initial_value")


def collect(graph, variable, keys, trainable):
    """Puts a new variable into collections: those of `keys`, the global variables'
    where it is None, and of what is trained."""
    if keys is not None and not isinstance(keys, (list, tuple, set)):
        raise ValueError(
            "collections argument to Variable constructor must be a list, tuple, or "
            f"set. Got {keys} of type {type(keys)}"
        )
    keys = [GraphKeys.GLOBAL_VARIABLES] if keys is None else list(keys)
    trained = GraphKeys.TRAINABLE_VARIABLES
    if trainable and trained not in keys:
        keys.append(trained)
    graph.add_to_collections(keys, variable)


def check_outside(graph, value, by_function):
    """ValueError for a first value that is made within a branch or loop, unless a
    function makes it."""
    node = _headrace.node_of(value)
    inside = _headrace.output_flow_context_of(graph._core, node) is not None
    if inside and not by_function:
        raise ValueError(
            f"Initializer for variable {graph._core.scope} is from inside a control-flow "
            "construct, such as a loop or conditional. When creating a variable inside a "
            "loop or conditional, use a lambda as the initializer."
        )


def check_first(value):
    """ValueError where a variable's definition names no first value."""
    if value is None:
        raise ValueError("The variable has no initial value.")


def where_it_is_read(graph, caching_device):
    """A context of the device that keeps what is read of a variable, if one is said."""
    cached = contextlib.ExitStack()
    if caching_device is not None:
        cached.enter_context(graph.colocate_with(None, ignore_existing=True))
        if not callable(caching_device):
            cached.enter_context(graph.device(None))
        cached.enter_context(graph.device(caching_device))
    return cached


def beside_itself(graph, scope, by_function=True):
    """A variable and what makes its first value are placed together, where a function
    makes it: as the contexts around say, or as a group of the variable's name."""
    if not by_function or graph._node_attrs.get("_class"):
        return contextlib.nullcontext()
    return graph._attributes({"_class": [f"loc:@{scope.rstrip('/')}"]})


class MayBeSlice:
    """A variable that may be a part of a larger one, as savers then see it."""

    _save_slice_info = None

    def _set_save_slice_info(self, save_slice_info):
        """Makes it the part that a SaveSliceInfo says."""
        self._save_slice_info = save_slice_info

    def _get_save_slice_info(self):
        return self._save_slice_info


class GraphVariable(MayBeSlice, variables.ResourceVariable):
    """A variable whose handle is a node. As upstream in graphs, it equals only itself
    and so may be a key, as in feeds."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__
    __ne__ = object.__ne__

    def __init__(self, *args, collections=None, caching_device=None, **kwargs):
        self._collections = collections
        self._caching_device = caching_device
        super().__init__(*args, **kwargs)

    def _begin(self, initial_value, name, dtype, shape, validate_shape, trainable):
        graph = stack.current()
        with (
            graph.control_dependencies(None),
            graph.name_scope(name or "Variable") as scope,
        ):
            with graph.name_scope("Initializer"), beside_itself(graph, scope):
                value = initial_value() if callable(initial_value) else initial_value
                value = to_tensor(value, dtype)
            check_outside(graph, value, callable(initial_value))
            if shape is not None or validate_shape:
                shape = self._declared_shape(value, shape)
            else:
                shape = tensor_shape.TensorShape(None)
            self._make(graph, scope, value, shape, trainable)
        collect(graph, self, self._collections, trainable)

    def _make(self, graph, scope, value, shape, trainable):
        """Adds the nodes: handle, whether it has a value, first value, read."""
        self._initial_value = value
        self._add_nodes(graph, scope, value.dtype, shape, trainable)

    def _add_nodes(self, graph, scope, dtype, shape, trainable):
        """The same; no first value where there is none."""
        self._shared_name = scope.rstrip("/")
        with beside_itself(graph, scope):
            handle = raw.VarHandleOp(
                dtype=dtype, shape=shape, shared_name=self._shared_name, name=scope
            )
        self._set_up(handle, dtype, shape, trainable)
        variables._by_handle[handle._id] = self
        value = self._initial_value
        with graph._exactly_at(handle.device):
            with graph.name_scope("IsInitialized"):
                raw.VarIsInitializedOp(handle)
            if value is not None:
                with graph._attributes({"_class": None}):
                    raw.AssignVariableOp(handle, value, name=f"{scope}Assign/")
                self._initializer = graph._last_operation()
            cached = self._caching_device
            with graph.name_scope("Read"), where_it_is_read(graph, cached):
                self._value = raw.ReadVariableOp(handle, dtype=dtype)

    _caching_device = None

    def value(self):
        """The value: as it is kept on the caching device, or read here."""
        return super().value() if self._caching_device is None else self._value

    def _graph_element(self):
        return self._value

    def _restored_from(self, prefix, key):
        """A checkpoint that was restored has the value of `key` for this."""
        late.restored_from(self, prefix, key)

    def _starts_with(self, operation):
        """That operation gives it its first value."""
        self._initializer = operation
        self._initial_value = operation.inputs[1]

    initializer = read_only(
        "_initializer", "The operation that gives it its first value."
    )
    create = read_only("_initializer")
    initial_value = read_only("_initial_value")

    def initialized_value(self):
        """The value, the first one where it has none yet."""
        check_first(self._initial_value)
        return late.cond(
            self.is_initialized(), self.read_value, lambda: self._initial_value
        )

    def eval(self, session=None):
        return self._value.eval(session=session)

    @staticmethod
    def from_proto(variable_def, import_scope=None):
        """The variable of a VariableDef, whose nodes the default graph has."""
        return late.variable_from_proto(variable_def, import_scope)

    def to_proto(self, export_scope=None):
        """The variable as a VariableDef; None where it is not under `export_scope`."""
        return late.variable_to_proto(self, export_scope)

    def load(self, value, session=None):
        """Assigns the value in `session`."""
        session = sessions.of(session, self.graph, "operation", "load()")
        feed = {self._initializer.inputs[1]: value}
        session.run(self._initializer, feed)

    def _change(self, native, op, value, name):
        assigns = op == "AssignVariableOp"
        if assigns and self.shape.is_fully_defined() and not _headrace.is_eager():
            self._change_by(op, value, validate_shape=True, name=name)
        else:
            super()._change(native, op, value, name)

    def _assigned(self, read_value):
        """The variable behind the operation just made, or that operation."""
        graph = stack.current()
        op = graph._last_operation()
        if not read_value:
            return op
        if not graph.building_function:
            return _UnreadVariable(self, op)
        with graph.control_dependencies([op]):
            return self._read()

    device = read_only("handle.device")

    def __deepcopy__(self, memo):
        raise NotImplementedError(
            "__deepcopy__() is only available when eager execution is enabled."
        )
