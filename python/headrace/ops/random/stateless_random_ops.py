"""tf.random.stateless_*: numbers that follow from shape and seed alone."""

import enum
import operator

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes
from headrace.framework.name_scopes import composite, graph_scope
from headrace.framework.support import signatures
from headrace.ops import array_ops
from headrace.ops.faces import add_faces


class Algorithm(enum.Enum):
    """Generators of random numbers."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


_NAMES = {"philox": 1, "threefry": 2, "auto_select": 3}


def algorithm_id(alg):
    """The number that ops know an algorithm by; of an Algorithm, a name or a number.

    Raises ValueError for another name, TypeError for what is none of these.
    """
    if isinstance(alg, Algorithm):
        return alg.value
    if isinstance(alg, str):
        if alg.lower() not in _NAMES:
            raise ValueError(
                f"Argument `alg` got unsupported value {alg}. Supported values are "
                "philox for the Philox algorithm, threefry for the ThreeFry algorithm, "
                "and auto_select for auto-selection."
            )
        return _NAMES[alg.lower()]
    try:
        return operator.index(alg)
    except TypeError:
        raise TypeError(
            f"Can't convert argument `alg` (of value {alg} and type {type(alg)}) to int."
        ) from None


def _key_counter_alg(seed, alg):
    number = Algorithm.AUTO_SELECT.value if alg is None else algorithm_id(alg)
    if number == Algorithm.AUTO_SELECT.value:
        number = Algorithm.PHILOX.value
    if number == Algorithm.PHILOX.value:
        key, counter = raw.StatelessRandomGetKeyCounter(seed)
        return key, counter, conversion.to_tensor(number, dtypes.int32)
    if number == Algorithm.THREEFRY.value:
        raise NotImplementedError("only the Philox algorithm is supported")
    raise ValueError(
        f"Argument `alg` got unsupported value {number}. Supported values are 1 for the "
        "Philox algorithm, 2 for the ThreeFry algorithm, and 3 for auto-selection."
    )


def _source(shape, seed, alg):
    """What an op draws from, and how much."""
    shape = conversion.shape_vector(shape)
    key, counter, alg = _key_counter_alg(seed, alg)
    return {"shape": shape, "key": key, "counter": counter, "alg": alg}


@composite("stateless_random_uniform", ends=True)
def uniform(
    shape,
    seed,
    minval=0,
    maxval=None,
    dtype=dtypes.float32,
    name=None,
    alg="auto_select",
):
    """Numbers of a uniform distribution."""
    dtype = dtypes.as_dtype(dtype)
    if dtype.is_integer:
        if (minval is None) != (maxval is None):
            raise ValueError(
                f"For integer `dtype` argument {dtype}, argument `minval` and `maxval` "
                f"must be both None or not None. Got `minval`={minval} and "
                f"`maxval`={maxval}."
            )
        if minval is not None and dtype in (dtypes.uint32, dtypes.uint64):
            raise ValueError(
                f"Argument `dtype` got invalid value {dtype} when argument `minval` is "
                "not None. Please don't use unsigned integers in this case."
            )
    elif maxval is None:
        maxval = 1
    source = _source(shape, seed, alg)
    if dtype.is_integer and minval is None:
        return raw.StatelessRandomUniformFullIntV2(**source, dtype=dtype, name=name)
    low = conversion.convert_to_tensor(minval, dtype=dtype)
    high = conversion.convert_to_tensor(maxval, dtype=dtype)
    if dtype.is_integer:
        bounds = {"minval": low, "maxval": high}
        return raw.StatelessRandomUniformIntV2(**source, **bounds, name=name)
    drawn = raw.StatelessRandomUniformV2(**source, dtype=dtype)
    return raw.AddV2(drawn * (high - low), low, name=name)


_normal = signatures.having(
    "shape, seed, mean=0.0, stddev=1.0, dtype=float32, name=None, alg='auto_select'",
    float32=dtypes.float32,
)


def _scaled(op, shape, seed, mean, stddev, dtype, alg, name):
    dtype = dtypes.as_dtype(dtype)
    drawn = op(**_source(shape, seed, alg), dtype=dtype)
    mean = conversion.convert_to_tensor(mean, dtype=dtype)
    stddev = conversion.convert_to_tensor(stddev, dtype=dtype)
    return raw.AddV2(drawn * stddev, mean, name=name)


@composite("stateless_random_normal", ends=True)
@_normal
def normal(**given):
    """Numbers of a normal distribution."""
    return _scaled(raw.StatelessRandomNormalV2, **given)


@_normal
def truncated_normal(**given):
    """Numbers of a normal distribution, none beyond two deviations."""
    return _scaled(raw.StatelessTruncatedNormalV2, **given)


def shuffle(value, seed, alg="auto_select", name=None):
    """The rows in an order that follows from the seed."""
    value = conversion.convert_to_tensor(value)
    key, counter, alg = _key_counter_alg(seed, alg)
    return raw.StatelessShuffle(value, key, counter, alg, name=name)


add_faces(
    globals(),
    """
