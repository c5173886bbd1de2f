"""Functions of tf.experimental.numpy that make arrays of no others' elements."""

import math

from headrace import _api as tf
from headrace.numpy_api import arrays, promotion, shaping
from headrace.numpy_api.arrays import as_array
from headrace.numpy_api.weak_tensor import WeakTensor, plain, weakened


def _made(fill, shape, dtype):
    return fill(tf.convert_to_tensor(_sizes(shape)), promotion.as_dtype(dtype))


def _sizes(shape):
    """A shape as what tf's functions take: a number is one dimension."""
    if isinstance(shape, (tf.TensorShape, list, tuple)):
        return _small(shape)
    shape = plain(as_array(shape))
    return tf.reshape(shape, [1]) if shape.shape.rank == 0 else shape


def _small(shape):
    sizes = tf.TensorShape(shape).as_list() if not _has_tensors(shape) else list(shape)
    return tf.constant(sizes, tf.int32) if all(map(_fits, sizes)) else sizes


def _has_tensors(shape):
    return not isinstance(shape, tf.TensorShape) and any(map(tf.is_tensor, shape))


def _fits(size):
    return isinstance(size, int) and size < 2**31


def zeros(shape, dtype=float):
    """Zeros of a shape; a number is the size of the one dimension."""
    return _made(tf.zeros, shape, dtype)


def ones(shape, dtype=float):
    """Ones of a shape; a number is the size of the one dimension."""
    return _made(tf.ones, shape, dtype)


def empty(shape, dtype=float):
    """Zeros of a shape, as values that nobody asks for."""
    return zeros(shape, dtype)


def _like(fill, a, dtype):
    a, dtype = as_array(a), promotion.as_dtype(dtype)
    made = fill(plain(a), dtype or a.dtype)
    return weakened(made) if dtype is None and isinstance(a, WeakTensor) else made


def zeros_like(a, dtype=None):
    """Zeros of an array's shape, and of its dtype where none is given."""
    return _like(tf.zeros_like, a, dtype)


def ones_like(a, dtype=None):
    """Ones of an array's shape, and of its dtype where none is given."""
    return _like(tf.ones_like, a, dtype)


def empty_like(a, dtype=None):
    """Zeros of an array's shape, and of its dtype where none is given."""
    return zeros_like(a, dtype)


def full(shape, fill_value, dtype=None):
    """The value, broadcast to a shape."""
    value = plain(as_array(fill_value, promotion.as_dtype(dtype)))
    return tf.broadcast_to(value, _sizes(shape))


def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None):
    """The value, broadcast to an array's shape, in its dtype where none is given.

    ValueError for the other arguments.
    """
    if order != "K":
        raise ValueError("Non-standard orders are not supported.")
    if not subok:
        raise ValueError("subok being False is not supported.")
    if shape:
        raise ValueError("Overriding the shape is not supported.")
    a, dtype = as_array(a), promotion.as_dtype(dtype)
    value = plain(as_array(fill_value, dtype or a.dtype))
    made = tf.broadcast_to(value, tf.shape(plain(a)))
    return weakened(made) if dtype is None and isinstance(a, WeakTensor) else made


def eye(N, M=None, k=0, dtype=float):
    """N rows of M columns, N where that is None, with ones on the k-th diagonal."""
    dtype, columns = promotion.as_dtype(dtype), N if M is None else M
    if not -N < k < columns:
        return tf.zeros([N, columns], dtype)
    on = tf.equal(tf.range(columns) - tf.range(N)[:, None], k)
    return tf.cast(on, dtype)


def identity(n, dtype=float):
    """n rows of n columns with ones on the diagonal."""
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    """N rows of M columns with ones on the k-th diagonal and below."""
    columns = N if M is None else M
    below = tf.less_equal(tf.range(columns) - tf.range(N)[:, None], k)
    return tf.cast(below, promotion.as_dtype(float if dtype is None else dtype))


