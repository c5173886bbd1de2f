"""tf.keras.constraints."""

from headrace import _api as tf
from headrace.keras import serialization, settings
from headrace.keras.classes import takes


class Constraint:
    """Called with a weight after its update, gives what it is to be."""

    _keras_module = "keras.constraints"

    def __call__(self, w):
        return w

    def get_config(self):
        """The constructor's arguments as a dict, for from_config()."""
        return serialization.config_of(self)

    @classmethod
    def from_config(cls, config):
        """A constraint of the dict that get_config() gave."""
        return cls(**config)


def _norm(w, axis):
    return tf.sqrt(tf.reduce_sum(tf.square(w), axis=axis, keepdims=True))


@takes("max_value=2, axis=0")
class MaxNorm(Constraint):
    """Weights whose norms along `axis` are at most `max_value`."""

    def __call__(self, w):
        norms = _norm(w, self.axis)
        wanted = tf.clip_by_value(norms, 0.0, float(self.max_value))
        return w * (wanted / (settings.epsilon() + norms))


@takes("min_value=0.0, max_value=1.0, rate=1.0, axis=0")
class MinMaxNorm(Constraint):
    """Weights whose norms along `axis` are led into a range, at `rate`."""

    def __call__(self, w):
        norms = _norm(w, self.axis)
        clipped = tf.clip_by_value(norms, float(self.min_value), float(self.max_value))
        wanted = self.rate * clipped + (1 - self.rate) * norms
        return w * (wanted / (settings.epsilon() + norms))


class NonNeg(Constraint):
    """Weights below zero become zero."""

    def __call__(self, w):
        return w * tf.cast(tf.greater_equal(w, 0.0), w.dtype)


@takes("axis=0")
class UnitNorm(Constraint):
    """Weights whose norms along `axis` are 1."""

    def __call__(self, w):
        return w / (settings.epsilon() + _norm(w, self.axis))


class RadialConstraint(Constraint):
    """Kernels of equal height and width that are as symmetric as rings."""

    def __call__(self, w):
        if w.shape.rank != 4:
            raise ValueError(
                "The weight tensor must have rank 4. Received weight tensor with shape: "
                f"{w.shape}"
            )
        rows, cols, channels, kernels = w.shape
        if rows != cols:
            raise ValueError(
                f"Kernel of RadialConstraint must be square. Received shape: {w.shape}"
            )
        flat = tf.reshape(w, (rows, cols, channels * kernels))
        rings = [_rings(k, rows) for k in tf.unstack(flat, axis=-1)]
        return tf.reshape(tf.stack(rings, axis=-1), (rows, cols, channels, kernels))


def _rings(kernel, size):
    """Rings around the middle, each of the value that the diagonal has there; where
    the size is even, the diagonal's next value is passed over."""
    half, odd = size // 2, size % 2
    width = 2 - odd
    out = tf.fill([width, width], kernel[half - 1, half - 1])
    for i in range(1, half + odd):
        at = half + i - odd
        out = tf.pad(out, [[1, 1], [1, 1]], constant_values=kernel[at, at])
    return out


_NAMES = serialization.classes_of(globals(), Constraint)
_NAMES.update({settings.snake_case(name): c for name, c in _NAMES.items()})
get, deserialize = serialization.getter(_NAMES, "constraint")
serialize = serialization.serializer("constraint")
