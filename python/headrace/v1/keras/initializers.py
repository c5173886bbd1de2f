"""tf.compat.v1.keras.initializers: those of TensorFlow 1 with Keras' numbers."""

from headrace.framework import dtypes
from headrace.framework.support import signatures
from headrace.keras.initializer import with_short_names
from headrace.ops import array_ops
from headrace.ops.random import initializers, initializers_v1

_DTYPE = signatures.parameter("dtype", dtypes.float32)


@initializers.keeps("minval=-0.05, maxval=0.05, seed=None", _DTYPE)
class RandomUniform(initializers_v1.RandomUniform):
    """Uniform over [minval, maxval)."""


@initializers.keeps("mean=0.0, stddev=0.05, seed=None", _DTYPE)
class RandomNormal(initializers_v1.RandomNormal):
    """A normal distribution."""


@initializers.keeps("mean=0.0, stddev=0.05, seed=None", _DTYPE)
class TruncatedNormal(initializers_v1.TruncatedNormal):
    """A normal distribution, none beyond two deviations."""


@initializers.keeps("gain=1.0", _DTYPE)
class Identity(initializers_v1._Floats):
    """`gain` times the identity: ValueError for shapes that are no matrix's."""

    def __call__(self, shape, dtype=None, partition_info=None):
        whole = shape if partition_info is None else partition_info.full_shape
        if len(whole) != 2:
            raise ValueError(
                "The tensor to initialize, specified by argument `shape` must be at "
                f"least two-dimensional. Received shape={shape}"
            )
        return self.gain * array_ops.eye(*whole, dtype=self._dtype(dtype))


@initializers.keeps("seed=None")
class _Scaled(initializers_v1.VarianceScaling):
    """VarianceScaling of fixed numbers."""

    _fixed = {}

    def _begin(self, seed):
        super()._begin(**self._fixed, seed=seed, dtype=dtypes.float32)


class HeNormal(_Scaled):
    """Truncated normal, of the variance 2 / inputs."""

    _fixed = {"scale": 2.0, "mode": "fan_in", "distribution": "truncated_normal"}


class HeUniform(_Scaled):
    """Uniform, of the variance 2 / inputs."""

    _fixed = {"scale": 2.0, "mode": "fan_in", "distribution": "uniform"}


class LecunNormal(_Scaled):
    """Truncated normal, of the variance 1 / inputs."""

    _fixed = {"scale": 1.0, "mode": "fan_in", "distribution": "truncated_normal"}


class LecunUniform(_Scaled):
    """Uniform, of the variance 1 / inputs."""

    _fixed = {"scale": 1.0, "mode": "fan_in", "distribution": "uniform"}


_CLASSES = (
    initializers_v1.Zeros,
    initializers_v1.Ones,
    initializers_v1.Constant,
    RandomUniform,
    RandomNormal,
    TruncatedNormal,
    initializers_v1.VarianceScaling,
    initializers_v1.Orthogonal,
    Identity,
    initializers_v1.GlorotUniform,
    initializers_v1.GlorotNormal,
    HeNormal,
    HeUniform,
    LecunNormal,
    LecunUniform,
)

# Of a layer's arguments and configurations.
NAMES = with_short_names({c.__name__: c for c in _CLASSES})
