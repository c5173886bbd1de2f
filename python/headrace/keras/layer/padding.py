"""Layers that pad, cut and enlarge."""

import headrace as tf
from headrace.keras import settings
from headrace.keras.engine.base_layer import Layer
from headrace.keras.engine.input_spec import InputSpec
from headrace.keras.layer.parts import tuple_of


def _pairs(value, name):
    """((top, bottom), (left, right)) of an integer, two integers or two pairs."""
    if isinstance(value, int):
        return ((value, value), (value, value))
    if len(value) != 2:
        raise ValueError(f"`{name}` should have two elements. Received: {value}.")
    rows, cols = value
    rows = (rows, rows) if isinstance(rows, int) else tuple(rows)
    cols = (cols, cols) if isinstance(cols, int) else tuple(cols)
    return (rows, cols)


class ZeroPadding1D(Layer):
    """Zeros before and behind the steps: [batch, steps, channels]."""

    def __init__(self, padding=1, **kwargs):
        super().__init__(**kwargs)
        self.padding = (padding,) * 2 if isinstance(padding, int) else tuple(padding)
        self.input_spec = InputSpec(ndim=3)

    def call(self, inputs):
        """[batch, steps, channels] to [batch, before + steps + after, channels]."""
        return tf.pad(inputs, [[0, 0], list(self.padding), [0, 0]])

    def get_config(self):
        """Adds padding."""
        return {**super().get_config(), "padding": self.padding}


class ZeroPadding2D(Layer):
    """Zeros around images: ((top, bottom), (left, right))."""

    def __init__(self, padding=(1, 1), data_format=None, **kwargs):
        super().__init__(**kwargs)
        self.data_format = settings.data_format(data_format)
        self.padding = _pairs(padding, "padding")
        self.input_spec = InputSpec(ndim=4)

    def call(self, inputs):
        """Images with zeros around: [batch, height, width, channels], or channels
        first.
        """
        inner = [list(p) for p in self.padding]
        if self.data_format == "channels_first":
            return tf.pad(inputs, [[0, 0], [0, 0], *inner])
        return tf.pad(inputs, [[0, 0], *inner, [0, 0]])

    def get_config(self):
        """Adds padding and data_format."""
        return {
            **super().get_config(),
            "padding": self.padding,
            "data_format": self.data_format,
        }


class Cropping2D(Layer):
    """Takes rows and columns off images: ((top, bottom), (left, right))."""

    def __init__(self, cropping=((0, 0), (0, 0)), data_format=None, **kwargs):
        super().__init__(**kwargs)
        self.data_format = settings.data_format(data_format)
        self.cropping = _pairs(cropping, "cropping")
        self.input_spec = InputSpec(ndim=4)

    def call(self, inputs):
        """Images without their edges: [batch, height, width, channels], or channels
        first.
        """
        (top, bottom), (left, right) = self.cropping
        rows, cols = slice(top, -bottom or None), slice(left, -right or None)
        if self.data_format == "channels_first":
            return inputs[:, :, rows, cols]
        return inputs[:, rows, cols, :]

    def get_config(self):
        """Adds cropping and data_format."""
        return {
            **super().get_config(),
            "cropping": self.cropping,
            "data_format": self.data_format,
        }


class UpSampling1D(Layer):
    """Repeats each step `size` times: [batch, steps, channels]."""

    def __init__(self, size=2, **kwargs):
        super().__init__(**kwargs)
        self.size = int(size)
        self.input_spec = InputSpec(ndim=3)

    def call(self, inputs):
        """[batch, steps, channels] to [batch, steps * size, channels]."""
        return tf.repeat(inputs, self.size, axis=1)

    def get_config(self):
        """Adds size."""
        return {**super().get_config(), "size": self.size}


class UpSampling2D(Layer):
    """Repeats rows and columns."""

    def __init__(
        self, size=(2, 2), data_format=None, interpolation="nearest", **kwargs
    ):
        super().__init__(**kwargs)
        self.data_format = settings.data_format(data_format)
        self.size = tuple_of(size, 2, "size")
        if interpolation != "nearest":
            raise NotImplementedError(
                f"UpSampling2D: interpolation={interpolation!r} is not supported"
            )
        self.interpolation = interpolation
        self.input_spec = InputSpec(ndim=4)

    def call(self, inputs):
        """Images of size[0] times the height and size[1] times the width."""
        first = 2 if self.data_format == "channels_first" else 1
        out = tf.repeat(inputs, self.size[0], axis=first)
        return tf.repeat(out, self.size[1], axis=first + 1)

    def get_config(self):
        """Adds size, data_format and interpolation."""
        return {
            **super().get_config(),
            "size": self.size,
            "data_format": self.data_format,
            "interpolation": self.interpolation,
        }
