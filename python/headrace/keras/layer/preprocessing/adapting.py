"""Layers that learn from data before training, and two of them."""

import math

import numpy as np

from headrace import _api as tf
from headrace.context.properties import read_only
from headrace.keras.base.base_layer import Layer
from headrace.keras.layer.parts import takes


def as_tensor(value, dtype=None):
    """Lists, arrays and scalars as a tensor; composites as they are."""
    if getattr(type(value), "_is_composite_tensor", False):
        return value if dtype is None or value.dtype == dtype else tf.cast(value, dtype)
    if isinstance(value, np.ndarray) and value.dtype.kind == "U":
        value = value.astype(object)
    value = tf.convert_to_tensor(value)
    return value if dtype is None or value.dtype == dtype else tf.cast(value, dtype)


class PreprocessingLayer(Layer):
    """Base of layers with `adapt`: reset_state, update_state a batch,
    finalize_state."""

    _takes_lists = True  # inputs in Python's lists are one tensor

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._autocast = False
        self._is_adapted = False

    is_adapted = read_only("_is_adapted", "Whether the layer has learned from data.")

    def _prepared(self, inputs):
        leaves = tf.nest.flatten(inputs)
        plain = (str, bytes, bool, int, float, np.generic)
        if isinstance(inputs, (str, bytes, np.ndarray)) or (
            leaves and self._takes_lists and all(isinstance(x, plain) for x in leaves)
        ):
            return as_tensor(inputs)
        return super()._prepared(inputs)

    def reset_state(self):
        """Forgets what was learned."""

    def update_state(self, data):
        """Learns from a batch."""
        raise NotImplementedError

    def finalize_state(self):
        """Makes use of what was learned."""

    def _check_adaptable(self):
        """Raises where the layer was told what it would learn."""

    def adapt(self, data, batch_size=None, steps=None):
        """Learns from a dataset, or an array or tensor, and forgets what it learned
        before."""
        self._check_adaptable()
        if self.built:
            self.reset_state()
        function = self.make_adapt_function()
        if type(self).make_adapt_function is not PreprocessingLayer.make_adapt_function:
            batches = _dataset_of(data, batch_size)
        else:
            batches = _batches(data, batch_size)
        left = _steps_of(data, batch_size) if steps is None else steps
        iterator = iter(batches)
        while left > 0:
            self._batches_now = min(left, self._batches_together)
            try:
                function(iterator)
            except (StopIteration, tf.errors.OutOfRangeError):
                break
            left -= self._batches_now
        self.finalize_state()
        self._is_adapted = True

    _batches_together = _batches_now = 1

    def compile(self, run_eagerly=None, steps_per_execution=None):
        """Says from how many batches each call of make_adapt_function()'s function
        learns. Layers learn at once, with `run_eagerly` and without."""
        self._batches_together = steps_per_execution or 1

    def make_adapt_function(self):
        """A function of an iterator that learns from its next batch, which adapt() calls
        until there is none left. Subclasses may replace it."""

        def adapt_step(iterator):
            for _ in range(self._batches_now):
                batch = next(iterator)
                batch = batch[0] if isinstance(batch, tuple) else batch
                self._build_for_batch(batch)
                self.update_state(batch)

        return adapt_step

    def _build_for_batch(self, batch):
        if self.built:
            return
        with tf.init_scope():
            self.build(batch.shape)
        self.built = True
        self._keras.seen_shape = tf.TensorShape([None, *batch.shape[1:]])
        if self._keras.batch_input_shape is None:
            self._keras.batch_input_shape = (None,) * batch.shape.rank


def _batches(data, batch_size):
    if isinstance(data, tf.data.Dataset):
        if batch_size is not None:
            raise ValueError(
                "The `batch_size` argument must not be specified for the given input "
                f"type. Received input: {data}, batch_size: {batch_size}"
            )
        yield from data
        return
    data = as_tensor(data)
    count = data.shape[0]
    step = batch_size or max(count, 1)
    for start in range(0, count, step):
        yield data[start : start + step]


def _steps_of(data, batch_size):
    """How many batches there are; infinity where nobody knows."""
    if isinstance(data, tf.data.Dataset):
        return math.inf
    count = as_tensor(data).shape[0]
    return math.ceil(count / (batch_size or max(count, 1)))


def _dataset_of(data, batch_size):
    """Batches as a dataset, whose iterators traced functions take."""
    if isinstance(data, tf.data.Dataset):
        next(_batches(data, batch_size), None)  # which checks
        return data
    data = as_tensor(data)
    step = batch_size or max(data.shape[0], 1)
    return tf.data.Dataset.from_tensor_slices(data).batch(step)


