"""tf.broadcast_to and tf.broadcast_dynamic_shape of ragged shapes.

A dimension of size 1 is spread, where it is known to be uniform: the rows of each level are
gathered by indices, made level by level from the outermost in.
"""

from headrace._load import raw
from headrace.framework import conversion, dtypes, execution, tensor_shape
from headrace.ops import array_ops, check_ops, math_ops
from headrace.ragged import checks
from headrace.ragged.dynamic_shape import DynamicRaggedShape
from headrace.ragged.ragged_tensor import as_values
from headrace.ragged.row_partition import RowPartition


def _static(x):
    value = None if x is None else execution.get_static_value(x)
    return None if value is None else int(value)


def _places(count):
    return array_ops.range(count, dtype=count.dtype)


def _outermost(n, total, message):
    """For each of `total` rows the one of `n` that it is; None where these are the same."""
    known = _static(n), _static(total)
    if known[0] is not None and known[0] == known[1]:
        return None
    if known[0] == 1:
        return array_ops.zeros(array_ops.reshape(total, [1]), total.dtype)
    one = math_ops.equal(n, 1)
    fits = raw.LogicalOr(one, math_ops.equal(n, total))
    held = check_ops.assert_equal(fits, True, message=message)
    places = checks.after([held], _places(total))
    return array_ops.where(one, array_ops.zeros_like(places), places)


def _at(values, rows):
    return values if rows is None else array_ops.gather(values, rows)


def _one(partition):
    """Whether rows are spread: (True or False where that is known, else None; a tensor)."""
    if not partition.is_uniform():
        return False, None
    known = partition.static_uniform_row_length
    length = partition.uniform_row_length()
    return (None, math_ops.equal(length, 1)) if known is None else (known == 1, None)


def _next(partition, rows, target):
    """For each value of `target` the value of `partition` that it is.

    `rows` says which rows of `partition` those of `target` are.
    """
    is_one, maybe = _one(partition)
    if rows is None and partition is target:
        return None
    starts = array_ops.gather(_at(partition.row_starts(), rows), target.value_rowids())
    if is_one:
        return starts
    inside = target.offsets_in_rows()
    if maybe is not None:
        inside = array_ops.where(maybe, array_ops.zeros_like(inside), inside)
    return starts + inside


def _fits(partition, rows, target, message):
    """`target`, once its rows are as long as those of `partition`, or spread."""
    is_one, maybe = _one(partition)
    if is_one or rows is None and partition is target:
        return target
    lengths, wanted = _at(partition.row_lengths(), rows), target.row_lengths()
    if maybe is not None:
        lengths = array_ops.where(maybe, wanted, lengths)
    held = check_ops.assert_equal(lengths, wanted, message=message)
    return target._with_dependencies([held])


def _expanded(shape, rank):
    """A shape with dimensions of size 1 before, to be of the rank."""
    missing = rank - shape.rank
    if not missing:
        return shape
    if not shape.num_row_partitions:
        ones = array_ops.ones([missing], shape.dtype)
        return shape._like([], array_ops.concat([ones, shape.inner_shape], 0))
    outer, total = [], math_ops.cast(1, shape.dtype)
    for i in range(missing):
        length = shape[0] if i == missing - 1 else math_ops.cast(1, shape.dtype)
        outer.append(RowPartition.from_uniform_row_length(length, nrows=total))
    return shape._like([*outer, *shape.row_partitions], shape.inner_shape)


def _with_dtype(a, b):
    if a.dtype == b.dtype:
        return a, b
    if a.num_row_partitions and b.num_row_partitions:
        raise ValueError(f"Dtypes don't match: {a.dtype!r} and {b.dtype!r}")
    return a.with_dtype(dtypes.int64), b.with_dtype(dtypes.int64)


def broadcast_to(input, shape, name=None):
    """A tensor or ragged tensor in a ragged shape."""
    return shape._add_row_partitions(flat_values(input, shape))


def flat_values(input, shape, source=None):
    """The innermost values of what broadcast_to gives; `source` is the input's shape."""
    message = "Cannot broadcast"
    values = as_values(input)
    if source is None:
        source = DynamicRaggedShape.from_tensor(values)
    source = source.with_dtype(shape.dtype)
    if None in (source.rank, shape.rank):
        raise ValueError("Rank of source and target must be statically known")
    if source.rank > shape.rank:
        raise ValueError(
            f"{message}: source has rank {source.rank}, target {shape.rank}"
        )
    flat = getattr(values, "flat_values", values)
    dense = not source.num_row_partitions
    if dense and (not shape.num_row_partitions or source.rank < shape.inner_rank):
        return array_ops.broadcast_to(flat, shape.inner_shape)
    source = _expanded(source, shape.rank)
    count = max(source.num_row_partitions, shape.num_row_partitions)
    source = source._with_num_row_partitions(count)
    target = shape._with_num_row_partitions(count)
    flat = array_ops.reshape(flat, source.inner_shape)
    rows = _outermost(source[0], target[0], message)
    for p, t in zip(source.row_partitions, target.row_partitions):
        rows = _next(p, rows, _fits(p, rows, t, message))
    if rows is not None:
        flat = array_ops.gather(flat, rows)
    flat = array_ops.broadcast_to(flat, target.inner_shape)
    return array_ops.reshape(flat, shape.inner_shape)


