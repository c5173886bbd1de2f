"""Layers that change images at random while training.

Each has a stream of its own (tf.random.Generator), so that a seed gives the same images
whatever else draws; its state is no weight and is not saved. Inputs are images
[height, width, channels] or batches of them, of any number type; outputs have the
layer's dtype. In inference images stay as they are. Called by themselves, without the
argument `training`, these layers train.
"""

import math
import numbers

from headrace import _api as tf
from headrace.keras import settings
from headrace.keras.classes import add_classes
from headrace.keras.layer.parts import takes
from headrace.keras.layer.preprocessing.adapting import PreprocessingLayer, as_tensor
from headrace.keras.layer.preprocessing.image_sizes import (
    ToSize,
    check_interpolation,
    sides_of,
    smart_resize,
)


@takes("rng_type=None, seed=None, **kwargs")
class _RandomImages(PreprocessingLayer):
    """Draws from a stream that begins with `seed`, or with one that
    tf.keras.utils.set_random_seed tells, when it is first used."""

    _config_attributes = {"rng_type": "_rng_type"}
    _keeps_shape = True

    def _begin(self):
        if self._rng_type not in (None, "stateful"):
            raise ValueError(
                f'`rng_type` of {type(self).__name__} must be "stateful". '
                f"Received: rng_type={self._rng_type}"
            )
        self._rng_type = "stateful"
        self._streams = []  # a list of one: not tracked, as it is no weight

    def _stream(self):
        if not self._streams:
            seed = settings.new_seed() if self.seed is None else self.seed
            with tf.init_scope():
                self._streams.append(tf.random.Generator.from_seed(seed))
        return self._streams[0]

    def _uniform(self, shape, bounds, around=0.0):
        low, high = bounds
        return self._stream().uniform(shape, around + low, around + high)

    def _seed_pair(self):
        return self._stream().make_seeds()[:, 0]

    def call(self, inputs, training=True):
        images = as_tensor(inputs, self._taken_dtype())
        if training is False:
            return images
        if not isinstance(training, tf.Tensor):
            return self._change(images)
        out = tf.cond(
            tf.cast(training, tf.bool),
            lambda: self._change(images),
            lambda: tf.cast(images, self._computed),
        )
        return tf.ensure_shape(out, self.compute_output_shape(images.shape))

    def _taken_dtype(self):
        """What images are cast to before they are changed; None for nothing."""
        return self._computed

    def _change(self, images):
        raise NotImplementedError


def _bounds(factor):
    """(low, high) of a pair, or of a number as far to both sides."""
    if isinstance(factor, (tuple, list)):
        return tuple(factor)
    return -factor, factor


@takes("mode='horizontal_and_vertical', seed=None, **kwargs")
class RandomFlip(_RandomImages):
    """Mirrors images: `mode` is horizontal, vertical or horizontal_and_vertical."""

    def _begin(self):
        if self.mode not in ("horizontal", "vertical", "horizontal_and_vertical"):
            raise ValueError(
                f"RandomFlip layer {self.name} received an unknown mode argument "
                f"{self.mode}"
            )

    def _change(self, images):
        shape = images.shape
        if "horizontal" in self.mode:
            images = tf.image.stateless_random_flip_left_right(
                images, self._seed_pair()
            )
        if "vertical" in self.mode:
            images = tf.image.stateless_random_flip_up_down(images, self._seed_pair())
        return tf.ensure_shape(images, shape)


@takes("height, width, seed=None, **kwargs")
class RandomCrop(_RandomImages):
    """Cuts a window of `height` and `width`, the same place for all of a batch; in
    inference, and of smaller images, the largest one of that ratio, resized."""

    def call(self, inputs, training=True):
        inputs = as_tensor(inputs, self._computed)
        rows, cols = sides_of(inputs)
        size = [self.height, self.width]
        fits = training
        if isinstance(rows, int) and isinstance(cols, int):
            if rows < self.height or cols < self.width:
                fits = False
        elif training is not False:
            large = tf.logical_and(rows >= self.height, cols >= self.width)
            fits = tf.logical_and(large, tf.cast(training, tf.bool))
        if isinstance(fits, tf.Tensor):
            out = tf.cond(
                fits,
                lambda: self._change(inputs),
                lambda: tf.cast(smart_resize(inputs, size), self._computed),
            )
        else:
            out = self._change(inputs) if fits else smart_resize(inputs, size)
        out = tf.cast(out, self._computed)
        return tf.ensure_shape(out, self.compute_output_shape(inputs.shape))

    def _change(self, images):
        rows, cols = sides_of(images)
        drawn = self._stream().uniform([2], 0, tf.int32.max, tf.int32)
        top = drawn[0] % (rows - self.height + 1)
        left = drawn[1] % (cols - self.width + 1)
        return images[..., top : top + self.height, left : left + self.width, :]

    compute_output_shape = ToSize.compute_output_shape