def arange(start, stop=None, step=1, dtype=None):
    """Values from start, or 0, to stop, without that, a step apart.

    ValueError where the step is 0.
    """
    if not tf.is_tensor(step) and not step:
        raise ValueError("step must be non-zero.")
    given = [start, step] if stop is None else [start, stop, step]
    weak = False
    if dtype is None:
        dtype, weak = promotion.joined(*given)
    start, stop = (0, start) if stop is None else (start, stop)
    # Before a cast the values are exact, so that they are as many as they should be.
    start, stop, step = arrays.plain_arrays(start, stop, step)
    count = tf.cast(stop - start, tf.float64) * tf.sign(tf.cast(step, tf.float64))
    made = tf.range(start, tf.where(count > 0, stop, start), step)
    made = tf.cast(made, promotion.as_dtype(dtype))
    return weakened(made) if weak else made


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=float, axis=0):
    """`num` values from start to stop, evenly apart, along a new dimension.

    Without `endpoint` they end one step before stop; with `retstep` the step is given,
    too. The dtype is that of start and stop, at least a floating one: `dtype` is there
    for NumPy's sake. ValueError for a negative `num`.
    """
    if dtype:
        dtype = promotion.as_dtype(dtype)
    start, stop = (plain(arrays.floating(x)) for x in arrays.as_arrays(start, stop))
    if num < 0:
        raise ValueError(
            "Argument `num` (number of samples) must be a non-negative integer. "
            f"Received: num={num}"
        )
    step = math.nan
    start = tf.broadcast_to(start, _together(start, stop))
    stop = tf.broadcast_to(stop, tf.shape(start))
    steps = num - 1 if endpoint else num
    if steps > 0:
        step = (stop - start) / tf.cast(steps, start.dtype)
    made = tf.linspace(
        start, stop if endpoint or num < 1 else stop - step, num, axis=axis
    )
    return (made, step) if retstep else made


def _together(x, y):
    return tf.broadcast_dynamic_shape(tf.shape(x), tf.shape(y))


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """base to the power of what linspace gives."""
    powers = linspace(start, stop, num, endpoint, axis=axis)
    if dtype is not None:
        powers = tf.cast(powers, promotion.as_dtype(dtype))
    return tf.pow(tf.cast(base, powers.dtype), powers)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """`num` values from start to stop, each the one before times the same factor."""
    start, stop = (plain(arrays.floating(x)) for x in arrays.as_arrays(start, stop))
    if dtype is not None:
        wanted = promotion.as_dtype(dtype)
        start, stop = tf.cast(start, wanted), tf.cast(stop, wanted)
    # Of two negative numbers the powers are taken of their opposites.
    negative = tf.logical_and(start < 0, stop < 0)
    turned = tf.where(negative, -tf.ones_like(start), tf.ones_like(start))
    logarithms = (tf.math.log(start * turned), tf.math.log(stop * turned))
    made = tf.exp(linspace(*logarithms, num, endpoint, axis=0)) * turned
    return shaping.moveaxis(made, 0, axis) if axis else made


def vander(x, N=None, increasing=False):
    """Powers of a vector's elements: N of them, as many as elements where that is None,
    from the highest to the power 0, or the other way.

    ValueError where x has another rank, or N is negative.
    """
    x = as_array(x)
    if x.shape.rank not in (1, None):
        raise ValueError("x must be a one-dimensional array")
    count = tf.shape(plain(x))[0] if N is None else N
    if N is not None and N < 0:
        raise ValueError("N must be nonnegative")
    powers = tf.range(count) if increasing else tf.range(count - 1, -1, -1)
    made = tf.pow(plain(x)[:, None], tf.cast(powers, x.dtype))
    return weakened(made) if isinstance(x, WeakTensor) else made


def meshgrid(*xi, **kwargs):
    """The coordinates of a grid: of each vector an array of as many dimensions as there
    are vectors.

    `indexing` is "xy" or "ij". ValueError for `sparse`, and for a `copy` of False.
    """
    sparse, copy = kwargs.get("sparse", False), kwargs.get("copy", True)
    indexing = kwargs.get("indexing", "xy")
    if sparse:
        raise ValueError(
            "Function `meshgrid` does not support returning sparse arrays yet. Received: "
            f"sparse={sparse}"
        )
    if not copy:
        raise ValueError(
            f"Function `meshgrid` only supports copy=True. Received: copy={copy}"
        )
    return tf.meshgrid(*(plain(as_array(x)) for x in xi), indexing=indexing)
