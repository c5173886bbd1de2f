"""Element-wise functions of ragged tensors: operands are given the same rows first.

Dense dimensions, and ragged ones that are known to be uniform, spread from size 1; all
others must be equal. What lies below the last ragged dimension is left to the function,
which broadcasts as it does anyhow.
"""

from headrace.context import errors
from headrace.framework import execution
from headrace.ops import check_ops
from headrace.ragged import checks, shape_broadcast
from headrace.ragged.dynamic_shape import DynamicRaggedShape
from headrace.ragged.ragged_tensor import (
    RaggedTensor,
    as_values,
    is_ragged,
    levels,
    same_dtypes,
)


def apply(function, x, y):
    """`function` of two operands, at least one of them ragged."""
    known = x if is_ragged(x) else y
    x, y = as_values(x, dtype_hint=known.dtype), as_values(y, dtype_hint=known.dtype)
    flat_x, flat_y, splits = _aligned(x, y)
    return with_splits(function(flat_x, flat_y), splits)


def together(*operands):
    """The operands with the same rows: ([flat values], levels of the rows).

    Operands that are None stay so.
    """
    given = [x for x in operands if x is not None]
    known = next(x for x in given if is_ragged(x))
    given = [as_values(x, dtype_hint=known.dtype) for x in given]
    rows = next(x for x in given if is_ragged(x))
    for x in given:
        flat, _, splits = _aligned(rows, x, "Unable to broadcast")
        rows = with_splits(flat, splits)
    flat = []
    for x in given:
        _, values, splits = _aligned(rows, x, "Unable to broadcast")
        flat.append(values)
    found = iter(flat)
    return [None if x is None else next(found) for x in operands], splits


def with_splits(flat, splits):
    """Ragged tensors of flat values and levels, the outermost first."""
    result = flat
    for level in reversed(splits):
        result = level.over(result)
    return result


class _Level:
    """The rows of one dimension of a result."""

    def __init__(self, splits, uniform=None):
        self.splits, self.uniform = splits, uniform

    def over(self, values):
        """The rows of `values`."""
        return RaggedTensor._of_splits(
            *same_dtypes(values, self.splits), uniform=self.uniform
        )


def _levels_of(x):
    return [_Level(level.row_splits, level._uniform) for level in levels(x)]


def _aligned(x, y, message=None):
    """(flat values of x, of y, levels)."""
    if is_ragged(x) and is_ragged(y) and x.row_splits.dtype != y.row_splits.dtype:
        raise ValueError(
            "Input RaggedTensors have mismatched row_splits dtypes; use "
            "RaggedTensor.with_row_splits_dtype() to convert them to compatible dtypes."
        )
    for a, b, swap in ((x, y, False), (y, x, True)):
        if is_ragged(a) and not is_ragged(b) and _fits_below(b, a):
            flat = (b, a.flat_values) if swap else (a.flat_values, b)
            return (*flat, _levels_of(a))
    if is_ragged(x) and is_ragged(y) and _same_levels(x, y):
        return x.flat_values, y.flat_values, _levels_of(x)
    dtype = (x if is_ragged(x) else y).row_splits.dtype
    shapes = [DynamicRaggedShape.from_tensor(v, dtype) for v in (x, y)]
    whole = shape_broadcast.whole(*shapes, message)
    flat_x, flat_y = (
        shape_broadcast.flat_values(v, whole, own) for v, own in zip((x, y), shapes)
    )
    levels = [
        _Level(p.row_splits(), p.static_uniform_row_length)
        for p in whole.row_partitions
    ]
    return flat_x, flat_y, levels


def _fits_below(dense, ragged):
    """True where the dense tensor is broadcast by the function itself."""
    rank = dense.shape.rank
    if rank == 0:
        return True
    inner = ragged.flat_values.shape.rank
    return rank is not None and inner is not None and rank < inner


def _same_levels(x, y):
    a, b = x.nested_row_splits, y.nested_row_splits
    if x.flat_values.shape.rank != y.flat_values.shape.rank:
        return False
    return len(a) == len(b) and all(s is t for s, t in zip(a, b))


def map_flat_values(op, *args, **kwargs):
    """`op` of the flat values of ragged arguments that all have the same rows.

    Arguments, also those in lists, tuples and dicts, that are no RaggedTensors are
    handed on as they are. ValueError where the results have other than one row for each
    flat value, InvalidArgumentError where the arguments' rows differ.
    """
    found = []

    def flat(x):
        if is_ragged(x):
            found.append(x)
            return x.flat_values
        if isinstance(x, (list, tuple)) and any(is_ragged(v) for v in x):
            return type(x)([flat(v) for v in x])
        if isinstance(x, dict) and any(is_ragged(v) for v in x.values()):
            return {k: flat(v) for k, v in x.items()}
        return x

    args = [flat(x) for x in args]
    kwargs = {k: flat(v) for k, v in kwargs.items()}
    if not found:
        return op(*args, **kwargs)
    _check_sizes(found)
    first = same_rows(found)
    result = op(*args, **kwargs)
    total = first.flat_values.shape[0]
    own = result.shape[:1]
    if result.shape.rank == 0 or not own.is_compatible_with([total]):
        size = "?" if result.shape.rank in (None, 0) else result.shape[0]
        raise ValueError(
            "tf.ragged.map_flat_values requires that the output of `op` have the same "
            "outer-dimension size as flat_values of any ragged inputs. (output shape: "
            f"{result.shape}; expected outer dimension size: {total}; got: {size})"
        )
    return first.with_flat_values(result)


def _check_sizes(found):
    sizes = {x.flat_values.shape[0] for x in found} - {None}
    if len(sizes) > 1:
        raise ValueError(
            "Input RaggedTensors' flat_values must all have the same outer-dimension "
            f"size.  Got sizes: {sizes}"
        )


def same_rows(found, message="Inputs must have identical ragged splits"):
    """The first of ragged tensors, which must all have the same rows."""
    first, *others = found
    for other in others:
        if other.ragged_rank != first.ragged_rank:
            raise ValueError(
                "All ragged inputs must have the same ragged_rank; got "
                f"{first.ragged_rank} and {other.ragged_rank}."
            )
        a, b = first.nested_row_splits, other.nested_row_splits
        found_levels = [
            _Level(checks.same_splits(s, t, message), level._uniform)
            for s, t, level in zip(a, b, levels(first))
        ]
        if any(level.splits is not s for level, s in zip(found_levels, a)):
            first = with_splits(first.flat_values, found_levels)
    return first


def asserted(function, x, y):
    """An assertion about two operands, at least one of them ragged."""
    known = x if is_ragged(x) else y
    flat_x, flat_y, _ = _aligned(
        as_values(x, dtype_hint=known.dtype), as_values(y, dtype_hint=known.dtype)
    )
    return function(flat_x, flat_y)
