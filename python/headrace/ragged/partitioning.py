"""Partitions and segments of ragged tensors."""

from headrace._load import raw
from headrace.framework import conversion, dtypes
from headrace.framework.support import signatures
from headrace.ops import array_ops, check_ops, math_ops, reduction_ops, sort_ops
from headrace.ragged import checks
from headrace.ragged.convert import merge_dims
from headrace.ragged.indexing import expand_front, gather_rows, take_spans
from headrace.ragged.parts import splits_of_lengths
from headrace.ragged.ragged_tensor import (
    RaggedTensor,
    as_ragged,
    as_values,
    is_ragged,
)


def stack_dynamic_partitions(data, partitions, num_partitions, name=None):
    """The slices of `data` of each partition as one row of a ragged tensor.

    `partitions` are integers below `num_partitions` in the shape of the first dimensions
    of `data`. InvalidArgumentError for others.
    """
    data = as_values(data)
    partitions = as_values(partitions)
    dtypes.check_integer(partitions, "partitions")
    if is_ragged(partitions):
        return _of_ragged(data, partitions, num_partitions)
    rank = partitions.shape.rank
    if rank is None:
        raise ValueError("partitions must have known rank")
    partitions.shape.assert_is_compatible_with(data.shape[:rank])
    if rank == 0:
        partitions = array_ops.reshape(partitions, [1])
        data = expand_front(data)
    elif rank > 1:
        partitions = array_ops.reshape(partitions, [-1])
        data = merge_dims(data, 0, rank - 1)
    return _of_vector(data, partitions, num_partitions)


def _checked_values(a, b, of, text):
    """(the splits, the values of one of them) once both have the same splits."""
    splits = checks.same_splits(a.row_splits, b.row_splits, text)
    inner = of.values
    if splits is not a.row_splits and not is_ragged(inner):
        inner = checks.after([splits], inner)
    return splits, inner


def _of_ragged(data, partitions, count):
    partitions.shape.assert_is_compatible_with(data.shape[: partitions.shape.rank])
    data = as_ragged(data, partitions.row_splits.dtype)
    text = "data and partitions have incompatible ragged shapes"
    splits, inner = _checked_values(partitions, data, partitions, text)
    made = stack_dynamic_partitions(data.values, inner, count)
    return made.with_row_splits_dtype(splits.dtype)


def _of_vector(data, partitions, count):
    count = conversion.convert_to_tensor(count)
    count.shape.assert_has_rank(0)
    limit = math_ops.cast(count, partitions.dtype)
    assertions = [
        check_ops.assert_non_negative(
            partitions, message="partitions must be non-negative."
        ),
        check_ops.assert_less(
            partitions, limit, message="partitions must be less than num_partitions"
        ),
    ]
    partitions = checks.after(assertions, partitions)
    order = sort_ops.argsort(partitions, stable=True)
    dtype = data.row_splits.dtype if is_ragged(data) else partitions.dtype
    if dtype not in (dtypes.int32, dtypes.int64):
        dtype = dtypes.int64
    ids = math_ops.cast(array_ops.gather(partitions, order), dtype)
    return RaggedTensor.from_value_rowids(
        gather_rows(data, order), ids, math_ops.cast(count, dtype), validate=False
    )


def dynamic_partition(data, partitions, num_partitions, name=None):
    """The slices of `data` of each partition: a list of tensors."""
    if not isinstance(num_partitions, int) or num_partitions < 0:
        raise TypeError("num_partitions must be a non-negative integer")
    rows = stack_dynamic_partitions(data, partitions, num_partitions)
    return [rows[i] for i in range(num_partitions)]


def by_segments(leaf, data, ids, count):
    """leaf(values, segment ids, number of segments) of ragged data: what lies at the
    same place of the rows of a segment goes together."""
    data = as_values(data)
    ids = as_values(ids)
    if ids.dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError("segment_ids must have dtype int32 or int64.")
    if is_ragged(ids):
        if not is_ragged(data):
            raise ValueError(
                "segment_ids.shape must be a prefix of data.shape, but segment_ids is "
                "ragged and data is not."
            )
        text = "segment_ids.shape must be a prefix of data.shape"
        _, inner = _checked_values(data, ids, ids, text)
        return by_segments(leaf, data.values, inner, count)
    if not is_ragged(data):
        return leaf(data, ids, count)
    return segments(leaf, data, ids, count)


def segments(leaf, values, ids, count):
    """The same of rows, whose segments are known by a vector of ids."""
    if not is_ragged(values):
        return leaf(values, ids, count)
    # Each segment is a row as long as its longest; columns are put together.
    ids = math_ops.cast(ids, values.row_splits.dtype)
    lengths = raw.UnsortedSegmentMax(values.row_lengths(), ids, count)
    lengths = raw.Maximum(lengths, array_ops.zeros_like(lengths))
    splits = splits_of_lengths(lengths)
    starts = array_ops.gather(splits, ids)
    limits = starts + values.row_lengths()
    size = array_ops.reshape(splits[-1], [])
    targets = take_spans(array_ops.range(size, dtype=splits.dtype), starts, limits)
    return RaggedTensor.from_row_splits(
        segments(leaf, values.values, targets, size), splits, validate=False
    )


def _unsorted(name):
    leaf = getattr(reduction_ops, name)

    def segment(data, segment_ids, num_segments, name=None):
        return by_segments(leaf, data, segment_ids, num_segments)

    doc = f"tf.math.{name} of ragged data, and of ragged ids."
    return signatures.called(segment, name, doc)


unsorted_segment_sum = _unsorted("unsorted_segment_sum")
unsorted_segment_prod = _unsorted("unsorted_segment_prod")
unsorted_segment_max = _unsorted("unsorted_segment_max")
unsorted_segment_min = _unsorted("unsorted_segment_min")
unsorted_segment_mean = _unsorted("unsorted_segment_mean")
unsorted_segment_sqrt_n = _unsorted("unsorted_segment_sqrt_n")
