"""tf.random: numbers drawn with the global and op seeds."""

from headrace._load import _headrace
from headrace.framework import conversion, dtypes
from headrace.framework.random_seed import op_seeds
from headrace.ops import array_ops


def _shape(shape):
    if isinstance(shape, _headrace.Tensor):
        return shape
    return (
        conversion.convert_to_tensor(shape, dtype_hint=dtypes.int32)
        if not _empty(shape)
        else conversion.convert_to_tensor([], dtypes.int32)
    )


def _empty(shape):
    return isinstance(shape, (list, tuple)) and not shape


def normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None):
    """Numbers of a normal distribution."""
    dtype = dtypes.as_dtype(dtype)
    mean = conversion.convert_to_tensor(mean, dtype=dtype)
    stddev = conversion.convert_to_tensor(stddev, dtype=dtype)
    seed1, seed2 = op_seeds(seed)
    drawn = _headrace.raw_op("RandomStandardNormal")(
        shape=_shape(shape), dtype=dtype, seed=seed1, seed2=seed2
    )
    return _headrace.raw_op("AddV2")(x=drawn * stddev, y=mean, name=name)


def truncated_normal(
    shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None, name=None
):
    """Numbers of a normal distribution, none beyond two deviations."""
    dtype = dtypes.as_dtype(dtype)
    mean = conversion.convert_to_tensor(mean, dtype=dtype)
    stddev = conversion.convert_to_tensor(stddev, dtype=dtype)
    seed1, seed2 = op_seeds(seed)
    drawn = _headrace.raw_op("TruncatedNormal")(
        shape=_shape(shape), dtype=dtype, seed=seed1, seed2=seed2
    )
    return _headrace.raw_op("AddV2")(x=drawn * stddev, y=mean, name=name)


def uniform(shape, minval=0, maxval=None, dtype=dtypes.float32, seed=None, name=None):
    """Numbers of a uniform distribution over [minval, maxval)."""
    dtype = dtypes.as_dtype(dtype)
    accepted = (
        dtypes.float16,
        dtypes.bfloat16,
        dtypes.float32,
        dtypes.float64,
        dtypes.int32,
        dtypes.int64,
    )
    if dtype not in accepted:
        raise ValueError(
            f"Argument `dtype` got invalid value {dtype}. Accepted dtypes are "
            f"{tuple(accepted)}."
        )
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        maxval = 1
    seed1, seed2 = op_seeds(seed)
    shape = _shape(shape)
    if dtype.is_integer:
        return _headrace.raw_op("RandomUniformInt")(
            shape=shape,
            minval=conversion.convert_to_tensor(minval, dtype=dtype),
            maxval=conversion.convert_to_tensor(maxval, dtype=dtype),
            seed=seed1,
            seed2=seed2,
            name=name,
        )
    drawn = _headrace.raw_op("RandomUniform")(
        shape=shape, dtype=dtype, seed=seed1, seed2=seed2
    )
    if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)):
        if minval == 0 and maxval == 1:
            return drawn
        if minval == 0:
            return drawn * conversion.to_tensor(maxval, dtype)
    low = conversion.convert_to_tensor(minval, dtype=dtype)
    high = conversion.convert_to_tensor(maxval, dtype=dtype)
    return drawn * (high - low) + low


def shuffle(value, seed=None, name=None):
    """The rows in a random order."""
    seed1, seed2 = op_seeds(seed)
    return _headrace.raw_op("RandomShuffle")(
        value=value, seed=seed1, seed2=seed2, name=name
    )


def categorical(logits, num_samples, dtype=None, seed=None, name=None):
    """Classes drawn by unnormalised log-probabilities."""
    seed1, seed2 = op_seeds(seed)
    return _headrace.raw_op("Multinomial")(
        logits=logits,
        num_samples=num_samples,
        seed=seed1,
        seed2=seed2,
        output_dtype=dtypes.int64 if dtype is None else dtype,
        name=name,
    )


def gamma(shape, alpha, beta=None, dtype=dtypes.float32, seed=None, name=None):
    """Numbers of gamma distributions."""
    shape = conversion.convert_to_tensor(shape, dtype=dtypes.int32)
    dtype = dtypes.as_dtype(dtype)
    alpha = conversion.convert_to_tensor(alpha, dtype=dtype)
    beta = conversion.convert_to_tensor(1 if beta is None else beta, dtype=dtype)
    full = array_ops.broadcast_dynamic_shape(
        array_ops.shape(alpha), array_ops.shape(beta)
    )
    alpha = array_ops.broadcast_to(alpha, full)
    seed1, seed2 = op_seeds(seed)
    drawn = _headrace.raw_op("RandomGamma")(
        shape=shape, alpha=alpha, seed=seed1, seed2=seed2
    )
    import numpy as np

    from headrace.ops import elementwise_ops

    tiny = np.finfo(dtype.as_numpy_dtype).tiny if dtype != dtypes.bfloat16 else 1.2e-38
    return elementwise_ops.maximum(
        conversion.to_tensor(float(tiny), dtype), drawn / beta, name
    )


def poisson(shape, lam, dtype=dtypes.float32, seed=None, name=None):
    """Numbers of Poisson distributions."""
    shape = conversion.convert_to_tensor(shape, dtype=dtypes.int32)
    seed1, seed2 = op_seeds(seed)
    return _headrace.raw_op("RandomPoissonV2")(
        shape=shape, rate=lam, dtype=dtype, seed=seed1, seed2=seed2, name=name
    )
