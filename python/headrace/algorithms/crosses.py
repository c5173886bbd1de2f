"""tf.sparse.cross, tf.ragged.cross: crosses of columns, as texts or hashes."""

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes
from headrace.framework.name_scopes import graph_scope
from headrace.framework.sparse_tensor import SparseTensor
from headrace.ragged.ragged_tensor import RaggedTensor

_HASH_KEY = 0xDECAFCAFFE  # upstream's


def _feature(x):
    """Strings as they are, numbers as int64."""
    if x.dtype == dtypes.string:
        return x
    return raw.Cast(x, DstT=dtypes.int64)


def _parts(inputs):
    """(kinds, ragged, sparse, dense): a letter an input, and the inputs by kind."""
    kinds, ragged, sparse, dense = "", [], [], []
    for x in inputs:
        if isinstance(x, RaggedTensor):
            kinds += "R"
            ragged.append(x)
        elif isinstance(x, SparseTensor):
            kinds += "S"
            sparse.append(x)
        else:
            kinds += "D"
            dense.append(_feature(conversion.convert_to_tensor(x)))
    return kinds, ragged, sparse, dense


def _sparse_arguments(inputs):
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("Inputs must be a list")
    for x in inputs:
        if not isinstance(x, (SparseTensor, _headrace.Tensor)):
            raise TypeError("All inputs must be Tensor or SparseTensor.")
    _, _, sparse, dense = _parts(inputs)
    return {
        "indices": [x.indices for x in sparse],
        "values": [_feature(x.values) for x in sparse],
        "shapes": [x.dense_shape for x in sparse],
        "dense_inputs": dense,
    }


def sparse_cross(inputs, name=None, separator=None):
    """Every way to take one value of each input, row by row: texts joined."""
    with graph_scope(name, "SparseCross"):
        parts = raw.SparseCrossV2(
            sep="_X_" if separator is None else separator, **_sparse_arguments(inputs)
        )
        return SparseTensor(*parts)


def sparse_cross_hashed(inputs, num_buckets=0, hash_key=None, name=None):
    """The same as hashes, below `num_buckets` where that is not 0."""
    with graph_scope(name, "SparseCrossHashed"):
        parts = raw.SparseCross(
            hashed_output=True,
            num_buckets=num_buckets,
            hash_key=hash_key or _HASH_KEY,
            out_type=dtypes.int64,
            internal_type=dtypes.int64,
            **_sparse_arguments(inputs),
        )
        return SparseTensor(*parts)


def _ragged(inputs, hashed, num_buckets, hash_key):
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("Inputs must be a list")
    for i, x in enumerate(inputs):
        if x.dtype != dtypes.string and not x.dtype.is_integer:
            raise ValueError(f"Unexpected dtype for inputs[{i}]: {x.dtype}")
    kinds, ragged, sparse, dense = _parts(inputs)
    for x in ragged:
        if x.ragged_rank != 1 or x.values.shape.rank not in (1, None):
            raise ValueError("tf.ragged.cross only supports inputs with rank=2.")
    splits = [x.row_splits for x in ragged]
    narrow = splits and all(s.dtype == dtypes.int32 for s in splits)
    values, row_splits = raw.RaggedCross(
        [_feature(x.values) for x in ragged],
        splits,
        [x.indices for x in sparse],
        [_feature(x.values) for x in sparse],
        [x.dense_shape for x in sparse],
        dense,
        input_order=kinds,
        hashed_output=hashed,
        num_buckets=num_buckets,
        hash_key=hash_key or _HASH_KEY,
        out_values_type=dtypes.int64 if hashed else dtypes.string,
        out_row_splits_type=dtypes.int32 if narrow else dtypes.int64,
    )
    return RaggedTensor.from_row_splits(values, row_splits, validate=False)


def ragged_cross(inputs, name=None):
    """tf.sparse.cross of ragged, sparse and dense inputs; the result is ragged."""
    with graph_scope(name, "RaggedCross"):
        return _ragged(inputs, False, 0, None)


def ragged_cross_hashed(inputs, num_buckets=0, hash_key=None, name=None):
    """The same as hashes, below `num_buckets` where that is not 0."""
    with graph_scope(name, "RaggedCrossHashed"):
        return _ragged(inputs, True, num_buckets, hash_key)
