"""tf.ragged: ranges, segments and splits; tf.strings.split."""

from headrace._load import raw
from headrace.context.errors import InvalidArgumentError
from headrace.framework import conversion, dtypes, execution
from headrace.ops import array_ops, math_ops
from headrace.ragged.parts import rowids_of_splits, splits_of_lengths
from headrace.ragged.ragged_tensor import (
    RaggedTensor,
    as_values,
    is_ragged,
)


def range_(
    starts, limits=None, deltas=1, dtype=None, name=None, row_splits_dtype=dtypes.int64
):
    """A row of evenly spaced numbers for each start, limit and step."""
    if limits is None:
        starts, limits = 0, starts
    given = [conversion.convert_to_tensor(x, dtype) for x in (starts, limits, deltas)]
    if dtype is None:
        order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
        best = max((x.dtype for x in given), key=order.index)
        given = [math_ops.cast(x, best) for x in given]
    splits, values = raw.RaggedRange(
        given[0],
        given[1],
        given[2],
        Tsplits=dtypes.as_dtype(row_splits_dtype),
        name=name,
    )
    return RaggedTensor.from_row_splits(values, splits, validate=False)


def row_splits_to_segment_ids(splits, name=None, out_type=None):
    """The row of each value: [splits[-1]], of row splits that begin with 0.

    ValueError unless the splits are int32 or int64 and have one dimension.
    """
    splits = conversion.convert_to_tensor(splits, dtype_hint=dtypes.int64)
    if splits.shape[0:] == [0] or splits.shape.rank == 1 and splits.shape[0] == 0:
        raise ValueError("Invalid row_splits: []")
    if splits.dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError("splits must have dtype int32 or int64")
    splits.shape.assert_has_rank(1)
    ids = rowids_of_splits(splits)
    return ids if out_type is None else math_ops.cast(ids, out_type)


def segment_ids_to_row_splits(segment_ids, num_segments=None, out_type=None, name=None):
    """Where the rows begin, and the end: [segments + 1], of sorted row numbers.

    The dtype is `out_type`, else the ids' where that is int32, else int64. TypeError
    for ids that are no integers, ValueError for other ranks than 1.
    """
    ids = conversion.convert_to_tensor(segment_ids, dtype_hint=dtypes.int64)
    dtypes.check_integer(ids, "segment_ids")
    ids.shape.assert_has_rank(1)
    if out_type is None:
        out_type = dtypes.int32 if ids.dtype == dtypes.int32 else dtypes.int64
    ids = math_ops.cast(ids, out_type)
    if num_segments is None:
        last = array_ops.concat([array_ops.ones([1], ids.dtype) * -1, ids], 0)
        num_segments = raw.Max(last, 0) + 1
    count = math_ops.cast(num_segments, ids.dtype)
    known = execution.get_static_value(count)
    if known is not None and known < 0:
        raise InvalidArgumentError._of(f"size ({known}) must be non-negative")
    counts = raw.UnsortedSegmentSum(
        array_ops.ones_like(ids), raw.Minimum(ids, count), count + 1
    )[:-1]
    return splits_of_lengths(counts)


def split_strings(input, sep, maxsplit):
    """tf.strings.split: each string's pieces as a row."""
    input = as_values(input, dtypes.string)
    if is_ragged(input):
        return input.with_flat_values(split_strings(input.flat_values, sep, maxsplit))
    rank = input.shape.rank
    if rank == 0:
        return split_strings(array_ops.stack([input]), sep, maxsplit).values
    if rank > 1:
        ragged = RaggedTensor.from_tensor(input, ragged_rank=rank - 1)
        return split_strings(ragged, sep, maxsplit)
    indices, values, shape = raw.StringSplitV2(
        input, "" if sep is None else sep, maxsplit=maxsplit
    )
    return RaggedTensor.from_value_rowids(
        values, indices[:, 0], shape[0], validate=False
    )


def strings_split(input, sep=None, maxsplit=-1, name=None):
    """Splits strings as Python's str.split does, into ragged rows."""
    return split_strings(input, sep, maxsplit)
