"""tf.keras.backend's functions of tensors, beside those that the layers use."""

from headrace import _api as tf
from headrace.keras import settings
from headrace.ops.faces import add_calls

add_calls(
    globals(),
    """
zeros_like zeros_like(x->input, dtype=None, name=None)
    Zeros of the shape and, without `dtype`, the dtype of x.
ones_like ones_like(x->input, dtype=None, name=None)
    Ones of the shape and, without `dtype`, the dtype of x.
one_hot one_hot(indices, num_classes->depth)
    Rows with a 1 at each index.
expand_dims expand_dims(x->input, axis=-1)
    x with an axis of 1 more.
reshape reshape(x->tensor, shape)
    x's elements in another shape.
stack stack(x->values, axis=0)
    The tensors along a new axis.
transpose transpose(x->a)
    x with its axes the other way round.
repeat_elements repeat(x->input, rep->repeats, axis)
    x with each element along `axis` `rep` times.
gather gather(reference->params, indices)
    The rows of those indices.
abs abs(x)
    |x|, element by element.
cos cos(x)
    The cosine, element by element.
exp exp(x)
    e^x, element by element.
log math.log(x)
    The natural logarithm, element by element.
maximum maximum(x, y)
    The larger of two, element by element.
minimum minimum(x, y)
    The smaller of two, element by element.
shape shape(x->input)
    The sizes of x, an int32 tensor.
sigmoid sigmoid(x)
    1 / (1 + exp(-x)), element by element.
sin sin(x)
    The sine, element by element.
softsign nn.softsign(x->features)
    x / (|x| + 1), element by element.
square square(x)
    x * x, element by element.
tanh tanh(x)
    The hyperbolic tangent, element by element.
pow pow(x, a->y)
    x^a, element by element.
round round(x)
    The nearest whole number; halves to the even one.
sign sign(x)
    -1, 0 or 1, element by element.
equal equal(x, y)
    x == y, element by element.
not_equal not_equal(x, y)
    x != y, element by element.
greater greater(x, y)
    x > y, element by element.
less less(x, y)
    x < y, element by element.
cumsum cumsum(x, axis=0)
    Sums of all elements up to each one.
cumprod math.cumprod(x, axis=0)
    Products of all elements up to each one.
logsumexp reduce_logsumexp(x->input_tensor, axis=None, keepdims=False)
    log of the sum of exp(x) along `axis`.
l2_normalize math.l2_normalize(x, axis=None)
    x over its norm along `axis`.
""",
)


def sqrt(x):
    """The square root of each element, 0 of negative ones."""
    x = tf.convert_to_tensor(x)
    return tf.sqrt(tf.maximum(x, tf.zeros([], x.dtype)))


def stop_gradient(variables):
    """A tensor as a constant to gradients; of a list, an iterator over such."""
    if isinstance(variables, (list, tuple)):
        return map(tf.stop_gradient, variables)
    return tf.stop_gradient(variables)


def _made(function, what):
    """zeros, ones and their like: variables of Keras' float type."""

    def make(shape, dtype=None, name=None):
        value = function(shape, dtype or settings.floatx())
        return settings.variable(value, dtype, name)

    make.__doc__ = f"A variable of {what}, of floatx() unless `dtype` says else."
    return make


zeros, ones = _made(tf.zeros, "zeros"), _made(tf.ones, "ones")


def eye(size, dtype=None, name=None):
    """A variable with the identity."""
    return settings.variable(
        tf.eye(size, dtype=dtype or settings.floatx()), dtype, name
    )


def flatten(x):
    """The elements in one dimension."""
    return tf.reshape(x, [-1])


def squeeze(x, axis):
    """x without one axis of 1."""
    return tf.squeeze(x, [axis])


def tile(x, n):
    """Repeats the tensor `n` times along each axis."""
    return tf.tile(x, [n] * len(x.shape) if isinstance(n, int) else n)


def repeat(x, n):
    """[samples, n, features] of [samples, features]."""
    return tf.repeat(tf.expand_dims(x, 1), n, axis=1)


def arange(start, stop=None, step=1, dtype="int32"):
    """The numbers from start (or 0) up to stop; they are cast where `dtype` is another
    than int32, and else stay as tf.range gives them."""
    if stop is None and start < 0:
        start = 0
    found = tf.range(start, delta=step) if stop is None else tf.range(start, stop, step)
    return found if dtype == "int32" else tf.cast(found, dtype)


def any(x, axis=None, keepdims=False):
    """Whether any element along `axis` is true (not 0)."""
    return tf.reduce_any(tf.cast(x, tf.bool), axis, keepdims)


def all(x, axis=None, keepdims=False):
    """Whether all elements along `axis` are true (not 0)."""
    return tf.reduce_all(tf.cast(x, tf.bool), axis, keepdims)


def switch(condition, then_expression, else_expression):
    """One of two tensors, or of what two functions give."""
    if condition.dtype != tf.bool:
        condition = tf.cast(condition, tf.bool)
    if condition.shape.rank == 0:
        call = lambda x: x if callable(x) else lambda: x
        return tf.cond(condition, call(then_expression), call(else_expression))
    then, other = (
        x() if callable(x) else x for x in (then_expression, else_expression)
    )
    while condition.shape.rank < then.shape.rank:
        condition = tf.expand_dims(condition, -1)
    return tf.where(condition, then, other)


def binary_crossentropy(target, output, from_logits=False):
    """The cross-entropy of each element."""
    target, output = tf.convert_to_tensor(target), tf.convert_to_tensor(output)
    if from_logits:
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=output)
    least = tf.cast(settings.epsilon(), output.dtype)
    output = tf.clip_by_value(output, least, 1.0 - least)
    found = target * tf.math.log(output + least)
    return -(found + (1.0 - target) * tf.math.log(1.0 - output + least))


def random_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Draws from a normal distribution, in Keras' float type unless told."""
    seed = settings.drawn_seed(seed)
    return tf.random.normal(shape, mean, stddev, dtype or settings.floatx(), seed)


def random_uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    """Draws from [minval, maxval), in Keras' float type unless told."""
    seed = settings.drawn_seed(seed)
    return tf.random.uniform(shape, minval, maxval, dtype or settings.floatx(), seed)
