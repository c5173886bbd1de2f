"""tf.ragged, and what functions of dense tensors do with ragged ones."""

import numpy as np

from headrace._load import _headrace
from headrace.framework import conversion, dtypes
from headrace.ops import array_ops, math_ops
from headrace.ragged.elementwise import map_flat_values
from headrace.ragged.indexing import expand_front, gather_rows, take_spans
from headrace.ragged.ragged_tensor import (
    RaggedTensor,
    as_values,
    is_ragged,
    splits_of_lengths,
)


def _raw(op, **arguments):
    return _headrace.raw_op(op)(**arguments)


def _depth(x):
    """(depth of scalars, depth of lists): the first is None without scalars."""
    if isinstance(x, np.ndarray):
        x = x.tolist()
    if not isinstance(x, (list, tuple)):
        return 0, 0
    scalar, deepest = None, 1
    for v in x:
        s, d = _depth(v)
        if s is not None:
            if scalar is not None and scalar != s + 1:
                raise ValueError("all scalar values must have the same nesting depth")
            scalar = s + 1
        deepest = max(deepest, d + 1)
    if scalar is not None and deepest > scalar:
        raise ValueError("all scalar values must have the same nesting depth")
    return scalar, deepest


def constant(
    pylist,
    dtype=None,
    ragged_rank=None,
    inner_shape=None,
    name=None,
    row_splits_dtype=dtypes.int64,
):
    """A ragged tensor of nested lists."""
    splits_dtype = dtypes.as_dtype(row_splits_dtype)
    if isinstance(pylist, np.ndarray):
        pylist = pylist.tolist()
    scalar, deepest = _depth(pylist)
    if scalar == 0:
        if ragged_rank:
            raise ValueError(
                f"Invalid pylist={pylist}: incompatible with ragged_rank={ragged_rank}"
            )
        return conversion.constant(pylist, dtype)
    depth = max(scalar or 0, deepest)
    if ragged_rank is None:
        inner_rank = 0 if inner_shape is None else len(inner_shape)
        ragged_rank = max(0, depth - 1 - inner_rank)
    if scalar is not None and ragged_rank >= scalar:
        raise ValueError(
            f"Invalid pylist={pylist}: incompatible with ragged_rank={ragged_rank}"
        )
    values, nested = pylist, []
    for _ in range(ragged_rank):
        splits = [0]
        for row in values:
            splits.append(splits[-1] + len(row))
        nested.append(conversion.constant(splits, splits_dtype))
        values = [v for row in values for v in row]
    if not values and dtype is None and scalar is None:
        dtype = dtypes.float32
    flat = conversion.constant(values, dtype)
    if inner_shape is not None:
        flat = array_ops.reshape(flat, [-1, *inner_shape])
    elif not values and depth - 1 - ragged_rank > 0:
        flat = array_ops.reshape(flat, [0] * (depth - ragged_rank))
    result = flat
    for splits in nested[::-1]:
        result = RaggedTensor.from_row_splits(result, splits, validate=False)
    return result


def placeholder(dtype, ragged_rank, value_shape=None, name=None):
    """A ragged tensor of placeholders, for graphs that are fed."""
    from headrace.graph import placeholders

    if ragged_rank == 0:
        return placeholders.placeholder(dtype, value_shape, name)
    inner = [None, *(value_shape or [])] if value_shape is not None else None
    result = placeholders.placeholder(dtype, inner, "flat_values")
    for i in reversed(range(ragged_rank)):
        splits = placeholders.placeholder(dtypes.int64, [None], f"row_splits_{i}")
        result = RaggedTensor.from_row_splits(result, splits, validate=False)
    return result


def range_(
    starts,
    limits=None,
    deltas=1,
    dtype=None,
    name=None,
    row_splits_dtype=dtypes.int64,
):
    """A row of evenly spaced numbers for each start, limit and step."""
    if limits is None:
        starts, limits = 0, starts
    given = [conversion.convert_to_tensor(x, dtype) for x in (starts, limits, deltas)]
    if dtype is None:
        order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
        best = max((x.dtype for x in given), key=order.index)
        given = [math_ops.cast(x, best) for x in given]
    splits, values = _raw(
        "RaggedRange",
        starts=given[0],
        limits=given[1],
        deltas=given[2],
        Tsplits=dtypes.as_dtype(row_splits_dtype),
        name=name,
    )
    return RaggedTensor.from_row_splits(values, splits, validate=False)


def row_splits_to_segment_ids(splits, name=None, out_type=None):
    """The row of each value."""
    splits = conversion.convert_to_tensor(splits, dtype_hint=dtypes.int64)
    ids = RaggedTensor.from_row_splits(
        array_ops.zeros(array_ops.reshape(splits[-1:], [1])), splits, validate=False
    ).value_rowids()
    return ids if out_type is None else math_ops.cast(ids, out_type)


def segment_ids_to_row_splits(segment_ids, num_segments=None, out_type=None, name=None):
    """Where the rows begin, and the end."""
    ids = conversion.convert_to_tensor(segment_ids, dtype_hint=dtypes.int64)
    ids = math_ops.cast(ids, out_type or dtypes.int64)
    return RaggedTensor.from_value_rowids(ids, ids, num_segments).row_splits


