"""tf.compat.v1's initializers: functions of a shape that draw with op seeds."""

import math

import numpy as np

from headrace.framework import conversion, dtypes, tensor_shape
from headrace.framework.support import signatures
from headrace.ops import array_ops
from headrace.ops.random import initializers, random_ops


class _Initializer(initializers.Initializer):
    """Keeps the dtype that a call without one uses."""

    _keras_module = "keras.initializers"  # where configurations of layers say it is
    _of_floats = False  # whether it makes floating-point numbers alone

    def __init__(self, dtype=dtypes.float32):
        self._begin(dtype)

    def _begin(self, dtype, **given):
        self.dtype = dtypes.as_dtype(dtype)
        if self._of_floats and not self.dtype.is_floating:
            raise ValueError(
                "Argument `dtype` expected to be numeric or boolean. Received "
                f"{self.dtype}."
            )
        super()._begin(**given)

    def _dtype(self, dtype):
        return self.dtype if dtype is None else dtypes.as_dtype(dtype)

    def get_config(self):
        """The arguments of the constructor as a dict, for from_config(); dtypes by
        name.
        """
        return {"dtype": self.dtype.name}


class _Floats(_Initializer):
    _of_floats = True


def _keeps(text):
    """initializers.keeps() with the dtype as the last parameter."""
    return initializers.keeps(text, signatures.parameter("dtype", dtypes.float32))


class Zeros(_Initializer):
    """Tensors of a shape that are 0 everywhere, float32 unless `dtype` says another."""

    def __call__(self, shape, dtype=None, partition_info=None):
        return array_ops.zeros(shape, self._dtype(dtype))


class Ones(_Initializer):
    """Tensors of a shape that are 1 everywhere, float32 unless `dtype` says another."""

    def __call__(self, shape, dtype=None, partition_info=None):
        return array_ops.ones(shape, self._dtype(dtype))


class Constant(_Initializer):
    """A value, or as many values as the shape has places."""

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

    def get_config(self):
        """A dict of value and dtype."""
        return {"value": self.value, **super().get_config()}

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


@_keeps("minval=0.0, maxval=None, seed=None")
class RandomUniform(_Initializer):
    """Uniform over [minval, maxval)."""

    def __call__(self, shape, dtype=None, partition_info=None):
        dtype = self._dtype(dtype)
        return random_ops.uniform(shape, self.minval, self.maxval, dtype, self.seed)


@_keeps("mean=0.0, stddev=1.0, seed=None")
class RandomNormal(_Floats):
    """A normal distribution."""

    _draw = staticmethod(random_ops.normal)

    def __call__(self, shape, dtype=None, partition_info=None):
        dtype = self._dtype(dtype)
        return self._draw(shape, self.mean, self.stddev, dtype, self.seed)


class TruncatedNormal(RandomNormal):
    """A normal distribution, none beyond two deviations."""

    _draw = staticmethod(random_ops.truncated_normal)


@_keeps("scale=1.0, mode='fan_in', distribution='truncated_normal', seed=None")
class VarianceScaling(_Floats):
    """Numbers whose deviation follows from the shape of the weights."""

    _MODES = {"fan_in", "fan_out", "fan_avg"}
    _DISTRIBUTIONS = {"normal", "uniform", "truncated_normal", "untruncated_normal"}

    def _begin(self, **given):
        super()._begin(**given)
        if self.scale <= 0.0:
            raise ValueError(
                f"Argument `scale` must be a positive float. Received: {self.scale}"
            )
        if self.mode not in self._MODES:
            raise ValueError(
                "Argument `mode` should be one of ('fan_in', 'fan_out', 'fan_avg'). "
                f"Received: {self.mode}"
            )
        self.distribution = self.distribution.lower()
        if self.distribution not in self._DISTRIBUTIONS:
            raise ValueError(
                "Argument `distribution` should be one of ('normal', uniform', "
                "'truncated_normal', 'untruncated_normal'). Received: "
                f"{self.distribution}"
            )

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


@_keeps("seed=None")
class _Glorot(VarianceScaling):
    _distribution = None

    def _begin(self, **given):
        kind = self._distribution
        super()._begin(scale=1.0, mode="fan_avg", distribution=kind, **given)


class GlorotUniform(_Glorot):
    """Uniform, scaled by the mean of inputs and outputs."""

    _distribution = "uniform"


class GlorotNormal(_Glorot):
    """Truncated normal, scaled by the mean of inputs and outputs."""

    _distribution = "truncated_normal"


@_keeps("gain=1.0, seed=None")
class Orthogonal(_Floats):
    """A random orthogonal matrix, reshaped."""

    def __call__(self, shape, dtype=None, partition_info=None):
        dtype = self._dtype(dtype)
        if len(shape) < 2:
            raise ValueError(
                "The tensor to initialize, specified by argument `shape` must be at "
                f"least two-dimensional. Received shape={shape}"
            )
        drawn = random_ops.normal(initializers.tall(shape), dtype=dtype, seed=self.seed)
        return initializers.orthogonal(drawn, shape, self.gain)


@_keeps("gain=1.0")
class Identity(_Floats):
    """The identity matrix; only for matrices."""

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


@_keeps("factor=1.0, seed=None")
class UniformUnitScaling(_Floats):
    """Uniform numbers that keep the scale of their input."""

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
