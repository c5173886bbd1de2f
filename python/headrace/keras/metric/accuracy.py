"""Accuracies and means of losses."""

from headrace import _api as tf
from headrace.keras import loss as losses
from headrace.keras import settings
from headrace.keras.function_class import function_class
from headrace.keras.metric.base import Metric
from headrace.keras.metric.reductions import MeanMetricWrapper


def accuracy(y_true, y_pred):
    """Where y_true and y_pred are equal: 1 or 0 an element, in Keras' float type."""
    y_pred, y_true, _ = losses.squeeze_or_expand(
        tf.convert_to_tensor(y_pred), tf.convert_to_tensor(y_true)
    )
    y_true = tf.cast(y_true, y_pred.dtype)
    return tf.cast(tf.equal(y_true, y_pred), settings.floatx())


def binary_accuracy(y_true, y_pred, threshold=0.5):
    """The share along the last axis of labels that y_pred > threshold meets."""
    return tf.reduce_mean(_binary_matches(y_true, y_pred, threshold), axis=-1)


def _binary_matches(y_true, y_pred, threshold=0.5):
    """1 for each label that y_pred > threshold meets, else 0."""
    y_pred = tf.convert_to_tensor(y_pred)
    y_true = tf.convert_to_tensor(y_true)
    threshold = tf.cast(threshold, y_pred.dtype)
    right = tf.equal(y_true, tf.cast(y_pred > threshold, y_true.dtype))
    return tf.cast(right, settings.floatx())


def _rows(y_true, y_pred):
    """Labels and scores with one axis of samples, and the labels' shape."""
    shape = tf.shape(y_true)
    if y_pred.shape.rank is not None and y_pred.shape.rank > 2:
        y_pred = tf.reshape(y_pred, [-1, y_pred.shape[-1]])
        y_true = tf.reshape(y_true, [-1])
    return y_true, y_pred, shape


def categorical_accuracy(y_true, y_pred):
    """Where the highest score is the label's, both [..., classes]: 1 or 0."""
    y_true = tf.argmax(tf.convert_to_tensor(y_true), -1)
    return sparse_categorical_accuracy(y_true, y_pred)


def sparse_categorical_accuracy(y_true, y_pred):
    """The same for class numbers: y_true [...], y_pred [..., classes]."""
    y_pred = tf.convert_to_tensor(y_pred)
    y_true = _labels(y_true, y_pred)
    right = tf.equal(tf.cast(y_true, tf.int64), tf.argmax(y_pred, -1))
    return tf.cast(right, settings.floatx())


def _labels(y_true, y_pred):
    """Class numbers without an axis of 1 at the end."""
    y_true = tf.convert_to_tensor(y_true)
    if y_true.shape.rank == y_pred.shape.rank and y_true.shape[-1] == 1:
        y_true = tf.squeeze(y_true, -1)
    return y_true


def top_k_categorical_accuracy(y_true, y_pred, k=5):
    """Where the label's score is among the `k` highest, both [..., classes]: 1 or 0."""
    y_true = tf.argmax(tf.convert_to_tensor(y_true), -1)
    return sparse_top_k_categorical_accuracy(y_true, y_pred, k)


def sparse_top_k_categorical_accuracy(y_true, y_pred, k=5):
    """The same for class numbers: y_true [...], y_pred [..., classes]."""
    y_pred = tf.convert_to_tensor(y_pred)
    y_true, y_pred, shape = _rows(_labels(y_true, y_pred), y_pred)
    right = tf.math.in_top_k(
        targets=tf.cast(y_true, tf.int32), predictions=tf.cast(y_pred, tf.float32), k=k
    )
    return tf.reshape(tf.cast(right, settings.floatx()), shape)


def cosine_similarity(y_true, y_pred, axis=-1):
    """The product of the two as unit vectors along `axis`: 1 where they agree."""
    return -losses.cosine_similarity(y_true, y_pred, axis)


