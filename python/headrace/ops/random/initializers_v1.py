"""tf.compat.v1's initializers: functions of a shape that draw with op seeds."""

import math

import numpy as np

from headrace.framework import conversion, dtypes, tensor_shape
from headrace.ops import array_ops, elementwise_ops
from headrace.ops.linalg import linalg_ops
from headrace.ops.random import initializers, random_ops


class _Initializer(initializers.Initializer):
    """Keeps the dtype that a call without one uses."""

    def __init__(self, dtype=dtypes.float32):
        self.dtype = dtypes.as_dtype(dtype)

    def _dtype(self, dtype):
        return self.dtype if dtype is None else dtypes.as_dtype(dtype)

    def get_config(self):
        """The arguments of the constructor as a dict, for from_config(); dtypes by
        name.
        """
        return {"dtype": self.dtype.name}


def _floating(dtype):
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(
            f"Argument `dtype` expected to be numeric or boolean. Received {dtype}."
        )
    return dtype


class Zeros(_Initializer):
    """All zeros."""

    def __call__(self, shape, dtype=None, partition_info=None):
        return array_ops.zeros(shape, self._dtype(dtype))


class Ones(_Initializer):
    """All ones."""

    def __call__(self, shape, dtype=None, partition_info=None):
        return array_ops.ones(shape, self._dtype(dtype))


class Constant(_Initializer):
    """A value, or as many values as the shape has places."""

    get_config = initializers.config_of("value", "dtype")

    def __init__(self, value=0, dtype=dtypes.float32, verify_shape=False):
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(
                f"Invalid type for initial value={value} of type: "
                f"{type(value).__name__}. Expected Python scalar, list or tuple of "
                "values, or numpy.ndarray."
            )
        super().__init__(dtype)
        self.value = value
        self._verify_shape = verify_shape

    def __call__(self, shape, dtype=None, partition_info=None, verify_shape=None):
        verify = self._verify_shape if verify_shape is None else verify_shape
        made = conversion.constant(self.value, self._dtype(dtype))
        if verify and made.shape != tensor_shape.TensorShape(shape):
            raise TypeError(
                f"Expected Tensor's shape: {tuple(shape)}, got {tuple(made.shape)}."
            )
        places, given = math.prod(shape), math.prod(made.shape)
        if given > places:
            raise ValueError(
                f"Too many elements provided. Needed at most {places}, but received "
                f"{given}"
            )
        if given == 1:
            return conversion.constant(self.value, self._dtype(dtype), shape)
        # Too few are continued with the last one.
        flat = np.ravel(made.numpy() if hasattr(made, "numpy") else self.value)
        flat = np.concatenate([flat, np.repeat(flat[-1:], places - given)])
        return conversion.constant(flat.reshape(shape), self._dtype(dtype))


class RandomUniform(_Initializer):
    """Uniform over [minval, maxval)."""

    get_config = initializers.config_of("minval", "maxval", "seed", "dtype")

    def __init__(self, minval=0.0, maxval=None, seed=None, dtype=dtypes.float32):
        super().__init__(dtype)
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape, dtype=None, partition_info=None):
        dtype = self._dtype(dtype)
        return random_ops.uniform(shape, self.minval, self.maxval, dtype, self.seed)


class RandomNormal(_Initializer):
    """A normal distribution."""

    get_config = initializers.config_of("mean", "stddev", "seed", "dtype")

    _draw = staticmethod(random_ops.normal)

    def __init__(self, mean=0.0, stddev=1.0, seed=None, dtype=dtypes.float32):
        super().__init__(_floating(dtype))
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape, dtype=None, partition_info=None):
        dtype = self._dtype(dtype)
        return self._draw(shape, self.mean, self.stddev, dtype, self.seed)


class TruncatedNormal(RandomNormal):
    """A normal distribution, none beyond two deviations."""

    _draw = staticmethod(random_ops.truncated_normal)


