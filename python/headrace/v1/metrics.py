"""tf.compat.v1.metrics: (value, update) pairs over local variables of a graph."""

from headrace import _api as tf
from headrace.context import stack
from headrace.framework import execution
from headrace.framework.support import signatures
from headrace.keras.loss import squeeze_or_expand
from headrace.keras.metric import confusion
from headrace.v1 import collections
from headrace.v1.variable_scope import variable_scope, variable_v1

GraphKeys = collections.GraphKeys


def _check(name):
    execution.only_in_graphs(
        f"tf.metrics.{name} is not supported when eager execution is enabled."
    )


def metric_variable(shape, dtype, name=None):
    """A variable of zeros that is neither saved nor trained."""
    graph = stack.current()
    # As get_variable's names: the name scope in force is the variable scope's.
    full = f"{graph._core.scope}{name}" if name else graph._core.scope
    with graph.name_scope(""):
        return variable_v1(
            initial_value=lambda: tf.zeros(shape, dtype),
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
            use_resource=True,
            name=full,
        )


def _collected(value, update, metrics_collections, updates_collections):
    graph = stack.current()
    for names, tensor in ((metrics_collections, value), (updates_collections, update)):
        if names:
            graph.add_to_collections(names, tensor)
    return value, update


def _added(variable, amount):
    """The variable's value after `amount` was added."""
    return variable.assign_add(amount, read_value=True)


def _weights_like(weights, values):
    """The weights, one for each value."""
    weights = tf.cast(weights, values.dtype)
    rank, wanted = weights.shape.rank, values.shape.rank
    if rank is not None and wanted is not None:
        if rank == wanted + 1:
            weights = tf.squeeze(weights, [-1])
        elif rank + 1 == wanted and rank:
            weights = tf.expand_dims(weights, -1)
    shape = tf.broadcast_dynamic_shape(tf.shape(weights), tf.shape(values))
    with tf.control_dependencies([tf.debugging.assert_equal(shape, tf.shape(values))]):
        return tf.broadcast_to(weights, tf.shape(values))


def _mean(values, weights):
    """(value, update) of the mean of all values so far."""
    values = tf.cast(values, tf.float32)
    total = metric_variable([], tf.float32, name="total")
    count = metric_variable([], tf.float32, name="count")
    if weights is None:
        number = tf.cast(tf.size(values), tf.float32)
    else:
        weights = _weights_like(weights, values)
        values = values * weights
        number = tf.reduce_sum(weights)
    new_total = _added(total, tf.reduce_sum(values))
    with tf.control_dependencies([values]):
        new_count = _added(count, number)
    value = tf.math.divide_no_nan(total.read_value(), count.read_value(), name="value")
    update = tf.math.divide_no_nan(new_total, new_count, name="update_op")
    return value, update


# What the value and the update are called and where they go: of every metric.
_WHERE = signatures.from_text(
    "metrics_collections=None, updates_collections=None, name=None"
)


def _metric(function):
    """The public metric of what gives its (value, update): in a scope of its name,
    collected."""
    default = function.__name__

    def call(metrics_collections, updates_collections, name, **given):
        _check(default)
        with variable_scope(name, default):
            found = function(**given)
            return _collected(*found, metrics_collections, updates_collections)

    parameters = signatures.parameters_of(function)
    return signatures.function_of(function, parameters + _WHERE, call)


@_metric
def mean(values, weights=None):
    """The mean of all values so far."""
    return _mean(tf.convert_to_tensor(values), weights)


def _matched(labels, predictions, weights=None):
    """The tensors with a last dimension of 1 taken off where the others lack it."""
    predictions = tf.convert_to_tensor(predictions)
    labels = tf.convert_to_tensor(labels)
    predictions, labels, _ = squeeze_or_expand(predictions, labels)
    labels.shape.assert_is_compatible_with(predictions.shape)
    if weights is not None:
        weights = tf.convert_to_tensor(weights)
    return labels, predictions, weights


_PAIR = """

    `weights` broadcast to the values. Gives (value, update_op): update_op takes in the
    batch and gives the new value; both go to the collections that are named. The
    counts are local variables of the graph; RuntimeError when eager.
    """


@_metric
def accuracy(labels, predictions, weights=None):
    """How often predictions equal labels."""
    labels, predictions, weights = _matched(labels, predictions, weights)
    if labels.dtype != predictions.dtype:
        predictions = tf.cast(predictions, labels.dtype)
    return _mean(tf.cast(tf.equal(predictions, labels), tf.float32), weights)


def _of_pairs(name, what, compute):
    """The metric of a compute(labels, predictions, weights) of tensors that match."""

    def metric(labels, predictions, weights=None):
        return compute(*_matched(labels, predictions, weights))

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = what + _PAIR
    return _metric(metric)


def _mean_of(name, function):
    """A metric that is the mean of a function of labels and predictions."""

    def compute(labels, predictions, weights):
        labels = tf.cast(labels, predictions.dtype)
        return _mean(function(labels, predictions), weights)

    return _of_pairs(name, f"The {name.replace('_', ' ')} so far.", compute)


