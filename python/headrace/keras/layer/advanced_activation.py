"""Activations that are layers because they have options or weights."""

from headrace import _api as tf
from headrace.keras import activation, settings
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.layer.parts import Weighted, takes


class _Elementwise(Layer):
    supports_masking = True
    _keeps_shape = True


@takes("max_value=None, negative_slope=0.0, threshold=0.0, **kwargs")
class ReLU(_Elementwise):
    """max(x, 0), with a slope below `threshold` and a ceiling."""

    def _begin(self):
        for name in ("max_value", "negative_slope", "threshold"):
            value = getattr(self, name)
            if name == "max_value" and value is None:
                continue
            if value is None or value < 0.0:
                raise ValueError(
                    f"{name} of a ReLU layer cannot be a negative value. Received: "
                    f"{value}"
                )

    def call(self, inputs):
        """max_value above it, x from `threshold` on, negative_slope (x - threshold)
        below.
        """
        inputs = tf.convert_to_tensor(inputs)
        return settings.relu(
            inputs, self.negative_slope, self.max_value, self.threshold
        )


@takes("alpha=0.3, **kwargs")
class LeakyReLU(_Elementwise):
    """x above zero, alpha x below."""

    def _begin(self):
        if self.alpha is None:
            raise ValueError(
                "The alpha value of a Leaky ReLU layer cannot be None, Expecting a "
                f"float. Received: {self.alpha}"
            )

    def call(self, inputs):
        """x above zero, alpha x below."""
        return tf.nn.leaky_relu(inputs, self.alpha)


@takes("alpha=1.0, **kwargs")
class ELU(_Elementwise):
    """x above zero, alpha (exp(x) - 1) below."""

    def _begin(self):
        if self.alpha is None:
            raise ValueError(
                "Alpha of an ELU layer cannot be None, expecting a float. Received: None"
            )

    def call(self, inputs):
        """x above zero, alpha (exp(x) - 1) below."""
        return activation.elu(inputs, self.alpha)


@takes("theta=1.0, **kwargs")
class ThresholdedReLU(_Elementwise):
    """x above `theta`, zero below."""

    def _begin(self):
        if self.theta is None:
            raise ValueError(
                "Theta of a Thresholded ReLU layer cannot be None, expecting a float. "
                "Received: None"
            )
        if self.theta < 0:
            raise ValueError(
                "The theta value of a Thresholded ReLU layer should be >=0. Received: "
                f"{self.theta}"
            )

    def call(self, inputs):
        """x above theta, 0 elsewhere."""
        return inputs * tf.cast(inputs > self.theta, inputs.dtype)


def masked(scores, mask, robust):
    """Scores of which softmax leaves what a mask hides next to nothing, or nothing."""
    if robust:
        low = tf.constant(scores.dtype.min / 2, scores.dtype)
        return tf.where(tf.cast(mask, tf.bool), scores, low)
    low = -65504.0 if scores.dtype == tf.float16 else -1e9
    return scores + (1.0 - tf.cast(mask, scores.dtype)) * low


@takes("axis=-1, robust_masking=False, **kwargs")
class Softmax(_Elementwise):
    """Probabilities along an axis; with a mask, over what it shows: all others are about
    0, or with `robust_masking` 0 however large they were."""

    _config_without = ("robust_masking",)

    def call(self, inputs, mask=None):
        """Numbers that sum up to 1 along `axis`; about 0 where `mask`, a bool tensor,
        hides.
        """
        if mask is not None:
            inputs = masked(inputs, mask, self.robust_masking)
        if isinstance(self.axis, (tuple, list)) and len(self.axis) > 1:
            total = tf.reduce_logsumexp(inputs, axis=self.axis, keepdims=True)
            return tf.exp(inputs - total)
        if self.axis is None:  # all of them, with the batch, as upstream
            above = tf.exp(inputs - tf.reduce_max(inputs))
            return above / tf.reduce_sum(above)
        axis = self.axis[0] if isinstance(self.axis, (tuple, list)) else self.axis
        return tf.nn.softmax(inputs, axis=axis)

    def get_config(self):
        """A dict of the arguments; robust_masking where it is true."""
        config = super().get_config()
        return {**config, "robust_masking": True} if self.robust_masking else config


@takes("shared_axes=None, **kwargs", "alpha", before="shared_axes", activity=False)
class PReLU(Weighted, Layer):
    """A leaky ReLU whose slopes are learned."""

    supports_masking = True

    def _begin(self):
        axes = self.shared_axes
        if axes is not None:
            self.shared_axes = tuple(
                axes if isinstance(axes, (list, tuple)) else [axes]
            )

    def build(self, input_shape):
        """Makes alpha, of the inputs' shape without the batch, 1 along shared_axes."""
        sizes = tf.TensorShape(input_shape).as_list()
        shape = sizes[1:]
        for axis in self.shared_axes or ():
            shape[axis - 1] = 1
        self.alpha = self._new_weight("alpha", shape)
        shared = self.shared_axes or ()
        axes = {i: n for i, n in enumerate(sizes) if i > 0 and i not in shared}
        self.input_spec = InputSpec(ndim=len(sizes), axes=axes)
        self.built = True

    def call(self, inputs):
        """x above zero, alpha x below; alpha is a weight of the inputs' shape."""
        return tf.nn.relu(inputs) - self.alpha * tf.nn.relu(-inputs)
