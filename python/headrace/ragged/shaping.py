"""Functions of dense tensors that tf also has for ragged ones: shapes and order."""

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes, execution
from headrace.ops import array_ops, check_ops, math_ops, reduction_ops, sort_ops
from headrace.ragged import checks
from headrace.ragged.dynamic_shape import DynamicRaggedShape
from headrace.ragged.indexing import gather_rows, getitem, take_spans
from headrace.ragged.ragged_tensor import (
    RaggedTensor,
    as_values,
    checked_axis,
    is_ragged,
)


def rank(input, name=None):
    """The number of dimensions."""
    known = input.shape.rank
    if known is not None:
        return conversion.constant(known, dtypes.int32)
    return input.ragged_rank + array_ops.rank(input.flat_values)


def shape(input, out_type=dtypes.int32, name=None):
    """The lengths of all rows."""
    return DynamicRaggedShape.from_tensor(input, out_type)


def reshape(tensor, shape, name=None):
    """The values, all in one, in another shape."""
    if isinstance(shape, DynamicRaggedShape):
        return shape.over(tensor)
    return array_ops.reshape(tensor.flat_values, shape, name)


def repeat(input, repeats, axis=None, name=None):
    """The values, all in one, each several times."""
    if axis is not None:
        raise ValueError(
            "tf.repeat of a RaggedTensor takes no axis; use `.to_tensor()` first"
        )
    return sort_ops.repeat(input.flat_values, repeats)


def tile(input, multiples, name=None):
    """The tensor several times along each dimension, ragged ones too."""
    input = as_values(input)
    if not isinstance(multiples, _headrace.Tensor):
        multiples = conversion.convert_to_tensor(multiples, dtype_hint=dtypes.int64)
    multiples.shape.assert_has_rank(1)
    known = execution.get_static_value(multiples)
    sizes = multiples.shape[0] if input.shape.rank is None else input.shape.rank
    multiples.shape.assert_is_compatible_with([sizes])
    counts = [multiples[i] if known is None else int(known[i]) for i in range(sizes)]
    return _tile(input, counts)


def _tile(x, counts):
    if not is_ragged(x):
        return array_ops.tile(x, counts)
    values = x.values
    if any(not (isinstance(c, int) and c == 1) for c in counts[2:]):
        values = _tile(values, [1, *counts[2:]])
        x = RaggedTensor._of_splits(values, x.row_splits, uniform=x._uniform)
    dtype = x.row_splits.dtype
    if not (isinstance(counts[1], int) and counts[1] == 1):
        x = _tile_rows(x, math_ops.cast(counts[1], dtype), counts[1])
    if isinstance(counts[0], int) and counts[0] == 1:
        return x
    order = array_ops.range(x.nrows(), dtype=dtype)
    return gather_rows(x, array_ops.tile(order, array_ops.reshape(counts[0], [1])))


def _tile_rows(x, count, known):
    """Each row `count` times in a row of its own."""
    lengths = x.row_lengths()

    def every(partition):
        column = array_ops.expand_dims(partition, 1)
        both = array_ops.tile(
            column, array_ops.stack([math_ops.cast(1, count.dtype), count])
        )
        return array_ops.reshape(both, [-1])

    values = take_spans(x.values, every(x.row_starts()), every(x.row_limits()))
    made = RaggedTensor.from_row_lengths(values, lengths * count, validate=False)
    if x._uniform is not None and isinstance(known, int):
        made._uniform = x._uniform * known
    return made


def squeeze(input, axis=None, name=None):
    """Without dimensions of size 1, which `axis` must name."""
    if axis is None:
        raise ValueError("Ragged.squeeze must have an axis argument.")
    known = input.shape.rank
    if isinstance(axis, int):
        axes = [checked_axis(axis, known, "axis[0]")]
    else:
        axes = [checked_axis(a, known, f"axis[{i}]") for i, a in enumerate(axis)]
    for a in sorted(set(axes), reverse=True):
        input = _squeeze_one(input, a, a)
    return input


def _squeeze_one(x, axis, shown):
    if not is_ragged(x):
        return array_ops.squeeze(x, [axis])
    if axis > 1:
        return x.with_values(_squeeze_one(x.values, axis - 1, shown))
    lengths = x.row_lengths() if axis else x.nrows()
    assertion = check_ops.Assert(
        reduction_ops.reduce_all(math_ops.equal(lengths, 1)),
        [f"the given axis (axis = {shown}) is not squeezable!"],
    )
    values = x.values
    if assertion is not None:
        if is_ragged(values):
            return values.with_flat_values(
                checks.after([assertion], values.flat_values)
            )
        values = checks.after([assertion], values)
    return values


