"""Element-wise functions of ragged tensors: operands are given the same rows first.

Dense dimensions, and ragged ones that are known to be uniform, spread from size 1; all
others must be equal. What lies below the last ragged dimension is left to the function,
which broadcasts as it does anyhow.
"""

from headrace.context import errors
from headrace.framework import dtypes, execution
from headrace.ops import array_ops, check_ops, math_ops
from headrace.ragged import checks, from_dense
from headrace.ragged.indexing import expand_front, gather_rows
from headrace.ragged.ragged_tensor import (
    RaggedTensor,
    as_ragged,
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
    rows = given[0]
    for x in given[1:]:
        flat, _, splits = _aligned(rows, x)
        rows = with_splits(flat, splits)
    flat = []
    for x in given:
        _, values, splits = _aligned(rows, x)
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
        return RaggedTensor(
            *same_dtypes(values, self.splits), internal=True, uniform=self.uniform
        )


def _levels_of(x):
    return [_Level(level.row_splits, level._uniform) for level in levels(x)]


def _aligned(x, y):
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
    rank = _rank(x, y)
    x, y = _expanded(x, rank), _expanded(y, rank)
    x, y = _with_rows(x, y)
    return _below(x, y)


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


def _rank(x, y):
    ranks = x.shape.rank, y.shape.rank
    if None in ranks:
        raise ValueError("Unable to broadcast: unknown rank")
    return max(ranks)


def _expanded(x, rank):
    while x.shape.rank < rank:
        if is_ragged(x):
            x = expand_front(x)
        else:
            x = array_ops.expand_dims(x, 0)
    return x


def _count(x):
    """(number of rows as a tensor of int64, as an int or None)."""
    if is_ragged(x):
        return math_ops.cast(x.nrows(), dtypes.int64), x.shape[0]
    return array_ops.shape(x, out_type=dtypes.int64)[0], x.shape[0]


def _with_rows(x, y):
    """Both with the same number of rows: one row stands for all."""
    (n, static_n), (m, static_m) = _count(x), _count(y)
    if static_n is not None and static_n == static_m:
        return x, y
    if static_n == 1:
        return _repeated(x, m), y
    if static_m == 1:
        return x, _repeated(y, n)
    if static_n is None or static_m is None:
        return _rows_in_graph(x, y, n, m, static_n, static_m)
    return _unequal(x, y, n, m)


def _repeated(x, count):
    return gather_rows(x, array_ops.zeros(array_ops.reshape(count, [1]), dtypes.int64))


def _rows_in_graph(x, y, n, m, static_n, static_m):
    x, y = _unequal(x, y, n, m, or_one=True)
    # `==` compares objects in plain graphs.
    rows = array_ops.where(math_ops.equal(n, 1), m, n)
    places = array_ops.range(rows, dtype=dtypes.int64)
    zeros = array_ops.zeros_like(places)
    if static_n is None:
        x = gather_rows(x, array_ops.where(math_ops.equal(n, 1), zeros, places))
    if static_m is None:
        y = gather_rows(y, array_ops.where(math_ops.equal(m, 1), zeros, places))
    return x, y


def _unequal(x, y, n, m, or_one=False):
    if or_one:
        m = array_ops.where(math_ops.equal(n, 1) | math_ops.equal(m, 1), n, m)
    assertion = check_ops.assert_equal(n, m, message="Unable to broadcast: rows")
    if is_ragged(x):
        return x.with_flat_values(checks.after([assertion], x.flat_values)), y
    return checks.after([assertion], x), y


def _below(x, y):
    """Of operands with the same number of rows: see _aligned."""
    if not is_ragged(x) and not is_ragged(y):
        return x, y, []
    if _is_one(x) and not _is_one(y):
        level, x, y = _spread(y, x)
        x, y = y, x
    elif _is_one(y) and not _is_one(x):
        level, x, y = _spread(x, y)
    elif is_ragged(x) and is_ragged(y):
        splits = checks.same_splits(x.row_splits, y.row_splits)
        level = _Level(splits, x._uniform if x._uniform is not None else y._uniform)
        x, y = x.values, y.values
    elif is_ragged(x):
        level, x, y = _dense_rows(x, y)
    else:
        level, y, x = _dense_rows(y, x)
    flat_x, flat_y, inner = _below(x, y)
    return flat_x, flat_y, [level, *inner]


def _is_one(x):
    return x._uniform == 1 if is_ragged(x) else x.shape[1] == 1


def _spread(wide, one):
    """(level, values of wide, values of one): each row of one has a single element."""
    single = one.values if is_ragged(one) else from_dense.merge_dims(one, 0, 1)
    if not is_ragged(wide):
        wide = as_ragged(wide, one.row_splits.dtype)
    return (
        _Level(wide.row_splits, wide._uniform),
        wide.values,
        gather_rows(single, wide.value_rowids()),
    )


def _dense_rows(ragged, dense):
    """(level, values, values): dense rows as long as the ragged ones, or of one
    element where only a run knows that."""
    splits = ragged.row_splits
    width = array_ops.shape(dense, out_type=splits.dtype)[1]
    lengths = ragged.row_lengths()
    total, sizes = ragged.values.shape[0], dense.shape[:2].as_list()
    if None not in (total, *sizes) and total != sizes[0] * sizes[1]:
        raise errors.InvalidArgumentError._of(
            "Unable to broadcast: dimension size mismatch: Condition x == y did not "
            f"hold for shapes {ragged.shape} and {dense.shape}"
        )
    if dense.shape[1] is not None or execution.get_static_value(width) is not None:
        regular = array_ops.range(ragged.nrows() + 1, dtype=splits.dtype) * width
        splits = checks.after([check_ops.assert_equal(splits, regular)], splits)
        level = _Level(splits, dense.shape[1])
        return level, ragged.values, from_dense.merge_dims(dense, 0, 1)
    single = math_ops.equal(width, 1)
    wanted = array_ops.where(single, lengths, array_ops.zeros_like(lengths) + width)
    splits = checks.after([check_ops.assert_equal(lengths, wanted)], splits)
    rowids = ragged.value_rowids()
    count = array_ops.shape(rowids, out_type=splits.dtype)[0]
    inside = array_ops.range(count, dtype=splits.dtype) - array_ops.gather(
        splits, rowids
    )
    inside = array_ops.where(single, array_ops.zeros_like(inside), inside)
    flat = gather_rows(from_dense.merge_dims(dense, 0, 1), rowids * width + inside)
    return _Level(splits), ragged.values, flat


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
