"""Ragged tensors from and to dense ones; shapes and levels."""

from headrace._load import _headrace
from headrace.framework import conversion, dtypes
from headrace.ops import array_ops, math_ops
from headrace.ragged.ragged_tensor import RaggedTensor, is_ragged


def _raw(op, **arguments):
    return _headrace.raw_op(op)(**arguments)


def _range(starts, limits, deltas=1, splits=dtypes.int64):
    one = conversion.convert_to_tensor(deltas, starts.dtype)
    return _raw("RaggedRange", starts=starts, limits=limits, deltas=one, Tsplits=splits)


def rowids_of_splits(splits):
    """The row of each value, of where rows begin."""
    lengths = splits[1:] - splits[:-1]
    rows = array_ops.range(array_ops.shape(lengths, out_type=splits.dtype)[0])
    rows = math_ops.cast(rows, splits.dtype)
    zeros = array_ops.zeros_like(lengths)
    _, inside = _range(zeros, lengths, splits=splits.dtype)
    starts = array_ops.gather(splits, rows)
    # Row numbers where rows that are not empty begin, carried to their ends.
    full = array_ops.reshape(array_ops.where(lengths > 0), [-1])
    begins = array_ops.gather(starts, full)
    jumps = math_ops.cast(array_ops.gather(rows, full), splits.dtype)
    before = array_ops.concat([array_ops.zeros([1], splits.dtype), jumps[:-1]], 0)
    before = before[: array_ops.shape(jumps)[0]]
    shape = array_ops.shape(inside, out_type=splits.dtype)
    places = array_ops.expand_dims(begins, 1)
    steps = array_ops.scatter_nd(places, jumps - before, shape)
    return _raw("Cumsum", x=steps, axis=0, exclusive=False, reverse=False)


def to_tensor(ragged, default_value, shape, name):
    """RaggedTensorToTensor of splits."""
    if default_value is None:
        default_value = array_ops.zeros([], ragged.dtype)
    default_value = conversion.convert_to_tensor(default_value, ragged.dtype)
    if shape is None:
        shape = conversion.constant(-1, dtypes.int64)
    elif not isinstance(shape, _headrace.Tensor):
        dims = shape.as_list() if hasattr(shape, "as_list") else list(shape)
        shape = conversion.constant(
            [-1 if d is None else d for d in dims], dtypes.int64
        )
    splits = list(ragged.nested_row_splits)
    return _raw(
        "RaggedTensorToTensor",
        shape=shape,
        values=ragged.flat_values,
        default_value=default_value,
        row_partition_tensors=splits,
        row_partition_types=["ROW_SPLITS"] * len(splits),
        name=name,
    )


def from_tensor(tensor, lengths, padding, ragged_rank):
    """The rows of a dense tensor."""
    tensor = conversion.convert_to_tensor(tensor)
    if lengths is not None and padding is not None:
        raise ValueError("Specify lengths or padding, but not both.")
    rank = tensor.shape.rank
    if ragged_rank < 1 or (rank is not None and ragged_rank >= rank):
        raise ValueError(
            f"ragged_rank must be in (0, {rank}); got ragged_rank={ragged_rank}"
        )
    if lengths is not None and _is_nested(lengths):
        # The lengths of the rows, of their rows and so on.
        made = from_tensor(tensor, lengths[0], None, 1)
        if len(lengths) == 1:
            return made
        return made.with_values(from_tensor(made.values, lengths[1:], None, 1))
    if ragged_rank > 1:
        if lengths is not None or padding is not None:
            raise ValueError("lengths and padding need ragged_rank=1")
        shape = array_ops.shape(tensor, out_type=dtypes.int64)
        inner = array_ops.reshape(
            tensor, array_ops.concat([shape[:1] * shape[1:2], shape[2:]], 0)
        )
        inner = from_tensor(inner, None, None, ragged_rank - 1)
        return _uniform(inner, tensor.shape[1], shape)
    shape = array_ops.shape(tensor, out_type=dtypes.int64)
    flat = array_ops.reshape(
        tensor, array_ops.concat([shape[:1] * shape[1:2], shape[2:]], 0)
    )
    if padding is None and lengths is None:
        return _uniform(flat, tensor.shape[1], shape)
    if lengths is None:
        lengths = _lengths_without(tensor, padding)
    lengths = conversion.convert_to_tensor(lengths, dtype_hint=dtypes.int64)
    lengths = math_ops.cast(lengths, dtypes.int64)
    lengths = _raw("Minimum", x=_raw("Maximum", x=lengths, y=0), y=shape[1])
    starts = array_ops.range(shape[0], dtype=dtypes.int64) * shape[1]
    _, kept = _range(starts, starts + lengths)
    return RaggedTensor.from_row_lengths(
        array_ops.gather(flat, kept), lengths, validate=False
    )


