"""Datasets in folders: save, load and snapshot. src/data/saved has the layout."""

import os
import time

from headrace._load import raw
from headrace.context import errors
from headrace.data import saved_spec
from headrace.data.dataset import AUTOTUNE, DatasetSpec, made, made_of, method, source
from headrace.data.functions import DatasetFunction, flat
from headrace.elements import nest
from headrace.framework import conversion, dtypes, execution
from headrace.framework.type_spec import TensorSpec
from headrace.io import gfile
from headrace.train.checkpoint import Checkpoint
from headrace.train.checkpoint_state import CheckpointManager

_METADATA = "snapshot.metadata"
_WAIT = 0.05  # seconds between looks at a folder that is being written


def _compression(name):
    """The compression of records by the name that users give."""
    if name in (None, "NONE", ""):
        return ""
    if name == "AUTO":
        return "SNAPPY"
    if name not in ("GZIP", "SNAPPY"):
        raise ValueError(f"unknown compression {name!r}")
    return name


def _text(path):
    return conversion.convert_to_tensor(os.fspath(path), dtypes.string)


class _Target:
    """The arguments of the ops that save."""

    def __init__(self, dataset, path, compression, shard_func):
        spec = dataset.element_spec
        use = shard_func is not None

        def shard(*args):
            if not use:
                return conversion.convert_to_tensor(0, dtypes.int64)
            return shard_func(*args)

        self.spec = spec
        self.function = DatasetFunction(shard, "save_shard", [spec])
        if self.function.output != TensorSpec([], dtypes.int64):
            raise errors.InvalidArgumentError._of(
                "`shard_func` must return a scalar int64."
            )
        self.arguments = {
            "input_dataset": dataset._variant_tensor,
            "path": _text(path),
            "shard_func_other_args": self.function.captures,
            "compression": _compression(compression),
            "shard_func": self.function.function,
            "use_shard_func": use,
        }


@method
def save(self, path, compression=None, shard_func=None, checkpoint_args=None):
    """Writes all elements to a folder, in their order; runs the dataset once.

    `compression` is None, "GZIP", "SNAPPY" or "AUTO"; shard_func(element) gives an
    int64 shard, one shard without. `checkpoint_args`, those of a CheckpointManager
    with "step_counter", keep how far it came, so that an interrupted save goes on.
    """
    path = os.fspath(path)
    target = _Target(self, path, compression, shard_func)
    packed = saved_spec.packed(self.element_spec)
    if checkpoint_args is None:
        saved_spec.write(path, packed)
        raw.SaveDataset(**target.arguments)
        return
    variant = raw.SaveDatasetV2(**target.arguments, **flat(target.spec))
    passing = made("SaveDatasetV2", variant, target.spec, [self], [target.function])
    _save_in_steps(passing, path, packed, checkpoint_args)


def _save_in_steps(dataset, path, packed, checkpoint_args):
    """Saves, and keeps checkpoints of how far: what was begun before goes on."""
    execution.only_eagerly(ValueError, "`checkpoint_args` need eager execution.")
    if "checkpoint" in checkpoint_args:
        raise ValueError(
            "Invalid `checkpoint_args`. `checkpoint_args` are not allowed to include "
            "'checkpoint'."
        )
    iterator = iter(dataset)
    manager = CheckpointManager(Checkpoint(iterator=iterator), **checkpoint_args)
    saved_spec.write(path, packed)
    if manager.latest_checkpoint:
        manager.checkpoint.restore(manager.latest_checkpoint)
    counter = checkpoint_args.get("step_counter")
    for _ in iterator:
        if counter is not None:
            counter.assign_add(1)
        manager.save(check_interval=True)


class _Reader:
    """The arguments of the ops that read shards."""

    def __init__(self, spec, reader_func):
        if reader_func is None:

            def reader_func(shards):
                return shards.interleave(
                    lambda shard: shard,
                    cycle_length=os.cpu_count() or 1,
                    num_parallel_calls=AUTOTUNE,
                )

        shards = DatasetSpec(DatasetSpec(spec))
        self.function = DatasetFunction(
            reader_func, "load_reader", [shards], unpack=False
        )
        made = self.function.output
        if not isinstance(made, DatasetSpec):
            raise TypeError(
                "Invalid `reader_func`. `reader_func` must return a `tf.data.Dataset` "
                f"object but its return type is {made}."
            )
        nest.assert_same_structure(spec, made.element_spec)
        self.arguments = {
            "reader_func_other_args": self.function.captures,
            "reader_func": self.function.function,
        }


@source
def load(path, element_spec=None, compression=None, reader_func=None, wait=False):
    """The elements that save() wrote to a folder, in the order of the shards.

    `compression` must be that of the files; `wait` waits for them to be written.
    `reader_func` takes a dataset of datasets, one a shard, and gives the elements.
    """
    path = os.fspath(path)
    if wait:  # the metadata come last
        while not gfile.exists(os.path.join(path, _METADATA)):
            time.sleep(_WAIT)
    if element_spec is None:
        element_spec = saved_spec.read(path)
    reader = _Reader(element_spec, reader_func)
    variant = raw.LoadDataset(
        path=_text(path),
        compression=_compression(compression),
        **reader.arguments,
        **flat(element_spec),
    )
    return made("LoadDataset", variant, element_spec, (), [reader.function])


def _snapshot(source, path, compression, reader_func, shard_func):
    spec = source.element_spec
    shard = DatasetFunction(shard_func, "snapshot_shard", [spec])
    if shard.output != TensorSpec([], dtypes.int64):
        raise TypeError(
            "Invalid `shard_func`. `shard_func` must return `tf.int64` scalar tensor "
            f"but its return type is {shard.output}."
        )
    reader = _Reader(spec, reader_func)
    return made_of(
        "SnapshotDatasetV2",
        source,
        functions=[shard, reader.function],
        path=_text(path),
        shard_func_other_args=shard.captures,
        shard_func=shard.function,
        compression=_compression(compression),
        **reader.arguments,
    )


@method
def snapshot(
    self, path, compression="AUTO", reader_func=None, shard_func=None, name=None
):
    """The elements, written to a folder by the first walk and read by later ones.

    `shard_func` gives an int64 scalar (TypeError else); without it elements are
    spread over as many shards as there are processors, and the order may change.
    """
    if shard_func is not None:
        return _snapshot(self, path, compression, reader_func, shard_func)
    count = os.cpu_count() or 1

    def numbered(number, *_):
        return number % count

    kept = _snapshot(self.enumerate(), path, compression, reader_func, numbered)
    return kept.map(lambda _, element: element)
