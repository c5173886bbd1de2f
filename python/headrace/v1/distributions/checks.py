"""What the distributions check of their arguments, and formulas that several share."""

import hashlib
import math

import numpy as np

from headrace import _api as tf


def float_tensors(*values):
    """The values as tensors of one floating-point dtype."""
    found = tuple(tf.convert_to_tensor(value) for value in values)
    tf.debugging.assert_same_float_dtype(found)
    return found


def assert_close(x, y, message):
    """An assertion that two tensors are equal but for rounding."""
    limit = np.finfo(x.dtype.as_numpy_dtype).eps * 64
    return tf.debugging.Assert(tf.reduce_all(tf.abs(x - y) <= limit), [message + ".  "])


def whole_and_not_negative(x, negative=None):
    """Assertions that all elements are integers from 0 on."""
    negative = negative or f"'{x}' must be non-negative."
    checks = [tf.debugging.assert_non_negative(x, message=negative)]
    if not x.dtype.is_integer:
        message = f"'{x}' cannot contain fractional components."
        checks.append(tf.debugging.assert_equal(x, tf.round(x), message=message))
    return checks


def new_seed(seed, salt):
    """Another seed for a second stream of random numbers, TensorFlow's own."""
    if seed is None:
        return None
    digest = hashlib.md5((str(seed) + salt).encode()).hexdigest()
    return int(digest[:8], 16) & 0x7FFFFFFF


def log_combinations(n, counts):
    """The logarithm of the multinomial coefficient, over the last dimension."""
    return tf.math.lgamma(n + 1) - tf.reduce_sum(tf.math.lgamma(counts + 1), -1)


def logits_and_probs(logits, probs, classes, validate_args):
    """Both, of which one is given: of the last dimension's `classes`, or of yes."""
    if (probs is None) == (logits is None):
        raise ValueError("Must pass probs or logits, but not both.")
    given = "logits" if probs is None else "probs"
    tensor = tf.convert_to_tensor(logits if probs is None else probs, name=given)
    if not tensor.dtype.is_floating:
        raise TypeError(f"{given} must having floating type.")
    if classes:
        _at_least_a_vector(tensor)
    if probs is None:
        return tensor, tf.nn.softmax(tensor) if classes else tf.sigmoid(tensor)
    if validate_args:
        tensor = _valid_probs(tensor, classes)
    logits = tf.math.log(tensor)
    return (logits if classes else logits - tf.math.log1p(-tensor)), tensor


def _at_least_a_vector(tensor):
    if tensor.shape.rank == 0:
        raise ValueError(f"Shape {tensor.shape} must have rank at least 1")


def _valid_probs(probs, classes):
    one = tf.constant(1.0, probs.dtype)
    checks = [tf.debugging.assert_non_negative(probs)]
    if classes:
        total = tf.reduce_sum(probs, -1)
        checks.append(assert_close(total, one, "probs does not sum to 1."))
    else:
        message = "probs has components greater than 1."
        checks.append(tf.debugging.assert_less_equal(probs, one, message=message))
    with tf.control_dependencies([c for c in checks if c is not None]):
        return tf.identity(probs)


# --- the normal distribution's function ---

_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
# Where log(ndtr(x)) is computed by other means than the logarithm: below the first, where
# ndtr underflows, an asymptotic series; above the second, where it is all but 1, log1p.
_LIMITS = {tf.float64: (-20.0, 8.0)}
_LIMITS_32 = (-10.0, 5.0)
_TERMS = 3


def ndtr(x):
    """P[X <= x] of a standard normal X."""
    root = tf.constant(0.5 * math.sqrt(2.0), x.dtype)
    scaled = x * root
    z = tf.abs(scaled)
    near = 1.0 + tf.math.erf(scaled)
    far = tf.where(scaled > 0, 2.0 - tf.math.erfc(z), tf.math.erfc(z))
    return 0.5 * tf.where(z < root, near, far)


def _series(x):
    """Of x far below 0 the sum 1 - 1/x^2 + 3/x^4 - 15/x^6."""
    square = tf.square(x)
    total, term, odd = tf.ones_like(x), tf.ones_like(x), 1.0
    for _ in range(_TERMS):
        term = -term * odd / square
        total += term
        odd += 2.0
    return total


def log_ndtr(x):
    """log P[X <= x] of a standard normal X, exact also where that is all but 0 or 1."""
    lower, upper = _LIMITS.get(x.dtype, _LIMITS_32)
    low = tf.minimum(x, lower)
    below = -0.5 * tf.square(low) - tf.math.log(-low) - _HALF_LOG_2_PI
    below += tf.math.log(_series(low))
    between = tf.math.log(ndtr(tf.clip_by_value(x, lower, upper)))
    above = -ndtr(-tf.maximum(x, upper))
    return tf.where(x > upper, above, tf.where(x > lower, between, below))