def _is_nested(lengths):
    if not isinstance(lengths, (list, tuple)) or not lengths:
        return False
    first = lengths[0]
    if isinstance(first, _headrace.Tensor):
        return first.shape.rank == 1
    return isinstance(first, (list, tuple)) or getattr(first, "ndim", 0) == 1


def _uniform(values, length, shape):
    if length is None:
        splits = array_ops.range(shape[0] + 1, dtype=dtypes.int64) * shape[1]
        return RaggedTensor.from_row_splits(values, splits, validate=False)
    return RaggedTensor.from_uniform_row_length(values, length, shape[0])


def _lengths_without(tensor, padding):
    """Lengths of the rows without what equals the padding at their ends."""
    padding = conversion.convert_to_tensor(padding, tensor.dtype)
    same = _raw("Equal", x=tensor, y=padding)
    rank = tensor.shape.rank
    if rank > 2:
        same = _raw("All", input=same, axis=list(range(2, rank)), keep_dims=False)
    columns = array_ops.range(
        array_ops.shape(tensor, out_type=dtypes.int64)[1], dtype=dtypes.int64
    )
    zero = conversion.constant(0, dtypes.int64)
    lengths = array_ops.where(same, zero, columns + 1)
    padded = array_ops.pad(lengths, [[0, 0], [1, 0]])
    return _raw("Max", input=padded, axis=1, keep_dims=False)


def bounding_shape(ragged, axis, out_type):
    """Sizes that hold all rows."""
    dtype = out_type or ragged.row_splits.dtype
    sizes = [math_ops.cast(ragged.nrows(), dtype)]
    for lengths in ragged.nested_row_lengths():
        padded = array_ops.concat([array_ops.zeros([1], lengths.dtype), lengths], 0)
        most = _raw("Max", input=padded, axis=0, keep_dims=False)
        sizes.append(math_ops.cast(most, dtype))
    inner = array_ops.shape(ragged.flat_values, out_type=dtype)[1:]
    result = array_ops.concat([array_ops.stack(sizes), inner], 0)
    return result if axis is None else array_ops.gather(result, axis)


def merge_dims(ragged, outer, inner):
    """Dimensions outer to inner as one."""
    rank = ragged.shape.rank
    outer = outer + rank if outer < 0 else outer
    inner = inner + rank if inner < 0 else inner
    if not 0 <= outer < inner < rank:
        raise ValueError(f"need 0 <= {outer} < {inner} < {rank}")
    if outer > 0:
        return ragged_or_dense_merge(ragged, outer, inner)
    values = ragged.values
    return values if inner == 1 else ragged_or_dense_merge_front(values, inner - 1)


def ragged_or_dense_merge_front(values, inner):
    if is_ragged(values):
        return merge_dims(values, 0, inner)
    shape = array_ops.shape(values)
    tail = shape[inner + 1 :]
    return array_ops.reshape(values, array_ops.concat([[-1], tail], 0))


def ragged_or_dense_merge(ragged, outer, inner):
    values = ragged.values
    if outer > 1:
        return ragged.with_values(
            merge_dims(values, outer - 1, inner - 1)
            if is_ragged(values)
            else _dense_merge(values, outer - 1, inner - 1)
        )
    # Dimension 1 takes in those behind it: its splits skip their levels.
    splits = ragged.row_splits
    while inner > 1:
        if is_ragged(values):
            splits = array_ops.gather(values.row_splits, splits)
            values = values.values
        else:
            width = math_ops.cast(array_ops.shape(values)[1], splits.dtype)
            splits = splits * width
            values = _dense_merge(values, 0, 1)
        inner -= 1
    return RaggedTensor.from_row_splits(values, splits, validate=False)


def _dense_merge(x, outer, inner):
    shape = array_ops.shape(x)
    parts = [shape[:outer], [-1], shape[inner + 1 :]]
    return array_ops.reshape(x, array_ops.concat(parts, 0))
