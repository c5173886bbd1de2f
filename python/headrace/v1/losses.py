"""tf.compat.v1.losses: losses that a graph collects."""

import functools

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import stack
from headrace.framework.support import signatures
from headrace.v1 import collections
from headrace.v1 import weights as weighting

GraphKeys = collections.GraphKeys


class Reduction:
    """How weighted losses become one."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls):
        """A tuple of all reductions."""
        return (
            cls.NONE,
            cls.SUM,
            cls.MEAN,
            cls.SUM_OVER_BATCH_SIZE,
            cls.SUM_OVER_NONZERO_WEIGHTS,
            cls.SUM_BY_NONZERO_WEIGHTS,
        )

    @classmethod
    def validate(cls, key):
        """Raises ValueError unless `key` is one of them."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}.")


_USUAL = Reduction.SUM_BY_NONZERO_WEIGHTS


def _reduced(losses, weights, reduction):
    if reduction == Reduction.NONE:
        return losses
    total = tf.reduce_sum(losses)
    if reduction == Reduction.SUM:
        return total
    if reduction == Reduction.MEAN:
        count = tf.reduce_sum(weighting.broadcast(weights, losses))
    elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
        count = tf.cast(tf.size(losses), losses.dtype)
    else:
        count = tf.reduce_sum(
            tf.cast(tf.not_equal(weighting.broadcast(weights, losses), 0), losses.dtype)
        )
    return tf.math.divide_no_nan(total, count, name="value")


def compute_weighted_loss(
    losses, weights=1.0, scope=None, loss_collection=GraphKeys.LOSSES, reduction=_USUAL
):
    """Losses times weights, as one number (or as they are), noted in the graph."""
    Reduction.validate(reduction)
    with tf.name_scope(scope or "weighted_loss"):
        losses = tf.convert_to_tensor(losses)
        own = losses.dtype
        values = tf.cast(losses, tf.float32)
        weights = tf.cast(tf.convert_to_tensor(weights), tf.float32)
        weights = weighting.matched(weights, values)
        checked = weighting.assert_broadcastable(weights, values)
        with tf.control_dependencies([] if checked is None else [checked]):
            loss = tf.cast(
                _reduced(tf.multiply(values, weights), weights, reduction), own
            )
        add_loss(loss, loss_collection)
        return loss


def add_loss(loss, loss_collection=GraphKeys.LOSSES):
    """Notes a loss in the graph."""
    if loss_collection and not _headrace.is_eager():
        stack.default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope=None, loss_collection=GraphKeys.LOSSES):
    """The losses of the default graph, or of the names in `scope`."""
    return stack.default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope=None):
    """The losses of regularizers in the default graph."""
    key = GraphKeys.REGULARIZATION_LOSSES
    return stack.default_graph().get_collection(key, scope)


def get_regularization_loss(scope=None, name="total_regularization_loss"):
    """The sum of what regularizers of variables ask for."""
    found = get_regularization_losses(scope)
    return tf.add_n(found, name=name) if found else tf.constant(0.0)


def get_total_loss(add_regularization_losses=True, name="total_loss", scope=None):
    """The sum of all losses that the graph notes."""
    found = get_losses(scope=scope)
    if add_regularization_losses:
        found += get_regularization_losses(scope=scope)
    return tf.add_n(found, name=name)


def _pair(labels, predictions):
    """Both as float32, whatever they were."""
    labels, predictions = _alike(labels, predictions)
    return tf.cast(labels, tf.float32), tf.cast(predictions, tf.float32)


def _alike(labels, predictions):
    """Both of the type of the predictions."""
    if labels is None:
        raise ValueError("Argument `labels` must not be None.")
    if predictions is None:
        raise ValueError("Argument `predictions` must not be None.")
    predictions = tf.convert_to_tensor(predictions)
    labels = tf.cast(labels, predictions.dtype)
    predictions.shape.assert_is_compatible_with(labels.shape)
    return labels, predictions


_COMMON = [
    signatures.parameter("weights", 1.0),
    signatures.parameter("scope", None),
    signatures.parameter("loss_collection", GraphKeys.LOSSES),
    signatures.parameter("reduction", _USUAL),
]


def _weighted(function, scope=None, place=2):
    """Makes a public loss of what gives its values: weighted, reduced and noted.

    `weights` comes at that place, the other common parameters behind the function's
    own, but for a `dim`, which is the last.
    """
    default = scope or f"{function.__name__.removesuffix('_loss')}_loss"

    def call(weights, scope, loss_collection, reduction, **given):
        with tf.name_scope(scope or default) as name:
            values = function(**given)
            return compute_weighted_loss(
                values, weights, name, loss_collection, reduction
            )

    own = signatures.parameters_of(function)
    last = [p for p in own if p.name == "dim"]
    own = own[: len(own) - len(last)]
    own.insert(place, _COMMON[0])
    return signatures.function_of(function, own + _COMMON[1:] + last, call)


