"""tf.Tensor: what Python adds to the native tensor types."""

import sys

import numpy as np

from headrace import _names
from headrace._load import _headrace
from headrace.context import call_stacks, late
from headrace.context.errors import OperatorNotAllowedInGraphError
from headrace.framework import dtypes, tensor_shape
from headrace.framework.settings import logging

Tensor = _headrace.Tensor
EagerTensor = _headrace.EagerTensor
SymbolicTensor = _headrace.SymbolicTensor

_CPU = "/job:localhost/replica:0/task:0/device:CPU:"
_ADVICE = (
    " is not allowed. You can attempt the following resolutions to the problem: If you "
    "are running in Graph mode, use Eager execution mode or decorate this function with "
    "@tf.function. If you are using AutoGraph, you can try decorating this function "
    "with @tf.function. If that does not work, then you may be using an unsupported "
    "feature or your source code may not be visible to AutoGraph. See "
    "https://github.com/tensorflow/tensorflow/blob/master/tensorflow/python/autograph/"
    "g3doc/reference/limitations.md#access-to-source-code for more information."
)


class Reference:
    """A hashable reference to a tensor or variable: equal when it is the same."""

    __slots__ = ("__weakref__", "_wrapped")

    def __init__(self, wrapped):
        self._wrapped = wrapped

    def deref(self):
        """The tensor or variable itself."""
        return self._wrapped

    def _key(self):
        wrapped = self._wrapped
        return wrapped._id if isinstance(wrapped, Tensor) else id(wrapped)

    def __eq__(self, other):
        if not isinstance(other, Reference):
            return NotImplemented
        return self._key() == other._key()

    def __lt__(self, other):
        return self._key() < self._key_of(other)

    def __gt__(self, other):
        return self._key() > self._key_of(other)

    @staticmethod
    def _key_of(other):
        if not isinstance(other, Reference):
            raise TypeError("Cannot compare wrapped object with unwrapped object")
        return other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"<Reference wrapping {self._wrapped!r}>"


def numpy_text(tensor, is_repr=False):
    """The value as it stands in a tensor's repr or str."""
    dtype = tensor.dtype
    if dtype.is_numpy_compatible:
        value = tensor._numpy_view() if tensor._rank() else tensor.numpy()
        if not is_repr:
            return str(value)
        if isinstance(value, np.generic):
            return repr(value.item())
        return repr(value)
    text = _headrace.describe_objects(tensor)
    return text


def _repr(self):
    text = numpy_text(self, is_repr=True)
    sep = "\n" if "\n" in text else ""
    return (
        f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, "
        f"{'numpy' if self.dtype.is_numpy_compatible else 'value'}={sep}{text}>"
    )


def _str(self):
    text = numpy_text(self)
    sep = "\n" if "\n" in text else ""
    return f"tf.Tensor({sep}{text}, shape={self.shape}, dtype={self.dtype.name})"


def _format(self, spec):
    return format(self.numpy(), spec)


def _iter(self):
    shape = self.shape
    if shape.rank == 0:
        raise TypeError("Cannot iterate over a scalar tensor.")
    if shape.rank is None or shape[0] is None:
        raise ValueError(f"Cannot infer argument `num` from shape {shape}")
    unpack = _headrace.raw_op("Unpack")
    return iter(unpack(value=self, num=shape[0], axis=0, name="unstack"))


def _array(self, dtype=None, copy=None):
    if not self.dtype.is_numpy_compatible:
        raise ValueError(
            f"Cannot convert a Tensor of dtype {self.dtype!r} to a NumPy array."
        )
    view = self._numpy_view()
    if dtype is not None and view.dtype != dtype:
        return view.astype(dtype)
    return view.copy() if copy else view


def _set_shape(self, shape):
    """Checks that the shape fits `shape`; ValueError where it does not."""
    if not self.shape.is_compatible_with(shape):
        raise ValueError(
            f"Tensor's shape {self.shape} is not compatible with supplied shape "
            f"{tensor_shape.as_shape(shape)}."
        )


