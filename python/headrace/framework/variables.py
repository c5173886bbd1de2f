"""tf.Variable."""

import contextlib
import functools
import operator as o
import threading
import weakref

from headrace._load import _headrace, raw
from headrace.context import late, sessions, stack, strategies
from headrace.context.properties import read_only
from headrace.framework import (
    conversion,
    devices,
    dtypes,
    execution,
    indexed_slices,
    name_scopes,
    slices,
    tensor,
    tensor_shape,
)
from headrace.framework.support import plain_scalars, scattering, signatures
from headrace.framework.support.save_slice_info import SaveSliceInfo
from headrace.framework.support.variable_modes import (
    VariableAggregation,
    VariableSynchronization,
    mode_of,
)
from headrace.framework.tensor import div, numpy_text, rdiv
from headrace.framework.trackable import Trackable

_NOT_EAGER = "This operation is not supported when eager execution is enabled."
_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


_by_handle = weakref.WeakValueDictionary()  # handle id -> Variable


def of_handle(handle):
    """The variable of a handle that a tape watched."""
    return _by_handle.get(handle._id)


def whole_of(value):
    """The variable of a strategy that a variable is a copy of; None for others."""
    reference = getattr(value, "_copy_of", None)
    return None if reference is None else reference()


def wholes(found):
    """A tuple of variables, those of strategies in the place of their copies."""
    kept = {}
    for v in found:
        whole = whole_of(v)
        v = v if whole is None else whole
        kept[v._key] = v
    return tuple(kept.values())


class _Creators(threading.local):
    """Those of tf.variable_creator_scope that hold in this thread, innermost last."""

    def __init__(self):
        self.scopes = []
        self.taker = None  # who keeps first values in the variables' place


_creators = strategies.carry(_Creators())


@contextlib.contextmanager
def first_values_to(taker):
    """Variables made inside keep no first values: taker(tensor) gets them."""
    before, _creators.taker = _creators.taker, taker
    try:
        yield
    finally:
        _creators.taker = before


@contextlib.contextmanager
def variable_creator_scope(variable_creator):
    """Variables that this thread makes inside are made by
    `variable_creator(next_creator, **kwargs)`."""
    scopes = _creators.scopes
    scopes.append(variable_creator)
    try:
        yield
    finally:
        # From behind: a creator may be in force twice.
        del scopes[len(scopes) - 1 - scopes[::-1].index(variable_creator)]