def _layer(a, b, rows_a, rows_b, message):
    """The partition that two make."""
    (one_a, maybe_a), (one_b, maybe_b) = _one(a), _one(b)
    if one_a or one_b:
        p, rows = (b, rows_b) if one_a else (a, rows_a)
        if rows is None:
            return p
        return _gathered(p, rows)
    if rows_a is None and (rows_b is None or not b.is_uniform()):
        made = a
    else:
        made = _gathered(a, rows_a) if maybe_a is None else None
    if made is not None and maybe_b is None:
        return _fits(b, rows_b, made, message)
    lengths_a, lengths_b = _at(a.row_lengths(), rows_a), _at(b.row_lengths(), rows_b)
    if maybe_a is not None:
        lengths = array_ops.where(maybe_a, lengths_b, lengths_a)
    else:
        lengths = lengths_a
    made = RowPartition.from_row_lengths(lengths, validate=False)
    return _fits(b, rows_b, _fits(a, rows_a, made, message), message)


def _gathered(p, rows):
    if rows is None:
        return p
    count = array_ops.shape(rows, out_type=p.dtype)[0]
    if p.is_uniform():
        return RowPartition.from_uniform_row_length(
            p.uniform_row_length(), nrows=count, validate=False
        )
    lengths = array_ops.gather(p.row_lengths(), rows)
    return RowPartition.from_row_lengths(lengths, validate=False)


def _of_dense(a, b):
    """The sizes that two vectors of sizes make, and what is known of them."""
    known = [
        tensor_shape.TensorShape(None) if s is None else s
        for s in (a._static_inner_shape, b._static_inner_shape)
    ]
    sizes = raw.BroadcastArgs(a.inner_shape, b.inner_shape)
    return sizes, array_ops.broadcast_static_shape(*known)


def broadcast_dynamic_shape(shape_x, shape_y, name=None):
    """The shape that operands of two shapes are broadcast to."""
    a, b = (
        s
        if isinstance(s, DynamicRaggedShape)
        else DynamicRaggedShape._from_inner_shape(conversion.convert_to_tensor(s))
        for s in (shape_x, shape_y)
    )
    return whole(a, b)


def whole(a, b, message=None):
    """The shape that two make; `message` begins the error of those that do not."""
    if None in (a.rank, b.rank):
        raise ValueError("Unable to broadcast: unknown rank")
    a, b = _with_dtype(a, b)
    if not a.num_row_partitions and not b.num_row_partitions:
        sizes, static = _of_dense(a, b)
        return DynamicRaggedShape([], sizes, a.dtype, static_inner_shape=static)
    for x, y in ((a, b), (b, a)):
        if not y.num_row_partitions and y.rank < x.inner_rank:
            inner = DynamicRaggedShape._from_inner_shape(x.inner_shape)
            sizes, static = _of_dense(inner, y)
            return x._like(None, sizes, static)
    rank = max(a.rank, b.rank)
    a, b = _expanded(a, rank), _expanded(b, rank)
    count = max(a.num_row_partitions, b.num_row_partitions)
    a, b = (s._with_num_row_partitions(count) for s in (a, b))
    return _ragged(a, b, message)


def _ragged(a, b, message):
    total = raw.Maximum(a[0], b[0])
    known = [_static(s[0]) for s in (a, b)]
    if 1 in known:
        total = b[0] if known[0] == 1 else a[0]
    rows_a, rows_b = (_outermost(s[0], total, message) for s in (a, b))
    partitions = []
    for p, q in zip(a.row_partitions, b.row_partitions):
        made = _layer(p, q, rows_a, rows_b, message)
        rows_a, rows_b = _next(p, rows_a, made), _next(q, rows_b, made)
        partitions.append(made)
    nvals = array_ops.reshape(partitions[-1].nvals(), [1])
    inner = [DynamicRaggedShape._from_inner_shape(s.inner_shape[1:]) for s in (a, b)]
    sizes, static = _of_dense(*inner)
    first = tensor_shape.TensorShape([partitions[-1].static_nvals])
    return DynamicRaggedShape(
        partitions,
        array_ops.concat([nvals, sizes], 0),
        a.dtype,
        static_inner_shape=first.concatenate(static),
    )
