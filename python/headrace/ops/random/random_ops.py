"""tf.random: numbers drawn with the global and op seeds."""

import numpy as np

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes
from headrace.framework.name_scopes import composite, graph_scope
from headrace.framework.settings.random_seed import op_seeds
from headrace.ops import array_ops, elementwise_ops


def normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None):
    """Numbers of a normal distribution."""
    with graph_scope(name, "random_normal") as scope:
        op = "RandomStandardNormal"
        return _scaled(op, shape, mean, stddev, dtype, seed, scope)


def truncated_normal(
    shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None
):
    """Numbers of a normal distribution, none beyond two deviations."""
    with graph_scope(name, "truncated_normal") as scope:
        return _scaled("TruncatedNormal", shape, mean, stddev, dtype, seed, scope)


def _scaled(op, shape, mean, stddev, dtype, seed, name):
    dtype = dtypes.as_dtype(dtype)
    shape = conversion.shape_vector(shape)
    mean = conversion.convert_to_tensor(mean, dtype=dtype, name="mean")
    stddev = conversion.convert_to_tensor(stddev, dtype=dtype, name="stddev")
    seed1, seed2 = op_seeds(seed)
    drawn = _headrace.raw_op(op)(shape=shape, dtype=dtype, seed=seed1, seed2=seed2)
    return raw.AddV2(drawn * stddev, mean, name=name)


def parameterized_truncated_normal(
    shape,
    means=0.0,
    stddevs=1.0,
    minvals=-2.0,
    maxvals=2.0,
    dtype=dtypes.float32,
    seed=None,
    name=None,
):
    """Numbers of normal distributions between bounds."""
    with graph_scope(name, "parameterized_truncated_normal"):
        seed1, seed2 = op_seeds(seed)
        bounds = {
            "means": means,
            "stdevs": stddevs,
            "minvals": minvals,
            "maxvals": maxvals,
        }
        return raw.ParameterizedTruncatedNormal(
            shape=conversion.shape_vector(shape),
            seed=seed1,
            seed2=seed2,
            **{
                k: conversion.convert_to_tensor(v, dtype=dtype, name=k)
                for k, v in bounds.items()
            },
        )


_FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
_UNIFORM = (*_FLOATS, dtypes.int32, dtypes.int64)


def uniform(shape, minval=0, maxval=None, dtype=dtypes.float32, seed=None, name=None):
    """Numbers of a uniform distribution over [minval, maxval)."""
    dtype = dtypes.as_dtype(dtype)
    if dtype not in _UNIFORM:
        raise ValueError(
            f"Argument `dtype` got invalid value {dtype}. Accepted dtypes are {_UNIFORM}."
        )
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        maxval = 1
    with graph_scope(name, "random_uniform") as scope:
        return _uniform(
            conversion.shape_vector(shape), minval, maxval, dtype, seed, scope
        )


def _uniform(shape, minval, maxval, dtype, seed, name):
    from_zero = not dtype.is_integer and _is_number(minval, 0)
    to_one = not dtype.is_integer and _is_number(maxval, 1)
    if not (from_zero and to_one):
        low = conversion.convert_to_tensor(minval, dtype=dtype, name="min")
        high = conversion.convert_to_tensor(maxval, dtype=dtype, name="max")
    seed1, seed2 = op_seeds(seed)
    if dtype.is_integer:
        return raw.RandomUniformInt(
            shape, low, high, seed=seed1, seed2=seed2, name=name
        )
    drawn = raw.RandomUniform(shape, dtype=dtype, seed=seed1, seed2=seed2)
    if from_zero:
        return drawn if to_one else drawn * high
    scaled = drawn * (high - low)
    return raw.AddV2(scaled, low, name=name)


def _is_number(x, wanted):
    return isinstance(x, (int, float)) and x == wanted


def shuffle(value, seed=None, name=None):
    """The rows in a random order."""
    seed1, seed2 = op_seeds(seed)
    return raw.RandomShuffle(value, seed=seed1, seed2=seed2, name=name)


@composite("categorical")
def categorical(logits, num_samples, dtype=None, seed=None, name=None):
    """Classes drawn by unnormalised log-probabilities."""
    seed1, seed2 = op_seeds(seed)
    return raw.Multinomial(
        logits,
        num_samples,
        seed=seed1,
        seed2=seed2,
        output_dtype=dtypes.int64 if dtype is None else dtype,
        name=name,
    )


def gamma(shape, alpha, beta=None, dtype=dtypes.float32, seed=None, name=None):
    """Numbers of gamma distributions."""
    dtype = dtypes.as_dtype(dtype)
    with graph_scope(name, "random_gamma"):
        to_tensor = conversion.convert_to_tensor
        shape = conversion.shape_vector(shape)
        alpha = to_tensor(alpha, dtype=dtype, name="alpha")
        beta = to_tensor(1 if beta is None else beta, dtype=dtype, name="beta")
        full = array_ops.broadcast_dynamic_shape(
            array_ops.shape(alpha), array_ops.shape(beta)
        )
        alpha = array_ops.broadcast_to(alpha, full)
        seed1, seed2 = op_seeds(seed)
        drawn = raw.RandomGamma(shape, alpha, seed=seed1, seed2=seed2)
        return elementwise_ops.maximum(_tiny(dtype), drawn / beta)


def _tiny(dtype):
    """The least normal number, for results that must not be 0."""
    if dtype == dtypes.bfloat16:
        dtype = dtypes.float32
    return np.finfo(dtype.as_numpy_dtype).tiny


def poisson(shape, lam, dtype=dtypes.float32, seed=None, name=None):
    """Numbers of Poisson distributions."""
    with graph_scope(name, "random_poisson"):
        shape = conversion.shape_vector(shape)
        seed1, seed2 = op_seeds(seed)
        return raw.RandomPoissonV2(shape, lam, dtype=dtype, seed=seed1, seed2=seed2)