@takes("fill_mode, fill_value, interpolation, seed, **kwargs")
class _Transformed(_RandomImages):
    """Images whose places come from others by a projection."""

    def _begin(self):
        if self.fill_mode not in ("reflect", "wrap", "constant", "nearest"):
            raise NotImplementedError(
                f"Unknown `fill_mode` {self.fill_mode}. Only `reflect`, `wrap`, `constant` "
                "and `nearest` are supported."
            )
        if self.interpolation not in ("nearest", "bilinear"):
            raise NotImplementedError(
                f"Unknown `interpolation` {self.interpolation}. Only `nearest` and "
                "`bilinear` are supported."
            )

    def _change(self, images):
        shape = images.shape
        batch = images[tf.newaxis] if shape.rank == 3 else images
        sizes = tf.shape(batch)
        rows, cols = (tf.cast(sizes[i], tf.float32) for i in (1, 2))
        out = tf.raw_ops.ImageProjectiveTransformV3(
            images=batch,
            transforms=self._transforms(sizes[0], rows, cols),
            output_shape=sizes[1:3],
            fill_value=float(self.fill_value),
            interpolation=self.interpolation.upper(),
            fill_mode=self.fill_mode.upper(),
        )
        return tf.ensure_shape(out[0] if shape.rank == 3 else out, shape)

    def _transforms(self, count, rows, cols):
        """[count, 8]: where in the image, by (x, y), a place's colour comes from."""
        raise NotImplementedError


def _rows_of(*columns):
    """A [count, 8] matrix of eight vectors or numbers."""
    like = next(c for c in columns if isinstance(c, tf.Tensor) and c.shape.rank)
    columns = [tf.broadcast_to(tf.cast(c, tf.float32), tf.shape(like)) for c in columns]
    return tf.stack(columns, 1)


_FILLING = (
    "fill_mode='reflect', interpolation='bilinear', seed=None, fill_value=0.0, **kwargs"
)


@takes(f"factor, {_FILLING}")
class RandomRotation(_Transformed):
    """Turns each image by a share of a whole turn within `factor`."""

    def _begin(self):
        self._range = _bounds(self.factor)
        if self._range[1] < self._range[0]:
            raise ValueError(
                "`factor` argument cannot have a negative value. "
                f"Received: factor={self.factor}"
            )

    def _transforms(self, count, rows, cols):
        angles = self._uniform([count], [2 * math.pi * f for f in self._range])
        c, s = tf.cos(angles), tf.sin(angles)
        last_x, last_y = cols - 1, rows - 1
        x = (last_x - (c * last_x - s * last_y)) / 2
        y = (last_y - (s * last_x + c * last_y)) / 2
        return _rows_of(c, -s, x, s, c, y, 0.0, 0.0)


def _shares(name, factor):
    """The bounds of an argument; ValueError unless both are within [-1, 1]."""
    low, high = _bounds(factor)
    if abs(low) > 1 or abs(high) > 1:
        raise ValueError(
            f"`{name}` argument must have values between [-1, 1]. "
            f"Received: {name}={factor}"
        )
    return low, high


@takes(f"height_factor, width_factor, {_FILLING}")
class RandomTranslation(_Transformed):
    """Moves each image by shares of its sides within the factors."""

    def _begin(self):
        self._height_range = self._checked("height_factor", self.height_factor)
        self._width_range = self._checked("width_factor", self.width_factor)

    @staticmethod
    def _checked(name, factor):
        low, high = _bounds(factor)
        if high < low:
            raise ValueError(
                f"`{name}` cannot have upper bound less than lower bound, got {factor}"
            )
        return _shares(name, factor)

    def _transforms(self, count, rows, cols):
        down = self._uniform([count], self._height_range) * rows
        right = self._uniform([count], self._width_range) * cols
        return _rows_of(1.0, 0.0, -right, 0.0, 1.0, -down, 0.0, 0.0)


@takes(f"height_factor, width_factor=None, {_FILLING}")
class RandomZoom(_Transformed):
    """Shows 1 + a factor of each image: positive ones zoom out. Without `width_factor`
    both sides share theirs."""

    def _begin(self):
        self._height_range = _shares("height_factor", self.height_factor)
        self._width_range = None
        if self.width_factor is not None:
            self._width_range = _shares("width_factor", self.width_factor)

    def _transforms(self, count, rows, cols):
        high = wide = self._uniform([count], self._height_range, around=1.0)
        if self._width_range is not None:
            wide = self._uniform([count], self._width_range, around=1.0)
        x, y = (cols - 1) / 2 * (1 - wide), (rows - 1) / 2 * (1 - high)
        return _rows_of(wide, 0.0, x, 0.0, high, y, 0.0, 0.0)


