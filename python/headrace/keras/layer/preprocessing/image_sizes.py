"""Layers that bring images to a size and values to a range."""

from headrace import _api as tf
from headrace.keras.layer.parts import takes
from headrace.keras.layer.preprocessing.adapting import PreprocessingLayer, as_tensor

METHODS = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5")
METHODS += ("gaussian", "mitchellcubic")


def smart_resize(x, size, interpolation="bilinear"):
    """Images of a size, cut around the middle where their sides' ratio is another."""
    x = tf.convert_to_tensor(x)
    rank = x.shape.rank
    if rank not in (3, 4):
        raise ValueError(
            "Expected an image array with shape `(height, width, channels)`, or "
            f"`(batch_size, height, width, channels)`, but got input with incorrect "
            f"rank, of shape {x.shape}."
        )
    rows, cols = sides_of(x)
    wanted_rows, wanted_cols = size
    keep_rows = _minimum(_scaled(cols, wanted_rows, wanted_cols), rows)
    keep_cols = _minimum(_scaled(rows, wanted_cols, wanted_rows), cols)
    top, left = (rows - keep_rows) // 2, (cols - keep_cols) // 2
    x = x[..., top : top + keep_rows, left : left + keep_cols, :]
    return tf.image.resize(x, size, interpolation)


def sides_of(images):
    """(rows, columns), as integers where they are known."""
    dynamic = None
    found = []
    for axis in (-3, -2):
        size = images.shape[axis]
        if size is None:
            dynamic = tf.shape(images) if dynamic is None else dynamic
            size = dynamic[axis]
        found.append(size)
    return found


def _scaled(size, by, to):
    if isinstance(size, int):
        return int(size * by / to)
    return tf.cast(tf.cast(size * by, tf.float32) / to, tf.int32)


def _minimum(a, b):
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return tf.minimum(a, b)


def check_interpolation(name):
    """NotImplementedError for a name that tf.image.resize does not know."""
    if str(name).lower() not in METHODS:
        raise NotImplementedError(
            f"Value not recognized for `interpolation`: {name}. Supported "
            f"values are: {list(METHODS)}"
        )


@takes("height, width, **kwargs")
class ToSize(PreprocessingLayer):
    """What gives images of one size."""

    def compute_output_shape(self, input_shape):
        shape = tf.TensorShape(input_shape).as_list()
        shape[-3:-1] = self.height, self.width
        return tf.TensorShape(shape)


@takes("height, width, interpolation='bilinear', crop_to_aspect_ratio=False, **kwargs")
class Resizing(ToSize):
    """Images [..., height, width, channels] made to be of one size.

    `crop_to_aspect_ratio` cuts what a ratio of the sides leaves over instead of stretching.
    """

    def _begin(self):
        check_interpolation(self.interpolation)

    def call(self, inputs):
        inputs = as_tensor(inputs, self._computed)
        size, method = [self.height, self.width], self.interpolation.lower()
        if self.crop_to_aspect_ratio:
            out = smart_resize(inputs, size, method)
        else:
            out = tf.image.resize(inputs, size, method)
        return tf.cast(out, self._computed)


class CenterCrop(ToSize):
    """The middle of images; smaller ones are resized."""

    def call(self, inputs):
        inputs = as_tensor(inputs, self._computed)
        rows, cols = sides_of(inputs)
        if isinstance(rows, int) and isinstance(cols, int):
            if rows >= self.height and cols >= self.width:
                return self._cut(inputs, rows, cols)
            return smart_resize(inputs, [self.height, self.width])
        fits = tf.logical_and(rows >= self.height, cols >= self.width)
        out = tf.cond(
            fits,
            lambda: self._cut(inputs, rows, cols),
            lambda: smart_resize(inputs, [self.height, self.width]),
        )
        return tf.ensure_shape(out, self.compute_output_shape(inputs.shape))

    def _cut(self, inputs, rows, cols):
        top, left = (rows - self.height) // 2, (cols - self.width) // 2
        return inputs[..., top : top + self.height, left : left + self.width, :]


@takes("scale, offset=0.0, **kwargs")
class Rescaling(PreprocessingLayer):
    """inputs * scale + offset."""

    _keeps_shape = True

    def call(self, inputs):
        inputs = as_tensor(inputs, self._computed)
        scale, offset = (tf.cast(v, self._computed) for v in (self.scale, self.offset))
        return inputs * scale + offset
