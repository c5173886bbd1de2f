"""Indexing of ragged tensors."""

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes, errors
from headrace.ops import array_ops, math_ops
from headrace.ragged.ragged_tensor import RaggedTensor, is_ragged


def getitem(ragged, key):
    """ragged[key] as NumPy means it, where rows allow it."""
    keys = list(key) if isinstance(key, (list, tuple)) else [key]
    if any(k is Ellipsis for k in keys):
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        new = sum(k is None for k in keys)
        room = ragged.shape.rank - (len(keys) - 1 - new)
        if room < 0:
            raise IndexError("Too many indices for RaggedTensor")
        keys[at : at + 1] = [slice(None)] * room
    return _get(ragged, keys)


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
    known = None
    if isinstance(index, _headrace.EagerTensor):
        known = int(index.numpy())
    elif not isinstance(index, _headrace.Tensor):
        if not hasattr(index, "__index__"):
            raise TypeError(f"Invalid index {index!r} of a RaggedTensor")
        known = index.__index__()
    n = x.shape[0]
    if known is not None and n is not None and not -n <= known < n:
        raise IndexError(f"Row key {known} out of bounds")
    if known is not None:
        starts, limits = x.row_splits[:-1], x.row_splits[1:]
        index = known
        return x.values[starts[index] : limits[index]]
    return x.values[x.row_splits[index] : x.row_splits[index + 1]]


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
    result = flat
    for s in list(splits)[::-1]:
        result = RaggedTensor.from_row_splits(result, s, validate=False)
    return result


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
    index = first + x._uniform if first < 0 else first
    if not 0 <= index < x._uniform:
        raise errors.InvalidArgumentError(
            None,
            None,
            "Index out of bounds when indexing into a ragged tensor: "
            f"{first} in rows of {x._uniform}",
        )
    column = gather_rows(x.values, x.row_splits[:-1] + index)
    return _get(column, [slice(None), *rest]) if rest else column


def _slice_rows(x, part):
    """x[i][part] for every row."""
    lengths = x.row_lengths()
    step = 1 if part.step is None else part.step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    zero = array_ops.zeros_like(lengths)

    def bound(given, default, low, high):
        if given is None:
            return default
        value = zero + math_ops.cast(given, zero.dtype)
        value = array_ops.where(value < 0, value + lengths, value)
        return _raw("Minimum", _raw("Maximum", value, low), high)

    if step > 0:
        first = bound(part.start, zero, zero, lengths)
        last = bound(part.stop, lengths, zero, lengths)
        last = _raw("Maximum", first, last)
    else:
        first = bound(part.start, lengths - 1, zero - 1, lengths - 1)
        last = bound(part.stop, zero - 1, zero - 1, lengths - 1)
        last = _raw("Minimum", first, last)
    starts = x.row_starts()
    splits, places = raw.RaggedRange(
        starts + first,
        starts + last,
        conversion.constant(step, starts.dtype),
        Tsplits=starts.dtype,
    )
    values = gather_rows(x.values, places)
    uniform = None
    if isinstance(splits, _headrace.EagerTensor):
        sizes = {int(n) for n in (splits[1:] - splits[:-1]).numpy()}
        if x._uniform is not None and len(sizes) == 1:
            uniform = sizes.pop()
    return RaggedTensor(values, splits, internal=True, uniform=uniform)


def _raw(op, x, y):
    return _headrace.raw_op(op)(x=x, y=y)
