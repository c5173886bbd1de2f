"""Ragged tensors to dense ones; shapes and levels."""

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes
from headrace.ops import array_ops, math_ops
from headrace.ragged import from_dense
from headrace.ragged.ragged_tensor import RaggedTensor, checked_axis, is_ragged


def to_tensor(ragged, default_value, shape, name):
    """RaggedTensorToTensor of splits."""
    if default_value is None:
        default_value = array_ops.zeros([], ragged.dtype)
    default_value = conversion.convert_to_tensor(default_value, ragged.dtype)
    known = None  # the static shape, where `shape` leaves rows as they are
    if shape is None:
        known = ragged.shape
        shape = conversion.constant(-1, dtypes.int64)
    elif isinstance(shape, int):
        shape = conversion.constant(shape, dtypes.int64)
    elif not isinstance(shape, _headrace.Tensor):
        dims = shape.as_list() if hasattr(shape, "as_list") else list(shape)
        known = _filled(dims, ragged.shape)
        shape = conversion.constant(
            [-1 if d is None else d for d in dims], dtypes.int64
        )
    splits = list(ragged.nested_row_splits)
    result = _headrace.raw_op("RaggedTensorToTensor")(
        shape=shape,
        values=ragged.flat_values,
        default_value=default_value,
        row_partition_tensors=splits,
        row_partition_types=["ROW_SPLITS"] * len(splits),
        name=name,
    )
    if known is not None and not isinstance(result, _headrace.EagerTensor):
        result.set_shape(known)
    return result


def _filled(dims, shape):
    """The sizes asked for, those of `shape` where none is; None where they are not
    known or ranks differ."""
    if shape.rank != len(dims) or not all(d is None or type(d) is int for d in dims):
        return None
    return [h if d in (None, -1) else d for d, h in zip(dims, shape.as_list())]


def bounding_shape(ragged, axis, out_type):
    """Sizes that hold all rows."""
    dtype = out_type or ragged.row_splits.dtype
    sizes = [math_ops.cast(ragged.nrows(), dtype)]
    for lengths in ragged.nested_row_lengths():
        padded = array_ops.concat([array_ops.zeros([1], lengths.dtype), lengths], 0)
        most = raw.Max(padded, 0, keep_dims=False)
        sizes.append(math_ops.cast(most, dtype))
    inner = array_ops.shape(ragged.flat_values, out_type=dtype)[1:]
    result = array_ops.concat([array_ops.stack(sizes), inner], 0)
    return result if axis is None else array_ops.gather(result, axis)


def merge_dims(x, outer, inner):
    """Dimensions outer to inner of a tensor or ragged tensor as one."""
    rank = x.shape.rank
    outer = checked_axis(outer, rank, "outer_axis")
    inner = checked_axis(inner, rank, "inner_axis")
    if outer > inner:
        raise ValueError(
            f"Expected outer_axis ({outer}) to be less than or equal to inner_axis "
            f"({inner})."
        )
    return _merge(x, outer, inner)


def _merge(x, outer, inner):
    if outer == inner:
        return x
    if not is_ragged(x):
        return from_dense.merge_dims(x, outer, inner)
    if outer == 0:
        return _merge(x.values, 0, inner - 1)
    if outer > 1:
        return x.with_values(_merge(x.values, outer - 1, inner - 1))
    # Dimension 1 takes in those behind it: its splits skip their levels.
    splits, values = x.row_splits, x.values
    for _ in range(inner - 1):
        if is_ragged(values):
            splits = array_ops.gather(values.row_splits, splits)
            values = values.values
        else:
            width = array_ops.shape(values, out_type=splits.dtype)[1]
            splits = splits * width
            values = from_dense.merge_dims(values, 0, 1)
    return RaggedTensor.from_row_splits(values, splits, validate=False)
