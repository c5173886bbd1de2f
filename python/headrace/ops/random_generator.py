"""tf.random.Generator: a stream of numbers with a state of its own."""

import numpy as np

from headrace._load import _headrace
from headrace.framework import conversion, dtypes
from headrace.framework.trackable import AutoTrackable
from headrace.ops import array_ops
from headrace.ops.stateless_random_ops import Algorithm, algorithm_id

_PHILOX_STATE = 3  # counter (2 numbers), key (1)
_SIZES = {1: 3, 2: 2}


def _state_of_seed(seed, size=_PHILOX_STATE):
    """A seed as the state: its 64-bit words, the lowest first."""
    if isinstance(seed, (int, np.integer)):
        bits = int(seed) & ((1 << 64 * size) - 1)  # negative: two's complement
        words = [(bits >> (64 * i)) & (2**64 - 1) for i in range(size)]
        return np.array(words, np.uint64).view(np.int64)
    values = np.atleast_1d(np.asarray(seed))
    if values.dtype.kind == "u":
        values = values.astype(np.uint64).view(np.int64)
    state = np.zeros(size, np.int64)
    values = values[:size]
    state[size - len(values) :] = values
    return state


def create_rng_state(seed, alg):
    """The state of a generator with that seed."""
    number = algorithm_id(alg)
    if number == Algorithm.AUTO_SELECT.value:
        number = Algorithm.PHILOX.value
    if number not in _SIZES:
        raise ValueError(f"Unsupported algorithm id: {number}")
    if isinstance(seed, _headrace.Tensor):
        seed = seed.numpy()
        seed = int(seed) if seed.ndim == 0 else seed
    return conversion.constant(_state_of_seed(seed, _SIZES[number]), dtypes.int64)


def _nondeterministic():
    import os

    return int.from_bytes(os.urandom(8), "little", signed=True)


