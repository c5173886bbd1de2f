"""Indexing of ragged tensors."""

import operator

import numpy as np

from headrace._load import _headrace, raw
from headrace.context import errors, known_values
from headrace.framework import conversion, dtypes
from headrace.ops import array_ops, math_ops
from headrace.ragged.ragged_tensor import RaggedTensor, is_ragged


def getitem(ragged, key):
    """ragged[key] as NumPy means it, where rows allow it.

    Integers, slices, `...`, `tf.newaxis` and scalar tensors of int32 or int64.
    TypeError for other keys, ValueError for an index into a ragged dimension,
    IndexError for a row that is not there.
    """
    keys = list(key) if isinstance(key, (list, tuple)) else [key]
    for k in keys:
        _check_key(k)
    at = next((i for i, k in enumerate(keys) if k is Ellipsis), None)
    if at is not None:
        # The first takes what room is left; another one is a whole dimension.
        rest = [slice(None) if k is Ellipsis else k for k in keys[at + 1 :]]
        room = ragged.shape.rank - sum(k is not None for k in keys[:at] + rest)
        if room < 0:
            raise IndexError("Too many indices for RaggedTensor")
        keys[at:] = [slice(None)] * room + rest
    return _get(ragged, keys)


def _check_key(key):
    parts = (key.start, key.stop, key.step) if isinstance(key, slice) else (key,)
    for part in parts:
        if part is not None and part is not Ellipsis and not _is_index(part):
            raise TypeError(
                "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and "
                f"scalar tf.int32/tf.int64 tensors are valid indices, got {part!r}"
            )


def _is_index(key):
    if isinstance(key, _headrace.Tensor):
        return key.dtype in (dtypes.int32, dtypes.int64) and key.shape.rank in (0, None)
    try:
        operator.index(key)
    except TypeError:
        return False
    return not isinstance(key, (bool, np.bool_))


def _known(index):
    """The value of an index as an integer; None where a graph does not show it."""
    if not isinstance(index, _headrace.SymbolicTensor):
        return int(index)
    value = known_values.constant_value(index)
    return None if value is None else int(value)


def _get(x, keys):
    if not keys:
        return x
    if not is_ragged(x):
        return x[tuple(keys)]
    first, rest = keys[0], keys[1:]
    if first is None:
        inner = _get(x, rest)
        return expand_front(inner)
    if isinstance(first, slice):
        return _inner(_rows(x, first), rest)
    return _get(_row(x, first), rest)


def expand_front(x):
    """A dimension of size 1 in front."""
    if is_ragged(x):
        n = x.shape[0]
        if n is not None:
            return RaggedTensor.from_uniform_row_length(x, n, 1)
        splits = array_ops.stack([array_ops.zeros([], x.row_splits.dtype), x.nrows()])
        return RaggedTensor.from_row_splits(x, splits, validate=False)
    return array_ops.expand_dims(x, 0)


def _row(x, index):
    known = _known(index)
    n = x.shape[0]
    if known is not None and n is not None and not -n <= known < n:
        raise IndexError(f"Row key {known} out of bounds")
    index = index if known is None else known
    return x.values[x.row_splits[:-1][index] : x.row_splits[1:][index]]


def _rows(x, rows):
    """The rows of a slice, whole."""
    if rows == slice(None):
        return x
    starts, limits = x.row_splits[:-1][rows], x.row_splits[1:][rows]
    lengths = limits - starts
    return RaggedTensor.from_row_lengths(
        take_spans(x.values, starts, limits), lengths, validate=False
    )


def take_spans(values, starts, limits):
    """values[starts[i]:limits[i]] for all i, one after another."""
    _, places = raw.RaggedRange(
        starts, limits, conversion.constant(1, starts.dtype), Tsplits=starts.dtype
    )
    return gather_rows(values, places)


def gather_rows(x, indices):
    """Rows of a tensor or ragged tensor at a vector of indices."""
    if not is_ragged(x):
        return array_ops.gather(x, indices)
    indices = conversion.convert_to_tensor(indices, dtype_hint=dtypes.int64)
    parts = raw.RaggedGather(
        list(x.nested_row_splits),
        x.flat_values,
        indices,
        OUTPUT_RAGGED_RANK=x.ragged_rank + indices.shape.rank - 1,
    )
    splits, flat = (parts[0], parts[1]) if len(parts) == 2 else (parts[:-1], parts[-1])
    if isinstance(splits, _headrace.Tensor):
        splits = [splits]
    for level in reversed(splits):
        flat = RaggedTensor.from_row_splits(flat, level, validate=False)
    return flat


def _inner(x, keys):
    """`keys` of each row."""
    if not keys:
        return x
    first, rest = keys[0], keys[1:]
    if first is None:
        inner = _inner(x, rest)
        n = array_ops.shape(inner.row_splits, out_type=dtypes.int64)[0] - 1
        return RaggedTensor.from_uniform_row_length(inner, 1, n)
    if isinstance(first, slice):
        sliced = x if first == slice(None) else _slice_rows(x, first)
        if not rest:
            return sliced
        if is_ragged(sliced.values):
            return sliced.with_values(_inner(sliced.values, rest))
        return sliced.with_values(sliced.values[(slice(None), *rest)])
    if x._uniform is None:
        raise ValueError("Cannot index into an inner ragged dimension.")
    known = _known(first)
    if known is not None and not -x._uniform <= known < x._uniform:
        raise errors.InvalidArgumentError._of(
            "Index out of bounds when indexing into a ragged tensor: "
            f"{known} in rows of {x._uniform}"
        )
    # Each row's places, of which a plain tensor's index knows what is out of bounds.
    starts = array_ops.expand_dims(x.row_splits[:-1], 1)
    places = starts + array_ops.range(x._uniform, dtype=starts.dtype)
    column = gather_rows(x.values, places[:, first])
    return _get(column, [slice(None), *rest]) if rest else column


def _slice_rows(x, part):
    """x[i][part] for every row."""
    lengths = x.row_lengths()
    step = 1 if part.step is None else part.step
    known = _known(step)
    step = math_ops.cast(step, lengths.dtype)
    zero = array_ops.zeros_like(lengths)

    def bound(given, default, low, high):
        if given is None:
            return default
        value = zero + math_ops.cast(given, zero.dtype)
        value = array_ops.where(value < 0, value + lengths, value)
        return raw.Minimum(raw.Maximum(value, low), high)

    def by_step(up, down):
        if known is None:
            return array_ops.where(step >= 0, up, down)
        return up if known >= 0 else down

    low = by_step(zero, zero - 1)
    high = by_step(lengths, lengths - 1)
    first = bound(part.start, by_step(low, high), low, high)
    last = bound(part.stop, by_step(high, low), low, high)
    last = by_step(raw.Maximum(first, last), raw.Minimum(first, last))
    starts = x.row_starts()
    splits, places = raw.RaggedRange(
        starts + first, starts + last, step, Tsplits=starts.dtype
    )
    values = gather_rows(x.values, places)
    uniform = None
    if isinstance(splits, _headrace.EagerTensor):
        sizes = {int(n) for n in (splits[1:] - splits[:-1]).numpy()}
        if x._uniform is not None and len(sizes) == 1:
            uniform = sizes.pop()
    return RaggedTensor._of_splits(values, splits, uniform=uniform)