def reverse(tensor, axis, name=None):
    """The elements of `axis`, a list of dimensions, in reverse order."""
    known = axis
    if isinstance(axis, _headrace.Tensor):
        known = execution.get_static_value(axis)
        known = None if known is None else known.tolist()
    if not isinstance(known, (list, tuple)) or not all(
        isinstance(a, int) for a in known
    ):
        raise TypeError(
            "`axis` must be a list of int or a constant tensor when reversing axes in a "
            "ragged tensor"
        )
    sizes = tensor.shape.rank
    axes = [checked_axis(a, sizes, f"axis[{i}]") for i, a in enumerate(known)]
    for a in sorted(set(axes)):
        key = (slice(None),) * a + (slice(None, None, -1),)
        tensor = getitem(tensor, key)
    return tensor


def one_hot(
    indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None
):
    """One more dimension, in which the place of the index is on."""
    if isinstance(axis, int) and axis >= 0:
        if axis <= indices.ragged_rank:
            raise ValueError(
                f"axis ({axis}) must be greater than indices.ragged_rank "
                f"({indices.ragged_rank})."
            )
        axis -= indices.ragged_rank
    flat = array_ops.one_hot(
        indices.flat_values, depth, on_value, off_value, axis, dtype, name
    )
    return indices.with_flat_values(flat)


def split(value, num_or_size_splits, axis=0, num=None, name="split"):
    """Parts of a dimension that is not ragged: a list."""
    axis = checked_axis(axis, value.shape.rank)
    if axis > value.ragged_rank:
        parts = array_ops.split(
            value.flat_values, num_or_size_splits, axis - value.ragged_rank, num
        )
        return [value.with_flat_values(p) for p in parts]
    if axis > 0 and value.shape[axis] is None:
        raise ValueError(
            "Cannot split a ragged dimension. Got `value` with shape "
            f"{DynamicRaggedShape.from_tensor(value)!r}"
        )
    sizes = _sizes_of_parts(value, num_or_size_splits, axis, num)
    ends, start = [], math_ops.cast(0, sizes[0].dtype)
    parts = []
    for n in sizes:
        ends.append((start, start + n))
        start = start + n
    for begin, end in ends:
        known = [execution.get_static_value(v) for v in (begin, end)]
        begin, end = (v if k is None else int(k) for k, v in zip(known, (begin, end)))
        parts.append(getitem(value, (slice(None),) * axis + (slice(begin, end),)))
    return parts


_BAD_SPLIT = (
    "Cannot exactly split the `axis` dimension of `value` with the given "
    "`num_or_size_split`."
)


def _sizes_of_parts(value, given, axis, num):
    dtype = value.row_splits.dtype
    if axis == 0:
        total = value.nrows()
    else:
        total = math_ops.cast(value.shape[axis], dtype)
    if not isinstance(given, _headrace.Tensor):
        given = conversion.convert_to_tensor(given)
    if not given.dtype.is_integer:
        raise TypeError(
            "`num_or_size_splits` must be an `int` or 1-D list or `Tensor` of integers."
            f'  Expected "x" to be integer type.  Found: {given.dtype}'
        )
    given = math_ops.cast(given, dtype)
    if given.shape.rank == 0:
        count = execution.get_static_value(given)
        count = num if count is None else count
        if count is None:
            raise ValueError(
                "`num` must be given where num_or_size_splits is not known"
            )
        if count < 1:
            raise ValueError(
                f"`num_or_size_splits` must be >=1 if it is an `int`. Received {count}."
            )
        left = check_ops.assert_equal(
            total % given, math_ops.cast(0, dtype), message=_BAD_SPLIT
        )
        each = checks.after([left], total // given)
        return [each] * int(count)
    count = given.shape[0] if given.shape.rank == 1 else None
    count = num if count is None else count
    if count is None:
        raise ValueError("`num` must be given where num_or_size_splits is not known")
    positive = check_ops.assert_non_negative(
        given, message="`num_or_size_splits` must be non-negative."
    )
    whole = check_ops.assert_equal(raw.Sum(given, 0), total, message=_BAD_SPLIT)
    given = checks.after([positive, whole], given)
    return [given[i] for i in range(int(count))]
