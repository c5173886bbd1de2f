"""tf.compat.v1.metrics that are means: of values, errors, classes."""

from headrace import _api as tf
from headrace._load import raw
from headrace.v1.metric import base
from headrace.v1.metric.base import added, matched, metric_variable


def ratio(total, count, name):
    """total / count, 0 where nothing was counted."""
    return tf.math.divide_no_nan(total, tf.maximum(count, 0), name=name)


def _mean(values, weights, shape=(), suffix=""):
    """(value, update) of the mean of all values so far, one for each of a shape."""

    def summed(x):
        return x if suffix else tf.reduce_sum(x)

    values = tf.cast(values, tf.float32)
    total = metric_variable(shape, tf.float32, name="total" + suffix)
    count = metric_variable(shape, tf.float32, name="count" + suffix)
    if weights is not None:
        weights = base.weights_like(weights, values)
        values = values * weights
        number = summed(weights)
    else:
        number = (
            tf.ones_like(values) if suffix else tf.cast(tf.size(values), tf.float32)
        )
    new_total = added(total, summed(values))
    with tf.control_dependencies([values]):
        new_count = added(count, number)
    value = ratio(total.read_value(), count.read_value(), "value")
    return value, ratio(new_total, new_count, "update_op")


@base.metric()
def mean(values, weights=None):
    """The mean of all values so far."""
    return _mean(tf.convert_to_tensor(values), weights)


@base.metric("mean")
def mean_tensor(values, weights=None):
    """The mean so far of each element of tensors of one shape."""
    values = tf.convert_to_tensor(values)
    return _mean(values, weights, values.shape, "_tensor")


@base.metric()
def accuracy(labels, predictions, weights=None):
    """How often predictions equal labels."""
    labels, predictions, weights = matched(labels, predictions, weights)
    if labels.dtype != predictions.dtype:
        predictions = tf.cast(predictions, labels.dtype)
    return _mean(tf.cast(tf.equal(predictions, labels), tf.float32), weights)


@base.metric("percentage_below_threshold")
def percentage_below(values, threshold, weights=None):
    """The share of the values so far that are below the threshold."""
    below = tf.less(tf.convert_to_tensor(values), threshold)
    return _mean(tf.cast(below, tf.float32), weights)


# --- errors ---


def _mean_of(name, function):
    """A metric that is the mean of a function of labels and predictions."""

    def compute(labels, predictions, weights):
        labels = tf.cast(labels, predictions.dtype)
        return _mean(function(labels, predictions), weights)

    return base.of_pairs(name, f"The {name.replace('_', ' ')} so far.", compute)


mean_squared_error = _mean_of(
    "mean_squared_error", lambda y, p: tf.math.squared_difference(p, y)
)
mean_absolute_error = _mean_of("mean_absolute_error", lambda y, p: tf.abs(p - y))


@base.metric_of_metrics
def root_mean_squared_error(labels, predictions, weights=None, name=None):
    """The root of the mean squared error so far."""
    name = name or "root_mean_squared_error"
    found = mean_squared_error(labels, predictions, weights, name=name)
    return tuple(map(tf.sqrt, found))


@base.metric()
def mean_relative_error(labels, predictions, normalizer, weights=None):
    """The mean so far of |labels - predictions| / normalizer, 0 where that is 0."""
    labels, predictions, weights = matched(labels, predictions, weights)
    normalizer, predictions, _ = matched(normalizer, predictions)
    error = tf.math.divide(tf.abs(labels - predictions), normalizer)
    none = tf.equal(tf.cast(0, normalizer.dtype), normalizer)
    return _mean(raw.Select(none, tf.zeros_like(labels), error), weights)


@base.metric_of_metrics
def mean_cosine_distance(labels, predictions, dim, weights=None, name=None):
    """1 - the mean so far of the products of labels and predictions, both of length 1
    along the dimension `dim`."""
    labels, predictions, weights = matched(labels, predictions, weights)
    products = tf.reduce_sum(tf.multiply(predictions, labels), [dim], keepdims=True)
    found = mean(products, weights, name=name or "mean_cosine_distance")
    return tuple(tf.subtract(1.0, part, name="Sub") for part in found)


# --- classes ---


def _flat(tensor):
    return tensor if tensor.shape.rank in (None, 0, 1) else tf.reshape(tensor, [-1])


def _flat_pairs(labels, predictions, weights):
    labels, predictions = map(tf.convert_to_tensor, (labels, predictions))
    predictions.shape.assert_is_compatible_with(labels.shape)
    if weights is not None:
        weights = _flat(tf.convert_to_tensor(weights))
    return _flat(labels), _flat(predictions), weights


@base.metric()
def mean_iou(labels, predictions, num_classes, weights=None):
    """Intersection over union of each class so far, their mean over classes that came.

    `labels` and `predictions` are classes in [0, num_classes). The update gives the
    confusion matrix.
    """
    labels, predictions, weights = _flat_pairs(labels, predictions, weights)
    matrix = tf.math.confusion_matrix(
        tf.cast(labels, tf.int64),
        tf.cast(predictions, tf.int64),
        num_classes,
        weights=None if weights is None else tf.cast(weights, tf.float64),
        dtype=tf.float64,
    )
    total = metric_variable(
        [num_classes, num_classes], tf.float64, name="total_confusion_matrix"
    )
    update = added(total, matrix)
    counts = tf.cast(total.read_value(), tf.float32)
    both = tf.linalg.diag_part(counts)
    either = tf.reduce_sum(counts, 0) + tf.reduce_sum(counts, 1) - both
    seen = tf.reduce_sum(tf.cast(tf.not_equal(either, 0), tf.float32))
    either = raw.Select(tf.greater(either, 0), either, tf.ones_like(either))
    found = tf.reduce_sum(tf.math.divide(both, either), name="mean_iou") / seen
    return raw.Select(tf.greater(seen, 0), found, tf.constant(0.0)), update


@base.metric("mean_accuracy")
def mean_per_class_accuracy(labels, predictions, num_classes, weights=None):
    """The share of each class' examples that were predicted so far, their mean.

    `labels` and `predictions` are classes in [0, num_classes). The update gives the
    accuracies of the classes.
    """
    labels, predictions, weights = _flat_pairs(labels, predictions, weights)
    labels = tf.cast(labels, tf.int64)
    total = metric_variable([num_classes], tf.float32, name="total")
    count = metric_variable([num_classes], tf.float32, name="count")
    ones = tf.ones([tf.size(labels)], tf.float32)
    if labels.dtype != predictions.dtype:
        predictions = tf.cast(predictions, labels.dtype)
    right = tf.cast(tf.equal(predictions, labels), tf.float32)
    if weights is not None:
        weights = tf.cast(weights, tf.float32)
        ones, right = ones * weights, right * weights
    new_total = total.scatter_add(tf.IndexedSlices(ones, labels))
    new_count = count.scatter_add(tf.IndexedSlices(right, labels))
    shares = ratio(count.read_value(), total.read_value(), None)
    value = tf.reduce_mean(shares, name="mean_accuracy")
    return value, ratio(new_count, new_total, "update_op")