def _as_ragged(x, rank):
    if is_ragged(x):
        return x
    x = conversion.convert_to_tensor(x)
    return RaggedTensor.from_tensor(x, ragged_rank=rank) if rank else x


def concat(values, axis, name=None):
    """Ragged and dense tensors one after another along `axis`."""
    values = [as_values(v) for v in values]
    rank = values[0].shape.rank
    axis = axis + rank if axis < 0 else axis
    if not 0 <= axis < rank:
        raise ValueError(f"axis={axis} out of bounds: expected 0<=axis<{rank}")
    if all(not is_ragged(v) for v in values):
        return array_ops.concat(values, axis)
    if all(is_ragged(v) and axis > v.ragged_rank for v in values):
        flat = [v.flat_values for v in values]
        inner = axis - values[0].ragged_rank
        return values[0].with_flat_values(array_ops.concat(flat, inner))
    levels = max(v.ragged_rank for v in values if is_ragged(v))
    parts = [_as_ragged(v, levels) for v in values]
    if axis == 0:
        return _concat_rows(parts)
    if axis == 1:
        return _concat_within(parts)
    inner = concat([p.values for p in parts], axis - 1)
    return parts[0].with_values(inner)


def _concat_rows(parts):
    if all(not is_ragged(p) for p in parts):
        return array_ops.concat(parts, 0)
    splits, offset = [parts[0].row_splits], parts[0].row_splits[-1]
    for p in parts[1:]:
        splits.append(p.row_splits[1:] + offset)
        offset = offset + p.row_splits[-1]
    return RaggedTensor.from_row_splits(
        _concat_rows([p.values for p in parts]),
        array_ops.concat(splits, 0),
        validate=False,
    )


def _concat_within(parts):
    """Row i of each part behind row i of the part before."""
    n = parts[0].nrows()
    every = _concat_rows(parts)
    count = len(parts)
    order = array_ops.range(n, dtype=n.dtype)
    order = array_ops.reshape(
        array_ops.stack([order + n * k for k in range(count)], axis=1), [-1]
    )
    rows = gather_rows(every, order)
    splits = rows.row_splits[::count]
    return RaggedTensor.from_row_splits(rows.values, splits, validate=False)


def stack(values, axis=0, name=None):
    """Tensors of one rank along a new dimension, which may be ragged."""
    if not values:
        raise ValueError("rt_inputs may not be empty.")
    values = [as_values(v) for v in values]
    rank = values[0].shape.rank
    axis = axis + rank + 1 if axis < 0 else axis
    if rank == 0:
        return array_ops.stack(values)
    if rank > 1 and not any(map(is_ragged, values)):
        values = [RaggedTensor.from_tensor(v, ragged_rank=rank - 1) for v in values]
    return (
        concat([expand_dims(v, axis) for v in values], axis)
        if any(is_ragged(v) for v in values) or axis
        else _stack_rows(values)
    )


def _stack_rows(values):
    """Dense tensors as the rows of a ragged one."""
    rows = [array_ops.shape(v, out_type=dtypes.int64)[0] for v in values]
    inner = array_ops.concat(values, 0)
    return RaggedTensor.from_row_lengths(inner, array_ops.stack(rows), validate=False)


def expand_dims(x, axis, name=None):
    """A dimension of size 1 at `axis`."""
    if not is_ragged(x):
        return array_ops.expand_dims(x, axis)
    rank = x.shape.rank
    axis = axis + rank + 1 if axis < 0 else axis
    if axis == 0:
        return expand_front(x)
    if axis == 1:
        return RaggedTensor.from_uniform_row_length(x, 1, x.nrows())
    return x.with_values(expand_dims(x.values, axis - 1))


def gather(params, indices, axis=0, batch_dims=0, name=None):
    """Rows at indices."""
    if axis not in (None, 0) or batch_dims:
        raise NotImplementedError(
            "tf.gather of ragged tensors is supported for axis=0 without batch_dims"
        )
    if is_ragged(indices):
        return indices.with_flat_values(gather(params, indices.flat_values))
    indices = conversion.convert_to_tensor(indices, dtype_hint=dtypes.int64)
    if indices.shape.rank == 0:
        return params[indices]
    return gather_rows(params, indices)


def boolean_mask(data, mask, name=None):
    """The elements where the mask is true, in ragged rows."""
    mask = as_values(mask)
    data = as_values(data)
    if not is_ragged(mask) and mask.shape.rank == 1:
        kept = array_ops.reshape(array_ops.where(mask), [-1])
        return gather_rows(data, kept)
    if not is_ragged(mask):
        mask = RaggedTensor.from_tensor(mask, ragged_rank=mask.shape.rank - 1)
    if not is_ragged(data):
        data = RaggedTensor.from_tensor(data, ragged_rank=mask.ragged_rank)
    counts = mask
    while is_ragged(counts.values):
        counts = counts.values
    ones = math_ops.cast(counts.values, mask.row_splits.dtype)
    return _mask_levels(data, mask, splits_of_lengths(ones))


