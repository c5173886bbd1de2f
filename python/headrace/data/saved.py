"""Datasets in folders, as upstream lays them out: save, load and snapshot.

PATH/dataset_spec.pb is the element spec, PATH/snapshot.metadata names the run, and
PATH/RUN/NNNNNNNN.shard/NNNNNNNN.snapshot are records, one a component of an element,
each a serialised tensor.
"""

import contextlib
import os
import random
import time

from headrace._load import _headrace
from headrace.data import nest, structure
from headrace.data.dataset import Dataset
from headrace.data.functions import flat, raw
from headrace.data.readers import TFRecordDataset
from headrace.framework import conversion, dtypes
from headrace.framework.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
)
from headrace.framework.tensor_shape import TensorShape
from headrace.framework.type_spec import TensorSpec
from headrace.io.tf_record import TFRecordOptions

_SPEC = "dataset_spec.pb"
_METADATA = "snapshot.metadata"
_VERSION = 2
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


def save(dataset, path, compression, shard_func, checkpoint_args):
    """Writes all elements to a folder, in their order: into the shards that
    shard_func(element) names, or all into one."""
    compression = _compression(compression)
    if checkpoint_args is not None:
        raise NotImplementedError("Dataset.save: checkpoint_args is not supported")
    path = os.fspath(path)
    spec = dataset.element_spec
    packed = _spec_proto(spec).SerializeToString()
    run = str(random.SystemRandom().getrandbits(63))
    shards = _ShardWriters(os.path.join(path, run), compression)
    count = 0
    with contextlib.closing(shards):
        if shard_func is None:
            shards.writer(0)
        for shard, element in dataset.map(
            lambda *parts: (_shard_of(shard_func, parts), _serialized(spec, parts))
        ):
            writer = shards.writer(int(shard))
            for component in element.numpy():
                writer.write(component)
            count += 1
    _write(os.path.join(path, _SPEC), packed)
    # Last: with it the folder is complete.
    _write(os.path.join(path, _METADATA), _metadata(run, spec, count))


def _shard_of(shard_func, parts):
    zero = conversion.convert_to_tensor(0, dtypes.int64)
    if shard_func is None:
        return zero
    shard = conversion.convert_to_tensor(shard_func(*parts))
    if shard.dtype != dtypes.int64 or shard.shape.rank not in (None, 0):
        raise InvalidArgumentError(
            None, None, "`shard_func` must return a scalar int64."
        )
    return raw("EnsureShape")(input=shard, shape=[])


class _ShardWriters:
    """The files of a run that are being written, by the numbers of their shards."""

    def __init__(self, folder, compression):
        self._folder = folder
        self._compression = compression
        self._writers = {}
        os.makedirs(folder, exist_ok=True)

    def writer(self, shard):
        writer = self._writers.get(shard)
        if writer is not None:
            return writer
        if shard < 0:
            raise InvalidArgumentError(
                None, None, f"`shard_func` gave the shard {shard}, which is negative"
            )
        folder = os.path.join(self._folder, f"{shard:08d}.shard")
        os.makedirs(folder, exist_ok=True)
        writer = self._writers[shard] = _headrace.RecordWriter(
            os.path.join(folder, "00000000.snapshot"),
            self._compression,
            *TFRecordOptions()._deflate(),
        )
        return writer

    def close(self):
        for writer in self._writers.values():
            writer.close()


def _serialized(spec, parts):
    value = parts[0] if len(parts) == 1 and not isinstance(spec, tuple) else parts
    tensors = structure.to_tensors(spec, value)
    return raw("Pack")(values=[raw("SerializeTensor")(tensor=t) for t in tensors])