def _undefined(what):
    def get(self):
        raise AttributeError(
            f"Tensor.{what} is undefined when eager execution is enabled."
        )

    return property(get, doc=f"Only tensors of graphs have {what}: AttributeError.")


def _complex(self):
    return complex(self.numpy())


def _deepcopy(self, memo):
    copy = _headrace.make_tensor(self.numpy(), self.dtype)
    memo[id(self)] = copy
    return copy


def _rebuild(value, dtype):
    return _headrace.make_tensor(value, dtypes.as_dtype(dtype))


def _reduce(self):
    return _rebuild, (self.numpy(), self.dtype.name)


def _to_dlpack(self, **kwargs):
    return self._numpy_view().__dlpack__(**kwargs)


def _eval(self, feed_dict=None, session=None):
    """Only tensors of graphs are evaluated by sessions: NotImplementedError."""
    raise NotImplementedError(
        "eval is not supported when eager execution is enabled, is .numpy() what "
        "you're looking for?"
    )


def _consumers(self):
    """Only graphs know the consumers of a tensor: NotImplementedError."""
    raise NotImplementedError(
        "Tensor.consumers is undefined when eager execution is enabled."
    )


def _get_shape(self):
    """The static shape, as `shape` has it: a tf.TensorShape."""
    return self.shape


def _ref(self):
    """A hashable stand-in, for sets and keys; its deref() gives the tensor."""
    return Reference(self)


def _device(self):
    """The name of the logical CPU that the tensor was made on, or of the device of
    another task that has it."""
    return _headrace.remote_device(self) or f"{_CPU}{getattr(self, '_processor', 0)}"


def _cpu(self):
    """A tensor of the same memory on the first logical CPU."""
    with _names.public("device")("/device:CPU:0"):
        return _headrace.raw_op("Identity")(input=self)


_divisions = set()  # places that were told to use `/`


def _divides_whole(tensor):
    """Whether Python 2's `/` of that tensor gave whole numbers; warns of it."""
    advice = "Deprecated in favor of operator or tf.math.divide."
    logging.warn_deprecated("div", advice, _divisions)
    return not (tensor.dtype.is_floating or tensor.dtype.is_complex)


def div(self, other):
    """What `/` was in Python 2: of whole numbers the floor of the quotient."""
    return self // other if _divides_whole(self) else self / other


def rdiv(self, other):
    """`other / self` as __div__ has it."""
    return other // self if _divides_whole(self) else other / self


def _attach(cls, members):
    for name, member in members.items():
        setattr(cls, name, member)


_attach(
    Tensor,
    {
        "__doc__": """An array of one dtype that does not change.

    Eager tensors hold their value, see numpy(); those of a graph stand for one that a
    run gives. Operators work element by element and broadcast as NumPy's do; a Python
    number takes the tensor's dtype, tensors of different dtypes raise an error.
    """,
        "__array_priority__": 100,
        "_USE_EQUALITY": True,
        "ndim": property(lambda self: self._rank(), doc="The number of dimensions."),
        "get_shape": _get_shape,
        "ref": _ref,
        "experimental_ref": _ref,
        "__tf_tensor__": lambda self, dtype=None, name=None: self,
        "__div__": div,
        "__rdiv__": rdiv,
        # What programs wrap, by these names, in classes that stand for a tensor.
        "OVERLOADABLE_OPERATORS": {
            f"__{name}__"
            for name in (
                "abs add and div eq floordiv ge getitem gt invert le lt matmul mod mul "
                "ne neg or pow radd rand rdiv rfloordiv rmatmul rmod rmul ror rpow rsub "
                "rtruediv rxor sub truediv xor"
            ).split()
        },
    },
)
_attach(
    EagerTensor,
    {
        "__doc__": "A tensor with its value, in the memory of the CPU.",
        "__repr__": _repr,
        "__str__": _str,
        "__format__": _format,
        "__iter__": _iter,
        "__array__": _array,
        "__complex__": _complex,
        "__copy__": lambda self: self,
        "__deepcopy__": _deepcopy,
        "__reduce__": _reduce,
        "__dlpack__": _to_dlpack,
        "__dlpack_device__": lambda self: (1, 0),
        "set_shape": _set_shape,
        "device": property(_device),
        "backing_device": property(_device),
        "graph": _undefined("graph"),
        "name": _undefined("name"),
        "op": _undefined("op"),
        "value_index": _undefined("value_index"),
        "is_packed": False,
        "eval": _eval,
        "consumers": _consumers,
        "cpu": _cpu,
        "_numpy": lambda self: self.numpy(),
        "_copy": lambda self, ctx=None, device_name=None: self,
        "_shape_tuple": lambda self: tuple(self.shape),
    },
)


