"""What row partitions are made and checked with."""

import numpy as np

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes
from headrace.ops import array_ops, math_ops
from headrace.ragged import checks


def is_ragged(x):
    """True for ragged tensors."""
    return getattr(type(x), "_is_ragged", False)


def levels(x):
    """A ragged tensor and those that are its values, the outermost first."""
    found = []
    while is_ragged(x):
        found.append(x)
        x = x.values
    return found


def partition(x, dtype=None, what="row_splits"):
    """A row partition's tensor: int64 unless it comes as int32."""
    if not isinstance(x, _headrace.Tensor):
        given = getattr(x, "dtype", None)
        if dtype is None and given == np.dtype(np.int32):
            dtype = dtypes.int32
        if dtype is None and not _holds_integers(x):
            x = conversion.convert_to_tensor(x, name=what)
        else:
            x = conversion.convert_to_tensor(x, dtype or dtypes.int64, name=what)
    checks.integers(x, what)
    return x


def vector(x, what="row_splits"):
    """The same, which has to have one dimension."""
    x = partition(x, what=what)
    x.shape.assert_has_rank(1)
    return x


def _holds_integers(x):
    if isinstance(x, (list, tuple)) and any(isinstance(v, _headrace.Tensor) for v in x):
        return False  # of the tensors' own dtype
    return np.asarray(x).dtype.kind in "iu" or np.size(x) == 0


def same_dtypes(values, splits):
    """Values and splits with one dtype for all row splits: int64 where they differ."""
    if not is_ragged(values) or values.row_splits.dtype == splits.dtype:
        return values, splits
    values = values.with_row_splits_dtype(dtypes.int64)
    return values, math_ops.cast(splits, dtypes.int64)


def checked_axis(axis, rank, name="axis"):
    """A dimension's number, from 0: negative ones count from the end."""
    if not isinstance(axis, (int, np.integer)):
        raise TypeError(f"{name} must be an int; got {type(axis).__name__}")
    if rank is None:
        if axis < 0:
            raise ValueError(f"{name}={axis} may only be negative if rank is known")
        return int(axis)
    if not -rank <= axis < rank:
        raise ValueError(
            f"{name}={axis} out of bounds: expected {-rank}<={name}<{rank}"
        )
    return int(axis) + rank if axis < 0 else int(axis)


def splits_of_lengths(lengths):
    """Where rows of these lengths begin, and the end."""
    zero = array_ops.zeros([1], lengths.dtype)
    total = raw.Cumsum(lengths, 0)
    return array_ops.concat([zero, total], 0)


def rowids_of_splits(splits):
    """The row of each value, of where rows begin."""
    lengths = splits[1:] - splits[:-1]
    rows = array_ops.range(array_ops.shape(lengths, out_type=splits.dtype)[0])
    rows = math_ops.cast(rows, splits.dtype)
    zeros = array_ops.zeros_like(lengths)
    one = conversion.convert_to_tensor(1, splits.dtype)
    _, inside = raw.RaggedRange(zeros, lengths, one, Tsplits=splits.dtype)
    starts = array_ops.gather(splits, rows)
    # Row numbers where rows that are not empty begin, carried to their ends.
    full = array_ops.reshape(array_ops.where(lengths > 0), [-1])
    begins = array_ops.gather(starts, full)
    jumps = math_ops.cast(array_ops.gather(rows, full), splits.dtype)
    before = array_ops.concat([array_ops.zeros([1], splits.dtype), jumps[:-1]], 0)
    before = before[: array_ops.shape(jumps)[0]]
    shape = array_ops.shape(inside, out_type=splits.dtype)
    places = array_ops.expand_dims(begins, 1)
    steps = array_ops.scatter_nd(places, jumps - before, shape)
    return raw.Cumsum(steps, 0, exclusive=False, reverse=False)


def no_tensor():
    error = ValueError("TypeError: object of type 'RaggedTensor' has no len()\n")
    error.in_function = _not_supported
    return error


def _not_supported(public):
    return ValueError(
        f"TypeError: object of type 'RaggedTensor' has no len(): tf.{public} does not "
        "take RaggedTensors. Pass `.to_tensor()` or `.flat_values`, or call it by "
        "tf.ragged.map_flat_values or tf.map_fn."
    )