def _mask_levels(data, mask, total):
    if is_ragged(mask.values):
        return data.with_values(_mask_levels(data.values, mask.values, total))
    kept = array_ops.reshape(array_ops.where(mask.values), [-1])
    return RaggedTensor.from_row_splits(
        gather_rows(data.values, kept),
        array_ops.gather(total, mask.row_splits),
        validate=False,
    )


def stack_dynamic_partitions(data, partitions, num_partitions, name=None):
    """The rows of each partition as one ragged row."""
    data = as_values(data)
    partitions = conversion.convert_to_tensor(partitions)
    order = _raw(
        "RaggedRange",
        starts=conversion.constant(0, dtypes.int32),
        limits=array_ops.size(partitions),
        deltas=conversion.constant(1, dtypes.int32),
    )[1]
    pieces = array_ops.dynamic_partition(order, partitions, num_partitions)
    rows = [gather_rows(data, p) for p in pieces]
    lengths = array_ops.stack([array_ops.size(p) for p in pieces])
    inner = concat(rows, 0) if is_ragged(data) else array_ops.concat(rows, 0)
    return RaggedTensor.from_row_lengths(
        inner, math_ops.cast(lengths, dtypes.int64), validate=False
    )


_SEGMENTS = {
    "Sum": "UnsortedSegmentSum",
    "Prod": "UnsortedSegmentProd",
    "Max": "UnsortedSegmentMax",
    "Min": "UnsortedSegmentMin",
}


def reduce(op, x, axis, keepdims):
    """A reduction (by the name of its op) of a ragged tensor."""
    if axis is None:
        flat = x.flat_values
        every = list(range(flat.shape.rank))
        return _raw(op, input=flat, axis=every, keep_dims=False)
    rank = x.shape.rank
    axes = axis if isinstance(axis, (list, tuple)) else [axis]
    axes = sorted({int(a) + rank if int(a) < 0 else int(a) for a in axes})
    if keepdims:
        raise NotImplementedError("keepdims with ragged tensors is not supported")
    result = x
    for a in reversed(axes):
        result = _reduce_one(op, result, a)
    return result


def _reduce_one(op, x, axis):
    if not is_ragged(x):
        return _raw(op, input=x, axis=axis, keep_dims=False)
    if op in ("Any", "All"):
        whole = map_flat_values(math_ops.cast, x, dtypes.int32)
        result = _reduce_one("Max" if op == "Any" else "Min", whole, axis)
        return map_flat_values(lambda v: v > 0, result)
    if op == "Mean":
        total = _reduce_one("Sum", x, axis)
        ones = x.with_flat_values(array_ops.ones_like(x.flat_values))
        return total / _reduce_one("Sum", ones, axis)
    if axis > 1:
        return x.with_values(_reduce_one(op, x.values, axis - 1))
    if op not in _SEGMENTS:
        raise NotImplementedError(f"{op} of ragged tensors is not supported")
    if axis == 1:
        return _segments(op, x.values, x.value_rowids(), x.nrows())
    starts = array_ops.gather(x.row_starts(), x.value_rowids())
    places = array_ops.range(x.row_splits[-1], dtype=starts.dtype) - starts
    return _segments(op, x.values, places, x.bounding_shape(axis=1))


def _segments(op, values, ids, count):
    if not is_ragged(values):
        return _raw(_SEGMENTS[op], data=values, segment_ids=ids, num_segments=count)
    # Each segment is a row as long as its longest; columns are summed.
    lengths = _raw(
        "UnsortedSegmentMax",
        data=values.row_lengths(),
        segment_ids=ids,
        num_segments=count,
    )
    lengths = _raw("Maximum", x=lengths, y=array_ops.zeros_like(lengths))
    splits = splits_of_lengths(lengths)
    starts = array_ops.gather(splits, ids)
    limits = starts + values.row_lengths()
    size = array_ops.reshape(splits[-1], [])
    targets = take_spans(array_ops.range(size, dtype=splits.dtype), starts, limits)
    return RaggedTensor.from_row_splits(
        _segments(op, values.values, targets, size), splits, validate=False
    )


def split_strings(input, sep, maxsplit):
    """tf.strings.split: each string's pieces as a row."""
    input = as_values(input)
    if is_ragged(input):
        return input.with_flat_values(split_strings(input.flat_values, sep, maxsplit))
    rank = input.shape.rank
    if rank == 0:
        return split_strings(array_ops.stack([input]), sep, maxsplit).values
    if rank > 1:
        ragged = RaggedTensor.from_tensor(input, ragged_rank=rank - 1)
        return split_strings(ragged, sep, maxsplit)
    indices, values, shape = _raw(
        "StringSplitV2", input=input, sep="" if sep is None else sep, maxsplit=maxsplit
    )
    return RaggedTensor.from_value_rowids(
        values, indices[:, 0], shape[0], validate=False
    )


def strings_split(input, sep=None, maxsplit=-1, name=None):
    """Splits strings as Python's str.split does, into ragged rows."""
    return split_strings(input, sep, maxsplit)
