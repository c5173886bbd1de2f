"""tf.compat.v1.metrics of right and wrong answers, and at thresholds."""

from headrace import _api as tf
from headrace.keras.metric import confusion
from headrace.v1.metric import base
from headrace.v1.metric.base import added, metric_variable


def _count(answers, weights, name):
    """(value, update) of how many answers are true, or what they weigh."""
    answers = tf.cast(answers, tf.float32)
    if weights is not None:
        answers *= base.weights_like(weights, answers)
    counted = metric_variable([], tf.float32, name=name)
    update = added(counted, tf.reduce_sum(answers))
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
    return base.of_pairs(kind, what, compute)


true_positives = _counter("true_positives")
false_positives = _counter("false_positives")
true_negatives = _counter("true_negatives")
false_negatives = _counter("false_negatives")


def _shares(counts, prefix=""):
    """(value, update) of the first count's share in both."""
    return [
        tf.math.divide_no_nan(right, right + wrong, name=prefix + role)
        for role, right, wrong in zip(("value", "update_op"), *counts)
    ]


def _share(name, other):
    """True positives among these and the `other` kind."""

    def compute(labels, predictions, weights):
        kinds = _kinds(labels, predictions)
        return _shares(
            _count(kinds[kind], weights, f"{kind}/count")
            for kind in ("true_positives", other)
        )

    kind = other.replace("_", " ")
    what = f"True positives / (true positives + {kind}) so far."
    return base.of_pairs(name, what, compute)


precision = _share("precision", "false_positives")
recall = _share("recall", "false_negatives")


# --- at thresholds ---

_EPSILON = 1e-7
_PARTS = {
    "true_positives": "tp",
    "false_negatives": "fn",
    "true_negatives": "tn",
    "false_positives": "fp",
}


def _in_unit(predictions):
    """The predictions, as far as they are in [0, 1]."""
    message = "predictions must be in [0, 1]"
    zero, one = (tf.cast(limit, predictions.dtype) for limit in (0.0, 1.0))
    checks = [
        tf.debugging.assert_greater_equal(predictions, zero, message=message),
        tf.debugging.assert_less_equal(predictions, one, message=message),
    ]
    with tf.control_dependencies([c for c in checks if c is not None]):
        return tf.identity(tf.cast(predictions, tf.float32), name="predictions")


def _counts_at(labels, predictions, weights, thresholds, kinds=tuple(_PARTS)):
    """The (value, update) of each kind of counts, one entry a threshold."""
    predictions = _in_unit(predictions)
    if weights is not None:
        weights = base.weights_like(weights, predictions)
    new = confusion.confusion(labels, predictions, thresholds, weights)
    counts = []
    for kind in kinds:
        counted = metric_variable([len(thresholds)], tf.float32, name=kind)
        update = added(counted, new[_PARTS[kind]])
        counts.append((counted.read_value(), update))
    return counts


def _at_thresholds(name, what, compute, scope=None):
    def function(labels, predictions, thresholds, weights=None):
        labels, predictions, weights = base.matched(labels, predictions, weights)
        return compute(labels, predictions, weights, thresholds)

    return base.metric(scope)(base.signatures.called(function, name, what))


def _counter_at_thresholds(kind):
    def compute(labels, predictions, weights, thresholds):
        return _counts_at(labels, predictions, weights, thresholds, [kind])[0]

    what = f"The number of {kind.replace('_', ' ')} so far at each threshold."
    return _at_thresholds(f"{kind}_at_thresholds", what, compute, scope=kind)


def _share_at_thresholds(name, other):
    def compute(labels, predictions, weights, thresholds):
        kinds = ["true_positives", other]
        counts = _counts_at(labels, predictions, weights, thresholds, kinds)
        return _shares(counts, prefix=f"{name}_")

    kind = other.replace("_", " ")
    what = f"True positives / (true positives + {kind}) so far at each threshold."
    return _at_thresholds(f"{name}_at_thresholds", what, compute)


true_positives_at_thresholds = _counter_at_thresholds("true_positives")
false_positives_at_thresholds = _counter_at_thresholds("false_positives")
true_negatives_at_thresholds = _counter_at_thresholds("true_negatives")
false_negatives_at_thresholds = _counter_at_thresholds("false_negatives")
precision_at_thresholds = _share_at_thresholds("precision", "false_positives")
recall_at_thresholds = _share_at_thresholds("recall", "false_negatives")


