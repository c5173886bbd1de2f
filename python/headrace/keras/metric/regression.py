"""How well numbers are met: by R2, and relative to others."""

from headrace import _api as tf
from headrace.framework.settings import logging
from headrace.keras.classes import takes
from headrace.keras.metric.base import Metric
from headrace.keras.metric.reductions import Mean

_AGGREGATIONS = (None, "uniform_average", "variance_weighted_average")


@takes(
    "class_aggregation='uniform_average', num_regressors=0, name='r2_score', dtype=None"
)
class R2Score(Metric):
    """1 - squared errors / squared distances from the mean, of each column; with
    `num_regressors` adjusted to so many. Columns are averaged as `class_aggregation`
    says: "uniform_average", "variance_weighted_average" or, for none, None."""

    def _begin(self):
        if self.class_aggregation not in _AGGREGATIONS:
            raise ValueError(
                "Invalid value for argument `class_aggregation`. Expected one of "
                f"{_AGGREGATIONS}. Received: class_aggregation="
                f"{self.class_aggregation}"
            )
        if self.num_regressors < 0:
            raise ValueError(
                "Invalid value for argument `num_regressors`. Expected a value >= 0. "
                f"Received: num_regressors={self.num_regressors}"
            )
        self.num_samples = self.add_weight("num_samples", dtype="int32")
        self.sum = None

    def _make(self, y_true, y_pred):
        shapes = y_pred.shape, y_true.shape
        received = "y_pred.shape={} and y_true.shape={}.".format(*shapes)
        if any(s.rank != 2 for s in shapes):
            raise ValueError(
                "R2Score expects 2D inputs with shape (batch_size, output_dim). "
                f"Received input shapes: {received}"
            )
        if any(s[-1] is None for s in shapes):
            raise ValueError(
                "R2Score expects 2D inputs with shape (batch_size, output_dim), with "
                "output_dim fully defined (not None). Received input shapes: "
                + received
            )
        for name in ("squared_sum", "sum", "residual", "count"):
            setattr(self, name, self.add_weight(name, shape=(shapes[0][-1],)))

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch: `y_true` and `y_pred` [samples, columns], weights [samples] or of
        their shape."""
        y_true = tf.cast(y_true, self._dtype)
        y_pred = tf.cast(y_pred, self._dtype)
        if self.sum is None:
            self._make(y_true, y_pred)
        weight = tf.cast(1.0 if sample_weight is None else sample_weight, self._dtype)
        if weight.shape.rank == 1:
            weight = tf.expand_dims(weight, 1)
        weight = tf.broadcast_to(weight, tf.shape(y_true))
        weighted = y_true * weight
        self.sum.assign_add(tf.reduce_sum(weighted, 0))
        self.squared_sum.assign_add(tf.reduce_sum(y_true * weighted, 0))
        errors = tf.square(y_true - y_pred) * weight
        self.residual.assign_add(tf.reduce_sum(errors, 0))
        self.count.assign_add(tf.reduce_sum(weight, 0))
        self.num_samples.assign_add(tf.size(y_true))

    def result(self):
        """The score: a scalar, or a vector of the columns' for an aggregation of None.
        A column without variance has 0, or NaN where it is met exactly."""
        if self.sum is None:
            raise ValueError(
                "R2Score: there is no result before the first update_state"
            )
        mean = self.sum._read() / self.count._read()
        total = self.squared_sum._read() - self.sum._read() * mean
        scores = 1.0 - self.residual._read() / total
        scores = tf.where(tf.math.is_inf(scores), tf.zeros_like(scores), scores)
        if self.class_aggregation == "uniform_average":
            scores = tf.reduce_mean(scores)
        elif self.class_aggregation is not None:
            scores = tf.reduce_sum(total * scores) / tf.reduce_sum(total)
        return scores if self.num_regressors == 0 else self._adjusted(scores)

    def _adjusted(self, scores):
        counted = self._reads(*["num_samples"] * 3)["num_samples"]
        samples = tf.cast(counted, self._dtype)
        free = samples - self.num_regressors - 1.0
        adjusted = 1.0 - (1.0 - scores) * (samples - 1.0) / free
        if tf.executing_eagerly() and float(free) <= 0:
            logging.warn(
                "R2Score: num_regressors=%d is too many for %d values; the score is not "
                "adjusted",
                self.num_regressors,
                int(samples),
            )
        return tf.where(free > 0, adjusted, scores)


class MeanRelativeError(Mean):
    """The mean of |prediction - target| / normalizer; 0 where that is 0."""

    def __init__(self, normalizer, name=None, dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.normalizer = tf.cast(normalizer, self._dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch of the normalizer's shape, or that it broadcasts to."""
        y_true = tf.cast(y_true, self._dtype)
        errors = tf.abs(tf.cast(y_pred, self._dtype) - y_true)
        relative = tf.math.divide_no_nan(errors, self.normalizer)
        return super().update_state(relative, sample_weight)

    def get_config(self):
        """The arguments as a dict; the normalizer as an array."""
        config = super().get_config()
        return {**config, "normalizer": tf.keras.backend.get_value(self.normalizer)}


class PyMetric(Metric):
    """A metric whose state and code are Python's: `update_state` gets eager tensors, also
    in fit(), and `result` gives a number. `reset_state` says what the state begins with."""

    def __init__(self, name=None, dtype=None, **kwargs):
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.reset_state()

    def __init_subclass__(cls, **kwargs):
        for name, make in (("update_state", _updating), ("result", _resulting)):
            if name in vars(cls):
                setattr(cls, name, make(vars(cls)[name]))
        super().__init_subclass__(**kwargs)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Takes in a batch, in Python. Subclasses define it."""
        raise NotImplementedError("Subclasses should implement `update_state`")

    def reset_state(self):
        """Sets the state, attributes of Python's, to its beginning. Subclasses define
        it."""
        raise NotImplementedError("Subclasses should implement `reset_state`")

    def result(self):
        """The number of what came so far, from Python. Subclasses define it."""
        raise NotImplementedError("Subclasses should implement `result`")


def _updating(function):
    """An update of the state as an operation that runs a Python function."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        given = [y_true, y_pred]
        if sample_weight is not None:
            given.append(sample_weight)
        return tf.py_function(lambda *now: function(self, *now), given, [])

    return update_state


def _resulting(function):
    def result(self):
        return tf.py_function(lambda: function(self), [], self._dtype)

    return result
