"""Functions of tf.experimental.numpy that work element by element."""

import builtins
import math

from headrace import _api as tf
from headrace._names import public
from headrace.numpy_api import arrays, promotion
from headrace.numpy_api.arrays import as_array, floating, numpy_arrays
from headrace.numpy_api.weak_tensor import plain


def _of(convert):
    """Functions of one array, which `convert` makes of the argument."""
    return lambda path: lambda x: public(path)(convert(x))


def _of_two(convert):
    return lambda path: lambda x1, x2: public(path)(*convert(x1, x2))


def _two_by_kind(path):
    """Functions of two arrays with another one for booleans: "add,logical_or"."""
    path, of_bools = path.split(",")

    def call(x1, x2):
        x1, x2 = numpy_arrays(x1, x2)
        return public(of_bools if x1.dtype == tf.bool else path)(x1, x2)

    return call


def _compared(path):
    def call(x1, x2):
        x1, x2 = numpy_arrays(x1, x2)
        if x1.dtype == tf.bool:
            x1, x2 = tf.cast(x1, tf.uint8), tf.cast(x2, tf.uint8)
        return public(path)(x1, x2)

    return call


def _bools(*values):
    return [as_array(x, tf.bool) for x in values]


def _whole(*values):
    """Arrays for divisions, which have none of booleans."""
    made = numpy_arrays(*values)
    return [tf.cast(x, tf.int8) if x.dtype == tf.bool else x for x in made]


def _both_floating(*values):
    return [floating(x) for x in arrays.as_arrays(*values)]


def _quotients(*values):
    x1, x2 = numpy_arrays(*values)
    if x1.dtype == tf.bool:
        wanted = promotion.default_float()
        return tf.cast(x1, wanted), tf.cast(x2, wanted)
    return x1, x2


arrays.add_functions(
    globals(),
    """
any(x) abs absolute=abs fabs=abs conj=math.conj conjugate=math.conj negative
any(x) positive=identity square reciprocal=math.reciprocal real=math.real
floating(x) arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan=atan
floating(x) arctanh=atanh cos cosh sin sinh tan tanh exp expm1=math.expm1 log=math.log
floating(x) log1p=math.log1p sqrt ceil=math.ceil floor isfinite=math.is_finite
floating(x) isnan=math.is_nan
two(x1,x2) subtract power=pow float_power=pow
whole(x1,x2) floor_divide=math.floordiv mod=math.floormod remainder=math.floormod
quotients(x1,x2) divide=truediv true_divide=truediv
by_kind(x1,x2) add=add,logical_or multiply=multiply,logical_and
by_kind(x1,x2) maximum=maximum,logical_or minimum=minimum,logical_and
by_kind(x1,x2) bitwise_and=bitwise.bitwise_and,logical_and
by_kind(x1,x2) bitwise_or=bitwise.bitwise_or,logical_or
by_kind(x1,x2) bitwise_xor=bitwise.bitwise_xor,math.logical_xor
compared(x1,x2) equal not_equal greater greater_equal less less_equal
bools(x1,x2) logical_and logical_or logical_xor=math.logical_xor
both_floating(x1,x2) arctan2=atan2 nextafter=math.nextafter
""",
    {
        "any": _of(as_array),
        "floating": _of(floating),
        "two": _of_two(numpy_arrays),
        "whole": _of_two(_whole),
        "quotients": _of_two(_quotients),
        "by_kind": _two_by_kind,
        "compared": _compared,
        "bools": _of_two(_bools),
        "both_floating": _of_two(_both_floating),
    },
)


def divmod(x1, x2):
    """(x1 // x2, x1 % x2)"""
    x1, x2 = _whole(x1, x2)
    return tf.math.floordiv(x1, x2), tf.math.floormod(x1, x2)


def bitwise_not(x):
    """The bits inverted; of booleans the opposite."""
    x = as_array(x)
    return tf.logical_not(x) if x.dtype == tf.bool else arrays.of_kind(~x, x.dtype)


def logical_not(x):
    """The opposite of the truth of each element."""
    return tf.logical_not(as_array(x, tf.bool))


def imag(val):
    """The imaginary parts; of real values zeros."""
    val = as_array(val)
    return tf.math.imag(val) if val.dtype.is_complex else tf.zeros_like(val)


def real(val):
    """The real parts."""
    return tf.math.real(as_array(val))


def angle(z, deg=False):
    """The angles of complex values, in radians or, with `deg`, in degrees."""
    z = floating(z)
    found = tf.math.angle(z)
    return found * (180 / math.pi) if deg else found