@takes("factor, seed=None, **kwargs")
class RandomContrast(_RandomImages):
    """Stretches each channel around its mean by 1 - low to 1 + high, the same for all
    of a batch, and keeps it within 0 and 255."""

    def _begin(self):
        factor = self.factor
        pair = isinstance(factor, (tuple, list))
        self._low, self._high = factor if pair else (factor, factor)
        if self._low < 0 or self._high < 0 or self._low > 1:
            raise ValueError(
                "`factor` argument cannot have negative values or values greater than "
                f"1.Received: factor={factor}"
            )

    def _change(self, images):
        out = tf.image.stateless_random_contrast(
            images, 1.0 - self._low, 1.0 + self._high, self._seed_pair()
        )
        return tf.cast(tf.clip_by_value(out, 0, 255), self._computed)


@takes("factor, value_range=(0, 255), seed=None, **kwargs")
class RandomBrightness(_RandomImages):
    """Adds to each image a share of `value_range` within `factor`, and keeps it in that
    range."""

    _config_attributes = {
        **_RandomImages._config_attributes,
        "factor": "_factor",
        "value_range": "_value_range",
    }

    def _begin(self):
        self._factor = self._checked(self._factor)
        if not _two_numbers(self._value_range):
            raise ValueError(
                "The `value_range` argument should be a list of two numbers. "
                f"Got {self._value_range}"
            )
        self._value_range = sorted(self._value_range)

    @staticmethod
    def _checked(factor):
        pair = factor
        if isinstance(factor, numbers.Real):
            pair = [-abs(factor), abs(factor)]
        if not _two_numbers(pair) or min(pair) < -1 or max(pair) > 1:
            raise ValueError(
                "The `factor` argument should be a number (or a list of two numbers) "
                f"in the range [-1.0, 1.0]. Got {factor}"
            )
        return sorted(pair)

    def _change(self, images):
        rank = images.shape.rank
        if rank not in (3, 4):
            raise ValueError(
                "Expected the input image to be rank 3 or 4. Got inputs.shape = "
                f"{images.shape}"
            )
        count = [] if rank == 3 else [tf.shape(images)[0]]
        low, high = self._value_range
        more = self._uniform([*count, 1, 1, 1], self._factor) * (high - low)
        if images.dtype.is_floating:
            out = images + tf.cast(more, images.dtype)
        else:  # a whole number is added; not in 8 bits, which would wrap around
            out = tf.cast(images, tf.int32) + tf.cast(more, tf.int32)
        out = tf.cast(tf.clip_by_value(out, low, high), self._computed)
        return tf.ensure_shape(out, images.shape)


def _two_numbers(value):
    return (
        isinstance(value, (tuple, list))
        and len(value) == 2
        and all(isinstance(v, numbers.Real) for v in value)
    )


@takes("factor, interpolation='bilinear', seed=None, **kwargs")
class _RandomSide(_RandomImages):
    """Resizes one side of all images of a batch by 1 + a factor."""

    _axis = None

    def _begin(self):
        factor = self.factor
        self._range = _bounds(factor)
        if self._range[1] < self._range[0]:
            raise ValueError(
                "`factor` argument cannot have an upper bound less than the lower "
                f"bound. Received: factor={factor}"
            )
        if min(self._range) < -1:
            raise ValueError(
                "`factor` argument must have values larger than -1. "
                f"Received: factor={factor}"
            )
        check_interpolation(self.interpolation)

    def _taken_dtype(self):
        return None

    def _change(self, images):
        sizes = sides_of(images)
        side = self._axis + 3
        share = self._uniform([], self._range, around=1.0)
        wanted = tf.cast(share * tf.cast(sizes[side], tf.float32), tf.int32)
        sizes[side] = wanted
        out = tf.image.resize(images, tf.stack(sizes), self.interpolation.lower())
        out = tf.cast(out, self._computed)
        return tf.ensure_shape(out, self.compute_output_shape(images.shape))

    def compute_output_shape(self, input_shape):
        shape = tf.TensorShape(input_shape).as_list()
        shape[self._axis] = None
        return tf.TensorShape(shape)


add_classes(
    globals(),
    """
RandomHeight(_RandomSide, _axis=-3)
    Images of another height.
RandomWidth(_RandomSide, _axis=-2)
    Images of another width.
""",
)
