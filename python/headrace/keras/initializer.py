"""tf.keras.initializers."""

import math

from headrace import _api as tf
from headrace.context import late, stack
from headrace.keras import serialization, settings
from headrace.keras.classes import takes
from headrace.ops.random import initializers as core


class Initializer:
    """Called with a shape and a dtype, gives a tensor."""

    _keras_module = "keras.initializers"

    def __call__(self, shape, dtype=None, **kwargs):
        raise NotImplementedError(
            "Initializer subclasses must implement the `__call__()` method."
        )

    def get_config(self):
        """The constructor's arguments as a dict, for from_config()."""
        return serialization.config_of(self)

    @classmethod
    def from_config(cls, config):
        """An initializer of the dict that get_config() gave; a "dtype" in it is left
        out.
        """
        config = dict(config)
        config.pop("dtype", None)
        return cls(**config)


def _dtype(dtype):
    return tf.as_dtype(dtype or settings.floatx())


def _float_dtype(dtype):
    dtype = _dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"Expected float or integer dtype, got {dtype}.")
    return dtype


class Zeros(Initializer):
    """Weights that begin as 0."""

    def __call__(self, shape, dtype=None, **kwargs):
        return core.Zeros()(shape, _dtype(dtype))


class Ones(Initializer):
    """Weights that begin as 1."""

    def __call__(self, shape, dtype=None, **kwargs):
        return core.Ones()(shape, _dtype(dtype))


@takes("value=0")
class Constant(Initializer):
    """All `value`, or an array of the variable's shape."""

    def __call__(self, shape, dtype=None, **kwargs):
        return tf.constant(self.value, dtype=_dtype(dtype), shape=shape)


class _Random(Initializer):
    """Draws with its seed: the same values at every call with the same shape."""

    _drawn_seed = None

    def _seed(self):
        if self._drawn_seed is None:
            self._drawn_seed = settings.new_seed() if self.seed is None else self.seed
        return [self._drawn_seed, 0]


@takes("minval=-0.05, maxval=0.05, seed=None")
class RandomUniform(_Random):
    """Evenly from [minval, maxval)."""

    def __call__(self, shape, dtype=None, **kwargs):
        dtype = _dtype(dtype)
        return tf.random.stateless_uniform(
            shape, self._seed(), self.minval, self.maxval, dtype
        )


@takes("mean=0.0, stddev=0.05, seed=None")
class RandomNormal(_Random):
    """From a normal distribution."""

    def __call__(self, shape, dtype=None, **kwargs):
        return tf.random.stateless_normal(
            shape, self._seed(), self.mean, self.stddev, _float_dtype(dtype)
        )


class TruncatedNormal(RandomNormal):
    """From a normal distribution, no further than two deviations from its mean."""

    def __call__(self, shape, dtype=None, **kwargs):
        return tf.random.stateless_truncated_normal(
            shape, self._seed(), self.mean, self.stddev, _float_dtype(dtype)
        )


@takes("scale=1.0, mode='fan_in', distribution='truncated_normal', seed=None")
class VarianceScaling(_Random):
    """A variance that the kernel's fans give."""

    def _begin(self):
        if self.scale <= 0.0:
            raise ValueError(
                f"`scale` must be positive float. Received: scale={self.scale}."
            )
        if self.mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(
                f"Invalid `mode` argument: {self.mode}. Please use one of "
                "{'fan_in', 'fan_out', 'fan_avg'}."
            )
        kind = self.distribution.lower()
        if kind not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(f"Invalid `distribution` argument: {kind}.")
        self.distribution = "truncated_normal" if kind == "normal" else kind

    def __call__(self, shape, dtype=None, **kwargs):
        dtype = _float_dtype(dtype)
        scale = core.scaled_variance(self.scale, self.mode, shape)
        seed = self._seed()
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * scale)
            return tf.random.stateless_uniform(shape, seed, -limit, limit, dtype)
        if self.distribution == "untruncated_normal":
            return tf.random.stateless_normal(shape, seed, 0.0, math.sqrt(scale), dtype)
        stddev = math.sqrt(scale) / core.TRUNCATED_DEVIATION
        return tf.random.stateless_truncated_normal(shape, seed, 0.0, stddev, dtype)


@takes("gain=1.0, seed=None")
class Orthogonal(_Random):
    """A matrix with orthogonal rows or columns; the last axis has its columns."""

    def __call__(self, shape, dtype=None, **kwargs):
        dtype = _float_dtype(dtype)
        shape = tf.TensorShape(shape).as_list()
        if len(shape) < 2:
            raise ValueError(
                "The tensor to initialize must be at least two-dimensional. Received: "
                f"shape={tuple(shape)} of rank {len(shape)}."
            )
        drawn = tf.random.stateless_normal(core.tall(shape), self._seed(), dtype=dtype)
        return core.orthogonal(drawn, shape, self.gain)


@takes("gain=1.0")
class Identity(Initializer):
    """`gain` times the identity: matrices only."""

    def __call__(self, shape, dtype=None, **kwargs):
        shape = tf.TensorShape(shape).as_list()
        if len(shape) != 2:
            raise ValueError(
                "Identity matrix initializer can only be used for 2D matrices. "
                f"Received: shape={tuple(shape)} of rank {len(shape)}."
            )
        return self.gain * tf.eye(shape[0], shape[1], dtype=_float_dtype(dtype))


def _scaling(name, scale, mode, distribution):
    def init(self, seed=None):
        VarianceScaling.__init__(self, scale, mode, distribution, seed)

    members = {
        "__init__": init,
        "_config_names": ("seed",),
        "__doc__": f"VarianceScaling of {scale}, {mode}, {distribution}.",
        "__module__": __name__,
    }
    return type(name, (VarianceScaling,), members)


GlorotUniform = _scaling("GlorotUniform", 1.0, "fan_avg", "uniform")
GlorotNormal = _scaling("GlorotNormal", 1.0, "fan_avg", "truncated_normal")
LecunUniform = _scaling("LecunUniform", 1.0, "fan_in", "uniform")
LecunNormal = _scaling("LecunNormal", 1.0, "fan_in", "truncated_normal")
HeUniform = _scaling("HeUniform", 2.0, "fan_in", "uniform")
HeNormal = _scaling("HeNormal", 2.0, "fan_in", "truncated_normal")


def with_short_names(classes):
    """{name: class} with what else layers' arguments may call them."""
    short = {"uniform": "RandomUniform", "normal": "RandomNormal"}
    short.update(one="Ones", zero="Zeros")
    short.update((settings.snake_case(name), name) for name in classes)
    return {**classes, **{name: classes[of] for name, of in short.items()}}


_NAMES = with_short_names(serialization.classes_of(globals(), Initializer))


def _names():
    """Where all of TensorFlow 1's ways hold its initializers, which draw by op seeds."""
    return _NAMES if stack.all_v2() else late.keras_initializers


get, deserialize = serialization.getter(_names, "initializer")
serialize = serialization.serializer("initializer")
