"""tf.gather, tf.gather_nd and tf.ragged.boolean_mask with ragged tensors."""

from headrace._load import raw
from headrace.framework import conversion, dtypes
from headrace.ops import array_ops, check_ops, math_ops
from headrace.ragged import broadcast, checks
from headrace.ragged.indexing import expand_front, gather_rows
from headrace.ragged.joining import concat
from headrace.ragged.parts import splits_of_lengths
from headrace.ragged.ragged_tensor import (
    RaggedTensor,
    as_ragged,
    as_values,
    checked_axis,
    is_ragged,
    levels,
)
from headrace.ragged.ragged_value import RaggedTensorValue


def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    """The slices of `params` at `indices` along `axis`, row by row of the batch."""
    params, indices = as_values(params), as_values(indices)
    if indices.shape.rank is None:
        raise ValueError("rank(indices) must be known statically")
    if batch_dims < 0:
        batch_dims = checked_axis(batch_dims, indices.shape.rank, "batch_dims")
    rank = params.shape.rank
    if rank is not None and batch_dims >= rank:
        raise ValueError("batch_dims must be less than rank(params)")
    axis = batch_dims if axis is None else checked_axis(axis, rank)
    if axis < batch_dims:
        raise ValueError(f"axis ({axis}) must be at least batch_dims ({batch_dims})")
    return _gather(params, indices, axis, batch_dims)


def _gather(params, indices, axis, batch_dims):
    if not is_ragged(params) and not is_ragged(indices):
        return array_ops.gather(params, indices, axis=axis, batch_dims=batch_dims)
    if batch_dims == 0:
        if axis == 0:
            return _at_rows(params, indices)
        params = as_ragged(params)
        if axis == 1:
            return _in_every_row(params, indices)
        return params.with_values(_gather(params.values, indices, axis - 1, 0))
    params = as_ragged(params)
    if batch_dims > 1:
        indices = as_ragged(indices)
        splits = checks.same_splits(params.row_splits, indices.row_splits)
        indices = indices._like(indices.values, splits)
        inner = _gather(params.values, indices.values, axis - 1, batch_dims - 1)
        return indices.with_values(inner)
    if axis > 1:
        repeated = gather_rows(indices, params.value_rowids())
        return params.with_values(_gather(params.values, repeated, axis - 1, 1))
    return _in_own_row(params, indices)


def _at_rows(params, indices):
    if is_ragged(indices):
        return indices.with_values(_at_rows(params, indices.values))
    if is_ragged(params) and indices.shape.rank == 0:
        return gather_rows(params, array_ops.reshape(indices, [1]))[0]
    return gather_rows(params, indices)


def _in_own_row(params, indices):
    """params[i][indices[i]] for every row i."""
    dtype = params.row_splits.dtype
    starts, lengths = params.row_starts(), params.row_lengths()
    if is_ragged(indices):
        n = params.shape[0]
        if n is not None:
            indices.shape[:1].assert_is_compatible_with([n])
        if indices.row_splits.dtype != dtype:
            indices = indices.with_row_splits_dtype(dtypes.int64)
    return _at_rows(params.values, _shifted(indices, starts, lengths))


def _in_every_row(params, indices):
    """params[i][indices] for every row i."""
    n = params.nrows()
    rows = expand_front(indices)
    zeros = array_ops.zeros(array_ops.reshape(n, [1]), dtypes.int64)
    rows = gather_rows(rows, zeros)
    if is_ragged(rows) and is_ragged(indices):
        rows._uniform = indices.shape[0]
    if not is_ragged(rows) and params.shape[0] is not None:
        rows.set_shape([params.shape[0], *indices.shape])
    return _in_own_row(params, rows)


def _shifted(indices, starts, lengths):
    """indices + starts by rows, where indices are below lengths."""
    if is_ragged(indices):
        rowids = indices.value_rowids()
        inner = _shifted(
            indices.values,
            array_ops.gather(starts, rowids),
            array_ops.gather(lengths, rowids),
        )
        return indices.with_values(inner)
    indices = math_ops.cast(indices, starts.dtype)
    for _ in range(indices.shape.rank - 1):
        starts = array_ops.expand_dims(starts, -1)
        lengths = array_ops.expand_dims(lengths, -1)
    text = "indices are out of the range of their rows"
    zero = conversion.constant(0, indices.dtype)
    assertions = [
        check_ops.assert_greater_equal(indices, zero, message=text),
        check_ops.assert_less(indices, lengths, message=text),
    ]
    return checks.after(assertions, indices) + starts


def gather_nd(params, indices, batch_dims=0, name=None, bad_indices_policy=""):
    """The elements or slices of `params` at the places in the rows of `indices`."""
    if batch_dims != 0:
        raise ValueError("batch_dims != 0 is not supported for ragged gather yet.")
    if bad_indices_policy not in ("", "DEFAULT"):
        raise ValueError("bad_indices_policy is not supported for ragged gather")
    params, indices = as_values(params), as_values(indices)
    rank = indices.shape.rank
    if rank is None:
        raise ValueError("indices.rank be statically known.")
    if rank == 0:
        raise ValueError("indices.rank must be at least 1.")
    if is_ragged(indices) and indices.ragged_rank == rank - 1:
        raise ValueError("The innermost dimension of indices may not be ragged")
    count = indices.shape[-1]
    if count is None:
        raise ValueError("indices.shape[-1] must be statically known.")
    return _at_places(params, indices, count)


