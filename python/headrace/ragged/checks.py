"""What row partitions must satisfy."""

from headrace._load import _headrace
from headrace.framework import errors


def _fail(where, what, detail=""):
    raise errors.InvalidArgumentError(
        None,
        None,
        f"Arguments to {where} do not form a valid RaggedTensor:{what}.{detail}",
    )


def _known(*tensors):
    return all(isinstance(t, _headrace.EagerTensor) for t in tensors)


def _not_negative(where, what, array):
    if (array >= 0).all():
        return
    shown = ", ".join(f"'{x}'" for x in array[:3])
    _fail(
        where,
        what,
        "\nCondition x >= 0 did not hold element-wise:\n"
        f"x (shape={array.shape} dtype={array.dtype.name}) =\n[{shown}]",
    )


def splits(row_splits, count, where):
    """First 0, never less than the one before, at last the number of values."""
    if not _known(row_splits, count):
        return
    s = row_splits.numpy()
    if s[0] != 0:
        _fail(where, "zero", f"\nrow_splits[0] is {s[0]}")
    _not_negative(where, "monotonic", s[1:] - s[:-1])
    if s[-1] != count.numpy():
        _fail(where, "nvals", f"\n{s[-1]} values are split, there are {count.numpy()}")


def lengths(row_lengths, row_splits, count):
    """None negative, their sum the number of values."""
    if not _known(row_lengths, count):
        return
    where = "from_row_lengths"
    _not_negative(where, "row_lengths", row_lengths.numpy())
    if row_splits.numpy()[-1] != count.numpy():
        _fail(where, "nvals", f"\n{row_splits.numpy()[-1]} != {count.numpy()}")


def rowids(ids, nrows, count):
    """Sorted, below the number of rows, one a value."""
    if not _known(ids, nrows, count):
        return
    where, x = "from_value_rowids", ids.numpy()
    if len(x) != count.numpy():
        _fail(where, "nvals", f"\n{len(x)} != {count.numpy()}")
    _not_negative(where, "monotonic", x[1:] - x[:-1])
    _not_negative(where, "value_rowids", x[:1])
    if len(x) and x[-1] >= nrows.numpy():
        _fail(where, "nrows", f"\n{x[-1]} >= {nrows.numpy()}")
