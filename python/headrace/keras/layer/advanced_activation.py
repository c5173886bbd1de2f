"""Activations that are layers because they have options or weights."""

from headrace import _api as tf
from headrace.keras import activation, settings
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.layer.parts import Weighted, takes_options


class _Elementwise(Layer):
    supports_masking = True
    _keeps_shape = True


class ReLU(_Elementwise):
    """max(x, 0), with a slope below `threshold` and a ceiling."""

    def __init__(self, max_value=None, negative_slope=0.0, threshold=0.0, **kwargs):
        super().__init__(**kwargs)
        if negative_slope is None or negative_slope < 0.0:
            raise ValueError(
                "negative_slope of a ReLU layer cannot be a negative value. Received: "
                f"{negative_slope}"
            )
        self.max_value, self.negative_slope = max_value, negative_slope
        self.threshold = threshold

    def call(self, inputs):
        """max_value above it, x from `threshold` on, negative_slope (x - threshold)
        below.
        """
        return settings.relu(
            tf.convert_to_tensor(inputs),
            self.negative_slope,
            self.max_value,
            self.threshold,
        )


class LeakyReLU(_Elementwise):
    """x above zero, alpha x below."""

    def __init__(self, alpha=0.3, **kwargs):
        super().__init__(**kwargs)
        if alpha is None:
            raise ValueError(
                "The alpha value of a Leaky ReLU layer cannot be None, Expecting a "
                f"float. Received: {alpha}"
            )
        self.alpha = alpha

    def call(self, inputs):
        """x above zero, alpha x below."""
        return tf.nn.leaky_relu(inputs, self.alpha)


class ELU(_Elementwise):
    """x above zero, alpha (exp(x) - 1) below."""

    def __init__(self, alpha=1.0, **kwargs):
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs):
        """x above zero, alpha (exp(x) - 1) below."""
        return activation.elu(inputs, self.alpha)


class ThresholdedReLU(_Elementwise):
    """x above `theta`, zero below."""

    def __init__(self, theta=1.0, **kwargs):
        super().__init__(**kwargs)
        self.theta = theta

    def call(self, inputs):
        """x above theta, 0 elsewhere."""
        return inputs * tf.cast(inputs > self.theta, inputs.dtype)


class Softmax(_Elementwise):
    """Probabilities along an axis; with a mask, over what it shows."""

    def __init__(self, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs, mask=None):
        """Numbers that sum up to 1 along `axis`; about 0 where `mask`, a bool tensor,
        hides.
        """
        if mask is not None:
            low = -65504.0 if inputs.dtype == tf.float16 else -1e9
            inputs += (1.0 - tf.cast(mask, inputs.dtype)) * low
        if isinstance(self.axis, (tuple, list)) and len(self.axis) > 1:
            total = tf.reduce_logsumexp(inputs, axis=self.axis, keepdims=True)
            return tf.exp(inputs - total)
        axis = self.axis[0] if isinstance(self.axis, (tuple, list)) else self.axis
        return tf.nn.softmax(inputs, axis=axis)


class PReLU(Weighted, Layer):
    """A leaky ReLU whose slopes are learned."""

    supports_masking = True

    @takes_options("alpha", activity=False, before="shared_axes")
    def __init__(self, shared_axes=None, **kwargs):
        super().__init__(**kwargs)
        if shared_axes is not None and not isinstance(shared_axes, (list, tuple)):
            shared_axes = [shared_axes]
        self.shared_axes = None if shared_axes is None else tuple(shared_axes)

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