class VarianceScaling(_Initializer):
    """Numbers whose deviation follows from the shape of the weights."""

    get_config = initializers.config_of(
        "scale", "mode", "distribution", "seed", "dtype"
    )

    _MODES = {"fan_in", "fan_out", "fan_avg"}
    _DISTRIBUTIONS = {"normal", "uniform", "truncated_normal", "untruncated_normal"}

    def __init__(
        self,
        scale=1.0,
        mode="fan_in",
        distribution="truncated_normal",
        seed=None,
        dtype=dtypes.float32,
    ):
        super().__init__(_floating(dtype))
        if scale <= 0.0:
            raise ValueError(
                f"Argument `scale` must be a positive float. Received: {scale}"
            )
        if mode not in self._MODES:
            raise ValueError(
                "Argument `mode` should be one of ('fan_in', 'fan_out', 'fan_avg'). "
                f"Received: {mode}"
            )
        distribution = distribution.lower()
        if distribution not in self._DISTRIBUTIONS:
            raise ValueError(
                "Argument `distribution` should be one of ('normal', uniform', "
                "'truncated_normal', 'untruncated_normal'). Received: "
                f"{distribution}"
            )
        self.scale, self.mode, self.seed = scale, mode, seed
        self.distribution = distribution

    def __call__(self, shape, dtype=None, partition_info=None):
        dtype = self._dtype(dtype)
        whole = shape if partition_info is None else partition_info.full_shape
        scale = initializers.scaled_variance(self.scale, self.mode, whole)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * scale)
            return random_ops.uniform(shape, -limit, limit, dtype, self.seed)
        if self.distribution == "untruncated_normal":
            return random_ops.normal(shape, 0.0, math.sqrt(scale), dtype, self.seed)
        stddev = math.sqrt(scale) / initializers.TRUNCATED_DEVIATION
        return random_ops.truncated_normal(shape, 0.0, stddev, dtype, self.seed)


class _Glorot(VarianceScaling):
    get_config = initializers.config_of("seed", "dtype")
    _distribution = None

    def __init__(self, seed=None, dtype=dtypes.float32):
        super().__init__(1.0, "fan_avg", self._distribution, seed, dtype)


class GlorotUniform(_Glorot):
    """Uniform, scaled by the mean of inputs and outputs."""

    _distribution = "uniform"


class GlorotNormal(_Glorot):
    """Truncated normal, scaled by the mean of inputs and outputs."""

    _distribution = "truncated_normal"


class Orthogonal(_Initializer):
    """A random orthogonal matrix, reshaped."""

    get_config = initializers.config_of("gain", "seed", "dtype")

    def __init__(self, gain=1.0, seed=None, dtype=dtypes.float32):
        super().__init__(_floating(dtype))
        self.gain, self.seed = gain, seed

    def __call__(self, shape, dtype=None, partition_info=None):
        dtype = self._dtype(dtype)
        if len(shape) < 2:
            raise ValueError(
                "The tensor to initialize, specified by argument `shape` must be at "
                f"least two-dimensional. Received shape={shape}"
            )
        columns = shape[-1]
        rows = math.prod(shape[:-1])
        flat = (columns, rows) if rows < columns else (rows, columns)
        drawn = random_ops.normal(flat, dtype=dtype, seed=self.seed)
        q, r = linalg_ops.qr(drawn, full_matrices=False)
        q *= elementwise_ops.sign(linalg_ops.diag_part(r))
        if rows < columns:
            q = array_ops.matrix_transpose(q)
        return self.gain * array_ops.reshape(q, shape)


class Identity(_Initializer):
    """The identity matrix; only for matrices."""

    get_config = initializers.config_of("gain", "dtype")

    def __init__(self, gain=1.0, dtype=dtypes.float32):
        super().__init__(_floating(dtype))
        self.gain = gain

    def __call__(self, shape, dtype=None, partition_info=None):
        whole = shape if partition_info is None else partition_info.full_shape
        if len(whole) != 2:
            raise ValueError(
                "The tensor to initialize, specified by argument `shape` must be at "
                f"least two-dimensional. Received shape={shape}"
            )
        made = array_ops.eye(*whole, dtype=self._dtype(dtype))
        if partition_info is not None:
            made = array_ops.slice(made, partition_info.var_offset, shape)
        return self.gain * made


class UniformUnitScaling(_Initializer):
    """Uniform numbers that keep the scale of their input."""

    get_config = initializers.config_of("factor", "seed", "dtype")

    def __init__(self, factor=1.0, seed=None, dtype=dtypes.float32):
        super().__init__(_floating(dtype))
        self.factor, self.seed = factor, seed

    def __call__(self, shape, dtype=None, partition_info=None):
        whole = shape if partition_info is None else partition_info.full_shape
        inputs = max(math.prod(whole[:-1]), 1.0)
        limit = math.sqrt(3 / inputs) * self.factor
        dtype = self._dtype(dtype)
        return random_ops.uniform(shape, -limit, limit, dtype, self.seed)


def he_normal(seed=None):
    """Truncated normal, scaled by the inputs, for rectified units."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed=None):
    """Uniform, scaled by the inputs, for rectified units."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed=None):
    """Truncated normal, scaled by the inputs."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed=None):
    """Uniform, scaled by the inputs."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)
