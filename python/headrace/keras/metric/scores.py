"""F scores, and one rate of a classifier where another is high enough."""

from headrace import _api as tf
from headrace.framework.support import signatures
from headrace.keras.classes import add_classes, takes
from headrace.keras.metric.base import Metric
from headrace.keras.metric.confusion import _Counts


@takes("average=None, beta=1.0, threshold=None, name='fbeta_score', dtype=None")
class FBetaScore(Metric):
    """(1 + beta^2) precision recall / (beta^2 precision + recall), a class each."""

    def _begin(self):
        average, beta, threshold = self.average, self.beta, self.threshold
        if average not in (None, "micro", "macro", "weighted"):
            raise ValueError(
                "Invalid `average` argument value. Expected one of: {None, 'micro', "
                f"'macro', 'weighted'}}. Received: average={average}"
            )
        if not isinstance(beta, float):
            raise ValueError(
                "Invalid `beta` argument value. It should be a Python float. Received: "
                f"beta={beta} of type '{type(beta)}'"
            )
        if beta <= 0.0:
            raise ValueError(
                "Invalid `beta` argument value. It should be > 0. Received: "
                f"beta={beta}"
            )
        if threshold is not None and not isinstance(threshold, float):
            raise ValueError(
                "Invalid `threshold` argument value. It should be a Python float. "
                f"Received: threshold={threshold} of type '{type(threshold)}'"
            )
        if threshold is not None and not 0.0 < threshold <= 1.0:
            raise ValueError(
                "Invalid `threshold` argument value. It should verify 0 < threshold <= "
                f"1. Received: threshold={threshold}"
            )
        self.axis = None if average == "micro" else 0
        self._made = False

    def _make(self, y_true, y_pred):
        if y_pred.shape.rank != 2 or y_true.shape.rank != 2:
            raise ValueError(
                "FBetaScore expects 2D inputs with shape (batch_size, output_dim). "
                f"Received input shapes: y_pred.shape={y_pred.shape} and "
                f"y_true.shape={y_true.shape}."
            )
        size = y_pred.shape[-1]
        if size is None or y_true.shape[-1] is None:
            raise ValueError(
                "FBetaScore expects 2D inputs with shape (batch_size, output_dim), with "
                "output_dim fully defined (not None). Received input shapes: "
                f"y_pred.shape={y_pred.shape} and y_true.shape={y_true.shape}."
            )
        shape = () if self.axis is None else (size,)
        names = ("true_positives", "false_positives", "false_negatives")
        for name in (*names, "intermediate_weights"):
            setattr(self, name, self.add_weight(name, shape=shape))
        self._made = True

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = tf.cast(y_true, self._dtype)
        y_pred = tf.cast(y_pred, self._dtype)
        if not self._made:
            self._make(y_true, y_pred)
        if self.threshold is None:
            top = tf.reduce_max(y_pred, axis=-1, keepdims=True)
            found = tf.logical_and(y_pred >= top, tf.abs(y_pred) > 1e-12)
        else:
            found = y_pred > self.threshold
        found = tf.cast(found, self._dtype)
        weight = None
        if sample_weight is not None:
            weight = tf.expand_dims(tf.cast(sample_weight, self._dtype), -1)

        def total(values):
            values = values if weight is None else values * weight
            return tf.reduce_sum(values, self.axis)

        self.true_positives.assign_add(total(found * y_true))
        self.false_positives.assign_add(total(found * (1 - y_true)))
        self.false_negatives.assign_add(total((1 - found) * y_true))
        self.intermediate_weights.assign_add(total(y_true))

    def result(self):
        divide = tf.math.divide_no_nan
        part, others = "true_positives", ("false_positives", "false_negatives")
        found = self._reads(part, others[0], part, part, others[1], part)
        precision, recall = (
            divide(found[part], found[part] + found[other]) for other in others
        )
        square = self.beta**2
        scores = divide(precision * recall, square * precision + recall) * (1 + square)
        if self.average == "weighted":
            weights = self._reads(*["intermediate_weights"] * 2)["intermediate_weights"]
            return tf.reduce_sum(scores * divide(weights, tf.reduce_sum(weights)))
        return scores if self.average is None else tf.reduce_mean(scores)


@takes("average=None, threshold=None, name='f1_score', dtype=None", beta=1.0)
class F1Score(FBetaScore):
    """The harmonic mean of precision and recall."""

    _config_without = ("beta",)


class _AtRate(_Counts):
    """The highest value of one rate where another is `value` at least."""

    _parts = ("tp", "tn", "fp", "fn")

    def __init__(self, value, num_thresholds, class_id, name, dtype):
        if not 0 <= value <= 1:
            raise ValueError(
                f"Argument `{self._limit}` must be in the range [0, 1]. Received: "
                f"{self._limit}={value}"
            )
        if num_thresholds <= 0:
            raise ValueError(
                "Argument `num_thresholds` must be an integer > 0. Received: "
                f"num_thresholds={num_thresholds}"
            )
        steps = num_thresholds - 1
        limits = [i / steps for i in range(num_thresholds)] if steps else [0.5]
        super().__init__(limits, None, class_id, name, dtype)
        self.num_thresholds, self.value = num_thresholds, value
        setattr(self, self._limit, value)

    def result(self):
        bounded, sought = self._share(*self._bounded), self._share(*self._sought)
        fits = tf.greater_equal(bounded, tf.cast(self.value, bounded.dtype))
        return tf.reduce_max(tf.where(fits, sought, tf.zeros_like(sought)))


def _where(limit, bounded, sought):
    """The members of a row: the name of the limit, the rate that is bounded by it and
    the one that is sought; a rate is part / (part + other) of a pair of counts."""

    def begin(self, **given):
        _AtRate.__init__(self, given.pop(limit), **given)

    text = f"{limit}, num_thresholds=200, class_id=None, name=None, dtype=None"
    members = {"_limit": limit, "_bounded": bounded, "_sought": sought}
    members["_config_names"] = ("class_id", "num_thresholds", limit)
    return {**members, "__init__": signatures.constructor(text, begin)}


add_classes(
    globals(),
    """
SensitivityAtSpecificity(_AtRate, **_where("specificity", ("tn", "fp"), ("tp", "fn")))
    The highest sensitivity at a specificity.
SpecificityAtSensitivity(_AtRate, **_where("sensitivity", ("tp", "fn"), ("tn", "fp")))
    The highest specificity at a sensitivity.
PrecisionAtRecall(_AtRate, **_where("recall", ("tp", "fn"), ("tp", "fp")))
    The highest precision at a recall.
RecallAtPrecision(_AtRate, **_where("precision", ("tp", "fp"), ("tp", "fn")))
    The highest recall at a precision.
""",
)
