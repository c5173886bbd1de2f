"""Element-wise functions of ragged tensors: the same rows, other values."""

from headrace.framework import conversion, tensor_shape
from headrace.ops import array_ops
from headrace.ragged.ragged_tensor import is_ragged


def _check_same(a, b):
    """The two have the same rows."""
    from headrace.ops import check_ops

    if a.ragged_rank != b.ragged_rank:
        raise ValueError(
            "ragged tensors must have the same ragged rank, got "
            f"{a.ragged_rank} and {b.ragged_rank}"
        )
    for x, y in zip(a.nested_row_splits, b.nested_row_splits):
        if x is not y:
            check_ops.assert_equal(x, y)


def broadcast(dense, ragged):
    """The values of a dense tensor that meet those of a ragged one."""
    shape = dense.shape
    rank = shape.rank
    total = ragged.shape.rank
    if rank is None or total is None:
        raise ValueError("broadcasting with ragged tensors needs known ranks")
    inner = total - ragged.ragged_rank - 1
    if rank <= inner or rank == 0:
        return dense
    if rank > total:
        raise ValueError(f"cannot broadcast rank {rank} with ragged rank {total}")
    sizes = [1] * (total - rank) + shape.as_list()
    dense = array_ops.reshape(dense, [-1 if d is None else d for d in sizes])
    # Row by row: the values of a row repeat, or follow its places.
    rows = ragged.shape[0]
    if sizes[0] not in (1, rows) and rows is not None:
        tensor_shape.TensorShape(sizes).assert_is_compatible_with(ragged.shape)
    return _spread(dense, sizes, ragged)


def _spread(dense, sizes, ragged):
    level, ids = ragged, None
    flat = dense
    for depth in range(ragged.ragged_rank):
        rowids = level.value_rowids()
        if sizes[depth] == 1:
            if ids is None:
                flat = array_ops.squeeze(flat, [0])
                if sizes[depth + 1] != 1:
                    return _by_place(flat, level)
        else:
            if sizes[depth + 1] != 1:
                raise ValueError(
                    "cannot broadcast a dense tensor along a ragged dimension: shapes "
                    f"{tuple(sizes)} and {ragged.shape}"
                )
            flat = array_ops.gather(array_ops.squeeze(flat, [1]), rowids)
            sizes = [*sizes[: depth + 1], None, *sizes[depth + 2 :]]
            ids = rowids
        level = level.values
    if ids is None:
        flat = array_ops.squeeze(flat, [0])
    return flat


def _by_place(flat, level):
    """flat[place in its row] for each value of a level."""
    if is_ragged(level.values):
        raise ValueError("cannot broadcast a vector with inner ragged dimensions")
    starts = array_ops.gather(level.row_starts(), level.value_rowids())
    count = array_ops.shape(level.values, out_type=starts.dtype)[0]
    places = array_ops.range(count, dtype=starts.dtype) - starts
    from headrace.ops import check_ops

    lengths = level.row_lengths()
    width = array_ops.shape(flat, out_type=lengths.dtype)[0]
    check_ops.assert_equal(lengths, array_ops.zeros_like(lengths) + width)
    return array_ops.gather(flat, places)


def apply(function, operands, **kwargs):
    """`function` of operands of which at least one is ragged."""
    ragged = [x for x in operands if is_ragged(x)]
    first = max(ragged, key=lambda r: r.ragged_rank)
    for other in ragged:
        if other is not first:
            _check_same(first, other)
    flat = []
    for x in operands:
        if is_ragged(x):
            flat.append(x.flat_values)
        elif x is None or isinstance(x, (str, bool)) and len(operands) == 1:
            flat.append(x)
        else:
            dense = conversion.convert_to_tensor(x, dtype_hint=first.dtype)
            flat.append(broadcast(dense, first))
    return first.with_flat_values(function(*flat, **kwargs))


def map_flat_values(op, *args, **kwargs):
    """`op` of the flat values of ragged arguments that all have the same rows."""
    found = []

    def flat(x):
        if is_ragged(x):
            found.append(x)
            return x.flat_values
        if isinstance(x, (list, tuple)) and any(is_ragged(v) for v in x):
            return type(x)([flat(v) for v in x])
        return x

    args = [flat(x) for x in args]
    kwargs = {k: flat(v) for k, v in kwargs.items()}
    if not found:
        return op(*args, **kwargs)
    for other in found[1:]:
        _check_same(found[0], other)
    return found[0].with_flat_values(op(*args, **kwargs))
