"""Sums and means, of values and of functions of y_true and y_pred."""

from headrace import _api as tf
from headrace.autograph.calls import in_graph
from headrace.keras import loss as losses
from headrace.keras import ragged_losses, serialization
from headrace.keras.classes import takes
from headrace.keras.metric.base import Metric


class Reduce(Metric):
    """The base of Sum, Mean and what averages a function."""

    _mean = True

    def __init__(self, name=None, dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_weight("total", initializer="zeros")
        if self._mean:
            self.count = self.add_weight("count", initializer="zeros")

    def update_state(self, values, sample_weight=None):
        """Adds values of any shape, each times its weight.

        `sample_weight` is a scalar, or has the first dimensions of `values`, whose
        further ones are averaged before. A scalar value counts once for each weight
        of two axes or more, such as a mask's. ValueError where their rank is larger
        otherwise.
        """
        values = tf.cast(values, self._dtype)
        if sample_weight is None:
            self._add(tf.reduce_sum(values), values)
            return
        weight = tf.cast(sample_weight, self._dtype)
        if weight.shape.rank:
            _, _, weight = losses.squeeze_or_expand(values, None, weight)
            rank = weight.shape.rank
            if values.shape.rank is not None and rank < values.shape.rank:
                values = tf.reduce_mean(values, list(range(rank, values.shape.rank)))
            elif rank > values.shape.rank and (values.shape.rank or rank == 1):
                raise ValueError(
                    "weights can not be broadcast to values. values.rank="
                    f"{values.shape.rank}. weights.rank={rank}."
                )
            if values.shape.rank != 0:
                weight = tf.broadcast_to(weight, tf.shape(values))
        total = tf.reduce_sum(values * weight)
        if self._mean and not weight.shape.rank and values.shape.rank:
            weight *= tf.cast(tf.size(values), self._dtype)
        self._take(total, tf.reduce_sum(weight) if self._mean else None)

    def _add(self, total, values):
        size = None
        if self._mean:
            size = values.shape.num_elements()
            size = tf.cast(tf.size(values) if size is None else size, self._dtype)
        self._take(total, size)

    def _take(self, total, count):
        added = self.total.assign_add(total, read_value=False)
        if count is not None:
            # In a graph of operations a batch counts only where its values came, as
            # steps that need none go on beside one that waits for them, and fails.
            with tf.control_dependencies([] if added is None else [added]):
                self.count.assign_add(count, read_value=False)

    def result(self):
        """The weighted sum, or the weighted mean (0 of nothing): a scalar."""
        if not self._mean:
            return tf.identity(self._reads("total", "total")["total"])
        return tf.math.divide_no_nan(self.total._read(), self.count._read())


@takes("name='sum', dtype=None")
class Sum(Reduce):
    """The weighted sum of all values."""

    _mean = False


@takes("name='mean', dtype=None")
class Mean(Reduce):
    """The weighted mean of all values."""


class MeanMetricWrapper(Mean):
    """The mean of a function of y_true and y_pred."""

    _squeezes = True
    _config_names = ()  # the function, which is not always said

    def __init__(self, fn, name=None, dtype=None, **kwargs):
        super().__init__(name or fn.__name__, dtype)
        self._fn, self._fn_kwargs = fn, kwargs

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds the function's values; without weights the mask of y_pred takes their
        place. Of ragged ones, whose weights are ragged too, each value counts alike.
        """
        given = (y_true, y_pred, sample_weight)
        if ragged_losses.is_ragged(*given):
            y_true, y_pred, sample_weight = ragged_losses.flat_values(*given)
        y_pred = self._in_dtype(y_pred)
        y_true = self._in_dtype(y_true)
        if self._squeezes and self._fn not in losses._SPARSE:
            y_pred, y_true, _ = losses.squeeze_or_expand(y_pred, y_true)
        values = in_graph(self._fn)(y_true, y_pred, **self._fn_kwargs)
        mask = getattr(values, "_keras_mask", None)
        if sample_weight is None and mask is not None:
            sample_weight = mask
        super().update_state(values, sample_weight)

    def _in_dtype(self, values):
        """The metric's dtype, with what an activation left for losses."""
        values = tf.convert_to_tensor(values)
        return values if values.dtype == self._dtype else tf.cast(values, self._dtype)

    def get_config(self):
        """A dict of name, dtype, the function and its further arguments."""
        config = super().get_config()
        if type(self) is MeanMetricWrapper:
            config["fn"] = serialization.function_name(self._fn)
        config.update(self._fn_kwargs)
        return config


@takes("name='mean_tensor', dtype=None, shape=None")
class MeanTensor(Metric):
    """The mean of each element."""

    _config_without = ("shape",)

    def _begin(self):
        self.total = self.count = None
        if self.shape is not None:
            self._make(self.shape)

    def _make(self, shape):
        self.total = self.add_weight("total", shape, initializer="zeros")
        self.count = self.add_weight("count", shape, initializer="zeros")

    def update_state(self, values, sample_weight=None):
        """Adds values of one shape, the same for all batches, each times its weight."""
        values = tf.cast(values, self._dtype)
        if self.total is None:
            self._make(values.shape)
        counts = tf.ones_like(values)
        if sample_weight is not None:
            weight = losses.fit_weight(tf.cast(sample_weight, self._dtype), values)
            counts *= weight
        self.total.assign_add(values * counts)
        self.count.assign_add(counts)

    def result(self):
        """The weighted mean of each place; ValueError before the first values."""
        if self.total is None:
            raise ValueError(
                "MeanTensor does not have any value yet. Please call the MeanTensor "
                "instance or use `.update_state(value)` before retrieving the result."
            )
        return tf.math.divide_no_nan(self.total._read(), self.count._read())
