"""Convolutions."""

from headrace import _api as tf
from headrace.framework.support import signatures
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.classes import add_classes, with_defaults
from headrace.keras.layer.parts import Weighted, takes, tuple_of


def output_length(size, kernel, padding, stride, dilation=1):
    """The length of a convolution's output; None where it is unknown."""
    if size is None:
        return None
    reach = kernel + (kernel - 1) * (dilation - 1)
    if padding in ("same", "causal"):
        return -(-size // stride)
    return (size - reach + stride) // stride


LAST = {"data_format": "channels_last"}


def check_padding(given, known):
    """ValueError for a padding that is none of some names."""
    if given.lower() not in known:
        raise ValueError(
            'The `padding` argument must be a list/tuple or one of "valid", "same" (or '
            f'"causal", only for `Conv1D). Received: {given.lower()}'
        )


_PER_AXIS = ("pool_size", "strides", "dilation_rate", "size", "padding", "cropping")


def of_axes(base, rank):
    """{parameter: default} of those of a class that have one value for all axes."""
    found = {}
    for p in signatures.parameters_of(base.__init__):
        one = p.default[0] if isinstance(p.default, tuple) else p.default
        if p.name in _PER_AXIS and isinstance(one, (int, tuple)):
            found[p.name] = one if rank == 1 else (one,) * rank
    return found


class OnSpace(Layer):
    """What works on `rank` axes of space, which the data format places."""

    rank = 2
    _defaults = {}  # those of parameters that differ from the base's

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "rank" in vars(cls) and "__init__" not in vars(cls):
            base = cls.__mro__[1]
            changed = {**of_axes(base, cls.rank), **cls._defaults}
            cls.__init__ = with_defaults(base, **changed)
            cls.__init__.__qualname__ = f"{cls.__name__}.__init__"

    def _first(self):
        """The first of the axes."""
        return 2 if self.data_format == "channels_first" else 1

    def _channel_axis(self):
        return 1 if self.data_format == "channels_first" else -1

    def _resized(self, sizes, channels=None):
        """Sizes of the output: those of space, and channels."""
        sizes = list(sizes)
        first = len(sizes) - self.rank - 2 + self._first()
        space = slice(first, first + self.rank)
        sizes[space] = self._spatial_output_shape(sizes[space])
        if channels is not None:
            sizes[first - 1 if self._first() == 2 else -1] = channels
        return sizes

    def _spatial_output_shape(self, spatial_input_shape):
        """The sizes of the output's space for those of the input's, None where they are
        unknown: by `_length(size, axis)`. Subclasses of programs may define it."""
        return [
            None if size is None else self._length(size, axis)
            for axis, size in enumerate(spatial_input_shape)
        ]


class OnWindows(OnSpace):
    """What works on windows: their sizes, and what they leave of a size."""

    def _length(self, size, axis):
        kernel, stride = self.kernel_size[axis], self.strides[axis]
        dilation = getattr(self, "dilation_rate", (1, 1, 1))[axis]
        return output_length(size, kernel, self.padding, stride, dilation)

    def _kept(self, name, value):
        if name in ("kernel_size", "pool_size", "strides", "dilation_rate"):
            return tuple_of(value, self.rank, name)
        return value.lower() if name == "padding" else super()._kept(name, value)

    def _channels_last(self, function, inputs):
        """Runs `function` with channels last, whatever the layer's format is."""
        if self.data_format != "channels_first":
            return function(inputs)
        batch = len(inputs.shape) - self.rank - 1
        lead, last = [*range(batch)], batch + self.rank
        order = [*lead, *range(batch + 1, last + 1), batch]
        out = function(tf.transpose(inputs, order))
        return tf.transpose(out, [*lead, last, *range(batch, last)])


@takes(
    "filters, kernel_size, strides=1, padding='valid', data_format=None, "
    "dilation_rate=1, groups=1, activation=None, use_bias=True, **kwargs",
    *("kernel", "bias"),
)
class _Convolution(Weighted, OnWindows):
    """What convolutions of all ranks share."""

    _paddings = ("valid", "same")

    def _validate_init(self):
        """Raises ValueError for arguments that do not fit. Subclasses of programs, that
        pad otherwise, define it."""
        filters, groups = self.filters, self.groups
        if filters is not None and filters <= 0:
            raise ValueError(
                "Invalid value for argument `filters`. Expected a strictly positive "
                f"value. Received filters={filters}."
            )
        if groups <= 0 or (filters is not None and filters % groups):
            raise ValueError(
                "The number of filters must be evenly divisible by the number of "
                f"groups. Received: groups={groups}, filters={filters}."
            )
        if self.padding == "causal" and "causal" not in self._paddings:
            raise ValueError(
                "Causal padding is only supported for `Conv1D`and `SeparableConv1D`."
            )
        check_padding(self.padding, self._paddings)

    def _begin(self):
        self._validate_init()
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(
                "`strides > 1` not supported in conjunction with `dilation_rate > 1`. "
                f"Received: strides={self.strides} and "
                f"dilation_rate={self.dilation_rate}"
            )
        self.input_spec = InputSpec(min_ndim=self.rank + 2)

    def _channels(self, input_shape):
        shape = tf.TensorShape(input_shape)
        channels = shape[self._channel_axis()]
        if channels is None:
            raise ValueError(
                "The channel dimension of the inputs should be defined. The "
                f"input_shape received is {tuple(shape.as_list())}, where axis "
                f"{self._channel_axis()} (0-based) is the channel dimension, which "
                "found to be `None`."
            )
        return channels

    def build(self, input_shape):
        """Makes the kernel, [*kernel_size, channels / groups, filters], and the bias.

        ValueError where the channels are unknown or no multiple of the groups, and for
        a space that is smaller than the kernel.
        """
        channels = self._channels(input_shape)
        if channels % self.groups:
            raise ValueError(
                "The number of input channels must be evenly divisible by the number of "
                f"groups. Received groups={self.groups}, but the input has {channels} "
                "channels."
            )
        self.compute_output_shape(input_shape)
        shape = (*self.kernel_size, channels // self.groups, self.filters)
        self.kernel = self._new_weight("kernel", shape)
        self._finish(channels, min_ndim=self.rank + 2)

    def _finish(self, channels, **rank):
        """What follows the kernels: the bias, and what inputs must be from now on."""
        self.bias = self._new_weight("bias", (self.filters,)) if self.use_bias else None
        self.input_spec = InputSpec(axes={self._channel_axis(): channels}, **rank)
        self.built = True

    def _compute_causal_padding(self, inputs):
        """How many zeros come before and behind each axis, channels last, so that no
        output sees later steps. Subclasses may define it."""
        left = self.dilation_rate[0] * (self.kernel_size[0] - 1)
        return [*[[0, 0]] * (len(inputs.shape) - 2), [left, 0], [0, 0]]

    def _pad_before(self, inputs):
        return tf.pad(inputs, self._compute_causal_padding(inputs))

    def convolution_op(self, inputs, kernel):
        """The convolution of inputs with a kernel like the layer's own, with its strides,
        padding and dilation: no bias, no activation. Subclasses may define it: call()
        adds these to what it gives."""
        convolve = _Convolution._convolve
        return self._channels_last(lambda x: convolve(self, x, kernel), inputs)

    def _convolve(self, inputs, kernel=None):
        padding = self.padding.upper()
        if padding == "CAUSAL":
            inputs, padding = self._pad_before(inputs), "VALID"
        kernel = self.kernel if kernel is None else kernel
        rank = len(kernel.shape) - 2  # `rank` may mean another thing to a subclass
        function = {1: tf.nn.conv1d, 2: tf.nn.conv2d, 3: tf.nn.conv3d}[rank]
        strides, dilations = list(self.strides), list(self.dilation_rate)
        if rank == 3:
            strides, dilations = [1, *strides, 1], [1, *dilations, 1]
        return function(inputs, kernel, strides, padding, dilations=dilations)

    def _compute(self, inputs):
        out = self._convolve(inputs)
        return tf.nn.bias_add(out, self.bias)

    def call(self, inputs):
        """activation(convolution + bias) of [batch, space, channels], or channels
        first.
        """
        if type(self).convolution_op is not _Convolution.convolution_op:
            out = self.convolution_op(inputs, self.kernel)
            if self.use_bias:
                out = self._channels_last(lambda x: tf.nn.bias_add(x, self.bias), out)
        else:
            function = self._compute if self.use_bias else self._convolve
            out = self._channels_last(function, inputs)
        return self.activation(out) if self.activation is not None else out

    def compute_output_shape(self, input_shape):
        """The shape with the new sizes of the space and `filters` channels.

        ValueError where the space is smaller than the kernel.
        """
        sizes = tf.TensorShape(input_shape).as_list()
        made = self._resized(sizes, self.filters)
        if any(size is not None and size < 0 for size in made):
            raise ValueError(
                "One of the dimensions in the output is <= 0 due to downsampling in "
                f"{self.name}. Consider increasing the input size. Received input shape "
                f"{sizes} which would produce output shape with a zero or negative "
                "value in a dimension."
            )
        return tf.TensorShape(made)


add_classes(
    globals(),
    """
Conv1D(_Convolution, rank=1, _paddings=("valid", "same", "causal"), _defaults=LAST)
    A convolution over time.
Conv2D(_Convolution, rank=2)
    A convolution over images.
Conv3D(_Convolution, rank=3)
    A convolution over volumes.
""",
)
