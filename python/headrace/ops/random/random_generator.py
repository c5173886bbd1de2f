"""tf.random.Generator: a stream of numbers with a state of its own."""

import os

import numpy as np

from headrace._load import _headrace, raw
from headrace.context import stack, strategies
from headrace.context.properties import read_only
from headrace.framework import conversion, dtypes
from headrace.framework.name_scopes import composite
from headrace.framework.settings import config
from headrace.framework.tensor_shape import TensorShape
from headrace.framework.trackable import AutoTrackable
from headrace.framework.variables import Variable
from headrace.ops import array_ops, math_ops, reduction_ops
from headrace.ops.random.stateless_random_ops import Algorithm, algorithm_id

# How many words a counter has; a state is a counter and a key of one word.
_COUNTER_SIZES = {
    Algorithm.PHILOX.value: 2,
    Algorithm.THREEFRY.value: 1,
    Algorithm.AUTO_SELECT.value: 2,  # Philox
}


def _counter_size(alg):
    if alg not in _COUNTER_SIZES:
        raise ValueError(f"Unsupported algorithm id: {alg}")
    return _COUNTER_SIZES[alg]


def _as_int64(value):
    """`value` as a tensor of int64: integers keep their low 64 bits, what else there is
    is cast."""
    plain = isinstance(value, (int, list, tuple))
    if plain and not _headrace.holds_tensors(value):
        items = np.array(value, object)
        if all(isinstance(v, (int, np.integer)) for v in items.flat):
            words = [int(v) & (2**64 - 1) for v in items.flat]
            value = np.array(words, np.uint64).view(np.int64).reshape(items.shape)
    tensor = conversion.convert_to_tensor(value)
    return tensor if tensor.dtype == dtypes.int64 else math_ops.cast(tensor, "int64")


def create_rng_state(seed, alg):
    """The state of a generator with that seed: int64, [3] for Philox, [2] for ThreeFry.

    A Python integer gives its 64-bit words, the lowest first, cut to the state's
    length. Anything else, a tensor too, is cast to int64 and flattened; its first
    numbers stand at the end, behind zeros. ValueError for an unknown `alg`.
    """
    size = _counter_size(algorithm_id(alg)) + 1
    if isinstance(seed, int):
        return _as_int64([seed >> (64 * i) for i in range(size)])
    words = array_ops.reshape(_as_int64(seed), [-1])[:size]
    missing = size - array_ops.shape(words)[0]
    state = array_ops.pad(words, [[missing, 0]])
    state.set_shape([size])
    return state


def _state_of_key_counter(key, counter, alg):
    key, counter = _as_int64(key), _as_int64(counter)
    counter.shape.assert_is_compatible_with([_counter_size(alg)])
    key.shape.assert_is_compatible_with([])
    return array_ops.concat([counter, array_ops.reshape(key, [1])], 0)


def _sizes(shape):
    """A shape, or a tensor of its sizes where some of them are tensors."""
    if isinstance(shape, _headrace.Tensor):
        return shape
    if isinstance(shape, (list, tuple)) and any(
        isinstance(size, _headrace.Tensor) for size in shape
    ):
        return conversion.convert_to_tensor(shape, dtypes.int32)
    return TensorShape(shape)


