"""What parse_example is asked for: tf.io.FixedLenFeature and its kind."""

import collections

from headrace.framework import dtypes
from headrace.framework.support import signatures


class FixedLenFeature(
    signatures.tuple_of("FixedLenFeature", "shape, dtype, default_value=None")
):
    """Values of one shape in every example; required without a default."""

    __slots__ = ()


class VarLenFeature(signatures.tuple_of("VarLenFeature", "dtype")):
    """Any number of values: a SparseTensor."""

    __slots__ = ()


class FixedLenSequenceFeature(
    signatures.tuple_of(
        "FixedLenSequenceFeature",
        "shape, dtype, allow_missing=False, default_value=None",
    )
):
    """Rows of one shape, as many as there are: a tensor padded with the default."""

    __slots__ = ()


class SparseFeature(
    signatures.tuple_of(
        "SparseFeature", "index_key, value_key, dtype, size, already_sorted=False"
    )
):
    """Indices in some features and values in another: a SparseTensor."""

    __slots__ = ()


class RaggedFeature(
    signatures.tuple_of(
        "RaggedFeature",
        "dtype, value_key=None, partitions=(), row_splits_dtype=int32, validate=False",
        int32=dtypes.int32,
    )
):
    """Any number of values: a RaggedTensor, cut further by `partitions`, which lie
    in other features (outermost first)."""

    __slots__ = ()

    RowSplits = collections.namedtuple("RowSplits", ["key"])
    RowLengths = collections.namedtuple("RowLengths", ["key"])
    RowStarts = collections.namedtuple("RowStarts", ["key"])
    RowLimits = collections.namedtuple("RowLimits", ["key"])
    ValueRowIds = collections.namedtuple("ValueRowIds", ["key"])
    UniformRowLength = collections.namedtuple("UniformRowLength", ["length"])

    _PARTITIONS = (RowSplits, RowLengths, RowStarts, RowLimits, ValueRowIds)
    _PARTITIONS += (UniformRowLength,)

    @classmethod
    def _check(cls, given):
        dtype, value_key, partitions, row_splits_dtype, _ = given.values()
        if dtypes.as_dtype(dtype) not in (dtypes.int64, dtypes.float32, dtypes.string):
            raise ValueError(
                f"Argument `dtype` must be int64, float32, or bytes; got {dtype!r}"
            )
        if value_key is not None and not isinstance(value_key, str):
            raise ValueError(
                f"Argument `value_key` must be a string; got {value_key!r}"
            )
        if row_splits_dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError(
                "Argument `row_splits_dtype` must be int32 or int64; got"
                f"{row_splits_dtype!r}"
            )
        if not isinstance(partitions, (list, tuple)):
            raise TypeError(
                "Argument `partitions` must be a list or tuple of partitions; got "
                f"{partitions!r}"
            )
        for partition in partitions:
            if not isinstance(partition, cls._PARTITIONS):
                raise TypeError(
                    "Argument `partitions` must be a list of partition objects; got "
                    f"{partition!r}"
                )
        given["partitions"] = tuple(partitions)
