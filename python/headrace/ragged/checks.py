"""What row partitions must satisfy: checked at once eagerly, by assertions in graphs."""

from headrace._load import _headrace
from headrace.context import errors
from headrace.framework import dtypes, execution
from headrace.ops import array_ops, check_ops, math_ops


def _known(*tensors):
    return all(isinstance(t, _headrace.EagerTensor) for t in tensors)


def text(where, kind="RaggedTensor"):
    """How errors of arguments begin."""
    return f"Arguments to {where} do not form a valid {kind}"


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


def splits(row_splits, where):
    """The splits; first 0, never less than before."""
    array = execution.get_static_value(row_splits)
    if array is not None and array[0] == 0 and (array[1:] >= array[:-1]).all():
        return row_splits
    zero, message = math_ops.cast(0, row_splits.dtype), text(where)
    assertions = [
        check_ops.assert_equal(row_splits[0], zero, message=message + ":zero"),
        check_ops.assert_non_negative(
            row_splits[1:] - row_splits[:-1], message=message + ":monotonic"
        ),
    ]
    return after(assertions, row_splits)


def lengths(row_lengths):
    """The lengths; none negative."""
    array = execution.get_static_value(row_lengths)
    if array is not None and (array >= 0).all():
        return row_lengths
    message = text("from_row_lengths", "RowPartition")
    return after(
        [check_ops.assert_non_negative(row_lengths, message=message)], row_lengths
    )


def rowids(ids, nrows):
    """The ids; sorted, none negative, below the number of rows."""
    array, count = (execution.get_static_value(x) for x in (ids, nrows))
    if array is not None and count is not None:
        is_sorted = (array[1:] >= array[:-1]).all()
        if is_sorted and (not len(array) or 0 <= array[0] and array[-1] < count):
            return ids
    message = text("from_value_rowids", "RowPartition")
    assertions = [
        check_ops.assert_non_negative(ids[1:] - ids[:-1], message=message),
        check_ops.assert_non_negative(ids[:1], message=message),
        check_ops.assert_less(ids[-1:], array_ops.reshape(nrows, [1]), message=message),
    ]
    return after(assertions, ids)


def nrows(known, ids):
    """ValueError where a number of rows, an int or None, cannot be that of row ids."""
    if known is None:
        return
    if known < 0:
        raise ValueError(f"Expected nrows >= 0; got {known}")
    last = execution.get_static_value(ids)
    if last is not None and len(last) and last[-1] >= known:
        raise ValueError(
            f"Expected nrows >= value_rowids[-1] + 1; got nrows={known}, "
            f"value_rowids[-1]={last[-1]}"
        )


def values(partition, count):
    """The partition, which must be one of `count` values, a scalar tensor."""
    wanted = execution.get_static_value(count)
    if wanted is not None and wanted == partition._known_sum():
        return partition
    message, nvals = text("_from_row_partition"), partition.nvals()
    count = math_ops.cast(count, nvals.dtype)
    return partition._with_dependencies(
        [check_ops.assert_equal(nvals, count, message=message)]
    )


def same_graph(splits, values):
    """ValueError for tensors of two sessions' graphs."""
    flat = getattr(values, "flat_values", values)
    if not all(isinstance(t, _headrace.SymbolicTensor) for t in (splits, flat)):
        return
    graphs = splits.graph, flat.graph
    if graphs[0] is not graphs[1] and not any(g.building_function for g in graphs):
        raise ValueError(f"{splits} must be from the same graph as {flat}.")


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
