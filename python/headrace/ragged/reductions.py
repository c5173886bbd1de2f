"""Reductions and running sums of ragged tensors."""

import numpy as np

from headrace._load import _headrace, raw
from headrace.framework import dtypes, execution
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops, string_ops
from headrace.ragged import broadcast, from_dense
from headrace.ragged.joining import expand_dims
from headrace.ragged.partitioning import segments
from headrace.ragged.ragged_tensor import as_values, checked_axis, is_ragged


def _axes(x, axis):
    """Dimensions as ints, from 0, the last one first."""
    if isinstance(axis, _headrace.Tensor):
        known = execution.get_static_value(axis)
        if known is None:
            raise ValueError("axis must be known at graph construction time.")
        if known.ndim == 0 and _headrace.is_eager():
            raise TypeError(f"axis must be an int; got {axis.dtype.name}")
        axis = known.tolist()
    if isinstance(axis, np.ndarray):
        axis = axis.tolist()
    given = axis if isinstance(axis, (list, tuple)) else [axis]
    return sorted((checked_axis(a, x.shape.rank) for a in given), reverse=True)


def _over_axes(one, of_all, x, axis, keepdims):
    """`one(x, axis)` for each dimension in turn, `of_all(flat values)` for all."""
    if axis is None:
        result = of_all(x.flat_values)
        return _all_as_before(result, x) if keepdims else result
    axes = _axes(x, axis)
    for a in axes:
        x = one(x, a)
    return _as_before(x, axes[::-1]) if keepdims else x


def _all_as_before(result, x):
    """A scalar with as many dimensions of 1 as `x` has."""
    if x.shape.rank is not None:
        return _as_before(result, range(x.shape.rank))
    inner = raw.Rank(x.flat_values)
    ones = array_ops.ones(array_ops.reshape(inner + x.ragged_rank, [1]), dtypes.int32)
    return array_ops.reshape(result, ones)


def _as_before(x, axes):
    for a in axes:
        x = expand_dims(x, a)
    return x


def _one(dense, segment):
    """The reduction of one dimension of a tensor or ragged tensor."""

    def one(x, axis):
        if not is_ragged(x):
            return dense(x, axis)
        if axis == 0:
            starts = array_ops.gather(x.row_starts(), x.value_rowids())
            places = array_ops.range(x.row_splits[-1], dtype=starts.dtype) - starts
            return segments(segment, x.values, places, x.bounding_shape(axis=1))
        if axis == 1:
            return segments(segment, x.values, x.value_rowids(), x.nrows())
        return x.with_values(one(x.values, axis - 1))

    return one


def _simple(op, segment):
    def dense(x, axis):
        return _headrace.raw_op(op)(input=x, axis=axis, keep_dims=False)

    def of_all(x):
        rank = x.shape.rank
        every = list(range(rank)) if rank is not None else array_ops.range(raw.Rank(x))
        return dense(x, every)

    one = _one(dense, _headrace.op_by_place(segment))

    def reduce(input_tensor, axis=None, keepdims=False, name=None):
        return _over_axes(one, of_all, input_tensor, axis, keepdims)

    return reduce


reduce_sum = _simple("Sum", "UnsortedSegmentSum")
reduce_prod = _simple("Prod", "UnsortedSegmentProd")
reduce_max = _simple("Max", "UnsortedSegmentMax")
reduce_min = _simple("Min", "UnsortedSegmentMin")


def _on_flat(function, x):
    """The function of a tensor, or of the innermost values of a ragged one."""
    if is_ragged(x):
        return x.with_flat_values(function(x.flat_values))
    return function(x)


def _of_bools(by):
    def reduce(input_tensor, axis=None, keepdims=False, name=None):
        numbers = _on_flat(lambda x: math_ops.cast(x, dtypes.int32), input_tensor)
        found = by(numbers, axis, keepdims)
        return _on_flat(lambda x: elementwise_ops.greater(x, 0), found)

    return reduce


reduce_any = _of_bools(reduce_max)
reduce_all = _of_bools(reduce_min)


def _divided(x, y):
    if not is_ragged(x):
        return math_ops.truediv(x, y)
    return broadcast.apply(math_ops.truediv, x, y)