class Generator(AutoTrackable):
    """Draws numbers; each draw moves the state on."""

    def __init__(self, copy_from=None, state=None, alg=None):
        from headrace.framework.variables import Variable

        if copy_from is not None:
            if state is not None or alg is not None:
                raise ValueError(
                    "`state` and `alg` must be None when `copy_from` is given"
                )
            state, alg = copy_from.state, copy_from.algorithm
            state = state.read_value()
        number = algorithm_id(alg)
        if number == Algorithm.AUTO_SELECT.value:
            number = Algorithm.PHILOX.value
        self._alg = number
        state = conversion.convert_to_tensor(state)
        if state.dtype != dtypes.int64:
            state = conversion.constant(state.numpy().astype(np.int64), dtypes.int64)
        state.shape.assert_is_compatible_with([_SIZES.get(number, 3)])
        self._state_var = Variable(
            state, dtype=dtypes.int64, trainable=False, name="StateVar"
        )

    @classmethod
    def from_state(cls, state, alg):
        """A generator that goes on from `state`: int64, [3] for Philox, [2] for
        ThreeFry.

        `alg` is an Algorithm, its number or name ("philox", "threefry").
        """
        return cls(alg=alg, state=state)

    @classmethod
    def from_seed(cls, seed, alg=None):
        """A generator whose state follows from `seed` alone; Philox unless `alg` says
        else.
        """
        alg = Algorithm.PHILOX if alg is None else alg
        return cls(state=create_rng_state(seed, alg), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg=None):
        """A generator whose state the system's source of randomness gives."""
        alg = Algorithm.PHILOX if alg is None else alg
        words = [_nondeterministic() for _ in range(3)]
        return cls(state=conversion.constant(words, dtypes.int64), alg=alg)

    @classmethod
    def from_key_counter(cls, key, counter, alg):
        """A generator of a key (one uint64) and a counter (up to 2 words, 1 for
        ThreeFry).

        `key` and `counter` are values, not tensors of a graph; missing high words are
        0.
        """
        key = np.atleast_1d(np.asarray(key)).astype(np.uint64).view(np.int64)
        counter = np.atleast_1d(np.asarray(counter)).astype(np.uint64).view(np.int64)
        number = algorithm_id(alg)
        size = 2 if number == Algorithm.PHILOX.value else 1
        full = np.zeros(size, np.int64)
        full[: len(counter)] = counter
        return cls(state=np.concatenate([full, key[:1]]), alg=alg)

    @property
    def state(self):
        """The int64 Variable of counter and key; draws move its counter on."""
        return self._state_var

    @property
    def algorithm(self):
        """The number of the algorithm: 1 is Philox, 2 is ThreeFry."""
        return self._alg

    @property
    def key(self):
        """The key: an int64 scalar, the last word of the state."""
        return self._state_var.read_value()[-1]

    def _trackable_children(self):
        return {"_state_var": self._state_var}

    def reset(self, state):
        """Sets the state."""
        self._state_var.assign(conversion.convert_to_tensor(state, dtypes.int64))

    def reset_from_seed(self, seed):
        """Sets the state as from_seed does."""
        self._state_var.assign(create_rng_state(seed, self._alg))

    def reset_from_key_counter(self, key, counter):
        """Sets the state as from_key_counter does."""
        other = Generator.from_key_counter(key, counter, self._alg)
        self._state_var.assign(other.state.read_value())

    def skip(self, delta):
        """Moves on as if `delta` blocks had been drawn; the old state."""
        return _headrace.raw_op("RngReadAndSkip")(
            resource=self._state_var.handle,
            alg=conversion.to_tensor(self._alg, dtypes.int32),
            delta=conversion.convert_to_tensor(np.uint64(delta), dtypes.uint64)
            if isinstance(delta, int)
            else _cast(delta, dtypes.uint64),
        )

    def _prepare(self, shape):
        """(key, counter) for a draw of that shape, and moves on."""
        count = shape.num_elements() if hasattr(shape, "num_elements") else None
        if count is None:
            from headrace.ops import reduction_ops

            shape_tensor = conversion.convert_to_tensor(shape)
            count = reduction_ops.reduce_prod(_cast(shape_tensor, dtypes.int64))
        old = self.skip(count)
        if self._alg == Algorithm.PHILOX.value:
            key, counter = old[2:3], old[0:2]
        else:
            key, counter = old[1:2], old[0:1]
        as_uint = _headrace.raw_op("Bitcast")
        return (
            as_uint(input=key, type=dtypes.uint64),
            as_uint(input=counter, type=dtypes.uint64),
        )

    def _draw(self, op, shape, dtype, **more):
        shape = _shape(shape)
        key, counter = self._prepare(shape)
        kwargs = dict(
            shape=shape,
            key=key,
            counter=counter,
            alg=conversion.to_tensor(self._alg, dtypes.int32),
            **more,
        )
        if op != "StatelessRandomUniformIntV2":
            kwargs["dtype"] = dtype
        return _headrace.raw_op(op)(**kwargs)

    def normal(self, shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None):
        """Numbers of a normal distribution."""
        return self._scaled("StatelessRandomNormalV2", shape, mean, stddev, dtype, name)

    def truncated_normal(
        self, shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None
    ):
        """Numbers of a normal distribution, none beyond two deviations."""
        op = "StatelessTruncatedNormalV2"
        return self._scaled(op, shape, mean, stddev, dtype, name)

    def _scaled(self, op, shape, mean, stddev, dtype, name):
        dtype = dtypes.as_dtype(dtype)
        drawn = self._draw(op, shape, dtype)
        mean = conversion.convert_to_tensor(mean, dtype=dtype)
        stddev = conversion.convert_to_tensor(stddev, dtype=dtype)
        return _headrace.raw_op("AddV2")(x=drawn * stddev, y=mean, name=name)

    def uniform(self, shape, minval=0, maxval=None, dtype=dtypes.float32, name=None):
        """Numbers of a uniform distribution over [minval, maxval)."""
        dtype = dtypes.as_dtype(dtype)
        if dtype.is_integer:
            if maxval is None:
                raise ValueError(f"Must specify maxval for integer dtype {dtype}")
            low = conversion.convert_to_tensor(minval, dtype=dtype)
            high = conversion.convert_to_tensor(maxval, dtype=dtype)
            return self._draw(
                "StatelessRandomUniformIntV2", shape, dtype, minval=low, maxval=high
            )
        maxval = 1 if maxval is None else maxval
        low = conversion.convert_to_tensor(minval, dtype=dtype)
        high = conversion.convert_to_tensor(maxval, dtype=dtype)
        drawn = self._draw("StatelessRandomUniformV2", shape, dtype)
        return _headrace.raw_op("AddV2")(x=drawn * (high - low), y=low, name=name)

    def uniform_full_int(self, shape, dtype=dtypes.uint64, name=None):
        """Integers over the whole range of the type."""
        return self._draw(
            "StatelessRandomUniformFullIntV2", shape, dtypes.as_dtype(dtype)
        )

    def binomial(self, shape, counts, probs, dtype=dtypes.int32, name=None):
        """Numbers of successes."""
        return _headrace.raw_op("StatefulRandomBinomial")(
            resource=self._state_var.handle,
            algorithm=conversion.to_tensor(self._alg, dtypes.int64),
            shape=_shape(shape),
            counts=counts,
            probs=probs,
            dtype=dtype,
            name=name,
        )

    def make_seeds(self, count=1):
        """Seeds [2, count] for the stateless functions."""
        keys = self.uniform_full_int([count], dtypes.int64)
        if self._alg != Algorithm.PHILOX.value:
            raise NotImplementedError("make_seeds of other algorithms than Philox")
        return array_ops.stack([keys, array_ops.zeros_like(keys)])

    def split(self, count=1):
        """`count` generators whose streams do not overlap with this one's."""
        keys = self.uniform_full_int([count], dtypes.int64)
        zeros = np.zeros(2, np.int64)
        return [
            Generator(state=np.concatenate([zeros, [k]]), alg=self._alg)
            for k in keys.numpy()
        ]


def _cast(x, dtype):
    from headrace.ops import math_ops

    return math_ops.cast(x, dtype)


def _shape(shape):
    from headrace.framework.tensor_shape import TensorShape

    if isinstance(shape, _headrace.Tensor):
        return shape
    if isinstance(shape, (list, tuple)) and any(
        isinstance(size, _headrace.Tensor) for size in shape
    ):
        return conversion.convert_to_tensor(shape, dtypes.int32)
    return TensorShape(shape)


_global = []


def get_global_generator():
    """The generator that tf.random.set_seed resets."""
    if not _global:
        from headrace.framework.random_seed import _Context

        if _Context.seed is None:
            _global.append(Generator.from_non_deterministic_state())
        else:
            _global.append(Generator.from_seed(_Context.seed))
    return _global[0]


def set_global_generator(generator):
    """Makes `generator` the global one."""
    _global[:] = [generator]


def reset_global(seed):
    """Called by set_seed."""
    if not _global:
        return
    if seed is None:
        seed = _nondeterministic()
    _global[0].reset_from_seed(seed)