random_index_shuffle RandomIndexShuffle(index, seed, max_index, rounds=4, name=None)
categorical StatelessMultinomial(logits, num_samples, seed, dtype->output_dtype=int64,
        name=None)
    Classes drawn by unnormalised log-probabilities.
""",
)


def binomial(shape, seed, counts, probs, output_dtype=dtypes.int32, name=None):
    """Numbers of successes."""
    return raw.StatelessRandomBinomial(
        conversion.shape_vector(shape),
        seed,
        counts,
        probs,
        dtype=output_dtype,
        name=name,
    )


def gamma(shape, seed, alpha, beta=None, dtype=dtypes.float32, name=None):
    """Numbers of gamma distributions."""
    dtype = dtypes.as_dtype(dtype)
    alpha = conversion.convert_to_tensor(alpha, dtype=dtype)
    beta = conversion.convert_to_tensor(1 if beta is None else beta, dtype=dtype)
    full = array_ops.broadcast_dynamic_shape(
        array_ops.shape(alpha), array_ops.shape(beta)
    )
    alpha = array_ops.broadcast_to(alpha, full)
    drawn = raw.StatelessRandomGammaV2(conversion.shape_vector(shape), seed, alpha)
    return raw.RealDiv(drawn, beta, name=name)


def poisson(shape, seed, lam, dtype=dtypes.int32, name=None):
    """Numbers of Poisson distributions."""
    return raw.StatelessRandomPoisson(
        conversion.shape_vector(shape), seed, lam, dtype=dtype, name=name
    )


def parameterized_truncated_normal(
    shape, seed, means=0.0, stddevs=1.0, minvals=-2.0, maxvals=2.0, name=None
):
    """Numbers of normal distributions between bounds."""
    with graph_scope(name, "stateless_parameterized_truncated_normal"):
        to_tensor = conversion.convert_to_tensor
        means = to_tensor(means, name="means")
        return raw.StatelessParameterizedTruncatedNormal(
            conversion.shape_vector(shape),
            seed,
            means,
            to_tensor(stddevs, dtype=means.dtype, name="stddevs"),
            to_tensor(minvals, dtype=means.dtype, name="minvals"),
            to_tensor(maxvals, dtype=means.dtype, name="maxvals"),
        )


def split(seed, num=2, alg="auto_select"):
    """`num` seeds made of one."""
    seed = conversion.convert_to_tensor(seed)
    return uniform(
        [num, 2], seed=seed, dtype=seed.dtype, minval=None, maxval=None, alg=alg
    )


def fold_in(seed, data, alg="auto_select"):
    """A seed made of a seed and a number."""
    data = conversion.convert_to_tensor(data)
    first = uniform([1], seed=seed, dtype=data.dtype, minval=None, maxval=None, alg=alg)
    return array_ops.stack([first[0], data])


_SHUFFLE_WORD = 498247692  # upstream's first word of every seed


def index_shuffle(index, seed, max_index):
    """The place of `index` in a random permutation of [0, max_index].

    `seed` is two integers, or a row of two for each index.
    """
    seed = conversion.convert_to_tensor(seed)
    word = conversion.to_tensor(_SHUFFLE_WORD, seed.dtype)
    rows = [[0, 0]] * (seed.shape.rank - 1)
    seed = raw.PadV2(seed, [*rows, [1, 0]], word)
    return raw.RandomIndexShuffle(index, seed, max_index)


@composite("sobol")
def sobol_sample(dim, num_results, skip=0, dtype=dtypes.float32, name=None):
    """Points [num_results, dim] of Sobol's sequence, after the first `skip`."""
    return raw.SobolSample(dim, num_results, skip, dtype=dtype, name=name)
