"""Layers that are active while training alone: dropout and noise."""

from headrace import _api as tf
from headrace.keras import settings
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.input_spec import InputSpec


class _Drawing(Layer):
    """Draws with seeds from `seed` on, one a call; with the global seed alone where
    that is None."""

    supports_masking = True
    seed = None
    _calls = 0

    def _next_seed(self):
        if self.seed is None:
            return None
        self._calls += 1
        return self.seed + self._calls - 1


class Dropout(_Drawing):
    """Sets a share of the inputs to zero while training."""

    _keeps_shape = True

    def __init__(self, rate, noise_shape=None, seed=None, **kwargs):
        super().__init__(**kwargs)
        if isinstance(rate, (int, float)) and not 0 <= rate <= 1:
            raise ValueError(
                f"Invalid value {rate} received for `rate`, expected a value between 0 "
                "and 1."
            )
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def _noise_shape(self, inputs):
        if self.noise_shape is None:
            return None
        sizes = tf.shape(inputs)
        return tf.stack(
            [sizes[i] if n is None else n for i, n in enumerate(self.noise_shape)]
        )

    def call(self, inputs, training=None):
        if not training or (isinstance(self.rate, (int, float)) and self.rate == 0):
            return tf.identity(inputs) if training else inputs
        return tf.nn.dropout(
            inputs,
            self.rate,
            noise_shape=self._noise_shape(inputs),
            seed=self._next_seed(),
        )


class SpatialDropout1D(Dropout):
    """Drops whole channels of [batch, steps, channels]."""

    def __init__(self, rate, **kwargs):
        super().__init__(rate, **kwargs)
        self.input_spec = InputSpec(ndim=3)

    def _noise_shape(self, inputs):
        sizes = tf.shape(inputs)
        return tf.stack([sizes[0], 1, sizes[2]])


class SpatialDropout2D(Dropout):
    """Drops whole channels of images."""

    _rank = 2
    _config_without = ("data_format",)

    def __init__(self, rate, data_format=None, **kwargs):
        super().__init__(rate, **kwargs)
        self.data_format = settings.data_format(data_format)
        self.input_spec = InputSpec(ndim=self._rank + 2)

    def _noise_shape(self, inputs):
        sizes, inner = tf.shape(inputs), [1] * self._rank
        if self.data_format == "channels_first":
            return tf.stack([sizes[0], sizes[1], *inner])
        return tf.stack([sizes[0], *inner, sizes[self._rank + 1]])


class SpatialDropout3D(SpatialDropout2D):
    """Drops whole channels of volumes."""

    _rank = 3


class GaussianNoise(_Drawing):
    """Adds noise while training."""

    def __init__(self, stddev, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.stddev, self.seed = stddev, seed

    def call(self, inputs, training=None):
        if not training:
            return inputs
        return inputs + tf.random.normal(
            tf.shape(inputs), 0.0, self.stddev, inputs.dtype, seed=self._next_seed()
        )


class GaussianDropout(_Drawing):
    """Multiplies with noise around 1, as strong as a dropout of `rate`."""

    def __init__(self, rate, seed=None, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate <= 1:
            raise ValueError(
                f"Invalid value received for argument `rate`. Expected a float value "
                f"between 0 and 1. Received: rate={rate}"
            )
        self.rate, self.seed = rate, seed

    def call(self, inputs, training=None):
        if not training or not 0 < self.rate < 1:
            return inputs
        stddev = (self.rate / (1.0 - self.rate)) ** 0.5
        return inputs * tf.random.normal(
            tf.shape(inputs), 1.0, stddev, inputs.dtype, seed=self._next_seed()
        )


_SELU_LOW = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946


class AlphaDropout(_Drawing):
    """Dropout to SELU's lowest value that keeps mean and variance."""

    _config_without = ("noise_shape",)

    def __init__(self, rate, noise_shape=None, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs, training=None):
        rate = self.rate
        if not training or not 0 < rate < 1:
            return inputs
        shape = tf.shape(inputs) if self.noise_shape is None else self.noise_shape
        kept = tf.greater_equal(tf.random.uniform(shape, seed=self._next_seed()), rate)
        kept = tf.cast(kept, inputs.dtype)
        scale = ((1 - rate) * (1 + rate * _SELU_LOW**2)) ** -0.5
        shift = -scale * _SELU_LOW * rate
        return scale * (inputs * kept + _SELU_LOW * (1 - kept)) + shift
