"""Functions of tf.experimental.numpy that multiply arrays as vectors and matrices."""

from headrace import _api as tf
from headrace.numpy_api import arrays, shaping
from headrace.numpy_api.arrays import numpy_arrays, plain_arrays
from headrace.numpy_api.weak_tensor import plain


def matmul(x1, x2):
    """The matrix product; vectors are rows on the left and columns on the right.

    ValueError for arrays without dimensions, and for sizes that do not fit.
    """
    x1, x2 = arrays.as_arrays(x1, x2)
    ranks = x1.shape.rank, x2.shape.rank
    try:
        if ranks[1] == 1:
            return tf.tensordot(plain(x1), plain(x2), axes=1)
        if ranks[0] == 1:
            made = tf.matmul(plain(x1)[None], plain(x2))
            return tf.squeeze(made, [-2])
        return tf.matmul(x1, x2)
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(str(error)).with_traceback(error.__traceback__) from None


def _as_products(multiply):
    """Products of two arrays; a number multiplies all elements."""

    def call(a, b):
        a, b = numpy_arrays(a, b)
        if a.shape.rank == 0 or b.shape.rank == 0:
            return tf.multiply(a, b)
        return multiply(a, b)

    return call


def _dot(a, b):
    axis = -1 if arrays.static_rank(b) == 1 else -2
    return tf.tensordot(a, b, axes=[[-1], [axis]])


_dot, _inner = (
    _as_products(_dot),
    _as_products(lambda a, b: tf.tensordot(a, b, axes=[[-1], [-1]])),
)


def dot(a, b):
    """Products over the last dimension of a and the one before the last of b."""
    return _dot(a, b)


def inner(a, b):
    """Products over the last dimensions."""
    return _inner(a, b)


def outer(a, b):
    """Each element of a times each of b: a matrix."""
    a, b = (tf.reshape(x, [-1]) for x in numpy_arrays(a, b))
    return a[:, None] * b[None]


def vdot(a, b):
    """The product of all elements as vectors, those of a conjugated."""
    a, b = (tf.reshape(x, [-1]) for x in plain_arrays(a, b))
    return tf.tensordot(tf.math.conj(a), b, axes=1)


def tensordot(a, b, axes=2):
    """Products over dimensions: the last of a with the first of b, as many as a number
    says, or those that two lists name."""
    return tf.tensordot(*numpy_arrays(a, b), axes)


def kron(a, b):
    """The Kronecker product: each element of a times all of b."""
    a, b = plain_arrays(a, b)
    rank = max(arrays.static_rank(a), arrays.static_rank(b))
    sizes = []
    for x in (a, b):
        missing = [1] * (rank - arrays.static_rank(x))
        sizes.append(tf.concat([tf.cast(missing, tf.int32), tf.shape(x)], 0))
    ones = tf.ones_like(sizes[0])
    pairs = [tf.stack([sizes[0], ones], 1), tf.stack([ones, sizes[1]], 1)]
    a, b = (tf.reshape(x, tf.reshape(p, [-1])) for x, p in zip((a, b), pairs))
    return tf.reshape(a * b, sizes[0] * sizes[1])


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Vector products over dimensions of size 2 or 3, which `axis` names for all.

    The result has its vectors in `axisc`; of two vectors of size 2 it is the third
    element alone. InvalidArgumentError for other sizes.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = numpy_arrays(a, b)
    a, b = shaping.moveaxis(a, axisa, -1), shaping.moveaxis(b, axisb, -1)
    sizes = a.shape[-1], b.shape[-1]
    if not {*sizes} <= {2, 3}:
        text = f"Vectors of a cross product have 2 or 3 elements, but got {sizes}."
        raise tf.errors.InvalidArgumentError(None, None, text)
    x, y = tf.unstack(a, axis=-1), tf.unstack(b, axis=-1)
    last = x[0] * y[1] - x[1] * y[0]
    if sizes == (2, 2):
        return last
    x, y = (v if len(v) == 3 else [*v, tf.zeros_like(v[0])] for v in (x, y))
    first, second = x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2]
    return shaping.moveaxis(tf.stack([first, second, last], -1), -1, axisc)


def einsum(subscripts, *operands, **kwargs):
    """Einstein's sums, as tf.einsum has them.

    `casting` may be "safe" and `optimize` True, "greedy" or "optimal"; ValueError for
    others, and for an `order` that is none of NumPy's.
    """
    casting, optimize = kwargs.get("casting", "safe"), kwargs.get("optimize", False)
    if casting != "safe":
        raise ValueError(
            "Invalid value for argument `casting`. Expected casting='safe'. Received: "
            f"casting={casting}"
        )
    if not isinstance(optimize, bool) and optimize not in ("greedy", "optimal"):
        raise ValueError(
            "Invalid value for argument `optimize`. Expected one of {True, "
            f'"greedy", "optimal"}}. Received: optimize={optimize}'
        )
    optimize = "greedy" if isinstance(optimize, bool) else optimize
    made = plain_arrays(*operands) if operands else []
    return tf.einsum(subscripts, *made, optimize=optimize)
