"""Transposed convolutions."""

from headrace import _api as tf
from headrace.keras.classes import add_classes
from headrace.keras.layer.conv.convolution import _Convolution
from headrace.keras.layer.parts import takes, tuple_of

_FUNCTIONS = {1: tf.nn.conv1d_transpose, 2: tf.nn.conv2d_transpose}
_FUNCTIONS[3] = tf.nn.conv3d_transpose


def transposed_length(size, kernel, padding, stride, output_padding=None, dilation=1):
    """The length that a transposed convolution gives back."""
    if size is None:
        return None
    kernel = kernel + (kernel - 1) * (dilation - 1)
    if output_padding is None:
        if padding == "valid":
            return size * stride + max(kernel - stride, 0)
        return size * stride
    pad = kernel // 2 if padding == "same" else 0
    return (size - 1) * stride + kernel - 2 * pad + output_padding


@takes(
    "filters, kernel_size, strides=1, padding='valid', output_padding=None, "
    "data_format=None, dilation_rate=1, activation=None, use_bias=True, **kwargs",
    *("kernel", "bias"),
)
class _Transposed(_Convolution):
    """A transposed convolution: from outputs' sizes to inputs'."""

    def _kept(self, name, value):
        if name != "output_padding" or value is None:
            return super()._kept(name, value)
        pads = tuple_of(value, self.rank, name, allow_zero=True)
        if any(more >= stride for stride, more in zip(self.strides, pads)):
            raise ValueError(
                "Strides must be greater than output padding. Received "
                f"strides={self.strides}, output_padding={pads}."
            )
        return pads

    def build(self, input_shape):
        given = tf.TensorShape(input_shape)
        if given.rank != self.rank + 2:
            raise ValueError(
                f"Inputs should have rank {self.rank + 2}. Received "
                f"input_shape={given}."
            )
        channels = self._channels(given)
        shape = (*self.kernel_size, self.filters, channels)
        self.kernel = self._new_weight("kernel", shape)
        self._finish(channels, ndim=self.rank + 2)

    def _length(self, size, axis):
        pad = None if self.output_padding is None else self.output_padding[axis]
        kernel, stride = self.kernel_size[axis], self.strides[axis]
        dilation = self.dilation_rate[axis]
        return transposed_length(size, kernel, self.padding, stride, pad, dilation)

    def _convolve(self, inputs):
        sizes = inputs.shape.as_list()[1:-1]
        if None in sizes:
            dynamic = tf.shape(inputs)
            sizes = [dynamic[i + 1] for i in range(self.rank)]
        known = map(self._length, sizes, range(self.rank))
        shape = tf.stack([tf.shape(inputs)[0], *known, self.filters])
        function = _FUNCTIONS[self.rank]
        how = {"padding": self.padding.upper(), "dilations": list(self.dilation_rate)}
        return function(inputs, self.kernel, shape, strides=list(self.strides), **how)


add_classes(
    globals(),
    """
Conv1DTranspose(_Transposed, rank=1)
    The transposed convolution over time.
Conv2DTranspose(_Transposed, rank=2)
    The transposed convolution over images.
""",
)


class Conv3DTranspose(_Transposed):
    """The transposed convolution over volumes."""

    rank = 3
    _config_without = ("dilation_rate",)

    def _begin(self):
        if self.dilation_rate != (1, 1, 1):
            raise NotImplementedError(
                f"Conv3DTranspose: dilation_rate={self.dilation_rate}"
            )