class Generator(AutoTrackable):
    """Draws numbers; each draw moves the state on.

    Args:
      copy_from: a Generator whose state and algorithm are copied; the others must then
        be None.
      state: int64, [3] for Philox (a counter of two words and a key), [2] for ThreeFry.
        A Variable becomes the state itself, anything else the value of a new one.
      alg: an Algorithm, its number or name ("philox", "threefry", "auto_select").

    Raises ValueError where `state` or `alg` is missing, is given beside `copy_from`, or
    does not fit.
    """

    def __init__(self, copy_from=None, state=None, alg=None):
        if copy_from is not None:
            if state is not None or alg is not None:
                raise ValueError(
                    "`state` and `alg` must be None when `copy_from` is given"
                )
            state, alg = copy_from.state.read_value(), copy_from.algorithm
        elif state is None or alg is None:
            raise ValueError("a Generator needs `state` and `alg`, or `copy_from`")
        self._alg = algorithm_id(alg)
        if not isinstance(state, Variable):
            state = _as_int64(state)
        state.shape.assert_is_compatible_with([_counter_size(self._alg) + 1])
        if not isinstance(state, Variable):
            state = Variable(
                state, dtype=dtypes.int64, trainable=False, name="StateVar"
            )
        self._state_var = state
        self._of_strategy = strategies.strategy() is not None

    @classmethod
    def from_state(cls, state, alg):
        """A generator that goes on from `state`: int64, [3] for Philox, [2] for
        ThreeFry.

        `alg` is an Algorithm, its number or name ("philox", "threefry").
        """
        return cls(alg=alg, state=state)

    @classmethod
    def from_seed(cls, seed, alg=None):
        """A generator whose state follows from `seed` alone (see create_rng_state);
        Philox unless `alg` says else.
        """
        alg = Algorithm.PHILOX if alg is None else alg
        return cls(state=create_rng_state(seed, alg), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg=None):
        """A generator whose state the system's source of randomness gives.

        Raises RuntimeError where operations must be deterministic.
        """
        if config.is_op_determinism_enabled():
            raise RuntimeError(
                '"from_non_deterministic_state" cannot be called when determinism is '
                "enabled."
            )
        alg = Algorithm.PHILOX if alg is None else alg
        size = _counter_size(algorithm_id(alg)) + 1
        return cls(state=np.frombuffer(os.urandom(8 * size), np.int64), alg=alg)

    @classmethod
    def from_key_counter(cls, key, counter, alg):
        """A generator of a key (a scalar) and a counter ([2], [1] for ThreeFry).

        Both may be tensors. Raises ValueError for other shapes.
        """
        alg = algorithm_id(alg)
        return cls(state=_state_of_key_counter(key, counter, alg), alg=alg)

    state = read_only(
        "_state_var",
        "The int64 Variable of counter and key; draws move its counter on.",
    )
    algorithm = read_only(
        "_alg",
        "The number of the algorithm: 1 is Philox, 2 ThreeFry, 3 chosen for you.",
    )

    @property
    def key(self):
        """The key: an int64 scalar, the last word of the state."""
        return self._state_var.read_value()[-1]

    def reset(self, state):
        """Sets the state, cast to int64. Raises ValueError for another shape."""
        state = _as_int64(state)
        state.shape.assert_is_compatible_with([_counter_size(self._alg) + 1])
        self._state_var.assign(state)

    def reset_from_seed(self, seed):
        """Sets the state as from_seed does."""
        self._state_var.assign(create_rng_state(seed, self._alg))

    def reset_from_key_counter(self, key, counter):
        """Sets the state as from_key_counter does."""
        self._state_var.assign(_state_of_key_counter(key, counter, self._alg))

    def skip(self, delta):
        """Moves on as if `delta` numbers (a scalar) had been drawn; the old state."""
        alg = conversion.to_tensor(self._alg, dtypes.int32)
        delta = math_ops.cast(_as_int64(delta), dtypes.uint64)
        copies = getattr(self._state_var, "_copies", ())
        if len(copies) < 2 or self._state_var._which() is not None:
            return raw.RngReadAndSkip(self._state_var.handle, alg, delta)
        # Outside of replicas all copies move on alike.
        return [raw.RngReadAndSkip(v.handle, alg, delta) for v in copies][0]

    def _prepare(self, shape):
        """(key, counter) for a draw of that shape, and moves on."""
        if isinstance(shape, TensorShape):
            count = shape.num_elements()
        else:
            count = reduction_ops.reduce_prod(math_ops.cast(shape, "int64"))
        size = _counter_size(self._alg)
        old = self.skip(count)
        as_uint = _headrace.raw_op("Bitcast")
        key = as_uint(input=old[size : size + 1], type=dtypes.uint64)
        return self._key_of_replica(key), as_uint(input=old[:size], type=dtypes.uint64)

    def _key_of_replica(self, key):
        """The key, or of a generator that a strategy has one that each replica makes of
        it and its own number, so that replicas draw different numbers."""
        replica = strategies.replica()
        if replica is None or not self._of_strategy:
            return key
        number = math_ops.cast(replica.replica_id_in_sync_group, dtypes.uint64)
        return _headrace.raw_op("StatelessRandomUniformFullIntV2")(
            shape=[1],
            key=key,
            counter=array_ops.stack([number, array_ops.zeros_like(number)]),
            alg=conversion.to_tensor(self._alg, dtypes.int32),
            dtype=dtypes.uint64,
        )

    def _draw(self, op, shape, dtype=None, name=None, **bounds):
        shape = _sizes(shape)
        key, counter = self._prepare(shape)
        if dtype is not None:
            bounds["dtype"] = dtype
        return _headrace.raw_op(op)(
            shape=shape,
            key=key,
            counter=counter,
            alg=conversion.to_tensor(self._alg, dtypes.int32),
            name=name,
            **bounds,
        )

    def _scaled(self, draw, shape, mean, stddev, dtype, name):
        dtype = dtypes.as_dtype(dtype)
        mean = conversion.convert_to_tensor(mean, dtype=dtype, name="mean")
        stddev = conversion.convert_to_tensor(stddev, dtype=dtype, name="stddev")
        return raw.AddV2(draw(shape, dtype) * stddev, mean, name=name)

    # Upstream's names, which its tests ask for.

    def _standard_normal(self, shape, dtype):
        return self._draw("StatelessRandomNormalV2", shape, dtype)

    def _truncated_normal(self, shape, dtype):
        return self._draw("StatelessTruncatedNormalV2", shape, dtype)

    def _uniform(self, shape, dtype):
        return self._draw("StatelessRandomUniformV2", shape, dtype)

    @composite("stateful_normal", ends=True)
    def normal(self, shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None):
        """Numbers of a normal distribution: `shape`, `dtype`."""
        return self._scaled(self._standard_normal, shape, mean, stddev, dtype, name)

    @composite("truncated_normal", ends=True)
    def truncated_normal(
        self, shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None
    ):
        """Numbers of a normal distribution, none beyond two deviations."""
        draw = self._truncated_normal
        return self._scaled(draw, shape, mean, stddev, dtype, name)

    @composite("stateful_uniform", ends=True)
    def uniform(self, shape, minval=0, maxval=None, dtype=dtypes.float32, name=None):
        """Numbers of a uniform distribution over [minval, maxval).

        `maxval` is 1 for floats unless given. Integers need both bounds, or None for
        both: all numbers of the type. Raises ValueError for one of them.
        """
        dtype = dtypes.as_dtype(dtype)
        if dtype.is_integer:
            if (minval is None) != (maxval is None):
                raise ValueError(
                    f"For integer dtype {dtype!r}, minval and maxval must be both "
                    f"`None` or both non-`None`; got minval={minval} and "
                    f"maxval={maxval}"
                )
            if minval is None:
                op = "StatelessRandomUniformFullIntV2"
                return self._draw(op, shape, dtype, name)
        elif maxval is None:
            maxval = 1
        low = conversion.convert_to_tensor(minval, dtype=dtype, name="min")
        high = conversion.convert_to_tensor(maxval, dtype=dtype, name="max")
        if dtype.is_integer:
            op = "StatelessRandomUniformIntV2"
            return self._draw(op, shape, name=name, minval=low, maxval=high)
        drawn = self._uniform(shape, dtype)
        return raw.AddV2(drawn * (high - low), low, name=name)

    @composite("stateful_uniform_full_int", ends=True)
    def uniform_full_int(self, shape, dtype=dtypes.uint64, name=None):
        """Integers over the whole range of the type."""
        op = "StatelessRandomUniformFullIntV2"
        return self._draw(op, shape, dtypes.as_dtype(dtype), name)

    @composite("binomial", ends=True)
    def binomial(self, shape, counts, probs, dtype=dtypes.int32, name=None):
        """Numbers of successes."""
        return raw.StatefulRandomBinomial(
            self._state_var.handle,
            conversion.to_tensor(self._alg, dtypes.int64),
            _sizes(shape),
            counts,
            probs,
            dtype=dtype,
            name=name,
        )

    def _make_int64_keys(self, shape=()):
        """Keys of streams that do not overlap with this one's."""
        return self.uniform_full_int(shape, dtypes.int64)

    def make_seeds(self, count=1):
        """Seeds [2, count], int64, for the stateless functions."""
        keys = self._make_int64_keys([count])
        return array_ops.stack([keys, array_ops.zeros_like(keys)])

    def split(self, count=1):
        """A list of `count` generators whose streams do not overlap with this one's."""
        keys = self._make_int64_keys([count])
        zeros = np.zeros(_counter_size(self._alg), np.int64)
        return [
            Generator.from_key_counter(keys[i], zeros, self._alg)
            for i in range(int(count))
        ]


_global = []


def get_global_generator():
    """The generator that programs share: made when it is first asked for, from the
    system's source of randomness.

    Raises RuntimeError where operations must be deterministic and nobody has set one.
    """
    if not _global:
        if config.is_op_determinism_enabled():
            raise RuntimeError(
                '"get_global_generator" cannot be called if determinism is enabled, '
                'unless "set_global_generator" has already been called. Please call '
                '"set_global_generator" first.'
            )
        with stack.init_scope():
            _global.append(Generator.from_non_deterministic_state())
    return _global[0]


def set_global_generator(generator):
    """Makes `generator` the global one; with None the next that is asked for is new."""
    _global[:] = [] if generator is None else [generator]
