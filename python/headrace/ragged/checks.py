"""What row partitions must satisfy: checked at once eagerly, by assertions in graphs."""

from headrace._load import _headrace
from headrace.context import errors
from headrace.framework import dtypes, execution
from headrace.ops import array_ops, check_ops, math_ops


def _fail(where, what, detail=""):
    raise errors.InvalidArgumentError._of(
        f"Arguments to {where} do not form a valid RaggedTensor:{what}.{detail}"
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


def _text(where):
    return f"Arguments to {where} do not form a valid RaggedTensor"


def after(assertions, tensor):
    """The tensor, once the assertions (operations, or None when eager) hold."""
    assertions = [a for a in assertions if a is not None]
    if not assertions:
        return tensor
    with execution.control_dependencies(assertions):
        return array_ops.identity(tensor)


def integers(partition, what):
    """ValueError unless of a dtype that row partitions may have."""
    if partition.dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"{what} must have dtype int32 or int64")


def splits(row_splits, count, where):
    """The splits; first 0, never less than before, at last the number of values."""
    if not _known(row_splits, count):
        return _splits_in_graph(row_splits, count, where)
    s = row_splits.numpy()
    if s[0] != 0:
        _fail(where, "zero", f"\nrow_splits[0] is {s[0]}")
    _not_negative(where, "monotonic", s[1:] - s[:-1])
    if s[-1] != count.numpy():
        _fail(where, "nvals", f"\n{s[-1]} values are split, there are {count.numpy()}")
    return row_splits


def _splits_in_graph(row_splits, count, where):
    zero = math_ops.cast(0, row_splits.dtype)
    count = math_ops.cast(count, row_splits.dtype)
    text = _text(where)
    assertions = [
        check_ops.assert_equal(row_splits[0], zero, message=text + ":zero"),
        check_ops.assert_non_negative(
            row_splits[1:] - row_splits[:-1], message=text + ":monotonic"
        ),
        check_ops.assert_equal(row_splits[-1], count, message=text + ":nvals"),
    ]
    return after(assertions, row_splits)


def lengths(row_lengths, row_splits, count):
    """The splits of lengths; none negative, their sum the number of values."""
    where = "from_row_lengths"
    if not _known(row_lengths, count):
        text = _text(where)
        assertions = [
            check_ops.assert_non_negative(row_lengths, message=text),
            check_ops.assert_equal(
                row_splits[-1], math_ops.cast(count, row_splits.dtype), message=text
            ),
        ]
        return after(assertions, row_splits)
    _not_negative(where, "row_lengths", row_lengths.numpy())
    if row_splits.numpy()[-1] != count.numpy():
        _fail(where, "nvals", f"\n{row_splits.numpy()[-1]} != {count.numpy()}")
    return row_splits


def rowids(ids, nrows, count):
    """The ids; sorted, below the number of rows, one a value."""
    where = "from_value_rowids"
    if not _known(ids, nrows, count):
        return _rowids_in_graph(ids, nrows, count, where)
    x = ids.numpy()
    if len(x) != count.numpy():
        _fail(where, "nvals", f"\n{len(x)} != {count.numpy()}")
    _not_negative(where, "monotonic", x[1:] - x[:-1])
    _not_negative(where, "value_rowids", x[:1])
    if len(x) and x[-1] >= nrows.numpy():
        _fail(where, "nrows", f"\n{x[-1]} >= {nrows.numpy()}")
    return ids


def _rowids_in_graph(ids, nrows, count, where):
    text = _text(where)
    size = array_ops.size(ids, out_type=ids.dtype)
    assertions = [
        check_ops.assert_non_negative(ids[1:] - ids[:-1], message=text),
        check_ops.assert_non_negative(ids[:1], message=text),
        check_ops.assert_equal(size, math_ops.cast(count, ids.dtype), message=text),
        check_ops.assert_less(
            ids[-1:], array_ops.reshape(math_ops.cast(nrows, ids.dtype), [1]), text
        ),
    ]
    return after(assertions, ids)


def same_splits(a, b, message=None):
    """Row splits that are both, which must be equal: InvalidArgumentError otherwise."""
    if a is b:
        return a
    known = [execution.get_static_value(x) for x in (a, b)]
    if not any(k is None for k in known) and not _known(a, b):
        if known[0].tolist() == known[1].tolist():
            return a
        raise errors.InvalidArgumentError._of(
            f"{message or 'ragged rows differ'}\nCondition x == y did not hold.\n"
            f"x: {known[0]}\ny: {known[1]}"
        )
    a.shape.assert_is_compatible_with(b.shape)
    other = b if b.dtype == a.dtype else math_ops.cast(b, a.dtype)
    return after([check_ops.assert_equal(a, other, message=message)], a)