def _at_places(params, indices, count):
    if is_ragged(indices):
        return indices.with_values(_at_places(params, indices.values, count))
    if not is_ragged(params):
        return array_ops.gather_nd(params, indices)
    if count == 0:
        shape = array_ops.shape(indices)[:-1]
        return _at_rows(expand_front(params), array_ops.zeros(shape, dtypes.int64))
    rows = indices[..., 0]
    if count == 1:
        return _at_rows(params, rows)
    dtype = params.row_splits.dtype
    starts = array_ops.gather(params.row_starts(), rows)
    lengths = array_ops.gather(params.row_lengths(), rows)
    inside = math_ops.cast(indices[..., 1], dtype)
    text = "indices are out of the range of their rows"
    assertions = [
        check_ops.assert_non_negative(inside, message=text),
        check_ops.assert_less(inside, lengths, message=text),
    ]
    place = array_ops.expand_dims(checks.after(assertions, inside) + starts, -1)
    rest = math_ops.cast(indices[..., 2:], dtype)
    places = array_ops.concat([place, rest], -1)
    return _at_places(params.values, places, count - 1)


def boolean_mask(data, mask, name=None):
    """The elements where the mask is true, in ragged rows.

    `mask` has the first dimensions of `data`, both may be ragged. A mask of one
    dimension gives rows of `data`. ValueError where the shapes do not fit,
    InvalidArgumentError where the ragged rows differ.
    """
    if not isinstance(mask, (RaggedTensor, RaggedTensorValue)):
        mask = conversion.convert_to_tensor(mask, dtypes.bool)
    mask, data = as_values(mask), as_values(data)
    if mask.dtype != dtypes.bool:
        raise ValueError(
            "Tensor conversion requested dtype bool for RaggedTensor with dtype "
            f"{mask.dtype.name}: {mask!r}"
        )
    rank = mask.shape.rank
    if rank is None:
        raise ValueError("mask.shape.ndims must be known statically.")
    if rank == 0:
        raise ValueError("mask cannot be scalar.")
    if rank == 1:
        data.shape[:1].assert_is_compatible_with(mask.shape)
        kept = array_ops.reshape(array_ops.where(mask), [-1])
        return gather_rows(data, kept)
    if not is_ragged(mask) and not is_ragged(data):
        data.shape[:rank].assert_is_compatible_with(mask.shape)
    if not is_ragged(mask):
        dtype = data.row_splits.dtype if is_ragged(data) else dtypes.int64
        mask = RaggedTensor.from_tensor(
            mask, ragged_rank=rank - 1, row_splits_dtype=dtype
        )
    if is_ragged(data) and data.row_splits.dtype != mask.row_splits.dtype:
        data = data.with_row_splits_dtype(dtypes.int64)
        mask = mask.with_row_splits_dtype(dtypes.int64)
    return _masked(data, mask)


def _masked(data, mask):
    if not is_ragged(mask):
        return boolean_mask(data, mask)
    data = as_ragged(data, mask.row_splits.dtype)
    splits = checks.same_splits(
        mask.row_splits, data.row_splits, "Inputs must have identical ragged splits"
    )
    inner = _masked(data.values, mask.values)
    if is_ragged(mask.values) or mask.values.shape.rank != 1:
        return RaggedTensor._of_splits(inner, splits)
    kept = splits_of_lengths(math_ops.cast(mask.values, splits.dtype))
    return RaggedTensor.from_row_splits(
        inner, array_ops.gather(kept, splits), validate=False
    )


def where(condition, x=None, y=None, name=None):
    """The places where `condition` holds, or x there and y elsewhere."""
    if (x is None) != (y is None):
        raise ValueError("x and y must be either both None or both non-None")
    if x is None:
        return _places(condition)
    condition = as_values(condition, dtypes.bool)
    x = as_values(x, dtype_hint=getattr(y, "dtype", None))
    y = as_values(y, dtype_hint=x.dtype)
    flat, rows = broadcast.together(condition, x, y)
    return broadcast.with_splits(array_ops.where(*flat), rows)


def where_v1(condition, x=None, y=None, name=None):
    """`where` of TensorFlow 1: a condition of one dimension chooses rows."""
    chooses = x is not None and y is not None and not is_ragged(condition)
    if chooses:
        condition = conversion.convert_to_tensor(condition, dtypes.bool)
        chooses = condition.shape.rank == 1
    if not chooses:
        ragged = [t for t in (condition, x, y) if is_ragged(t)]
        if x is not None and y is not None and len(ragged) < 3:
            raise ValueError("Input shapes do not match.")
        if len(ragged) == 3 and condition.flat_values.shape.rank == 1:
            return broadcast.map_flat_values(raw.Select, condition, x, y)
        return where(condition, x, y)
    x, y = as_values(x), as_values(y)
    count = array_ops.size(condition, out_type=dtypes.int64)
    rows = array_ops.range(count, dtype=dtypes.int64)
    both = concat([x, y], 0)
    return gather_rows(both, array_ops.where(condition, rows, rows + count))


def _places(condition):
    if not is_ragged(condition):
        return array_ops.where(condition)
    found = array_ops.where(condition.flat_values)
    places, rest = found[:, 0], found[:, 1:]
    for level in reversed(levels(condition)):
        rows = array_ops.gather(level.value_rowids(), places)
        starts = array_ops.gather(level.row_starts(), rows)
        inside = places - math_ops.cast(starts, dtypes.int64)
        rest = array_ops.concat([array_ops.expand_dims(inside, 1), rest], 1)
        places = math_ops.cast(rows, dtypes.int64)
    return array_ops.concat([array_ops.expand_dims(places, 1), rest], 1)


def batch_gather(params, indices, name=None):
    """`gather` in the batch that all dimensions of the indices but the last make."""
    indices = as_values(indices)
    if indices.shape.rank is None:
        raise ValueError("batch_gather does not allow indices with unknown shape.")
    return gather(params, indices, batch_dims=indices.shape.rank - 1)
