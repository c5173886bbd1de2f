"""Weak tensors: their dtype gives way to that of what they are computed with."""

import operator

from headrace import _api as tf
from headrace._load import _headrace
from headrace._names import public
from headrace.autograph import loops
from headrace.framework import dispatch, tensor
from headrace.framework.errors import InvalidArgumentError
from headrace.framework.extension import batches
from headrace.numpy_api import promotion


class WeakTensor(batches.BatchableExtensionType):
    """A tensor whose dtype was not asked for: that of Python's numbers.

    With values of a dtype that was asked for it takes theirs, as the table of
    `promotion.py` has it. `tensor` is the plain tensor of the same values; attributes
    that a weak tensor has not are the plain one's. TypeError for dtypes that Python's
    numbers never have: weak are int32, int64, float32, float64 and complex128.
    """

    __name__ = "tf.WeakTensor"
    tensor: tf.Tensor

    is_tensor_like = property(lambda self: True, doc="True.")
    dtype = property(lambda self: self.tensor.dtype, doc="The tf.DType.")
    shape = property(lambda self: self.tensor.shape, doc="The tf.TensorShape.")
    ndim = property(lambda self: self.tensor.ndim, doc="The number of dimensions.")

    def __validate__(self):
        if self.tensor.dtype not in promotion.WEAK:
            allowed = ", ".join(f"tf.{d.name}" for d in promotion.WEAK)
            raise TypeError(
                f"{self.tensor.dtype} not allowed as a weak type. The allowed types are "
                f"({allowed})."
            )

    @classmethod
    def from_tensor(cls, tensor):
        """The weak tensor of a plain one; InvalidArgumentError for what is none."""
        tensor = plain(tensor)
        if not isinstance(tensor, _headrace.Tensor):
            raise InvalidArgumentError(
                None,
                None,
                "WeakTensor can only be constructed from tf.Tensor or tf.WeakTensor, but "
                f"{type(tensor)} was given.",
            )
        is_eager = isinstance(tensor, _headrace.EagerTensor)
        return (EagerWeakTensor if is_eager else GraphWeakTensor)(tensor)

    def to_tensor(self):
        """The plain tensor."""
        return self.tensor

    def __getattr__(self, name):
        return getattr(self.__dict__["tensor"], name)

    def __tf_tensor__(self, dtype=None, name=None):
        return tf.convert_to_tensor(self.tensor, dtype, name=name)

    def _shape_invariant_to_type_spec(self, shape):
        return type(self).Spec(tf.TensorSpec(shape, self.dtype))

    def _gradient_from(self, gradients):
        (gradient,) = gradients
        return None if gradient is None else weakened(gradient)

    def _value_of(self, values):
        return values[0]  # of a fetch of sessions, as a tensor's

    def _fed(self, value):
        return [value]

    def __repr__(self):
        return f"{repr(self.tensor)[:-1]}, weak=True>"

    def __str__(self):
        return f"{str(self.tensor)[:-1]}, weak=True)"

    def __format__(self, spec):
        return f"{format(self.tensor, spec)} weakly typed"

    def __hash__(self):
        return hash(self.tensor)

    def __bool__(self):
        return bool(self.tensor)

    def __array__(self, dtype=None, copy=None):
        return self.tensor.__array__(dtype)

    def __iter__(self):
        if not isinstance(self.tensor, _headrace.EagerTensor):
            raise tensor._not_in_graphs("Iterating over a symbolic `tf.WeakTensor`")
        return map(WeakTensor.from_tensor, iter(self.tensor))

    def __getitem__(self, key):
        return self.tensor[key]

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return WeakTensor.from_tensor(self.tensor.__deepcopy__(memo))

    def __reduce__(self):
        return WeakTensor.from_tensor, (self.tensor,)

    __array_priority__ = 120


class EagerWeakTensor(WeakTensor):
    """A weak tensor as eager code makes it."""

    __name__ = "tf.EagerWeakTensor"


class GraphWeakTensor(WeakTensor):
    """A weak tensor as graphs make it."""

    __name__ = "tf.GraphWeakTensor"


def plain(x):
    """The plain tensor of a weak one; anything else as it is."""
    return x.tensor if isinstance(x, WeakTensor) else x


def weakened(x):
    """A result as a weak tensor where its dtype may be weak."""
    if isinstance(x, _headrace.Tensor) and x.dtype in promotion.WEAK:
        return WeakTensor.from_tensor(x)
    return x


# --- Operators, each of which is its public function.

_BINARY = """
    add=math.add sub=math.subtract mul=math.multiply truediv=math.truediv
    floordiv=math.floordiv mod=math.floormod pow=math.pow matmul=linalg.matmul
"""
_COMPARISONS = """
    lt=math.less le=math.less_equal gt=math.greater ge=math.greater_equal
"""
_UNARY = "neg=math.negative abs=math.abs"


def _rows(table):
    return [row.split("=") for row in table.split()]


def _operator(name, path):
    """The public function; its node in a graph is named like the operator."""
    return lambda x, y: public(path)(x, y, name=None if _headrace.is_eager() else name)


def _add_operators():
    for name, path in _rows(_BINARY):
        forward = lambda x, y, op=_operator(name, path): op(x, y)
        reflected = lambda x, y, op=_operator(name, path): op(y, x)
        setattr(WeakTensor, f"__{name}__", forward)
        setattr(WeakTensor, f"__r{name}__", reflected)
    for name, path in _rows(_COMPARISONS):
        compare = lambda self, other, path=path: public(path)(self, other)
        setattr(WeakTensor, f"__{name}__", compare)
    for name, path in _rows(_UNARY):
        setattr(WeakTensor, f"__{name}__", lambda self, path=path: public(path)(self))
    for name in ("and_", "or_", "xor"):
        of = getattr(operator, name)
        name = name.rstrip("_")
        forward = lambda self, other, of=of: of(self.tensor, plain(other))
        reflected = lambda self, other, of=of: of(other, self.tensor)
        setattr(WeakTensor, f"__{name}__", forward)
        setattr(WeakTensor, f"__r{name}__", reflected)
    for function in (int, float, complex, len, operator.index):
        convert = lambda self, of=function: of(self.tensor)
        setattr(WeakTensor, f"__{function.__name__}__", convert)
    WeakTensor.__invert__ = lambda self: weakened(~self.tensor)
    WeakTensor.__eq__ = lambda self, other: _equals(self, other)
    WeakTensor.__ne__ = lambda self, other: self.tensor != plain(other)


def _equals(x, other):
    if other is None or not _headrace.tensor_equality():
        return x is other
    return public("math.equal")(x, other)


_add_operators()
WeakTensor._is_weak_tensor = WeakTensor._is_tensor_like = True


def _loop_over(iterable, extra_test, body, state, opts):
    """A loop of converted code, over weak elements."""
    weak = lambda x: body(weakened(x))
    loops.for_stmt(iterable.tensor, extra_test, weak, *state, opts)
    return True


loops.register_iterable(WeakTensor, _loop_over)

# Functions that know nothing of weak tensors get plain ones.
dispatch.convert_first(WeakTensor, plain)
