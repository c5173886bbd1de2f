"""Values of a RaggedFeature cut into rows by partitions in other features.

All examples' values lie one behind the other. Each partition becomes the
lengths of its rows, of all examples in a row, and how many rows each example
has; then the rows are the values of the partition outside it.
"""

from headrace.framework import conversion, dtypes
from headrace.io.feature_specs import RaggedFeature
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops
from headrace.ragged.ragged_tensor import RaggedTensor


def _boundaries(rowids):
    """True where an element is the first of its row, for all but the first one."""
    return math_ops.not_equal(rowids[1:], rowids[:-1])


def _of_splits(part, counts):
    kept = elementwise_ops.logical_not(_boundaries(part.value_rowids()))
    values = part.values
    lengths = array_ops.boolean_mask(values[1:] - values[:-1], kept)
    return lengths, elementwise_ops.maximum(part.row_lengths() - 1, 0)


def _one_of(values):
    """True for one of the values, nothing where there are none."""
    return array_ops.ones_like(values[:1], dtypes.bool)


def _of_limits(part, counts):
    values, rowids = part.values, part.value_rowids()
    first = array_ops.concat([_one_of(values), _boundaries(rowids)], 0)
    before = array_ops.concat([array_ops.zeros_like(values[:1]), values[:-1]], 0)
    start = array_ops.where(first, array_ops.zeros_like(values), before)
    return values - start, part.row_lengths()


def _of_starts(part, counts):
    values, rowids = part.values, part.value_rowids()
    last = array_ops.concat([_boundaries(rowids), _one_of(values)], 0)
    behind = array_ops.concat([values[1:], array_ops.zeros_like(values[:1])], 0)
    end = array_ops.where(last, array_ops.gather(counts, rowids), behind)
    return end - values, part.row_lengths()


def _of_rowids(part, counts):
    ids, lengths, splits = part.values, part.row_lengths(), part.row_splits
    # An example's last row is that of its last value.
    padded = array_ops.concat([ids, array_ops.zeros([1], ids.dtype)], 0)
    at = array_ops.where(lengths > 0, splits[1:] - 1, array_ops.zeros_like(lengths))
    rows = array_ops.gather(padded, at) + 1
    rows = array_ops.where(lengths > 0, rows, array_ops.zeros_like(rows))
    before = reduction_ops.cumsum(rows, exclusive=True)
    ids = ids + array_ops.gather(before, part.value_rowids())
    ones = array_ops.ones_like(ids)
    total = reduction_ops.reduce_sum(rows)
    return reduction_ops.unsorted_segment_sum(ones, ids, total), rows


_BY_KIND = {
    RaggedFeature.RowSplits: _of_splits,
    RaggedFeature.RowLengths: lambda part, counts: (part.values, part.row_lengths()),
    RaggedFeature.RowStarts: _of_starts,
    RaggedFeature.RowLimits: _of_limits,
    RaggedFeature.ValueRowIds: _of_rowids,
}


def cut(feature, values, splits, part_of, single):
    """The tensor of a RaggedFeature. `values` and `splits` are all examples' values
    and where they begin; `part_of(key)` gives such a pair for a partition.
    `single`: of one example, without a dimension for the examples."""
    dtype = feature.row_splits_dtype

    def rows_of(values, splits):
        if single:
            splits = array_ops.stack([0, array_ops.size(values)])
        return RaggedTensor.from_row_splits(
            values, math_ops.cast(splits, dtype), validate=feature.validate
        )

    if not feature.partitions:
        return values if single else rows_of(values, splits)
    counts = rows_of(values, splits).row_lengths()
    for partition in reversed(feature.partitions):
        if isinstance(partition, RaggedFeature.UniformRowLength):
            length = conversion.convert_to_tensor(partition.length, dtype)
            values = RaggedTensor.from_uniform_row_length(
                values, length, validate=feature.validate
            )
            counts = counts // length
            continue
        key_values, key_splits = part_of(partition.key)
        part = rows_of(math_ops.cast(key_values, dtype), key_splits)
        lengths, counts = _BY_KIND[type(partition)](part, counts)
        values = RaggedTensor.from_row_lengths(
            values, lengths, validate=feature.validate
        )
    if single:
        return values
    return RaggedTensor.from_row_lengths(values, counts, validate=feature.validate)
