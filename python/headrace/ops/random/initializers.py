"""tf.*_initializer: functions of a shape."""

import math

import numpy as np

from headrace.framework import conversion, dtypes, tensor_shape
from headrace.ops import array_ops
from headrace.ops.random import random_ops, stateless_random_ops

# What cutting a normal distribution at two deviations leaves of its deviation.
TRUNCATED_DEVIATION = 0.87962566103423978


def fans(shape):
    """How many inputs and outputs a unit of weights of that shape has."""
    shape = tensor_shape.TensorShape(shape).as_list()
    if len(shape) < 1:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


def scaled_variance(scale, mode, shape):
    """The variance that a variance scaling initializer gives weights of that shape."""
    fan_in, fan_out = fans(shape)
    by_mode = {
        "fan_in": fan_in,
        "fan_out": fan_out,
        "fan_avg": (fan_in + fan_out) / 2.0,
    }
    return scale / max(1.0, by_mode[mode])


def config_of(*fields):
    """The get_config of a class that keeps its arguments, `fields`, by name."""

    def get_config(self):
        config = {name: getattr(self, name) for name in fields}
        if "dtype" in config:
            config["dtype"] = self.dtype.name
        return config

    get_config.__doc__ = f"A dict of {', '.join(fields[:-1])} and {fields[-1]}."
    return get_config


class Initializer:
    """The base: called with a shape and dtype, gives a tensor."""

    def __call__(self, shape, dtype=None, **kwargs):
        raise NotImplementedError

    def get_config(self):
        """The arguments of the constructor as a dict, for from_config()."""
        return {}

    @classmethod
    def from_config(cls, config):
        """The initializer of what get_config() gave; removes "dtype" from that dict."""
        config.pop("dtype", None)
        return cls(**config)


class Zeros(Initializer):
    """All zeros."""

    def __call__(self, shape, dtype=dtypes.float32, **kwargs):
        dtype = dtypes.as_dtype(dtype)
        if not dtype.is_numpy_compatible or dtype == dtypes.string:
            raise ValueError(
                f"Argument `dtype` expected to be numeric or boolean. Received {dtype}."
            )
        return array_ops.zeros(shape, dtype)


class Ones(Initializer):
    """All ones."""

    def __call__(self, shape, dtype=dtypes.float32, **kwargs):
        return array_ops.ones(shape, dtypes.as_dtype(dtype))


class Constant(Initializer):
    """A value, or an array of values."""

    def __init__(self, value=0, support_partition=False):
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(
                "Invalid type for initial value: "
                f"{type(value).__name__}. Expected Python scalar, list or tuple of "
                "values, or numpy.ndarray."
            )
        self.value = value

    def __call__(self, shape, dtype=None, **kwargs):
        return conversion.constant(self.value, dtype=dtype, shape=shape)

    def get_config(self):
        """A dict of the value."""
        return {"value": self.value}


class RandomUniform(Initializer):
    """Uniform over [minval, maxval)."""

    get_config = config_of("minval", "maxval", "seed")

    def __init__(self, minval=-0.05, maxval=0.05, seed=None):
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape, dtype=dtypes.float32, **kwargs):
        if self.seed is None:
            return random_ops.uniform(shape, self.minval, self.maxval, dtype)
        seed = [self.seed, 0]
        return stateless_random_ops.uniform(
            shape, seed, self.minval, self.maxval, dtype
        )


class RandomNormal(Initializer):
    """A normal distribution."""

    get_config = config_of("mean", "stddev", "seed")

    def __init__(self, mean=0.0, stddev=0.05, seed=None):
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape, dtype=dtypes.float32, **kwargs):
        if self.seed is None:
            return random_ops.normal(shape, self.mean, self.stddev, dtype)
        seed = [self.seed, 0]
        return stateless_random_ops.normal(shape, seed, self.mean, self.stddev, dtype)
