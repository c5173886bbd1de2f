"""Layers that are active while training alone: dropout and noise."""

from headrace import _api as tf
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.phase import choose
from headrace.keras.layer.parts import takes


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

    def _is_idle(self):
        """Whether nothing is drawn in training either."""
        return not 0 < self.rate < 1

    def call(self, inputs, training=None):
        """The inputs, in training with what is drawn."""
        if self._is_idle():
            return inputs
        return choose(training, lambda: self._drawn(inputs), lambda: inputs)


@takes("rate, noise_shape=None, seed=None, **kwargs")
class Dropout(_Drawing):
    """Sets a share of the inputs to zero while training."""

    _keeps_shape = True

    def _begin(self):
        if isinstance(self.rate, (int, float)) and not 0 <= self.rate <= 1:
            raise ValueError(
                f"Invalid value {self.rate} received for `rate`, expected a value "
                "between 0 and 1."
            )

    def _get_noise_shape(self, inputs):
        if self.noise_shape is None:
            return None
        sizes = tf.shape(inputs)
        return tf.stack(
            [sizes[i] if n is None else n for i, n in enumerate(self.noise_shape)]
        )

    def _is_idle(self):
        return False

    def _drawn(self, inputs):
        if isinstance(self.rate, (int, float)) and self.rate == 0:
            return tf.identity(inputs)
        shape, seed = self._get_noise_shape(inputs), self._next_seed()
        return tf.nn.dropout(inputs, self.rate, noise_shape=shape, seed=seed)


@takes("rate, **kwargs")
class SpatialDropout1D(Dropout):
    """Drops whole channels of [batch, steps, channels]."""

    def _begin(self):
        self.input_spec = InputSpec(ndim=3)

    def _get_noise_shape(self, inputs):
        sizes = tf.shape(inputs)
        return tf.stack([sizes[0], 1, sizes[2]])


@takes("rate, data_format=None, **kwargs")
class SpatialDropout2D(Dropout):
    """Drops whole channels of images."""

    _rank = 2
    _config_without = ("data_format",)

    def _begin(self):
        self.input_spec = InputSpec(ndim=self._rank + 2)

    def _get_noise_shape(self, inputs):
        sizes, inner = tf.shape(inputs), [1] * self._rank
        if self.data_format == "channels_first":
            return tf.stack([sizes[0], sizes[1], *inner])
        return tf.stack([sizes[0], *inner, sizes[self._rank + 1]])


class SpatialDropout3D(SpatialDropout2D):
    """Drops whole channels of volumes."""

    _rank = 3


@takes("stddev, seed=None, **kwargs")
class GaussianNoise(_Drawing):
    """Adds noise while training."""

    def _is_idle(self):
        return False

    def _drawn(self, inputs):
        return inputs + tf.random.normal(
            tf.shape(inputs), 0.0, self.stddev, inputs.dtype, seed=self._next_seed()
        )


@takes("rate, seed=None, **kwargs")
class GaussianDropout(_Drawing):
    """Multiplies with noise around 1, as strong as a dropout of `rate`."""

    def _begin(self):
        if not 0 <= self.rate <= 1:
            raise ValueError(
                f"Invalid value received for argument `rate`. Expected a float value "
                f"between 0 and 1. Received: rate={self.rate}"
            )

    def _drawn(self, inputs):
        stddev = (self.rate / (1.0 - self.rate)) ** 0.5
        return inputs * tf.random.normal(
            tf.shape(inputs), 1.0, stddev, inputs.dtype, seed=self._next_seed()
        )


_SELU_LOW = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946


@takes("rate, noise_shape=None, seed=None, **kwargs")
class AlphaDropout(_Drawing):
    """Dropout to SELU's lowest value that keeps mean and variance."""

    _config_without = ("noise_shape",)

    def _drawn(self, inputs):
        rate = self.rate
        shape = tf.shape(inputs) if self.noise_shape is None else self.noise_shape
        kept = tf.greater_equal(tf.random.uniform(shape, seed=self._next_seed()), rate)
        kept = tf.cast(kept, inputs.dtype)
        scale = ((1 - rate) * (1 + rate * _SELU_LOW**2)) ** -0.5
        shift = -scale * _SELU_LOW * rate
        return scale * (inputs * kept + _SELU_LOW * (1 - kept)) + shift