def _mean_class(name, fn, label=None, squeezes=True, **defaults):
    """The mean of a function as a Metric class."""
    common = {"name": label or fn.__name__, "dtype": None}
    first = name in _ARGUMENTS_FIRST
    parameters = {**defaults, **common} if first else {**common, **defaults}
    doc = f"The mean of {fn.__name__}."
    return function_class(
        MeanMetricWrapper, name, fn, parameters, __name__, doc, _squeezes=squeezes
    )


_ARGUMENTS_FIRST = {"TopKCategoricalAccuracy", "SparseTopKCategoricalAccuracy"}
Accuracy = _mean_class("Accuracy", accuracy)
BinaryAccuracy = _mean_class(
    "BinaryAccuracy", _binary_matches, "binary_accuracy", threshold=0.5
)
CategoricalAccuracy = _mean_class("CategoricalAccuracy", categorical_accuracy)
SparseCategoricalAccuracy = _mean_class(
    "SparseCategoricalAccuracy", sparse_categorical_accuracy, squeezes=False
)
TopKCategoricalAccuracy = _mean_class(
    "TopKCategoricalAccuracy", top_k_categorical_accuracy, k=5
)
SparseTopKCategoricalAccuracy = _mean_class(
    "SparseTopKCategoricalAccuracy",
    sparse_top_k_categorical_accuracy,
    squeezes=False,
    k=5,
)
MeanSquaredError = _mean_class("MeanSquaredError", losses.mean_squared_error)
MeanAbsoluteError = _mean_class("MeanAbsoluteError", losses.mean_absolute_error)
MeanAbsolutePercentageError = _mean_class(
    "MeanAbsolutePercentageError", losses.mean_absolute_percentage_error
)
MeanSquaredLogarithmicError = _mean_class(
    "MeanSquaredLogarithmicError", losses.mean_squared_logarithmic_error
)
Hinge = _mean_class("Hinge", losses.hinge)
SquaredHinge = _mean_class("SquaredHinge", losses.squared_hinge)
CategoricalHinge = _mean_class("CategoricalHinge", losses.categorical_hinge)
LogCoshError = _mean_class("LogCoshError", losses.log_cosh, "logcosh")
KLDivergence = _mean_class(
    "KLDivergence", losses.kl_divergence, "kullback_leibler_divergence"
)
Poisson = _mean_class("Poisson", losses.poisson)
CosineSimilarity = _mean_class("CosineSimilarity", cosine_similarity, axis=-1)
BinaryCrossentropy = _mean_class(
    "BinaryCrossentropy",
    losses.binary_crossentropy,
    from_logits=False,
    label_smoothing=0,
)
CategoricalCrossentropy = _mean_class(
    "CategoricalCrossentropy",
    losses.categorical_crossentropy,
    from_logits=False,
    label_smoothing=0,
    axis=-1,
)
SparseCategoricalCrossentropy = _mean_class(
    "SparseCategoricalCrossentropy",
    losses.sparse_categorical_crossentropy,
    from_logits=False,
    ignore_class=None,
    axis=-1,
)


class RootMeanSquaredError(Metric):
    """The root of the mean of squared errors."""

    def __init__(self, name="root_mean_squared_error", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_weight("total", initializer="zeros")
        self.count = self.add_weight("count", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds the squared differences of a batch, each times its weight."""
        y_true = tf.cast(y_true, self._dtype)
        y_pred = tf.cast(y_pred, self._dtype)
        y_pred, y_true, _ = losses.squeeze_or_expand(y_pred, y_true)
        squares = tf.math.squared_difference(y_pred, y_true)
        counts = tf.ones_like(squares)
        if sample_weight is not None:
            weight = tf.cast(sample_weight, self._dtype)
            counts *= losses.fit_weight(weight, squares)
        self.total.assign_add(tf.reduce_sum(squares * counts))
        self.count.assign_add(tf.reduce_sum(counts))

    def result(self):
        """The root of the weighted mean so far: a scalar, 0 of nothing."""
        return tf.sqrt(tf.math.divide_no_nan(self.total._read(), self.count._read()))
