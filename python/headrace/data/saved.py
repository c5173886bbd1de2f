"""Datasets in folders: save, load and snapshot."""

import json
import os

from headrace.data.dataset import Dataset
from headrace.data.functions import flat, raw
from headrace.framework import conversion, dtypes
from headrace.framework.errors import NotFoundError
from headrace.framework.type_spec import TensorSpec

_SPEC = "element_spec.json"
_DATA = "elements"


def _compression(name):
    if name in (None, "NONE", ""):
        return
    if name not in ("GZIP", "SNAPPY", "AUTO"):
        raise ValueError(f"unknown compression {name!r}")
    if name == "GZIP":
        raise NotImplementedError("saving datasets with compression is not supported")


def save(dataset, path, compression, shard_func, checkpoint_args):
    """Writes all elements to a folder, in their order."""
    _compression(compression)
    if shard_func is not None or checkpoint_args is not None:
        raise NotImplementedError(
            "Dataset.save: shard_func and checkpoint_args are not supported"
        )
    path = os.fspath(path)
    os.makedirs(path, exist_ok=True)
    data = os.path.join(path, _DATA)
    for old in (data + ".index", data + ".lockfile"):
        if os.path.exists(old):
            os.remove(old)
    for _ in dataset.cache(data):
        pass
    with open(os.path.join(path, _SPEC), "w", encoding="utf8") as f:
        json.dump(_to_json(dataset.element_spec), f)


def _to_json(spec):
    if isinstance(spec, TensorSpec):
        shape = None if spec.shape.rank is None else spec.shape.as_list()
        return {"shape": shape, "dtype": spec.dtype.name}
    if isinstance(spec, dict):
        return {"dict": [[k, _to_json(v)] for k, v in spec.items()]}
    if isinstance(spec, tuple):
        return {"tuple": [_to_json(v) for v in spec]}
    raise NotImplementedError(f"saving datasets of {type(spec).__name__}")


def _from_json(x):
    if "dict" in x:
        return {k: _from_json(v) for k, v in x["dict"]}
    if "tuple" in x:
        return tuple(_from_json(v) for v in x["tuple"])
    return TensorSpec(x["shape"], dtypes.as_dtype(x["dtype"]))


class _LoadDataset(Dataset):
    """The elements that a folder holds."""

    def __init__(self, path, spec):
        nothing = Dataset.range(0)
        super().__init__(
            raw("CacheDatasetV2")(
                input_dataset=nothing._variant_tensor,
                filename=conversion.convert_to_tensor(
                    os.path.join(path, _DATA), dtypes.string
                ),
                cache=raw("DummyMemoryCache")(),
                **flat(spec),
            ),
            spec,
        )


def load(path, element_spec, compression, reader_func, wait):
    """The elements that `save` wrote."""
    _compression(compression)
    if reader_func is not None or wait:
        raise NotImplementedError(
            "Dataset.load: reader_func and wait are not supported"
        )
    path = os.fspath(path)
    if not os.path.exists(os.path.join(path, _DATA + ".index")):
        raise NotFoundError(None, None, f"Could not find a saved dataset in {path}")
    if element_spec is None:
        with open(os.path.join(path, _SPEC), encoding="utf8") as f:
            element_spec = _from_json(json.load(f))
    return _LoadDataset(path, element_spec)


def snapshot(dataset, path, compression, reader_func, shard_func):
    """The elements, written the first time and read later."""
    _compression(compression)
    if reader_func is not None or shard_func is not None:
        raise NotImplementedError(
            "Dataset.snapshot: reader_func and shard_func are not supported"
        )
    path = os.fspath(path)
    os.makedirs(path, exist_ok=True)
    return dataset.cache(os.path.join(path, _DATA))
