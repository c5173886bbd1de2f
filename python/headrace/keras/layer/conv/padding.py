"""Layers that pad, cut and enlarge."""

from headrace import _api as tf
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.classes import add_classes
from headrace.keras.layer.conv.convolution import OnSpace
from headrace.keras.layer.parts import takes, tuple_of

_COUNT = {2: "two", 3: "three"}


def _pairs(value, count, name):
    """(before, behind) of `count` axes: of one integer, one each, or one pair each."""
    if isinstance(value, int):
        return ((value, value),) * count
    if len(value) != count:
        raise ValueError(
            f"`{name}` should have {_COUNT[count]} elements. Received: {value}."
        )
    pairs = tuple((v, v) if isinstance(v, int) else tuple(v) for v in value)
    for pair in pairs:
        if len(pair) != 2 or any(not isinstance(v, int) or v < 0 for v in pair):
            raise ValueError(
                f"The `{name}` argument must hold integers >= 0 or pairs of them. "
                f"Received: {value}"
            )
    return pairs


@takes("data_format=None, **kwargs")
class _OfAxes(OnSpace):
    """What gives the axes of space other sizes."""

    def _begin(self):
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def _around(self, inner, other):
        """A list with an entry for each axis of the input."""
        if self.data_format == "channels_first":
            return [other, other, *inner]
        return [other, *inner, other]

    def compute_output_shape(self, input_shape):
        return tf.TensorShape(self._resized(tf.TensorShape(input_shape).as_list()))

    def _kept(self, name, value):
        if name in ("padding", "cropping"):
            return _pairs(value, self.rank, name)
        return super()._kept(name, value)


@takes("padding=1, data_format=None, **kwargs")
class _ZeroPadding(_OfAxes):
    def _length(self, size, axis):
        return size + sum(self.padding[axis])

    def call(self, inputs):
        return tf.pad(inputs, self._around([list(p) for p in self.padding], [0, 0]))


@takes("padding=1, **kwargs", data_format="channels_last")
class ZeroPadding1D(_ZeroPadding):
    """Zeros before and behind the steps: [batch, steps, channels]."""

    rank = 1
    _config_without = ("data_format",)

    def _before(self, given):
        given["padding"] = _one_pair(given["padding"], "padding")

    def get_config(self):
        """Adds padding."""
        return {**super().get_config(), "padding": self.padding[0]}


def _one_pair(value, name):
    return (tuple_of(value, 2, name, allow_zero=True),)


@takes("cropping=((1, 1),), data_format=None, **kwargs")
class _Cropping(_OfAxes):
    def _length(self, size, axis):
        return max(size - sum(self.cropping[axis]), 0)

    def _check(self, shape):
        first = self._first()
        for i, pair in enumerate(self.cropping):
            size = shape[first + i]
            if size is not None and sum(pair) >= size:
                raise ValueError(
                    "Argument `cropping` must be greater than the input shape. Received: "
                    f"inputs.shape={shape}, and cropping={self.cropping}"
                )

    def call(self, inputs):
        if self.rank < 3:
            self._check(inputs.shape)
        inner = [slice(a, -b or None) for a, b in self.cropping]
        return inputs[tuple(self._around(inner, slice(None)))]


@takes("cropping=(1, 1), **kwargs", data_format="channels_last")
class Cropping1D(_Cropping):
    """Takes steps off both ends: [batch, steps, channels]."""

    rank = 1
    _config_without = ("data_format",)

    def _before(self, given):
        given["cropping"] = _one_pair(given["cropping"], "cropping")

    def get_config(self):
        return {**super().get_config(), "cropping": self.cropping[0]}


@takes("cropping=((0, 0), (0, 0)), data_format=None, **kwargs")
class Cropping2D(_Cropping):
    """Takes rows and columns off images: ((top, bottom), (left, right))."""


@takes("size=2, **kwargs")
class UpSampling1D(Layer):
    """Repeats each step `size` times: [batch, steps, channels]."""

    def _begin(self):
        self.size = int(self.size)
        self.input_spec = InputSpec(ndim=3)

    def call(self, inputs):
        """[batch, steps, channels] to [batch, steps * size, channels]."""
        return tf.repeat(inputs, self.size, axis=1)


@takes("size=2, data_format=None, **kwargs")
class _UpSampling(_OfAxes):
    def _begin(self):
        self.size = tuple_of(self.size, self.rank, "size")

    def _length(self, size, axis):
        return size * self.size[axis]

    def call(self, inputs):
        for i, count in enumerate(self.size):
            inputs = tf.repeat(inputs, count, axis=self._first() + i)
        return inputs


_RESIZES = ("bilinear", "bicubic", "area", "lanczos3", "lanczos5", "gaussian")


@takes("size=(2, 2), data_format=None, interpolation='nearest', **kwargs")
class UpSampling2D(_UpSampling):
    """Repeats rows and columns, or interpolates between them."""

    def _before(self, given):
        interpolation = given["interpolation"]
        if interpolation not in ("nearest", *_RESIZES, "mitchellcubic"):
            raise ValueError(
                "`interpolation` argument should be one of: 'nearest', "
                f"{', '.join(map(repr, _RESIZES))}, 'mitchellcubic'. Received: "
                f"{interpolation!r}"
            )

    def call(self, inputs):
        """Images of size[0] times the height and size[1] times the width."""
        if self.interpolation == "nearest":
            return super().call(inputs)
        first = self.data_format == "channels_first"
        images = tf.transpose(inputs, [0, 2, 3, 1]) if first else inputs
        sizes = self.compute_output_shape(inputs.shape).as_list()
        rows, cols = sizes[self._first() : self._first() + 2]
        if rows is None or cols is None:
            dynamic = tf.shape(images)
            rows, cols = dynamic[1] * self.size[0], dynamic[2] * self.size[1]
        out = tf.image.resize(images, [rows, cols], self.interpolation)
        out = tf.cast(out, inputs.dtype)
        return tf.transpose(out, [0, 3, 1, 2]) if first else out


add_classes(
    globals(),
    """
ZeroPadding2D(_ZeroPadding, rank=2)
    Zeros around images: ((top, bottom), (left, right)).
ZeroPadding3D(_ZeroPadding, rank=3)
    Zeros around volumes: a pair for each of the three axes.
Cropping3D(_Cropping, rank=3)
    Takes layers off all six sides of volumes.
UpSampling3D(_UpSampling, rank=3)
    Repeats along the three axes of volumes.
""",
)