def sign(x, out=None, where=None, **kwargs):
    """-1, 0 or 1, as the sign is; of complex values x / |x|. ValueError for the other
    arguments."""
    if out is not None or where is not None:
        name = "where" if out is None else "out"
        raise ValueError(f"tf.numpy doesnt support setting {name}.")
    if kwargs:
        raise ValueError(f"tf.numpy doesnt support setting {kwargs.keys()}")
    return tf.sign(as_array(x))


def signbit(x):
    """Whether values are below zero."""
    x = as_array(x)
    if x.dtype == tf.bool:
        return tf.zeros_like(x)
    return tf.less(plain(x), tf.zeros([], x.dtype))


def exp2(x):
    """2 to the power of x, element by element, in floats."""
    x = floating(x)
    return tf.pow(tf.constant(2, x.dtype), x)


def log2(x):
    """The logarithm to the base 2."""
    return tf.math.log(floating(x)) / math.log(2)


def log10(x):
    """The logarithm to the base 10."""
    return tf.math.log(floating(x)) / math.log(10)


def cbrt(x):
    """The cubic root, negative where x is."""
    x = floating(x)
    return tf.sign(x) * tf.pow(tf.abs(x), 1 / 3)


def sinc(x):
    """sin(pi x) / (pi x), and 1 at 0."""
    x = floating(x) * math.pi
    at_zero = tf.equal(plain(x), 0)
    one = tf.ones_like(plain(x))
    safe = tf.where(at_zero, one, plain(x))
    made = tf.where(at_zero, one, tf.sin(safe) / safe)
    return arrays.weakened(made) if isinstance(x, arrays.WeakTensor) else made


def deg2rad(x):
    """Degrees in radians."""
    return floating(x) * (math.pi / 180)


def rad2deg(x):
    """Radians in degrees."""
    return floating(x) * (180 / math.pi)


def fix(x):
    """The integer next to x in the direction of 0."""
    x = floating(x)
    made = tf.where(tf.less(plain(x), 0), plain(tf.math.ceil(x)), plain(tf.floor(x)))
    return arrays.weakened(made) if isinstance(x, arrays.WeakTensor) else made


def heaviside(x1, x2):
    """0 where x1 < 0, x2 where it is 0, 1 where it is larger."""
    x1, x2 = (floating(x) for x in numpy_arrays(x1, x2))
    zero, one = tf.zeros([], x1.dtype), tf.ones([], x1.dtype)
    return tf.where(x1 < zero, zero, tf.where(x1 > zero, one, x2))


def hypot(x1, x2):
    """sqrt(x1**2 + x2**2)"""
    x1, x2 = _both_floating(x1, x2)
    return tf.sqrt(tf.square(x1) + tf.square(x2))


def logaddexp(x1, x2):
    """log(exp(x1) + exp(x2)), without an overflow in between."""
    x1, x2 = (floating(x) for x in numpy_arrays(x1, x2))
    larger = tf.maximum(x1, x2)
    distance = x1 - x2
    apart = tf.math.log1p(tf.exp(-tf.abs(distance)))
    # Two infinities have no distance: their sum is what they are.
    return tf.where(tf.math.is_nan(distance), x1 + x2, larger + apart)


def logaddexp2(x1, x2):
    """log2(2**x1 + 2**x2), without an overflow in between."""
    ln2 = math.log(2)
    x1, x2 = (floating(x) for x in numpy_arrays(x1, x2))
    return logaddexp(x1 * ln2, x2 * ln2) / ln2


def polyval(p, x):
    """The polynomial with coefficients p, the highest power's first, at x."""
    p, x = numpy_arrays(p, x)
    if p.shape.rank is None:
        raise ValueError("The number of coefficients must be known.")
    result = tf.zeros_like(x)
    for coefficient in tf.unstack(p):
        result = result * x + coefficient
    return result


def around(a, decimals=0):
    """Values rounded to `decimals` places, half to even; negative ones count before the
    point."""
    a = as_array(a)
    if decimals == 0:
        return tf.round(a)
    inexact, scale = floating(a), 10.0 ** builtins.abs(decimals)
    if decimals > 0:
        made = tf.round(inexact * scale) / scale
    else:
        made = tf.round(inexact / scale) * scale
    return arrays.of_kind(made, a.dtype)


def round(a, decimals=0):
    """Values rounded to `decimals` places, half to even."""
    return around(a, decimals)