# --- over all thresholds: one value of a curve, areas under curves ---


def _even_thresholds(number):
    """Thresholds at equal distances from just below 0 to just above 1."""
    inner = [(i + 1) * 1.0 / (number - 1) for i in range(number - 2)]
    return [0.0 - _EPSILON, *inner, 1.0 + _EPSILON]


def _sensitivities(counts):
    tp, fn, _, _ = counts
    return tp / (tp + fn + _EPSILON)


def _specificities(counts):
    _, _, tn, fp = counts
    return tn / (tn + fp + _EPSILON)


def _by_all_thresholds(read, labels, predictions, weights, num_thresholds):
    """(value, update) that read() finds in the counts at all thresholds."""
    labels, predictions, weights = base.matched(labels, predictions, weights)
    thresholds = _even_thresholds(num_thresholds)
    counts = zip(*_counts_at(labels, predictions, weights, thresholds))
    return [read(part, role) for part, role in zip(counts, ("value", "update_op"))]


@base.metric()
def sensitivity_at_specificity(
    labels, predictions, specificity, weights=None, num_thresholds=200
):
    """The share of positives found, at the threshold whose specificity is nearest."""
    if specificity < 0 or specificity > 1:
        raise ValueError(
            "`specificity` must be in the range [0, 1]. Currently, `specificity` "
            f"got {specificity}."
        )

    def read(counts, role):
        distances = tf.abs(_specificities(counts) - specificity)
        at = tf.cast(tf.argmin(distances, 0), tf.int32)
        tp, fn, _, _ = counts
        return tf.math.divide(tp[at], tp[at] + fn[at] + _EPSILON, name=role)

    return _by_all_thresholds(read, labels, predictions, weights, num_thresholds)


@base.metric()
def specificity_at_sensitivity(
    labels, predictions, sensitivity, weights=None, num_thresholds=200
):
    """The share of negatives found, at the threshold whose sensitivity is nearest,
    the highest of these."""
    if sensitivity < 0 or sensitivity > 1:
        raise ValueError(
            "`sensitivity` must be in the range [0, 1]. Currently, `sensitivity` "
            f"is {sensitivity}."
        )

    def read(counts, role):
        distances = tf.abs(_sensitivities(counts) - sensitivity)
        nearest = tf.equal(distances, tf.reduce_min(distances))
        at = tf.cast(tf.argmax(tf.cumsum(tf.cast(nearest, tf.int32)), 0), tf.int32)
        _, _, tn, fp = counts
        return tf.math.divide(tn[at], tn[at] + fp[at] + _EPSILON, name=role)

    return _by_all_thresholds(read, labels, predictions, weights, num_thresholds)


_SMOOTHING = 1e-6


def _area(counts, curve, summation):
    """The area under the points that counts at each threshold give."""
    tp, fn, tn, fp = counts
    if curve == "PR" and summation == "careful_interpolation":
        return confusion.interpolated_pr(tp, fp, fn)
    recall_ = (tp + _SMOOTHING) / (tp + fn + _SMOOTHING)
    if curve == "ROC":
        x, y = fp / (fp + tn + _SMOOTHING), recall_
    else:
        x, y = recall_, (tp + _SMOOTHING) / (tp + fp + _SMOOTHING)
    return confusion.area(x, y, summation)


@base.metric(
    parameters="labels, predictions, weights=None, num_thresholds=200, "
    "metrics_collections=None, updates_collections=None, curve='ROC', name=None, "
    "summation_method='trapezoidal', thresholds=None"
)
def auc(
    labels, predictions, weights, num_thresholds, curve, summation_method, thresholds
):
    """The area under the ROC or PR curve, by counts at thresholds."""
    if curve not in ("ROC", "PR"):
        raise ValueError(f"Curve must be either ROC or PR. Curve {curve} is unknown.")
    methods = ("trapezoidal", "careful_interpolation", "minoring", "majoring")
    if summation_method not in methods:
        raise ValueError(f"Invalid summation_method: {summation_method}")
    labels, predictions, weights = base.matched(labels, predictions, weights)
    if thresholds is None:
        edges = _even_thresholds(num_thresholds)
    else:
        edges = [0.0 - _EPSILON, *thresholds, 1.0 + _EPSILON]
    found = zip(*_counts_at(labels, predictions, weights, edges))
    return [
        tf.identity(_area(counts, curve, summation_method), name=role)
        for counts, role in zip(found, ("value", "update_op"))
    ]
