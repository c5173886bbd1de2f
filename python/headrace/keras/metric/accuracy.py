"""Accuracies and means of losses."""

from headrace import _api as tf
from headrace.framework.support import signatures
from headrace.keras import loss as losses
from headrace.keras import settings
from headrace.keras.classes import add_function_classes, takes
from headrace.keras.metric.base import Metric
from headrace.keras.metric.reductions import MeanMetricWrapper


def accuracy(y_true, y_pred):
    """Where y_true and y_pred are equal: 1 or 0 an element, in Keras' float type.

    ValueError for shapes that differ.
    """
    y_pred, y_true, _ = losses.squeeze_or_expand(
        tf.convert_to_tensor(y_pred), tf.convert_to_tensor(y_true)
    )
    y_true.shape.assert_is_compatible_with(y_pred.shape)
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


def _common(function):
    """The parameters of classes that take no more."""
    return signatures.from_text(f"name='{function.__name__}', dtype=None")


add_function_classes(
    globals(),
    MeanMetricWrapper,
    """
Accuracy accuracy
BinaryAccuracy _binary_matches(name='binary_accuracy', dtype=None, threshold=0.5)
CategoricalAccuracy categorical_accuracy
SparseCategoricalAccuracy sparse_categorical_accuracy
TopKCategoricalAccuracy top_k_categorical_accuracy(k=5,
    name='top_k_categorical_accuracy', dtype=None)
SparseTopKCategoricalAccuracy sparse_top_k_categorical_accuracy(k=5,
    name='sparse_top_k_categorical_accuracy', dtype=None)
MeanSquaredError losses.mean_squared_error
MeanAbsoluteError losses.mean_absolute_error
MeanAbsolutePercentageError losses.mean_absolute_percentage_error
MeanSquaredLogarithmicError losses.mean_squared_logarithmic_error
Hinge losses.hinge
SquaredHinge losses.squared_hinge
CategoricalHinge losses.categorical_hinge
LogCoshError losses.log_cosh(name='logcosh', dtype=None)
KLDivergence losses.kl_divergence(name='kullback_leibler_divergence', dtype=None)
Poisson losses.poisson
CosineSimilarity cosine_similarity(name='cosine_similarity', dtype=None, axis=-1)
BinaryCrossentropy losses.binary_crossentropy(name='binary_crossentropy', dtype=None,
    from_logits=False, label_smoothing=0)
CategoricalCrossentropy losses.categorical_crossentropy(name='categorical_crossentropy',
    dtype=None, from_logits=False, label_smoothing=0, axis=-1)
SparseCategoricalCrossentropy losses.sparse_categorical_crossentropy(
    name='sparse_categorical_crossentropy', dtype=None, from_logits=False,
    ignore_class=None, axis=-1)
""",
    "The mean of {} over all samples since the last reset_state().",
    _common,
)
for _class in (SparseCategoricalAccuracy, SparseTopKCategoricalAccuracy):
    _class._squeezes = False


@takes("name='root_mean_squared_error', dtype=None")
class RootMeanSquaredError(Metric):
    """The root of the mean of squared errors."""

    def _begin(self):
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
