"""Sorting, searching, repeating and distinct elements."""

import numpy as np
from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes
from headrace.framework.name_scopes import composite
from headrace.ops import axis_moves
from headrace.ops.array_ops import (
    _as,
    broadcast_to,
    concat,
    expand_dims,
    gather,
    range,
    reshape,
    shape,
    stack,
    tile,
)
from headrace.ops.faces import add_faces


@composite("Repeat")
def repeat(input, repeats, axis=None, name=None):
    """Elements repeated along a dimension (of the flattened tensor by default)."""
    if not isinstance(axis, (int, np.integer, type(None))):
        raise TypeError(
            f"Argument `axis` must be an int. Received `axis` = {axis} of type "
            f"{type(axis).__name__}"
        )
    input = conversion.convert_to_tensor(input)
    if axis is None:
        input, axis = reshape(input, [-1]), 0
    rank = input.shape.rank
    if rank is not None:
        if rank == 0:
            input, rank = reshape(input, [1]), 1
        if not -rank <= axis < rank:
            raise ValueError(
                f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}"
            )
    if axis < 0:
        axis = axis + (raw.Rank(input) if rank is None else rank)
    repeats = conversion.convert_to_tensor(repeats)
    dtypes.check_integer(repeats, "repeats")
    if repeats.dtype not in (dtypes.int32, dtypes.int64):
        repeats = _as(repeats, dtypes.int32)
    repeats.shape.with_rank_at_most(1)
    nothing = conversion.to_tensor(0, repeats.dtype)
    repeats = raw.Maximum(repeats, nothing)
    one = repeats.shape.rank == 0 or repeats.shape.num_elements() == 1
    if one and input.shape.rank is not None:
        return _repeat_all(input, reshape(repeats, []), axis)
    counts = repeats.shape.num_elements()
    if counts is None or one:  # there may be one for all
        repeats = broadcast_to(reshape(repeats, [-1]), reshape(shape(input)[axis], [1]))
    elif input.shape.rank is not None:
        rows = input.shape[axis]
        if rows is not None and rows != counts:
            raise ValueError(f"Dimensions {rows} and {counts} are not compatible")
    ends = raw.Cumsum(repeats, 0)
    places = searchsorted(
        ends, range(_as(ends[-1], ends.dtype), dtype=ends.dtype), side="right"
    )
    # a reshape in between: the gradient is a tensor, not slices
    return gather(reshape(input, shape(input)), places, axis=axis)


def _repeat_all(input, count, axis):
    """Every element of an axis `count` times."""
    sizes = shape(input, out_type=count.dtype)
    many = [1] * (input.shape.rank + 1)
    many[axis + 1] = count
    copies = tile(expand_dims(input, axis + 1), stack(many))
    whole = stack([sizes[axis] * count])
    return reshape(copies, concat([sizes[:axis], whole, sizes[axis + 1 :]], 0))


def searchsorted(
    sorted_sequence, values, side="left", out_type=dtypes.int32, name=None
):
    """Where values would be inserted in sorted rows."""
    sequence = conversion.convert_to_tensor(sorted_sequence)
    values = conversion.convert_to_tensor(values, dtype_hint=sequence.dtype)

    def matrix(x):
        sizes = shape(x, dtypes.int64)
        count = raw.Prod(sizes[:-1], [0])
        return reshape(x, stack([count, sizes[-1]]))

    flat, rows = matrix(sequence), matrix(values)
    if side not in ("left", "right"):
        raise ValueError(
            f"Side must be either 'right' or 'left'. Received: `side` = {side}"
        )
    op = "UpperBound" if side == "right" else "LowerBound"
    found = _headrace.raw_op(op)(
        sorted_inputs=flat, values=rows, out_type=out_type, name=name
    )
    return reshape(found, shape(values, dtypes.int64))


add_faces(
    globals(),
    """
unique Unique(x, out_idx=int32, name=None)
    The distinct elements, and where each element stands among them.
unique_with_counts UniqueWithCounts(x, out_idx=int32, name=None)
    The distinct elements, their places, and how often each occurs.
""",
)


@composite("sort")
def sort(values, axis=-1, direction="ASCENDING", name=None):
    """Sorted along a dimension."""
    return _sorted(values, axis, direction)[0]


@composite("argsort")
def argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None):
    """The indices that sort along a dimension."""
    return _sorted(values, axis, direction)[1]


def _sorted(values, axis, direction):
    values = conversion.convert_to_tensor(values)
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(
            "Argument `direction` should be one of ASCENDING, DESCENDING. Received: "
            f"direction={direction}"
        )
    r = values.shape.rank
    if r is not None and not -r <= axis < r:
        raise ValueError(f"Argument `axis` = {axis} not in range [{-r}, {r})")
    x, back = axis_moves.with_axis_last(values, axis)
    flip = _flipped if direction == "ASCENDING" else (lambda v: v)
    count = x._sizes()[-1] if _headrace.is_eager() else shape(x)[-1]
    found = raw.TopKV2(flip(x), count)
    out, places = flip(found.values), found.indices
    return back(out), back(places)


def _flipped(x):
    """Values in the opposite order."""
    if x.dtype.is_integer and _headrace.is_eager():
        return raw.Invert(x)  # what is computed below, in one operation
    if x.dtype.is_unsigned:
        return conversion.to_tensor(x.dtype.max, x.dtype) - x
    if x.dtype.is_integer:
        return conversion.to_tensor(-1, x.dtype) - x
    return -x