def clip(a, a_min, a_max):
    """Values moved to the nearer bound where they are beyond it.

    The dtype is that which all have together. ValueError where both bounds are None.
    """
    if a_min is None and a_max is None:
        raise ValueError("Not more than one of `a_min` and `a_max` may be `None`.")
    given = [x for x in (a, a_min, a_max) if x is not None]
    made = arrays.plain_arrays(*given)
    if a_max is not None:
        made[0] = tf.minimum(made[0], made.pop())
    return tf.maximum(*made) if a_min is not None else made[0]


def isinf(x):
    """Whether values are infinite."""
    return _if_inexact(x, tf.math.is_inf)


def isposinf(x):
    """Whether values are the positive infinity."""
    return _if_inexact(x, lambda x: tf.logical_and(tf.math.is_inf(x), x > 0))


def isneginf(x):
    """Whether values are the negative infinity."""
    return _if_inexact(x, lambda x: tf.logical_and(tf.math.is_inf(x), x < 0))


def _if_inexact(x, holds):
    x = plain(as_array(x))
    return holds(x) if x.dtype.is_floating else tf.zeros_like(x, tf.bool)


def iscomplex(x):
    """Whether the imaginary parts are not 0."""
    return tf.not_equal(plain(imag(x)), 0)


def isreal(x):
    """Whether the imaginary parts are 0."""
    return tf.logical_not(iscomplex(x))


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether |a - b| <= atol + rtol * |b|; integers have to be equal, infinities too,
    and with `equal_nan` NaNs are."""
    a, b = numpy_arrays(a, b)
    if not (a.dtype.is_floating or a.dtype.is_complex):
        return tf.equal(a, b)
    real = a.dtype.real_dtype
    tolerance = tf.cast(atol, real) + tf.cast(rtol, real) * tf.abs(b)
    finite = tf.math.is_finite(tf.abs(a) + tf.abs(b))
    near = tf.logical_and(finite, tf.abs(a - b) <= tolerance)
    near = tf.logical_or(near, tf.equal(a, b))
    if equal_nan:
        near = tf.logical_or(near, tf.logical_and(_is_nan(a), _is_nan(b)))
    return near


def _is_nan(x):
    return tf.not_equal(x, x)


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether isclose is true of all elements."""
    return tf.reduce_all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1, a2):
    """Whether the arrays have the same shape and elements."""
    a1, a2 = numpy_arrays(a1, a2)
    if not a1.shape.is_compatible_with(a2.shape):
        return tf.constant(False)
    if a1.shape.is_fully_defined() and a2.shape.is_fully_defined():
        return tf.reduce_all(tf.equal(a1, a2))
    return tf.cond(
        _same_shape(a1, a2),
        lambda: tf.reduce_all(tf.equal(a1, a2)),
        lambda: tf.constant(False),
    )


def _same_shape(a1, a2):
    ranks = tf.equal(tf.rank(a1), tf.rank(a2))
    sizes = lambda: tf.reduce_all(tf.equal(tf.shape(a1), tf.shape(a2)))
    return tf.cond(ranks, sizes, lambda: tf.constant(False))


def _whole_numbers(name, x1, x2):
    x1, x2 = numpy_arrays(x1, x2)
    if not x1.dtype.is_integer:
        raise ValueError(f"Arguments to {name} must be integers.")
    sizes = tf.broadcast_dynamic_shape(tf.shape(x1), tf.shape(x2))
    return tf.broadcast_to(x1, sizes), tf.broadcast_to(x2, sizes)


def gcd(x1, x2):
    """The greatest common divisors; ValueError for what are no integers."""
    x1, x2 = _whole_numbers("gcd", x1, x2)

    def step(x1, x2):
        some = tf.not_equal(x2, 0)
        rest = tf.math.floormod(x1, tf.where(some, x2, tf.ones_like(x2)))
        return tf.where(some, x2, x1), tf.where(some, rest, tf.zeros_like(x2))

    left = lambda x1, x2: tf.reduce_any(tf.not_equal(x2, 0))
    return tf.abs(tf.while_loop(left, step, (x1, x2))[0])


def lcm(x1, x2):
    """The least common multiples; ValueError for what are no integers."""
    x1, x2 = _whole_numbers("lcm", x1, x2)
    divisor = gcd(x1, x2)
    safe = tf.where(tf.equal(divisor, 0), tf.ones_like(divisor), divisor)
    return tf.abs(tf.math.floordiv(x1, safe) * x2)
