"""Convolutions whose kernel is another one at every place."""

import math

from headrace import _api as tf
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.classes import add_classes
from headrace.keras.layer.conv.convolution import OnWindows
from headrace.keras.layer.parts import Weighted, takes


@takes(
    "filters, kernel_size, strides=1, padding='valid', data_format=None, "
    "activation=None, use_bias=True, implementation=1, **kwargs",
    *("kernel", "bias"),
    before="implementation",
)
class _LocallyConnected(Weighted, OnWindows):
    def _begin(self):
        name = type(self).__name__
        if self.implementation != 1:
            raise NotImplementedError(f"{name}: implementation={self.implementation}")
        if self.filters is not None and self.filters < 0:
            raise ValueError(f"filters cannot be less than 0, got {self.filters}.")
        if self.padding != "valid":
            raise ValueError(
                f'Invalid border mode for {name} (only "valid" is supported if '
                f"implementation is 1): {self.padding}"
            )
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def build(self, input_shape):
        sizes, first = tf.TensorShape(input_shape).as_list(), self._first()
        channels = sizes[self._channel_axis()]
        out = self._resized(sizes)[first : first + self.rank]
        if channels is None or None in out:
            raise ValueError(
                f"Axes 1 and up of the inputs to {type(self).__name__} should be fully "
                f"defined. Found shape: {input_shape}"
            )
        if min(out) <= 0:
            raise ValueError(
                "One of the dimensions in the output is <= 0 due to downsampling in "
                f"{self.name}. Consider increasing the input size. Received input shape "
                f"{tf.TensorShape(input_shape)} which would produce output shape with a "
                "zero or negative value in a dimension."
            )
        shape = (math.prod(out), math.prod(self.kernel_size) * channels, self.filters)
        self.kernel = self._new_weight("kernel", shape)
        self.bias = None
        if self.use_bias:
            self.bias = self._new_weight("bias", (*out, self.filters))
        axes = {self._channel_axis(): channels}
        self.input_spec = InputSpec(ndim=self.rank + 2, axes=axes)
        self.built = True

    def _compute(self, inputs):
        rows = tf.expand_dims(inputs, 1) if self.rank == 1 else inputs
        ones = (1,) * (2 - self.rank)
        sizes, strides = [1, *ones, *self.kernel_size, 1], [1, *ones, *self.strides, 1]
        patches = tf.image.extract_patches(rows, sizes, strides, [1, 1, 1, 1], "VALID")
        places, size = self.kernel.shape[0], self.kernel.shape[1]
        patches = tf.reshape(patches, [-1, places, size])
        out = tf.einsum("npi,pio->npo", patches, self.kernel)
        sizes = [n - k for n, k in zip(inputs.shape.as_list()[1:], self.kernel_size)]
        sizes = [n // s + 1 for n, s in zip(sizes, self.strides)]
        out = tf.reshape(out, [-1, *sizes, self.filters])
        return out if self.bias is None else out + self.bias

    def call(self, inputs):
        out = self._channels_last(self._compute, inputs)
        return out if self.activation is None else self.activation(out)

    def compute_output_shape(self, input_shape):
        sizes = tf.TensorShape(input_shape).as_list()
        return tf.TensorShape(self._resized(sizes, self.filters))


add_classes(
    globals(),
    """
LocallyConnected1D(_LocallyConnected, rank=1)
    A kernel of its own for every step: [batch, steps, channels].
LocallyConnected2D(_LocallyConnected, rank=2)
    A kernel of its own for every place of an image.
""",
)