mean_squared_error = _mean_of(
    "mean_squared_error", lambda y, p: tf.math.squared_difference(p, y)
)
mean_absolute_error = _mean_of("mean_absolute_error", lambda y, p: tf.abs(p - y))


@signatures.taking(_WHERE, before="name")
def root_mean_squared_error(labels, predictions, weights=None, name=None, **where):
    """The root of the mean squared error so far."""
    default = "root_mean_squared_error"
    _check(default)
    found = mean_squared_error(labels, predictions, weights, name=name or default)
    return _collected(*map(tf.sqrt, found), **where)


# --- counts of right and wrong answers ---


def _count(answers, weights, name):
    """(value, update) of how many answers are true, or what they weigh."""
    answers = tf.cast(answers, tf.float32)
    if weights is not None:
        answers *= _weights_like(weights, answers)
    counted = metric_variable([], tf.float32, name=name)
    update = _added(counted, tf.reduce_sum(answers))
    return counted.read_value(), update


def _kinds(labels, predictions):
    """Which examples are true and false positives and negatives."""
    yes, said = tf.cast(labels, tf.bool), tf.cast(predictions, tf.bool)
    return {
        "true_positives": tf.logical_and(yes, said),
        "false_positives": tf.logical_and(tf.logical_not(yes), said),
        "true_negatives": tf.logical_and(tf.logical_not(yes), tf.logical_not(said)),
        "false_negatives": tf.logical_and(yes, tf.logical_not(said)),
    }


def _counter(kind):
    def compute(labels, predictions, weights):
        return _count(_kinds(labels, predictions)[kind], weights, "count")

    what = f"The number of {kind.replace('_', ' ')} so far."
    return _of_pairs(kind, what, compute)


true_positives = _counter("true_positives")
false_positives = _counter("false_positives")
true_negatives = _counter("true_negatives")
false_negatives = _counter("false_negatives")


def _share(name, other):
    """True positives among these and the `other` kind."""

    def compute(labels, predictions, weights):
        kinds = _kinds(labels, predictions)
        counts = (
            _count(kinds[kind], weights, f"{kind}/count")
            for kind in ("true_positives", other)
        )
        return [
            tf.math.divide_no_nan(right, right + wrong, name=role)
            for role, right, wrong in zip(("value", "update_op"), *counts)
        ]

    kind = other.replace("_", " ")
    what = f"True positives / (true positives + {kind}) so far."
    return _of_pairs(name, what, compute)


precision = _share("precision", "false_positives")
recall = _share("recall", "false_negatives")


# --- areas under curves ---

_EPSILON = 1e-6


def _counts_by_threshold(labels, predictions, weights, thresholds):
    """(values, updates): lists of true positives, false negatives, true negatives and
    false positives, one entry a threshold."""
    if weights is not None:
        weights = _weights_like(weights, predictions)
    new = confusion.confusion(labels, predictions, thresholds, weights)
    values, updates = [], []
    for part, kind in (
        ("tp", "true_positives"),
        ("fn", "false_negatives"),
        ("tn", "true_negatives"),
        ("fp", "false_positives"),
    ):
        counted = metric_variable([len(thresholds)], tf.float32, name=kind)
        updates.append(_added(counted, new[part]))
        values.append(counted.read_value())
    return values, updates


def _area(counts, curve, summation):
    """The area under the points that counts at each threshold give."""
    tp, fn, tn, fp = counts
    if curve == "PR" and summation == "careful_interpolation":
        return confusion.interpolated_pr(tp, fp, fn)
    recall_ = (tp + _EPSILON) / (tp + fn + _EPSILON)
    if curve == "ROC":
        x, y = fp / (fp + tn + _EPSILON), recall_
    else:
        x, y = recall_, (tp + _EPSILON) / (tp + fp + _EPSILON)
    return confusion.area(x, y, summation)


def auc(
    labels,
    predictions,
    weights=None,
    num_thresholds=200,
    metrics_collections=None,
    updates_collections=None,
    curve="ROC",
    name=None,
    summation_method="trapezoidal",
    thresholds=None,
):
    """The area under the ROC or PR curve, by counts at thresholds."""
    _check("auc")
    if curve not in ("ROC", "PR"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    methods = ("trapezoidal", "careful_interpolation", "minoring", "majoring")
    if summation_method not in methods:
        raise ValueError(f"Invalid summation_method: {summation_method}")
    with variable_scope(name, "auc", (labels, predictions, weights)):
        labels, predictions, weights = _matched(labels, predictions, weights)
        predictions = tf.cast(predictions, tf.float32)
        inner = thresholds
        if inner is None:
            n = num_thresholds - 1
            inner = [i / n for i in range(1, n)]
        edges = [0.0 - 1e-7, *inner, 1.0 + 1e-7]
        found = _counts_by_threshold(labels, predictions, weights, edges)
        areas = (_area(counts, curve, summation_method) for counts in found)
        return _collected(*areas, metrics_collections, updates_collections)