def _write(path, data):
    with open(path + ".tmp", "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".tmp", path)


def _metadata(run, spec, count):
    from headrace.framework import protos

    m = protos.message("tensorflow.data.experimental.SnapshotMetadataRecord")()
    m.run_id = run
    m.creation_timestamp = int(time.time() * 1e6)
    m.version = _VERSION
    m.dtype.extend(c.dtype.as_datatype_enum for c in structure.component_specs(spec))
    m.num_elements = count
    m.finalized = True
    return m.SerializeToString()


def _spec_proto(spec):
    from headrace.framework import protos

    value = protos.message("tensorflow.StructuredValue")()
    if isinstance(spec, TensorSpec):
        value.tensor_spec_value.name = spec.name or ""
        value.tensor_spec_value.shape.CopyFrom(spec.shape.as_proto())
        value.tensor_spec_value.dtype = spec.dtype.as_datatype_enum
    elif isinstance(spec, dict):
        value.dict_value.SetInParent()
        for k, v in spec.items():
            value.dict_value.fields[k].CopyFrom(_spec_proto(v))
    elif type(spec) is tuple:
        value.tuple_value.SetInParent()
        for v in spec:
            value.tuple_value.values.add().CopyFrom(_spec_proto(v))
    else:
        raise NotImplementedError(f"saving datasets of {type(spec).__name__}")
    return value


def _spec_of(value):
    kind = value.WhichOneof("kind")
    if kind == "tensor_spec_value":
        v = value.tensor_spec_value
        return TensorSpec(
            TensorShape(v.shape), dtypes.as_dtype(v.dtype), name=v.name or None
        )
    if kind == "dict_value":
        fields = value.dict_value.fields
        return {k: _spec_of(fields[k]) for k in sorted(fields)}
    if kind == "tuple_value":
        return tuple(_spec_of(v) for v in value.tuple_value.values)
    if kind is None:
        raise DataLossError(None, None, "Dataset.load: element_spec is cut")
    raise NotImplementedError(
        f"Dataset.load: the saved element_spec holds a {kind}; pass element_spec"
    )


def _read(path, name, message):
    from google.protobuf.message import DecodeError

    from headrace.framework import protos

    try:
        with open(os.path.join(path, name), "rb") as f:
            data = f.read()
    except FileNotFoundError:
        raise NotFoundError(
            None, None, f"Could not find a saved dataset in {path}: no {name}"
        ) from None
    try:
        return protos.message(message).FromString(data)
    except DecodeError as e:
        raise DataLossError(None, None, f"{path}/{name} is damaged: {e}") from None


def _shards(folder):
    """The files of every shard, in order."""
    shards = []
    for name in sorted(n for n in os.listdir(folder) if n.endswith(".shard")):
        inside = os.path.join(folder, name)
        files = sorted(n for n in os.listdir(inside) if n.endswith(".snapshot"))
        shards.append([os.path.join(inside, n) for n in files])
    if not shards:
        raise NotFoundError(None, None, f"There are no shards in {folder}")
    return shards


class _Shard:
    """Makes the dataset of the elements in a list of files."""

    def __init__(self, spec, compression):
        self._spec = spec
        self._components = structure.component_specs(spec)
        self._compression = compression

    def dataset(self, files):
        records = TFRecordDataset(files, self._compression)
        return records.batch(len(self._components), drop_remainder=True).map(
            self._parsed
        )

    def _parsed(self, rows):
        tensors = []
        for i, c in enumerate(self._components):
            t = raw("ParseTensor")(serialized=rows[i], out_type=c.dtype)
            if c.shape.rank is not None:
                t = raw("EnsureShape")(input=t, shape=c.shape)
            tensors.append(t)
        return structure.from_tensors(self._spec, tensors)


def load(path, element_spec, compression, reader_func, wait):
    """The elements that `save` wrote; `compression` must be that of the files."""
    path = os.fspath(path)
    if wait:  # the metadata come last
        while not os.path.exists(os.path.join(path, _METADATA)):
            time.sleep(_WAIT)
    about = _read(
        path, _METADATA, "tensorflow.data.experimental.SnapshotMetadataRecord"
    )
    if element_spec is None:
        element_spec = _spec_of(_read(path, _SPEC, "tensorflow.StructuredValue"))
    shard = _Shard(element_spec, _compression(compression))
    shards = _shards(os.path.join(path, about.run_id))
    if reader_func is None and len(shards) == 1:
        loaded = shard.dataset(shards[0])
    else:
        lists = _Lists(shards)
        nested = Dataset.range(len(shards)).map(lambda i: shard.dataset(lists[i]))
        if reader_func is None:
            loaded = nested.interleave(lambda d: d, cycle_length=os.cpu_count() or 1)
        else:
            loaded = reader_func(nested)
    return _LoadDataset(loaded, element_spec)


class _Lists:
    """Lists of texts, one of which a tensor picks."""

    def __init__(self, lists):
        self._texts = [t for texts in lists for t in texts]
        self._ends = [0]
        for texts in lists:
            self._ends.append(self._ends[-1] + len(texts))

    def __getitem__(self, i):
        ends = conversion.convert_to_tensor(self._ends, dtypes.int64)
        texts = conversion.convert_to_tensor(self._texts, dtypes.string)
        first = raw("GatherV2")(params=ends, indices=i, axis=0)
        last = raw("GatherV2")(params=ends, indices=i + 1, axis=0)
        numbers = raw("Range")(start=first, limit=last, delta=i * 0 + 1)
        return raw("GatherV2")(params=texts, indices=numbers, axis=0)


class _LoadDataset(Dataset):
    """The elements that a folder holds."""

    def __init__(self, loaded, spec):
        nest.assert_same_structure(spec, loaded.element_spec)
        super().__init__(loaded._variant_tensor, spec, [loaded])


def snapshot(dataset, path, compression, reader_func, shard_func):
    """The elements, written the first time and read later, in one file."""
    compression = _compression(compression)
    if reader_func is not None or shard_func is not None:
        raise NotImplementedError(
            "Dataset.snapshot: reader_func and shard_func are not supported"
        )
    path = os.fspath(path)
    os.makedirs(path, exist_ok=True)
    return _SnapshotDataset(dataset, os.path.join(path, "elements"), compression)


class _SnapshotDataset(Dataset):
    """The elements, kept in a file from the first time on."""

    def __init__(self, source, file, compression):
        spec = source.element_spec
        super().__init__(
            raw("_SnapshotDataset")(
                input_dataset=source._variant_tensor,
                filename=conversion.convert_to_tensor(file, dtypes.string),
                compression=compression,
                **flat(spec),
            ),
            spec,
            [source],
        )