def _columns(inputs, dtype):
    """A tensor of at least two axes."""
    inputs = as_tensor(inputs, dtype)
    if inputs.shape.rank == 0:
        return tf.reshape(inputs, [1, 1])
    return tf.expand_dims(inputs, -1) if inputs.shape.rank == 1 else inputs


@takes("axis=-1, mean=None, variance=None, invert=False, **kwargs")
class Normalization(PreprocessingLayer):
    """(inputs - mean) / sqrt(variance), of each place along `axis`."""

    _config_names = ("axis", "invert")
    _config_attributes = {"mean": "input_mean", "variance": "input_variance"}
    _keeps_shape = True

    def compute_output_signature(self, input_signature):
        """The signature itself, as upstream has it."""
        return input_signature

    def _begin(self):
        mean, variance = self.input_mean, self.input_variance
        axis = () if self.axis is None else self.axis
        self.axis = (axis,) if isinstance(axis, int) else tuple(axis)
        if (mean is None) != (variance is None):
            raise ValueError(
                "When setting values directly, both `mean` and `variance` must be set. "
                f"Got mean: {mean} and variance: {variance}"
            )

    def _check_adaptable(self):
        if self.input_mean is not None:
            raise ValueError(
                "Cannot `adapt` a Normalization layer that is initialized with static "
                "`mean` and `variance`, you passed mean "
                f"{self.input_mean} and variance {self.input_variance}."
            )

    def build(self, input_shape):
        shape = tf.TensorShape(input_shape).as_list()
        shape = [*shape, 1] if len(shape) == 1 else shape or [1, 1]
        rank = len(shape)
        if any(a < -rank or a >= rank for a in self.axis):
            raise ValueError(
                "All `axis` values must be in the range [-ndim, ndim). Found ndim: "
                f"`{rank}`, axis: {self.axis}"
            )
        kept = sorted(a % rank for a in self.axis)
        for a in kept:
            if shape[a] is None:
                raise ValueError(
                    "All `axis` values to be kept must have known shape. Got axis: "
                    f"{self.axis}, input shape: {shape}, with unknown axis at index: {a}"
                )
        self._reduced = [a for a in range(rank) if a not in kept]
        self._spread = [shape[a] if a in kept else 1 for a in range(rank)]
        inner = tuple(shape[a] for a in kept)
        if self.input_mean is None:
            self.adapt_mean = self._state("mean", inner, "zeros")
            self.adapt_variance = self._state("variance", inner, "ones")
            self.count = self._state("count", (), "zeros", tf.int64)
            self._set(self.adapt_mean._read(), self.adapt_variance._read())
        else:
            given = (self.input_mean, self.input_variance)
            self._set(
                *(tf.broadcast_to(tf.cast(x, self._computed), inner) for x in given)
            )
        self.built = True

    def _state(self, name, shape, initializer, dtype=None):
        dtype = dtype or self._computed
        return self.add_weight(name, shape, dtype, initializer, trainable=False)

    def _set(self, mean, variance):
        self.mean = tf.reshape(mean, self._spread)
        self.variance = tf.reshape(variance, self._spread)

    def reset_state(self):
        if self.input_mean is None and self.built:
            self.adapt_mean.assign(tf.zeros_like(self.adapt_mean))
            self.adapt_variance.assign(tf.ones_like(self.adapt_variance))
            self.count.assign(0)

    def update_state(self, data):
        data = _columns(data, self._computed)
        mean, variance = tf.nn.moments(data, self._reduced)
        places = max(mean.shape.num_elements(), 1)
        count = tf.size(data, tf.int64) // places
        total = self.count._read() + count
        new = tf.cast(count, self._computed) / tf.cast(total, self._computed)
        old_mean, old_variance = self.adapt_mean._read(), self.adapt_variance._read()
        merged = mean * new + old_mean * (1.0 - new)
        spread = (variance + tf.square(mean - merged)) * new
        spread += (old_variance + tf.square(old_mean - merged)) * (1.0 - new)
        self.adapt_mean.assign(merged)
        self.adapt_variance.assign(spread)
        self.count.assign(total)

    def finalize_state(self):
        if self.input_mean is None and self.built:
            self._set(self.adapt_mean._read(), self.adapt_variance._read())

    def call(self, inputs):
        inputs = _columns(inputs, self._computed)
        deviation = tf.maximum(tf.sqrt(self.variance), 1e-7)
        if self.invert:
            return self.mean + inputs * deviation
        return (inputs - self.mean) / deviation

    def get_config(self):
        def plain(value):
            return None if value is None else np.asarray(value).tolist()

        return {
            **super().get_config(),
            "mean": plain(self.input_mean),
            "variance": plain(self.input_variance),
        }
