"""The activations that Keras 3 has beside Keras 2's."""

from headrace import _api as tf
from headrace.ops.faces import add_calls

add_calls(
    globals(),
    """
leaky_relu nn.leaky_relu(x->features, negative_slope->alpha=0.2)
    x above zero, negative_slope x below.
relu6 nn.relu6(x->features)
    x cut to [0, 6].
log_softmax nn.log_softmax(x->logits, axis=-1)
    The logarithm of softmax.
log_sigmoid math.log_sigmoid(x)
    The logarithm of sigmoid.
""",
)


def celu(x, alpha=1.0):
    """x above zero, alpha (exp(x / alpha) - 1) below."""
    x = tf.convert_to_tensor(x)
    below = alpha * tf.math.expm1(tf.minimum(x, 0.0) / alpha)
    return tf.maximum(x, 0.0) + below


def glu(x, axis=-1):
    """The first half along an axis times the sigmoid of the second."""
    first, second = tf.split(x, 2, axis=axis)
    return first * tf.sigmoid(second)


def hard_silu(x):
    """x relu6(x + 3) / 6; hard_swish is the same."""
    x = tf.convert_to_tensor(x)
    return x * tf.nn.relu6(x + 3.0) * (1.0 / 6.0)


def hard_tanh(x):
    """x cut to [-1, 1]."""
    return tf.clip_by_value(tf.convert_to_tensor(x), -1.0, 1.0)


def hard_shrink(x, threshold=0.5):
    """x, and 0 where its size is at most the threshold."""
    x = tf.convert_to_tensor(x)
    return tf.where(tf.abs(x) > threshold, x, tf.zeros_like(x))


def soft_shrink(x, threshold=0.5):
    """x brought nearer to 0 by the threshold, as far as 0."""
    x = tf.convert_to_tensor(x)
    return tf.maximum(x - threshold, 0.0) + tf.minimum(x + threshold, 0.0)


def tanh_shrink(x):
    """x - tanh(x)."""
    x = tf.convert_to_tensor(x)
    return x - tf.tanh(x)


def threshold(x, threshold, default_value):
    """x above the threshold, the default value elsewhere."""
    x = tf.convert_to_tensor(x)
    return tf.where(x > threshold, x, tf.cast(default_value, x.dtype))


def squareplus(x, b=4):
    """(x + sqrt(x^2 + b)) / 2."""
    x = tf.convert_to_tensor(x)
    return (x + tf.sqrt(tf.square(x) + tf.cast(b, x.dtype))) / 2.0


def sparse_plus(x):
    """0 up to -1, x from 1 on, a parabola between them."""
    x = tf.convert_to_tensor(x)
    middle = tf.square(x + 1.0) / 4.0
    return tf.where(x <= -1.0, tf.zeros_like(x), tf.where(x < 1.0, middle, x))


def sparse_sigmoid(x):
    """0 up to -1, 1 from 1 on, a line between them."""
    return tf.clip_by_value((tf.convert_to_tensor(x) + 1.0) * 0.5, 0.0, 1.0)


def sparsemax(x, axis=-1):
    """The nearest probabilities to x along an axis: most of them 0."""
    x = tf.convert_to_tensor(x)
    ranked = tf.sort(x, axis=axis, direction="DESCENDING")
    sums = tf.cumsum(ranked, axis=axis)
    size = x.shape.rank
    shape = [1] * size
    shape[axis] = -1
    place = tf.reshape(tf.range(1, tf.shape(x)[axis] + 1), shape)
    place = tf.cast(place, x.dtype)
    kept = 1.0 + place * ranked > sums
    count = tf.reduce_sum(tf.cast(kept, x.dtype), axis, keepdims=True)
    total = tf.reduce_sum(tf.where(kept, ranked, tf.zeros_like(x)), axis, keepdims=True)
    return tf.maximum(x - (total - 1.0) / count, 0.0)
