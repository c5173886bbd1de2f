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


class _Group:
    """Options by name, of given types; None: not set."""

    _fields = {}
    _defaults = {}
    _groups = {}

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

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def _update(self, other):
        for name in self._fields:
            if getattr(other, name) != self._defaults.get(name):
                self.__dict__[name] = getattr(other, name)
        for name in self._groups:
            getattr(self, name)._update(getattr(other, name))


class AutotuneOptions(_Group):
    """Of the tuning of sizes."""

    _fields = {
        "enabled": bool,
        "cpu_budget": int,
        "ram_budget": int,
        "autotune_algorithm": AutotuneAlgorithm,
        "initial_parallelism": int,
        "min_parallelism": int,
    }


class DistributeOptions(_Group):
    """Of the distribution among workers."""

    _fields = {"auto_shard_policy": AutoShardPolicy, "num_devices": int}
    _defaults = {"auto_shard_policy": AutoShardPolicy.AUTO}


class OptimizationOptions(_Group):
    """Of the rewriting of pipelines."""

    _fields = {
        name: bool
        for name in (
            "apply_default_optimizations",
            "filter_fusion",
            "filter_parallelization",
            "inject_prefetch",
            "map_and_batch_fusion",
            "map_and_filter_fusion",
            "map_fusion",
            "map_parallelization",
            "noop_elimination",
            "parallel_batch",
            "shuffle_and_repeat_fusion",
            "seq_interleave_prefetch",
        )
    }


class ThreadingOptions(_Group):
    """Of threads."""

    _fields = {"max_intra_op_parallelism": int, "private_threadpool_size": int}


class ServiceOptions(_Group):
    """Of the data service."""

    _fields = {"pinned": bool}


class Options(_Group):
    """How a dataset is run."""

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
