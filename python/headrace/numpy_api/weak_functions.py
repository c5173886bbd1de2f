"""Public functions in the modes "all" and "safe": dtypes promoted, weak results.

Functions that have no row here get plain tensors in place of weak ones.
"""

import functools
import inspect

import numpy as np

from headrace import _names
from headrace._load import _headrace
from headrace.framework import dispatch, variables
from headrace.numpy_api import promotion
from headrace.numpy_api.weak_tensor import WeakTensor, plain, weakened

# Weak where their first argument is, or is Python's numbers.
_UNARY = """
    math.abs math.acos math.acosh math.asin math.asinh math.atan math.atanh math.cos
    math.cosh math.exp math.floor math.negative math.round math.sigmoid math.sign
    math.sin math.sinh math.sqrt math.square math.tan math.tanh math.angle
    math.bessel_i0 math.bessel_i0e math.bessel_i1 math.bessel_i1e math.ceil math.conj
    math.digamma math.erf math.erfc math.erfcinv math.erfinv math.expm1 math.imag
    math.lgamma math.log math.log1p math.log_sigmoid math.ndtri math.real
    math.reciprocal math.reciprocal_no_nan math.rint math.rsqrt math.softplus
    math.reduce_logsumexp math.reduce_max math.reduce_mean math.reduce_min
    math.reduce_prod math.reduce_sum math.reduce_euclidean_norm math.reduce_std
    math.reduce_variance nn.log_softmax nn.gelu nn.leaky_relu nn.relu6 nn.silu
    math.special.bessel_j0 math.special.bessel_j1 math.special.bessel_k0
    math.special.bessel_k0e math.special.bessel_k1 math.special.bessel_k1e
    math.special.bessel_y0 math.special.bessel_y1 math.special.dawsn
    math.special.expint math.special.fresnel_cos math.special.fresnel_sin
    math.special.spence linalg.diag linalg.diag_part linalg.matrix_transpose
    linalg.tensor_diag_part linalg.trace expand_dims identity ones_like reshape squeeze
    stop_gradient transpose zeros_like
"""
# Their first two arguments take the dtype that they have together.
_BINARY = """
    math.add math.subtract math.multiply math.divide math.truediv realdiv truncatediv
    truncatemod math.floordiv math.floormod math.pow math.divide_no_nan
    math.multiply_no_nan linalg.matmul linalg.matvec math.scalar_mul
"""
# The same, with a result that is never weak.
_BINARY_PLAIN = "math.maximum math.minimum math.equal"
_TERNARY = "clip_by_value"

OPERANDS = (
    *(_headrace.Tensor, _headrace.VariableBase, WeakTensor, np.ndarray, np.generic),
    *(int, float, complex, str, bytes, list, tuple, range),
)


def joined_operands(*operands):
    """(dtype, weak) of operands, or None where they are no arrays or numbers, or the table
    does not have their dtypes: then the function itself says what is wrong with them."""
    if not all(isinstance(x, OPERANDS) for x in operands):
        return None
    try:
        return promotion.joined(*operands)
    except NotImplementedError:
        return None


def as_operand(x, dtype):
    """An operand as a plain tensor of the dtype."""
    x = plain(x)
    if not isinstance(x, (_headrace.Tensor, _headrace.VariableBase)):
        kind = promotion.joined(x)[0] if isinstance(x, OPERANDS) else None
        if kind is not None and kind != dtype and not kind.is_floating:
            x = _headrace.to_tensor(x, kind, None)
        else:
            return _headrace.to_tensor(x, dtype, None)
    return x if x.dtype == dtype else _headrace.raw_op("Cast")(x=x, DstT=dtype)


class _Promoting:
    """A public function whose first arguments are promoted before it is called."""

    def __init__(self, name, count, keeps_weak=True):
        self.row = _names.row_of(name)
        self.function = _names.public(name)
        parameters = list(inspect.signature(self.function).parameters)
        self._names, self._keeps_weak = parameters[:count], keeps_weak
        self._dtype = parameters.index("dtype") if "dtype" in parameters else None
        functools.update_wrapper(self, self.function)

    def __call__(self, *args, **kwargs):
        operands = [*args[: len(self._names)]]
        named = [n for n in self._names[len(operands) :] if n in kwargs]
        operands += [kwargs[n] for n in named]
        found = None
        if promotion.is_new() and len(operands) == len(self._names):
            found = joined_operands(*operands)
        if found is None or len(operands) == 1 and not found[1]:
            args = [plain(x) for x in args]
            return self.function(*args, **{k: plain(v) for k, v in kwargs.items()})
        dtype, weak = found
        operands = [as_operand(x, dtype) for x in operands]
        count = len(operands) - len(named)
        kwargs.update(zip(named, operands[count:]))
        rest = [plain(x) for x in args[count:]]
        result = self.function(*operands[:count], *rest, **kwargs)
        weak = weak and self._keeps_weak and not self._told_dtype(args, kwargs)
        return weakened(result) if weak else result

    def _told_dtype(self, args, kwargs):
        if self._dtype is None:
            return False
        given = args[self._dtype] if len(args) > self._dtype else kwargs.get("dtype")
        return given is not None


_constant = _names.public("constant")


@functools.wraps(_constant)
def constant(value, dtype=None, shape=None, name="Const"):
    found = None
    if promotion.is_new() and dtype is None:
        found = joined_operands(value)
    if dtype is not None and isinstance(value, WeakTensor):
        value = promotion.tf.cast(value.tensor, dtype)
    result = _constant(plain(value), dtype, shape, name)
    return weakened(result) if found is not None and found[1] else result


def _assigning(name):
    """An assignment of variables, whose dtype stands."""
    method = getattr(variables.Variable, name)

    @functools.wraps(method)
    def assign(self, value, *args, **kwargs):
        found = joined_operands(self, value) if promotion.is_new() else None
        if found is None:
            return method(self, plain(value), *args, **kwargs)
        if found[0] != self.dtype:
            dtype = str(self.dtype)
            value = plain(value)
            raise TypeError(
                f"Variable dtype is immutable. Calling {name} of Variable (with dtype "
                f"{dtype}) on {value} requires converting {value} to {dtype}. This is "
                "disabled in the current promotion semantics. Please convert "
                f"{value} manually before calling {name}."
            )
        return method(self, as_operand(value, self.dtype), *args, **kwargs)

    return assign


@functools.cache
def install():
    """Puts the functions in the place of the public ones, once and for ever."""
    rows = [_Promoting(name, 1) for name in _UNARY.split()]
    rows += [_Promoting(name, 2) for name in _BINARY.split()]
    rows += [_Promoting(name, 2, keeps_weak=False) for name in _BINARY_PLAIN.split()]
    rows.append(_Promoting(_TERNARY, 3))
    functions = {made.row: made for made in rows}
    dispatch.call_instead(WeakTensor, functions)
    for row, made in functions.items():
        outer = _headrace.dispatched(made, row)
        dispatch.stands_for(outer, made.function)
        _names.replace(row, outer)
    _names.replace(_names.row_of("constant"), constant)
    for name in ("assign", "assign_add", "assign_sub"):
        setattr(variables.Variable, name, _assigning(name))
