"""tf.experimental.numpy.random"""

import numpy as np

from headrace import _api as tf
from headrace.numpy_api import arrays, promotion
from headrace.numpy_api.weak_tensor import plain


def seed(s):
    """Sets the seed of all random numbers, tf.random's too; ValueError for what is no
    integer."""
    try:
        s = int(s)
    except TypeError:
        raise ValueError(
            f"Argument `s` got an invalid value {s}. Only integers are supported."
        ) from None
    tf.random.set_seed(s)


def _sizes(size):
    if size is None:
        return ()
    return (size,) if isinstance(size, (int, np.integer)) else size


def randn(*args):
    """Normally distributed numbers of a shape."""
    return standard_normal(size=args)


def standard_normal(size=None):
    """Normally distributed numbers, of the mean 0 and the deviation 1."""
    return tf.random.normal(_sizes(size), dtype=promotion.default_float())


def rand(*size):
    """Numbers from 0 to 1, of a shape."""
    return uniform(0, 1, size)


def random(size=None):
    """Numbers from 0 to 1."""
    return uniform(0, 1, size)


def uniform(low=0.0, high=1.0, size=None):
    """Numbers from low to high; without a size of the shape that these have together."""
    dtype = promotion.default_float()
    low, high = (plain(arrays.as_array(x, dtype)) for x in (low, high))
    if size is None:
        size = tf.broadcast_dynamic_shape(tf.shape(low), tf.shape(high))
    drawn = tf.random.uniform(_sizes(size), dtype=dtype)
    return low + (high - low) * drawn


def poisson(lam=1.0, size=None):
    """Numbers of events, of which there are `lam` on average: [*size, *shape of lam]."""
    lam = plain(arrays.floating(lam))
    return tf.random.poisson(_sizes(size), lam, dtype=tf.int64)


def randint(low, high=None, size=None, dtype=np.int64):
    """Integers from low to below high, or from 0 to below low.

    ValueError for dtypes other than int32 and int64.
    """
    low = int(low)
    if high is None:
        low, high = 0, low
    wanted = promotion.as_dtype(np.int64 if dtype is int else dtype)
    if wanted not in (tf.int32, tf.int64):
        raise ValueError(
            f"Argument `dtype` got an invalid value {dtype}. Only those convertible to "
            "(<class 'numpy.int32'>, <class 'numpy.int64'>) are supported."
        )
    return tf.random.uniform(_sizes(size), minval=low, maxval=high, dtype=wanted)