class _VariableType(type):
    """Calling tf.Variable goes through the creators in force."""

    def __call__(cls, *args, **kwargs):
        if cls is Variable:
            return _create(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def __instancecheck__(cls, instance):
        if cls is Variable:
            # One of TensorFlow 1's is known by its reference.
            return isinstance(instance, _headrace.VariableBase) or hasattr(
                type(instance), "_reference_node"
            )
        return super().__instancecheck__(instance)


def _link(creator, following):
    def call(next_creator=None, **kwargs):
        return creator(following, **kwargs)

    return call


def check_arguments(initial_value, variable_def, constraint):
    """What variables of all kinds ask of their arguments."""
    if initial_value is None:
        raise ValueError(
            "The `initial_value` arg to `tf.Variable` must be specified except when "
            "you are not providing a `variable_def`. You provided neither."
        )
    if variable_def is not None:
        raise NotImplementedError("tf.Variable: variable_def is not supported")
    if constraint is not None and not callable(constraint):
        raise ValueError(
            f"Argument `constraint` must be None or a callable. a callable. Got a "
            f"{type(constraint)}:  {constraint}"
        )


def trains(trainable, synchronization):
    """Whether a variable is trained: where nobody says it, those that replicas may
    have values of their own of are not."""
    if trainable is None:
        return synchronization != VariableSynchronization.ON_READ
    return bool(trainable)


class Variable(_headrace.VariableBase, Trackable, metaclass=_VariableType):
    """A tensor that assignments change; shared by reference, found by tapes.

    A class of the user's may stand for another variable: it does not call __init__, has
    the other's `handle`, gives what it reads as `value()`, and for checkpoints
    `_serialize_to_tensors` and `_restore_from_tensors`.
    """

    SaveSliceInfo = SaveSliceInfo

    _device = _CPU
    _runner = None  # of functions that captured it, whose value lies elsewhere

    def __init__(
        self,
        initial_value=None,
        trainable=None,
        validate_shape=True,
        caching_device=None,
        name=None,
        variable_def=None,
        dtype=None,
        import_scope=None,
        constraint=None,
        synchronization=VariableSynchronization.AUTO,
        aggregation=VariableAggregation.NONE,
        shape=None,
    ):
        check_arguments(initial_value, variable_def, constraint)
        if type(synchronization) is not VariableSynchronization:
            kind = VariableSynchronization
            synchronization = mode_of(kind, synchronization, "synchronization", name)
        trainable = trains(trainable, synchronization)
        self._constraint = constraint
        self._synchronization = synchronization
        if type(aggregation) is not VariableAggregation:
            aggregation = mode_of(VariableAggregation, aggregation, "aggregation", name)
        self._aggregation = aggregation
        dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self._begin(initial_value, name, dtype, shape, validate_shape, bool(trainable))

    def _begin(self, initial_value, name, dtype, shape, validate_shape, trainable):
        """Makes the handle, of which the variable has its first value."""
        value = initial_value() if callable(initial_value) else initial_value
        if isinstance(value, _headrace.VariableBase):
            value = value._read()
        value = conversion.convert_to_tensor(value, dtype=dtype)
        shape = self._declared_shape(value, shape)
        base = "Variable" if name is None else name
        self._shared_name = name_scopes.current() + base.rstrip("/")
        handle = raw.VarHandleOp(
            dtype=value.dtype, shape=shape, shared_name=self._resource_name()
        )
        self._device = devices.placed()
        self._set_up(handle, value.dtype, shape, trainable)
        _by_handle[handle._id] = self
        self._initialize(value)

    def _resource_name(self):
        return "cd2c89b7-88b7-44c8-ad83-06c2a9158347"  # upstream's "anonymous"

    def _initialize(self, value):
        (self._assign if _creators.taker is None else _creators.taker)(value)

    @staticmethod
    def _declared_shape(value, shape):
        if shape is None:
            return value.shape
        if not value.shape.is_compatible_with(shape):
            raise ValueError(
                f"In this `tf.Variable` creation, the initial value's shape "
                f"({value.shape}) is not compatible with the explicitly supplied `shape` "
                f"argument ({shape})."
            )
        return tensor_shape.as_shape(shape)

    @property
    def name(self):
        """The name with ":0" behind it."""
        return self._shared_name + ":0"

    @property
    def device(self):
        """The name of the device that it was placed on: another logical device of this
        machine has its value in the same memory."""
        return self._device

    constraint = read_only(
        "_constraint", "The function that optimizers apply to new values, or None."
    )

    @property
    def synchronization(self):
        """The VariableSynchronization it was made with; kept, but one device has no
        copies.
        """
        return self._synchronization

    @property
    def aggregation(self):
        """The VariableAggregation it was made with; kept,
        but one device has no copies."""
        return self._aggregation

    _handle = read_only("handle")
    _key = read_only("handle._id")  # of dicts: one for all copies of a variable
    graph = read_only("handle.graph", "The graph that has the handle.")
    op = read_only("handle.op", "The operation that makes the handle.")

    @property
    def create(self):
        """The operation that makes the variable: only graphs have one,
        so RuntimeError."""
        raise RuntimeError(_NOT_EAGER)

    @property
    def initializer(self):
        """The operation that gives the first value; None outside of graphs."""
        return None

    @property
    def initial_value(self):
        """The first value; RuntimeError outside of graphs."""
        raise RuntimeError(
            "This property is not supported when eager execution is enabled."
        )

    @property
    def _unique_id(self):
        return f"{self._shared_name}_{self.handle._id}"

    def get_shape(self):
        """The shape: a TensorShape."""
        return self.shape

    _shape = read_only("shape")
    ndim = read_only(
        "shape.rank",
        "The number of dimensions, None where the declared shape has no known rank.",
    )

    def is_initialized(self, name=None):
        """Whether it has a value: a bool tensor."""
        return raw.VarIsInitializedOp(self.handle, name=name)

    def value(self):
        """The value now: a tensor."""
        return self._read()

    def read_value(self):
        """The value now, read after what the control dependencies say: a tensor."""
        return raw.Identity(self._read())

    def read_value_no_copy(self):
        """The value now, as value() gives it: a tensor that may share the variable's
        memory.
        """
        return self._read()

    def initialized_value(self):
        """The value now."""
        return self.read_value()

    def numpy(self):
        """The value as an array of its own; NotImplementedError in graphs."""
        if not _headrace.is_eager():
            raise NotImplementedError(
                "numpy() is only available when eager execution is enabled."
            )
        value = raw.ReadVariableOp(self.handle, dtype=self._stored_dtype)
        return plain_scalars.plain(value.numpy())

    def eval(self, session=None):
        """The value in a session."""
        execution.only_in_graphs(_NOT_EAGER)
        return self._read().eval(session=session)

    # --- assignments ---

    def _change(self, native, op, value, name):
        """Changes the value; in graphs by an operation of that name, if it is given."""
        by_op = name is not None and not _headrace.is_eager()
        self._change_by(op, value, name=name) if by_op else native(value)

    def _change_by(self, op, value, **attributes):
        value = conversion.convert_to_tensor(value, self._stored_dtype)
        if not value.shape.is_compatible_with(self.shape):
            raise ValueError(
                f"Cannot assign value to variable ' {self.name}': Shape mismatch."
                f"The variable shape {self.shape}, and the assigned value shape "
                f"{value.shape} are incompatible."
            )
        _headrace.raw_op(op)(resource=self.handle, value=value, **attributes)

    def _assigned(self, read_value):
        if _headrace.is_eager():
            return self._alias(_UnreadVariable) if read_value else None
        graph = stack.current()
        op = graph._last_operation()  # to be waited for
        if not read_value:
            return op
        if graph.keeps_effects:  # what reads later is ordered by itself
            made = self._alias(_UnreadVariable)
            made._assigned_by = op
            return made
        with graph.control_dependencies([op]):
            return self._read()

    def assign(self, value, use_locking=None, name=None, read_value=True):
        """Gives the variable a value of a compatible shape (ValueError else).

        The value is cast from Python and NumPy, not from tensors of other dtypes.
        Returns the variable, or nothing with read_value=False.
        """
        self._change(self._assign, "AssignVariableOp", value, name)
        return self._assigned(read_value)

    def assign_add(self, delta, use_locking=None, name=None, read_value=True):
        """Adds to the value; `delta` has its shape and dtype.
        Returns as assign() does."""
        self._change(self._assign_add, "AssignAddVariableOp", delta, name)
        return self._assigned(read_value)

    def assign_sub(self, delta, use_locking=None, name=None, read_value=True):
        """Takes from the value; `delta` has its shape and dtype. Returns as assign()
        does.
        """
        self._change(self._assign_sub, "AssignSubVariableOp", delta, name)
        return self._assigned(read_value)

    @staticmethod
    def _check_slices(sparse_delta):
        if not isinstance(sparse_delta, indexed_slices.IndexedSlices):
            raise TypeError(
                "Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg: "
                f"{sparse_delta}"
            )

    def _scatter(self, op, sparse_delta, name):
        self._check_slices(sparse_delta)
        _headrace.raw_op(op)(
            resource=self.handle,
            indices=sparse_delta.indices,
            updates=conversion.convert_to_tensor(
                sparse_delta.values, self._stored_dtype
            ),
            name=name,
        )
        return self._assigned(True)

    scatter_add = scattering.of_rows(
        "ResourceScatterAdd",
        "Adds slices to rows: tf.IndexedSlices of [n, ...] at indices [n].",
    )
    scatter_sub = scattering.of_rows(
        "ResourceScatterSub",
        "Takes slices from rows: tf.IndexedSlices of [n, ...] at indices [n].",
    )
    scatter_mul = scattering.of_rows("ResourceScatterMul", "Multiplies rows by slices.")
    scatter_div = scattering.of_rows("ResourceScatterDiv", "Divides rows by slices.")
    scatter_max = scattering.of_rows(
        "ResourceScatterMax", "The larger of rows and slices, element by element."
    )
    scatter_min = scattering.of_rows(
        "ResourceScatterMin", "The smaller of rows and slices, element by element."
    )
    scatter_update = scattering.of_rows(
        "ResourceScatterUpdate",
        """Puts slices in the place of rows: tf.IndexedSlices of [n, ...] at [n].

        InvalidArgumentError for indices out of range, TypeError for what is no
        IndexedSlices.
        """,
    )

    def batch_scatter_update(self, sparse_delta, use_locking=False, name=None):
        """Puts slices in the place of rows, in each part of a batch its own."""
        self._check_slices(sparse_delta)
        indices = conversion.convert_to_tensor(sparse_delta.indices)
        return self.scatter_nd_update(
            slices.batch_indices(indices), sparse_delta.values, name
        )

    def _scatter_nd(self, op, indices, updates, name):
        _headrace.raw_op(op)(
            ref=self.handle,
            indices=indices,
            updates=conversion.convert_to_tensor(updates, self._stored_dtype),
            name=name,
        )
        return self._assigned(True)

    scatter_nd_add = scattering.of_elements(
        "ResourceScatterNdAdd",
        "Adds updates [..., rest] at places indices [..., depth].",
    )
    scatter_nd_sub = scattering.of_elements(
        "ResourceScatterNdSub", "Takes updates from the elements at those places."
    )
    scatter_nd_update = scattering.of_elements(
        "ResourceScatterNdUpdate",
        "Puts updates [..., rest] at places indices [..., depth].",
    )
    scatter_nd_max = scattering.of_elements(
        "ResourceScatterNdMax", "The larger of updates and what is there."
    )
    scatter_nd_min = scattering.of_elements(
        "ResourceScatterNdMin", "The smaller of updates and what is there."
    )

    def sparse_read(self, indices, name=None):
        """The rows at those indices, [*indices.shape, ...],
        without reading the rest."""
        self._touch()
        dtype = self._stored_dtype
        found = raw.ResourceGather(self.handle, indices, dtype=dtype, name=name)
        return self._as_read(found)

    def _as_read(self, x):
        """What ops read, cast as reads are."""
        return raw.Cast(x, DstT=self.dtype) if self._is_cast else x

    def gather_nd(self, indices, name=None):
        """The slices at places indices [..., depth], without reading the rest."""
        self._touch()
        dtype = self._stored_dtype
        found = raw.ResourceGatherNd(self.handle, indices, dtype=dtype, name=name)
        found = self._as_read(found)
        if _headrace.is_eager():
            return found
        return raw.Identity(found)  # as upstream's graphs have it

    def count_up_to(self, limit):
        """The value; then one more, an OutOfRangeError where that is the limit."""
        return raw.ResourceCountUpTo(self.handle, limit=limit, T=self._stored_dtype)

    def set_shape(self, shape):
        """Checks that the declared shape fits `shape`; ValueError where it does not.

        The declared shape stays as it is.
        """
        self.shape.merge_with(shape)

    def load(self, value, session=None):
        """Sets the value, of a graph's variable by a session."""
        if _headrace.is_eager():
            self.assign(value)
            return
        session = sessions.of_checkpoint(session)
        session.run(self.initializer, {self.initializer.inputs[1]: value})

    # --- Python's protocols ---

    def ref(self):
        """What sets and dicts may hold: equal where the variable is the same."""
        return tensor.Reference(self)

    experimental_ref = ref

    def __repr__(self):
        dtype = self._stored_dtype.name
        head = f"<tf.Variable '{self.name}' shape={self.shape} dtype={dtype}"
        if not _headrace.is_eager():
            return head + ">"
        return f"{head}, numpy={self._value_text()}>"

    def _value_text(self):
        try:
            text = numpy_text(self._read(), is_repr=True)
        except Exception:
            return "<unavailable>"
        return "\n" + text if "\n" in text else text

    def __hash__(self):
        if not _headrace.tensor_equality():
            return id(self)
        raise TypeError(
            "Variable is unhashable. Instead, use variable.ref() as the key. "
            f"(Variable: {self!r})"
        )

    __div__, __rdiv__ = div, rdiv

    def __array__(self, dtype=None, copy=None):
        return self._read().__array__(dtype, copy)

    def __dlpack__(self, **kwargs):
        return self._read().__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return (1, 0)

    def __format__(self, spec):
        return format(self._read(), spec) if spec else str(self)

    def __getitem__(self, key):
        part = _part_of(self.value(), key)
        part.assign = functools.partial(self._assign_part, key)
        return part

    def _assign_part(self, key, value, name=None):
        slices.assign_part(self, key, value, name)
        return self._assigned(True)

    def __copy__(self):
        return self.__deepcopy__({})

    def __deepcopy__(self, memo):
        copy = ResourceVariable(
            initial_value=self._read(),
            trainable=self.trainable,
            constraint=self._constraint,
            dtype=self._stored_dtype,
            name=self._shared_name,
            synchronization=self._synchronization,
            aggregation=self._aggregation,
            shape=self.shape,
        )
        copy._is_cast = self._is_cast
        memo[id(self)] = copy
        return copy

    def __reduce__(self):
        return _rebuild, (
            self.numpy(),
            self.trainable,
            self._stored_dtype.name,
            self._shared_name,
        )

    def __tf_tensor__(self, dtype=None, name=None):
        return self.value()

    __array_priority__ = 100


# Variables are indexed as tensors are at first, also where these get NumPy's ways.
_part_of = _headrace.Tensor.__getitem__


@signatures.taking(
    [
        *signatures.parameters_of(Variable.__init__)[1:],
        signatures.parameter("experimental_enable_variable_lifting", True),
        signatures.parameter("per_worker_variable", False),
    ]
)
def _create(**kwargs):
    def make(next_creator=None, **kwargs):
        kwargs.pop("experimental_enable_variable_lifting", None)
        per_worker = kwargs.pop("per_worker_variable", False)
        if callable(per_worker):  # a strategy's that has several
            return per_worker(**kwargs)
        in_graph = stack.plain_graph() is not None
        if in_graph and kwargs.get("variable_def") is not None:
            return _of_definition(kwargs)
        return (late.GraphVariable if in_graph else ResourceVariable)(**kwargs)

    if not kwargs["per_worker_variable"]:
        del kwargs["per_worker_variable"]  # creators see it where it says something
    return by_creators(make, kwargs)


def by_creators(make, kwargs):
    """The variable that the creators in force make of what make(**kwargs) does."""
    chain = make
    for creator in _creators.scopes:
        chain = _link(creator, chain)
    return chain(**kwargs)


def _of_definition(given):
    """The variable that a VariableDef says, of nodes that the graph has."""
    if given.get("initial_value") is not None:
        raise ValueError(
            "The creation of a variable takes `variable_def` or `initial_value`, but "
            "not both of them."
        )
    proto = given["variable_def"]
    if not proto.is_resource:
        raise ValueError(
            "The `variable_def` you passed to `tf.Variable` is Trying to restore a TF "
            "1.x Reference Variable as a TF 2.x ResourceVariable. This is unsupported. "
            f"Got variable_def={proto}"
        )
    return late.variable_from_proto(proto, given.get("import_scope"))


def _refused_in_place(name, plain):
    """What `variable += value` and its like do."""
    method = {"+": "assign_add", "-": "assign_sub"}.get(plain, "assign")
    argument = "value" if method != "assign" else f"variable {plain} value"

    def refuse(self, other):
        raise RuntimeError(
            f"`variable {plain}= value` with `tf.Variable`s is not supported. Use "
            f"`variable.{method}({argument})` to modify the variable, or `out = "
            f"variable {plain} value` if you need to get a new output Tensor."
        )

    refuse.__name__ = name
    return refuse


def _rebuild(value, trainable, dtype, name):
    return ResourceVariable(
        initial_value=value, trainable=trainable, dtype=dtype, name=name
    )


class ResourceVariable(Variable):
    """What tf.Variable makes."""

    def _serialize_to_tensors(self):
        """{name: tensor} of what checkpoints keep, for classes that stand for it."""
        return {"VARIABLE_VALUE": self.value()}

    def _restore_from_tensors(self, restored_tensors):
        """Assigns what _serialize_to_tensors gave."""
        return self.assign(restored_tensors["VARIABLE_VALUE"])

    def _export_to_saved_model_graph(self, object_map, tensor_map, options, **kwargs):
        """Tells classes that stand for it by which tensors functions know it: those of
        the list. A SavedModel's graph has no objects of Python, so that each object
        stands for itself."""
        del options, kwargs
        object_map[self] = self
        tensor_map[self.handle] = self.handle
        return [self.handle]


class _UnreadVariable(ResourceVariable):
    """A variable as its assignments return it: reading gives the value now."""

    _assigned_by = None  # the operation, in graphs

    @property
    def name(self):
        return self._assigned_by.name if self._assigned_by else "UnreadVariable"

    op = read_only("_assigned_by")
    _shared_name = read_only("_parent._shared_name")
    _constraint = read_only("_parent._constraint")
    _synchronization = read_only("_parent._synchronization")
    _aggregation = read_only("_parent._aggregation")


def _binary(operator):
    def forward(self, other):
        return operator(self.value(), other)

    def reverse(self, other):
        return operator(other, self.value())

    return forward, reverse


def _of_value(function):
    def convert(self):
        return function(self._read())

    convert.__name__ = convert.__qualname__ = f"__{function.__name__}__"
    return convert


def _add_operators():
    for name in "add sub mul truediv floordiv mod pow matmul and or xor".split():
        forward, reverse = _binary(getattr(o, f"__{name}__"))
        setattr(Variable, f"__{name}__", forward)
        setattr(Variable, f"__r{name}__", reverse)
    for name in ("lt", "le", "gt", "ge"):
        setattr(Variable, f"__{name}__", _binary(getattr(o, name))[0])
    for name in ("neg", "abs", "invert"):
        function = getattr(o, name)
        setattr(Variable, f"__{name}__", lambda self, f=function: f(self.value()))
    for function in (complex, int, float, bool, len, iter, o.index):
        setattr(Variable, f"__{function.__name__}__", _of_value(function))

    in_place = {"add": "+", "sub": "-", "mul": "*"}
    in_place |= {"truediv": "/", "floordiv": "//", "pow": "**"}
    for name, plain in in_place.items():
        name = f"__i{name}__"
        setattr(Variable, name, _refused_in_place(name, plain))

    def equals(self, other):
        if not _headrace.tensor_equality():
            return self is other
        return other is not None and self._read() == other

    def differs(self, other):
        if not _headrace.tensor_equality():
            return self is not other
        return other is None or self._read() != other

    Variable.__eq__ = equals
    Variable.__ne__ = differs


_add_operators()


class _Argument(ResourceVariable):
    """A variable as an argument of a function being traced."""

    def __init__(self, handle, spec, name):
        self._shared_name = name
        self._constraint = None
        self._synchronization = VariableSynchronization.AUTO
        self._aggregation = VariableAggregation.NONE
        self._set_up(handle, spec.dtype, spec.shape, spec.trainable)


_MOST_LIKE = 256
_like = {}  # (shape, dtype) -> a handle that describes such a variable


# The attribute of placeholders that says what the user called them.
USER_NAME = "_user_specified_name"


def traced_argument(graph, spec, name, out, user_name):
    """The variable that stands for an argument; an input for it goes to `out`.

    Arguments that are one variable are one inside too.
    """
    key = (spec.shape._dims, spec.dtype)
    if key not in _like:
        if len(_like) >= _MOST_LIKE:
            _like.clear()
        with stack.entering(None):
            _like[key] = raw.VarHandleOp(
                dtype=spec.dtype, shape=spec.shape, shared_name=f"like {key}"
            )
    handle = graph._core.placeholder(
        name, dtypes.resource, [], _like[key], {USER_NAME: user_name}
    )
    out.append(handle)
    if spec.alias_id is None:
        return _Argument(handle, spec, name)
    if spec.alias_id not in graph.variable_arguments:
        graph.variable_arguments[spec.alias_id] = _Argument(handle, spec, name)
    return graph.variable_arguments[spec.alias_id]
