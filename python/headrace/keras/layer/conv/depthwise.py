"""Convolutions of each channel by itself, and what mixes the channels behind them."""

from headrace import _api as tf
from headrace.keras.classes import add_classes
from headrace.keras.layer.conv.convolution import _Convolution
from headrace.keras.layer.parts import option_names, takes


class _OfChannels(_Convolution):
    """What convolves channels one by one; over time as images of one row."""

    _config_first = ("kernel_size", "strides", "padding", "data_format")
    _config_first += ("dilation_rate", "groups", "activation", "use_bias")

    def _new_depthwise(self, channels):
        self.depthwise_kernel = self._new_weight(
            "depthwise",
            (*self.kernel_size, channels, self.depth_multiplier),
            name="depthwise_kernel",
        )

    def _convolve(self, inputs):
        if self.rank == 2:
            return self._images(inputs, self.strides, self.dilation_rate)
        if self.padding == "causal":
            inputs = self._pad_before(inputs)
        rows = tf.expand_dims(inputs, 1)
        out = self._images(rows, self.strides * 2, (1, *self.dilation_rate))
        return tf.squeeze(out, [1])

    def _images(self, inputs, strides, dilations):
        kernel = self.depthwise_kernel
        return tf.nn.depthwise_conv2d(
            inputs,
            kernel if self.rank == 2 else tf.expand_dims(kernel, 0),
            [1, *strides, 1],
            "SAME" if self.padding == "same" else "VALID",
            dilations=list(dilations),
        )


@takes(
    "kernel_size, strides=(1, 1), padding='valid', depth_multiplier=1, "
    "data_format=None, dilation_rate=(1, 1), activation=None, use_bias=True, **kwargs",
    *("depthwise", "bias"),
    filters=None,
)
class DepthwiseConv2D(_OfChannels):
    """Each channel by its own kernels."""

    _config_names = (
        *_OfChannels._config_first,
        *option_names("depthwise", "bias"),
        "depth_multiplier",
    )

    def build(self, input_shape):
        channels = self._channels(input_shape)
        self._new_depthwise(channels)
        self.filters = channels * self.depth_multiplier
        self._finish(channels, min_ndim=self.rank + 2)

    def compute_output_shape(self, input_shape):
        self.filters = self._channels(input_shape) * self.depth_multiplier
        return super().compute_output_shape(input_shape)


@takes(
    "filters, kernel_size, strides=(1, 1), padding='valid', data_format=None, "
    "dilation_rate=(1, 1), depth_multiplier=1, activation=None, use_bias=True, **kwargs",
    *("depthwise", "pointwise", "bias"),
)
class SeparableConv2D(_OfChannels):
    """A depthwise convolution, then one of size 1 that mixes channels."""

    _config_names = (
        "filters",
        *_OfChannels._config_first,
        # of a kernel, which it does not have, it says what convolutions do
        *option_names("kernel", "depthwise", "pointwise", "bias"),
        "depth_multiplier",
    )

    def build(self, input_shape):
        channels = self._channels(input_shape)
        self._new_depthwise(channels)
        mixed = channels * self.depth_multiplier
        self.pointwise_kernel = self._new_weight(
            "pointwise",
            (*(1,) * self.rank, mixed, self.filters),
            name="pointwise_kernel",
        )
        self._finish(channels, min_ndim=self.rank + 2)

    def _convolve(self, inputs):
        mixed = super()._convolve(inputs)
        function = tf.nn.conv1d if self.rank == 1 else tf.nn.conv2d
        return function(mixed, self.pointwise_kernel, [1] * self.rank, "VALID")


add_classes(
    globals(),
    """
DepthwiseConv1D(DepthwiseConv2D, rank=1)
    Each channel by its own kernels, over time.
SeparableConv1D(SeparableConv2D, rank=1, _paddings=("valid", "same", "causal"))
    A depthwise convolution over time, then one that mixes channels.
""",
)
