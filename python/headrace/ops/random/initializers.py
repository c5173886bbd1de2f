"""tf.*_initializer: functions of a shape."""

import math

import numpy as np

from headrace.framework import conversion, dtypes, tensor_shape
from headrace.framework.support import signatures
from headrace.ops import array_ops, elementwise_ops
from headrace.ops.linalg import linalg_ops
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


def tall(shape):
    """[rows, columns] of weights of that shape as a matrix that is not wider than high."""
    rows, columns = math.prod(shape[:-1]), shape[-1]
    return max(rows, columns), min(rows, columns)


def orthogonal(drawn, shape, gain):
    """`gain` times weights of that shape whose rows or columns are orthogonal, of a
    matrix of random numbers, tall(shape)."""
    q, r = linalg_ops.qr(drawn, full_matrices=False)
    q *= elementwise_ops.sign(linalg_ops.diag_part(r))
    if math.prod(shape[:-1]) < shape[-1]:
        q = array_ops.matrix_transpose(q)
    return gain * array_ops.reshape(q, shape)


def keeps(text, *more):
    """Decorates an initializer: it is made of the parameters in a text and of `more`,
    which go to `_begin`, and gives them by get_config().
    """

    def decorate(cls):
        def begin(self, **given):
            self._begin(**given)

        def get_config(self):
            config = {name: getattr(self, name) for name in names}
            if "dtype" in config:
                config["dtype"] = self.dtype.name
            return config

        parameters = [*signatures.from_text(f"self, {text}"), *more]
        names = [p.name for p in parameters[1:]]
        like = signatures.named("__init__", module=cls.__module__)
        cls.__init__ = signatures.function_of(like, parameters, begin)
        cls.get_config = signatures.called(
            get_config,
            "get_config",
            f"A dict of {', '.join(names[:-1])} and {names[-1]}.",
        )
        for method in (cls.__init__, get_config):
            method.__qualname__ = f"{cls.__name__}.{method.__name__}"
        return cls

    return decorate


class Initializer:
    """The base: called with a shape and dtype, gives a tensor."""

    def _begin(self, **given):
        """Takes the arguments of the constructor that keeps() makes."""
        self.__dict__.update(given)

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
    """Tensors of a shape that are 0 everywhere, float32 unless `dtype` says another."""

    def __call__(self, shape, dtype=dtypes.float32, **kwargs):
        dtype = dtypes.as_dtype(dtype)
        if not dtype.is_numpy_compatible or dtype == dtypes.string:
            raise ValueError(
                f"Argument `dtype` expected to be numeric or boolean. Received {dtype}."
            )
        return array_ops.zeros(shape, dtype)


class Ones(Initializer):
    """Tensors of a shape that are 1 everywhere, float32 unless `dtype` says another."""

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


@keeps("minval=-0.05, maxval=0.05, seed=None")
class RandomUniform(Initializer):
    """Uniform over [minval, maxval)."""

    def __call__(self, shape, dtype=dtypes.float32, **kwargs):
        if self.seed is None:
            return random_ops.uniform(shape, self.minval, self.maxval, dtype)
        seed = [self.seed, 0]
        return stateless_random_ops.uniform(
            shape, seed, self.minval, self.maxval, dtype
        )


@keeps("mean=0.0, stddev=0.05, seed=None")
class RandomNormal(Initializer):
    """A normal distribution."""

    def __call__(self, shape, dtype=dtypes.float32, **kwargs):
        if self.seed is None:
            return random_ops.normal(shape, self.mean, self.stddev, dtype)
        seed = [self.seed, 0]
        return stateless_random_ops.normal(shape, seed, self.mean, self.stddev, dtype)
