"""tf.data.Options and its groups."""

import enum


class AutotuneAlgorithm(enum.Enum):
    """How sizes that are left open are found."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class AutoShardPolicy(enum.IntEnum):
    """How a dataset is cut among workers."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.Enum):
    """What to do with state that cannot be saved."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


def _varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


class _Group:
    """Options by name, of given types; None: not set.

    `_numbers` are those of the options and groups in the proto message
    tensorflow.data.Options; what has none there is not written.
    """

    _fields = {}
    _defaults = {}
    _groups = {}
    _numbers = {}

    def __init__(self):
        for name in self._fields:
            self.__dict__[name] = self._defaults.get(name)
        for name, kind in self._groups.items():
            self.__dict__[name] = kind()

    def __setattr__(self, name, value):
        kinds = self._fields.get(name) or self._groups.get(name)
        if kinds is None:
            raise AttributeError(
                f"Cannot set the property {name} on {type(self).__name__}."
            )
        if value is not None and not isinstance(value, kinds):
            raise TypeError(
                f"Property {name!r} must be of type {kinds}. Got {type(value)}."
            )
        self.__dict__[name] = value

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None

    def _serialize(self):
        """What is set, as the proto message."""
        out = b""
        for name, number in self._numbers.items():
            value = self.__dict__[name]
            if isinstance(value, _Group):
                body = value._serialize()
                if body:
                    out += _varint(number << 3 | 2) + _varint(len(body)) + body
            elif isinstance(value, str):
                body = value.encode()
                out += _varint(number << 3 | 2) + _varint(len(body)) + body
            elif value is not None:
                value = value.value if isinstance(value, enum.Enum) else value
                out += _varint(number << 3) + _varint(int(value))
        return out

    def _update(self, other):
        for name in self._fields:
            if getattr(other, name) != self._defaults.get(name):
                self.__dict__[name] = getattr(other, name)
        for name in self._groups:
            getattr(self, name)._update(getattr(other, name))


class AutotuneOptions(_Group):
    """Whether and within what bounds sizes that are left open are tuned."""

    _fields = {
        "enabled": bool,
        "cpu_budget": int,
        "ram_budget": int,
        "autotune_algorithm": AutotuneAlgorithm,
        "initial_parallelism": int,
        "min_parallelism": int,
    }
    _numbers = {name: i + 1 for i, name in enumerate(_fields)}


class DistributeOptions(_Group):
    """How a dataset is distributed among workers."""

    _fields = {"auto_shard_policy": AutoShardPolicy, "num_devices": int}
    _defaults = {"auto_shard_policy": AutoShardPolicy.AUTO}
    _numbers = {"auto_shard_policy": 1, "num_devices": 2}


class OptimizationOptions(_Group):
    """Which rewritings of a pipeline are done before it runs."""

    _numbers = {
        "apply_default_optimizations": 1,
        "filter_fusion": 6,
        "map_and_batch_fusion": 9,
        "map_and_filter_fusion": 10,
        "map_fusion": 11,
        "map_parallelization": 12,
        "noop_elimination": 14,
        "parallel_batch": 15,
        "shuffle_and_repeat_fusion": 17,
        "filter_parallelization": 18,
        "inject_prefetch": 19,
        "seq_interleave_prefetch": 21,
    }
    _fields = dict.fromkeys(_numbers, bool)


class ThreadingOptions(_Group):
    """How many threads a pipeline has, and whether they are its own."""

    _fields = {"max_intra_op_parallelism": int, "private_threadpool_size": int}
    _numbers = {"max_intra_op_parallelism": 1, "private_threadpool_size": 2}


class ServiceOptions(_Group):
    """Whether clients of the data service keep elements where GPUs copy from fast."""

    _fields = {"pinned": bool}
    _numbers = {"pinned": 1}


class Options(_Group):
    """How a dataset is run.

    Here these act: `deterministic`; `threading`, both; of `autotune`, `enabled` and
    `cpu_budget`; of `experimental_optimization`, `apply_default_optimizations`,
    `map_and_batch_fusion`, `map_parallelization`, `noop_elimination`,
    `shuffle_and_repeat_fusion` and `inject_prefetch`, which decide under which names
    iterators are saved. The others are kept and handed on, and have nothing to do.
    """

    _fields = {
        "dataset_name": str,
        "framework_type": list,
        "deterministic": bool,
        "experimental_external_state_policy": ExternalStatePolicy,
        "experimental_slack": bool,
        "experimental_symbolic_checkpoint": bool,
        "experimental_warm_start": bool,
    }
    _groups = {
        "autotune": AutotuneOptions,
        "experimental_distribute": DistributeOptions,
        "experimental_optimization": OptimizationOptions,
        "experimental_service": ServiceOptions,
        "threading": ThreadingOptions,
    }
    _numbers = {
        "deterministic": 1,
        "experimental_distribute": 2,
        "experimental_optimization": 3,
        "experimental_slack": 4,
        "threading": 5,
        "experimental_external_state_policy": 6,
        "autotune": 7,
        "experimental_symbolic_checkpoint": 8,
        "experimental_warm_start": 9,
        "dataset_name": 10,
        "experimental_service": 12,
    }
    _aliases = {
        "experimental_deterministic": "deterministic",
        "experimental_threading": "threading",
    }

    def __getattr__(self, name):
        alias = type(self)._aliases.get(name)
        if alias is None:
            raise AttributeError(f"Options has no property {name}")
        return self.__dict__[alias]

    def __setattr__(self, name, value):
        super().__setattr__(self._aliases.get(name, name), value)

    def merge(self, options):
        """These options with what others set."""
        merged = Options()
        merged._update(self)
        merged._update(options)
        return merged
