"""tf.train.CheckpointOptions and what decides a checkpoint's data files."""

import abc
import inspect

from headrace._load import _headrace
from headrace.framework import conversion
from headrace.framework.devices import DeviceSpec
from headrace.framework.support.signatures import keeps

GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"  # of the object graph in a checkpoint


class CheckpointOptions:
    """How checkpoints are written and read."""

    __slots__ = (
        "_experimental_write_callbacks",
        "enable_async",
        "experimental_io_device",
        "experimental_sharding_callback",
        "experimental_skip_slot_variables",
    )

    def __init__(
        self,
        experimental_io_device=None,
        experimental_enable_async_checkpoint=False,
        experimental_write_callbacks=None,
        enable_async=False,
        experimental_skip_slot_variables=False,
        experimental_sharding_callback=None,
    ):
        self.experimental_io_device = experimental_io_device  # all files are local
        self.enable_async = bool(experimental_enable_async_checkpoint or enable_async)
        for callback in experimental_write_callbacks or ():
            count = len(inspect.signature(callback).parameters)
            if count > 1:
                raise AssertionError(
                    "experimental_write_callbacks take no argument or the checkpoint's "
                    f"path, {callback} takes {count}"
                )
        self._experimental_write_callbacks = experimental_write_callbacks
        if experimental_sharding_callback is not None and not isinstance(
            experimental_sharding_callback, ShardingCallback
        ):
            raise ValueError(
                "The experimental_sharding_callback checkpoint optionmust be of type "
                f"ShardingCallback. The option providedwas of type "
                f"{type(experimental_sharding_callback)}."
            )
        self.experimental_sharding_callback = experimental_sharding_callback
        self.experimental_skip_slot_variables = experimental_skip_slot_variables

    @property
    def experimental_enable_async_checkpoint(self):
        """The older name of `enable_async`."""
        return self.enable_async

    @experimental_enable_async_checkpoint.setter
    def experimental_enable_async_checkpoint(self, value):
        self.enable_async = bool(value)

    @property
    def experimental_write_callbacks(self):
        """The functions to call after a checkpoint is written, or None."""
        return self._experimental_write_callbacks

    def __copy__(self):
        """Options of their own, with a list of callbacks of their own."""
        made = object.__new__(type(self))
        for name in self.__slots__:
            setattr(made, name, getattr(self, name))
        if self._experimental_write_callbacks is not None:
            made._experimental_write_callbacks = list(
                self._experimental_write_callbacks
            )
        return made

    def _after_write(self, path):
        for callback in self._experimental_write_callbacks or ():
            if inspect.signature(callback).parameters:
                callback(path)
            else:
                callback()


class ShardableTensor:
    """A tensor of a checkpoint, as a ShardingCallback gets it."""

    __init__ = keeps(
        "_tensor_save_spec, tensor, dtype, device, name, shape, slice_spec, "
        "checkpoint_key, trackable"
    )

    def __repr__(self):
        fields = "\n".join(f"  {k}={v!r}" for k, v in vars(self).items())
        return f"\nShardableTensor:\n{fields}"


class ShardingCallback(abc.ABC):
    """Says which tensors go into which data file of a checkpoint.

    Called with a list of ShardableTensor; gives a list of shards, each
    {checkpoint key: {slice_spec: tensor}}. A slice_spec is "" for a whole tensor,
    else the full shape and the slice, such as "4 3 0,2:-".
    """

    @property
    @abc.abstractmethod
    def description(self):
        """One sentence that says how tensors are split: a str. Subclasses define it."""
        pass

    @abc.abstractmethod
    def __call__(self, shardable_tensors):
        pass


class ShardByTaskPolicy(ShardingCallback):
    """One data file for each task; there is one task here."""

    @property
    def description(self):
        """One sentence that says how tensors are split."""
        return "Split tensors into shards based on their device spec task."

    def __call__(self, shardable_tensors):
        shard = {}
        for tensor in shardable_tensors:
            of_key = shard.setdefault(tensor.checkpoint_key, {})
            of_key[tensor.slice_spec] = tensor.tensor
        return [shard]


class MaxShardSizePolicy(ShardingCallback):
    """Data files of at most so many bytes; tensors that do not fit are cut."""

    def __init__(self, max_shard_size):
        if max_shard_size <= 0:
            raise ValueError(f"max_shard_size must be positive, got {max_shard_size}")
        self.max_shard_size = int(max_shard_size)

    @property
    def description(self):
        """One sentence that says how tensors are split."""
        return "Split tensors into shards with a max shard size."

    def __call__(self, shardable_tensors):
        values = [(t.checkpoint_key, t.tensor) for t in shardable_tensors]
        shards = []
        for pieces in _headrace.shards_by_size(values, self.max_shard_size):
            shards.append({})
            for key, tensor, slice_spec in pieces:
                shards[-1].setdefault(key, {})[slice_spec] = tensor
        return shards


def is_one_file(callback):
    """Whether a callback puts all into one data file: None, and one task's."""
    return callback is None or type(callback) is ShardByTaskPolicy


def write(values, path, callback):
    """Writes gathered values as the callback has it."""
    if is_one_file(callback):
        values.write(path)
    elif type(callback) is MaxShardSizePolicy:
        values.write(path, callback.max_shard_size)
    else:
        write_called(path, values.items(), values.serialized_graph(), callback)


def write_called(path, items, object_graph, callback):
    """Writes (key, tensor, owner) and the object graph as the callback has it."""
    if type(callback) is MaxShardSizePolicy:  # the graph goes into the last file
        values = [(key, tensor) for key, tensor, _ in items]
        shards = _headrace.shards_by_size(values, callback.max_shard_size) or [[]]
        graph = (GRAPH_KEY, conversion.constant(object_graph), "")
        shards = [*shards[:-1], [*shards[-1], graph]]
    else:
        shards = _called(items, object_graph, callback)
    _headrace.write_shards(path, shards)


def _called(items, object_graph, callback):
    graph = conversion.constant(object_graph)
    device = DeviceSpec.from_string("/job:localhost/replica:0/task:0/device:CPU:0")
    tensors = [
        ShardableTensor(None, t, t.dtype, device, key, t.shape, "", key, owner)
        for key, t, owner in [*items, (GRAPH_KEY, graph, None)]
    ]
    wanted = {t.checkpoint_key: t.dtype for t in tensors}
    shards = []
    for shard in callback(tensors):
        shards.append([])
        for key, parts in shard.items():
            for spec, tensor in parts.items():
                spec = getattr(spec, "spec", spec)
                if key not in wanted or tensor.dtype != wanted[key]:
                    raise RuntimeError(
                        f"The sharding callback ({callback.description}) put {key} of "
                        f"{tensor.dtype!r} into a shard, which is not what it was given"
                    )
                shards[-1].append((key, tensor, spec))
    missing = set(wanted) - {piece[0] for shard in shards for piece in shard}
    if missing:
        raise RuntimeError(
            f"The sharding callback ({callback.description}) left out {sorted(missing)}"
        )
    return [shard for shard in shards if shard]