def _elementwise(name, function, what):
    """A loss that compares labels and predictions one by one."""

    def loss(labels, predictions):
        return function(*_pair(labels, predictions))

    loss.__name__ = loss.__qualname__ = name
    loss.__doc__ = f"""{what} between predictions and labels, weighted and reduced.

    Labels are cast to the dtype of predictions and have their shape. `weights` is a
    scalar or broadcasts to it. The result, a scalar unless `reduction` is NONE, is
    added to `loss_collection` of the graph.
    """
    return _weighted(loss, name)


absolute_difference = _elementwise(
    "absolute_difference", lambda y, p: tf.abs(p - y), "The absolute differences"
)
mean_squared_error = _elementwise(
    "mean_squared_error",
    lambda y, p: tf.math.squared_difference(p, y),
    "The squared differences",
)


@_weighted
def log_loss(labels, predictions, epsilon=1e-7):
    """Minus the logarithm of what the right answers were given."""
    y, p = _pair(labels, predictions)
    right = tf.math.log(p + epsilon)
    wrong = tf.math.log(1 - p + epsilon)
    return -y * right - (1 - y) * wrong


@_weighted
def huber_loss(labels, predictions, delta=1.0):
    """Squares of small errors, and large ones as they are."""
    y, p = _pair(labels, predictions)
    error = tf.abs(p - y)
    small = tf.minimum(error, delta)
    return 0.5 * small * small + delta * (error - small)


@_weighted
def hinge_loss(labels, logits):
    """What logits lack to 1 on the side of their label."""
    y, z = _pair(labels, logits)
    return tf.nn.relu(1 - (2 * y - 1) * z)


@functools.partial(_weighted, place=3)
def cosine_distance(labels, predictions, axis=None, dim=None):
    """1 minus the product of unit vectors."""
    axis = dim if axis is None else axis
    if axis is None:
        raise ValueError("You must specify argument `axis`.")
    y, p = _pair(labels, predictions)
    return 1 - tf.reduce_sum(y * p, axis=axis, keepdims=True)


@_weighted
def sigmoid_cross_entropy(multi_class_labels, logits, label_smoothing=0):
    """Of labels that do not exclude each other."""
    y, z = _alike(multi_class_labels, logits)
    if label_smoothing > 0:
        y = y * (1 - label_smoothing) + 0.5 * label_smoothing
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=z)


@_weighted
def softmax_cross_entropy(onehot_labels, logits, label_smoothing=0):
    """Of one label each, as rows with a 1."""
    y, z = _alike(onehot_labels, logits)
    if label_smoothing > 0:
        classes = tf.cast(tf.shape(y)[1], z.dtype)
        y = y * (1.0 - label_smoothing) + label_smoothing / classes
    return tf.nn.softmax_cross_entropy_with_logits(labels=tf.stop_gradient(y), logits=z)


@_weighted
def sparse_softmax_cross_entropy(labels, logits):
    """Of one label each, as its number."""
    labels, logits = tf.convert_to_tensor(labels), tf.convert_to_tensor(logits)
    if labels.shape.rank is not None and labels.shape.rank == logits.shape.rank:
        labels = tf.squeeze(labels, [-1])
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def mean_pairwise_squared_error(
    labels, predictions, weights=1.0, scope=None, loss_collection=GraphKeys.LOSSES
):
    """How much the differences within each example differ, squared, over all pairs.

    Labels and predictions are of one shape, [batch, ...]; `weights` broadcasts to it. A
    scalar, the sum over the batch, added to `loss_collection` of the graph.
    """
    labels, predictions = _pair(labels, predictions)
    with tf.name_scope(scope or "mean_pairwise_squared_error"):
        off = tf.cast(predictions, tf.float32) - tf.cast(labels, tf.float32)
        weights = tf.cast(tf.convert_to_tensor(weights), tf.float32)
        axes = tf.range(1, tf.rank(off))

        def summed(x):
            return tf.reduce_sum(x, axes, keepdims=True)

        there = tf.cast(tf.not_equal(weights, 0), tf.float32)
        number = summed(weighting.broadcast(there, off))
        found = [
            tf.math.divide_no_nan(total, tf.maximum(count, 0), name="value")
            for total, count in (
                (summed(tf.square(off)), number - 1),
                (tf.square(summed(off)), number * (number - 1)),
            )
        ]
        loss = tf.reduce_sum(2 * (found[0] - found[1]) * weights)
        some = tf.reduce_sum(number) > 0
        loss = tf.where(some, loss, tf.zeros_like(loss), name="value")
        add_loss(loss, loss_collection)
        return loss
