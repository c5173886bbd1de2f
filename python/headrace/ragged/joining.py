"""tf.concat, tf.stack and tf.ragged.stack with ragged tensors."""

from headrace.framework import dtypes
from headrace.ops import array_ops, check_ops
from headrace.ragged.indexing import expand_front, gather_rows
from headrace.ragged.ragged_tensor import (
    RaggedTensor,
    as_values,
    checked_axis,
    is_ragged,
)


def concat(values, axis, name=None):
    """Ragged and dense tensors one after another along `axis`."""
    return _join(values, axis, False)


def stack(values, axis=0, name=None):
    """Tensors of one rank along a new dimension; where they differ in size the result
    is ragged.

    A single tensor in place of the list gets a dimension. ValueError for an empty list
    or different ranks.
    """
    return _join(values, axis, True)


def _join(values, axis, stacks):
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    if not values:
        raise ValueError("rt_inputs may not be empty.")
    hint = next((v.dtype for v in values if hasattr(v, "row_splits")), None)
    values = [as_values(v, dtype_hint=hint) for v in values]
    values = _same_splits_dtype(values)
    rank = next((v.shape.rank for v in values if v.shape.rank is not None), None)
    for v in values:
        if rank is not None:
            v.shape.assert_has_rank(rank)
    axis = checked_axis(axis, rank + 1 if stacks and rank is not None else rank)
    dense = not any(is_ragged(v) for v in values)
    if dense and rank is None:
        join = array_ops.stack if stacks else array_ops.concat
        return join(values, axis)
    if dense and (rank < 2 or axis >= rank - 1 or not stacks):
        return _join_dense(values, axis, stacks, rank)
    values = [_at_least(v, 1) for v in values] if axis > 0 or stacks else values
    if not stacks:
        return values[0] if len(values) == 1 else _concat(values, axis)
    if axis > 1:
        return _concat([expand_dims(v, axis) for v in values], axis)
    return _stack_rows(values) if axis == 0 else _zip(values, True)


def _same_splits_dtype(values):
    kinds = {v.row_splits.dtype for v in values if is_ragged(v)}
    if len(kinds) < 2:
        return values
    return [
        v.with_row_splits_dtype(dtypes.int64) if is_ragged(v) else v for v in values
    ]


def _join_dense(values, axis, stacks, rank):
    if not stacks:
        return array_ops.concat(values, axis)
    if axis == 0 and rank == 1:
        lengths = [array_ops.shape(v) for v in values]
        return RaggedTensor.from_row_lengths(
            array_ops.concat(values, 0), array_ops.concat(lengths, 0), validate=False
        )
    return array_ops.stack(values, axis)


def _at_least(x, ragged_rank, dtype=dtypes.int64):
    """With that many ragged dimensions or more."""
    if is_ragged(x):
        if x.ragged_rank >= ragged_rank:
            return x
        return x.with_values(_at_least(x.values, ragged_rank - 1, x.row_splits.dtype))
    if ragged_rank < 1:
        return x
    return RaggedTensor.from_tensor(x, ragged_rank=ragged_rank, row_splits_dtype=dtype)


def _levelled(values):
    """All with as many ragged dimensions as the most ragged one."""
    most = max(v.ragged_rank if is_ragged(v) else 0 for v in values)
    dtype = next(v.row_splits.dtype for v in values if is_ragged(v))
    return [_at_least(v, most, dtype) for v in values]


def _concat(values, axis):
    if not any(is_ragged(v) for v in values):
        return array_ops.concat(values, axis)
    values = _levelled(values)
    if axis == 0:
        return _concat_rows(values)
    if axis == 1:
        return _zip(values, False)
    inner = _concat([v.values for v in values], axis - 1)
    if _uniformly(values):
        return values[0].with_values(inner)
    return RaggedTensor._of_splits(inner, values[0].row_splits)


def _uniformly(values):
    return all(v._uniform == values[0]._uniform for v in values)


def _concat_rows(values):
    if not any(is_ragged(v) for v in values):
        return array_ops.concat(values, 0)
    values = _levelled(values)
    splits, offset = [values[0].row_splits], values[0].row_splits[-1]
    for v in values[1:]:
        splits.append(v.row_splits[1:] + offset)
        offset = offset + v.row_splits[-1]
    return RaggedTensor._of_splits(
        _concat_rows([v.values for v in values]),
        array_ops.concat(splits, 0),
        uniform=values[0]._uniform if _uniformly(values) else None,
    )


def _zip(values, stacks):
    """Row i of each one behind row i of the one before; stacked: as rows of row i."""
    if len(values) > 1:
        values = _levelled(values)
    n = values[0].nrows()
    count = len(values)
    for v in values[1:]:
        _same_rows(values[0], v)
    every = _concat_rows(values)
    order = array_ops.range(n, dtype=n.dtype)
    order = array_ops.reshape(
        array_ops.stack([order + n * k for k in range(count)], axis=1), [-1]
    )
    rows = gather_rows(every, order)
    if stacks:
        splits = array_ops.range(n + 1, dtype=n.dtype) * count
    else:
        splits = rows.row_splits[::count]
    known = [v.shape[0] for v in values if v.shape[0] is not None]
    if known:
        splits.set_shape([known[0] + 1])
    inner = rows if stacks else rows.values
    return RaggedTensor.from_row_splits(inner, splits, validate=False)


def _same_rows(a, b):
    n, m = a.shape[0], b.shape[0]
    if n is None or m is None or n != m:
        check_ops.assert_equal(
            a.nrows(), b.nrows(), message="Input tensors have different numbers of rows"
        )


def _stack_rows(values):
    """Each value as one row."""
    if len(values) > 1:
        values = _levelled(values)
    lengths = array_ops.stack([v.nrows() for v in values])
    return RaggedTensor.from_row_lengths(_concat_rows(values), lengths, validate=False)


def expand_dims(input, axis=None, name=None):
    """A dimension of size 1 at `axis`."""
    input = as_values(input)
    rank = input.shape.rank
    return _expand(input, checked_axis(axis, None if rank is None else rank + 1))


def _expand(x, axis):
    if not is_ragged(x):
        return array_ops.expand_dims(x, axis)
    if axis == 0:
        return expand_front(x)
    if axis == 1:
        return RaggedTensor.from_uniform_row_length(x, 1, x.nrows(), validate=False)
    return x.with_values(_expand(x.values, axis - 1))