def reduce_mean(input_tensor, axis=None, keepdims=False, name=None):
    """The mean; of integers as float64."""
    x = input_tensor
    total = reduce_sum(x, axis, keepdims)
    ones = x.with_flat_values(array_ops.ones_like(x.flat_values))
    return _divided(total, reduce_sum(ones, axis, keepdims))


def reduce_variance(input_tensor, axis=None, keepdims=False, name=None):
    """The mean of squares less the square of the mean."""
    x = input_tensor
    if x.dtype.is_complex:
        raise ValueError(
            "reduce_variance is not supported for RaggedTensors of complex"
        )
    flat = x.flat_values
    wide = x.with_flat_values(elementwise_ops.square(flat))
    squares = reduce_mean(wide, axis, keepdims)
    mean = reduce_mean(x, axis, keepdims)

    def difference(s, m):
        return elementwise_ops.maximum(s - elementwise_ops.square(m), 0)

    if not is_ragged(mean):
        return difference(squares, mean)
    return squares.with_flat_values(difference(squares.flat_values, mean.flat_values))


def reduce_std(input_tensor, axis=None, keepdims=False, name=None):
    """The square root of the variance."""
    found = reduce_variance(input_tensor, axis, keepdims)
    return _on_flat(elementwise_ops.sqrt, found)


def reduce_logsumexp(input_tensor, axis=None, keepdims=False, name=None):
    """log(sum(exp(x))), without overflow."""
    x = input_tensor
    if axis is None:
        found = reduction_ops.reduce_logsumexp(x.flat_values)
        return _all_as_before(found, x) if keepdims else found
    result = reduce_max(x, axis, keepdims)
    flat = result.flat_values if is_ragged(result) else result
    finite = elementwise_ops.is_finite(flat)
    top = array_ops.stop_gradient(
        array_ops.where(finite, flat, array_ops.zeros_like(flat))
    )
    wide = top if not is_ragged(result) else result.with_flat_values(top)
    kept = wide if keepdims else _as_before(wide, _axes(x, axis)[::-1])
    shifted = broadcast.apply(math_ops.subtract, x, kept)
    powers = shifted.with_flat_values(elementwise_ops.exp(shifted.flat_values))
    total = reduce_sum(powers, axis, keepdims)
    return _on_flat(lambda x: elementwise_ops.log(x) + top, total)


def cumsum(x, axis=0, exclusive=False, reverse=False, name=None):
    """The running sum along a dimension: of what lies at the same place of rows."""
    axis = checked_axis(axis, x.shape.rank)
    return _cumsum(x, axis, exclusive, reverse)


def _cumsum(x, axis, exclusive, reverse):
    if not is_ragged(x):
        return reduction_ops.cumsum(x, axis, exclusive, reverse)
    if axis > 1:
        return x.with_values(_cumsum(x.values, axis - 1, exclusive, reverse))
    dense = reduction_ops.cumsum(x.to_tensor(), axis, exclusive, reverse)
    return _cut(dense, x)


def _cut(dense, like):
    """The values of a padded tensor that lie where `like` has some."""
    lengths = like.nested_row_lengths()
    made = from_dense.from_tensor(
        dense, list(lengths), None, len(lengths), like.row_splits.dtype
    )
    return like.with_flat_values(made.flat_values)


def _joined(separator):
    def segment(values, ids, count):
        return string_ops.unsorted_segment_join(values, ids, count, separator)

    return _one(
        lambda x, axis: string_ops.reduce_join(x, axis=axis, separator=separator),
        segment,
    )


def reduce_join(inputs, axis=None, keepdims=False, separator="", name=None):
    """Strings put together along dimensions."""

    def of_all(flat):
        return string_ops.reduce_join(
            array_ops.reshape(flat, [-1]), axis=0, separator=separator
        )

    return _over_axes(_joined(separator), of_all, inputs, axis, keepdims)


def moments(x, axes, shift=None, keepdims=False, name=None):
    """(mean, variance) over dimensions."""
    x = as_values(x)
    return reduce_mean(x, axes, keepdims), reduce_variance(x, axes, keepdims)