def _symbolic_repr(self):
    return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self.dtype.name}>"


def _symbolic_str(self):
    shape = self.shape
    text = f", shape={shape}" if shape.rank is not None else ""
    return f'Tensor("{self.name}"{text}, dtype={self.dtype.name})'


def _symbolic_set_shape(self, shape):
    """Narrows the static shape by what `shape` knows; ValueError where they differ.

    Nothing is checked when the graph runs.
    """
    self._set_shape(tensor_shape.as_shape(shape))


def _not_in_graphs(what):
    """The error of Python's control flow on a tensor of a graph: what stands in the way
    of converting the user's function, where that is known."""
    frame = sys._getframe(2)
    while frame is not None and call_stacks.is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    text = what + _ADVICE
    if frame is not None:
        code = frame.f_code
        reason = late.why_unconverted(code)
        if reason is not None:
            text += (
                f'\n\nFile "{code.co_filename}", line {frame.f_lineno}, in '
                f"{code.co_name} ran as it is: {reason}"
            )
    return OperatorNotAllowedInGraphError(text)


def _tensor_iter(self):
    """The rows of an eager tensor; the error of one of a graph."""
    return type(self).__iter__(self)


def _symbolic_bool(self):
    raise _not_in_graphs("Using a symbolic `tf.Tensor` as a Python `bool`")


def _symbolic_iter(self):
    raise _not_in_graphs("Iterating over a symbolic `tf.Tensor`")


def _symbolic_len(self):
    raise TypeError(
        f"len is not well defined for a symbolic Tensor ({self.name}). Please call "
        "`x.shape` rather than `len(x)` for shape information."
    )


def _symbolic_array(self, dtype=None, copy=None):
    raise NotImplementedError(
        f"Cannot convert a symbolic tf.Tensor ({self.name}) to a numpy array. This "
        "error may indicate that you're trying to pass a Tensor to a NumPy call, which "
        "is not supported."
    )


_attach(
    Tensor,
    {
        # Asked of the class itself: programs hand them to classes of their own.
        "__bool__": _symbolic_bool,
        "__nonzero__": _symbolic_bool,
        "__iter__": _tensor_iter,
        "__len__": _symbolic_len,
        "__array__": _symbolic_array,
        "_shape_tuple": lambda self: (
            None if self.shape.rank is None else tuple(self.shape)
        ),
    },
)
_attach(
    SymbolicTensor,
    {
        "__doc__": """An output of a graph's operation, without a value before a run.

    It is no bool, cannot be iterated over and is no NumPy array.
    """,
        "__repr__": _symbolic_repr,
        "__str__": _symbolic_str,
        "__bool__": _symbolic_bool,
        "__iter__": _symbolic_iter,
        "__len__": _symbolic_len,
        "__array__": _symbolic_array,
        "set_shape": _symbolic_set_shape,
        "__copy__": lambda self: self,
        "__deepcopy__": lambda self, memo: self,
    },
)


def is_symbolic_tensor(tensor):
    """True for tensors of graphs, whose values only a run knows."""
    return isinstance(tensor, _headrace.SymbolicTensor)


def is_tensor(x):
    """True for tensors, variables, ragged and sparse tensors and IndexedSlices."""
    if isinstance(x, Tensor) or isinstance(x, _headrace.VariableBase):
        return True
    return getattr(type(x), "_is_tensor_like", False)
