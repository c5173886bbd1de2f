"""Ragged tensors of dense and of sparse ones."""

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes
from headrace.framework.sparse_tensor import is_sparse
from headrace.ops import array_ops, check_ops, math_ops
from headrace.ragged import checks
from headrace.ragged.ragged_tensor import RaggedTensor


def _check_rank(tensor, ragged_rank):
    if ragged_rank <= 0:
        raise ValueError(
            f"Argument `ragged_rank` must be greater than 0. Received {ragged_rank}."
        )
    rank = tensor.shape.rank
    if rank is not None and rank <= 1:
        raise ValueError(
            "The rank of a RaggedTensor must be greater than 1, i.e., a list of scalars "
            "won't have ragged dimensions. Received argument `tensor` with rank "
            f"{rank}."
        )
    tensor.shape.with_rank_at_least(ragged_rank + 1)


def from_tensor(tensor, lengths, padding, ragged_rank, dtype):
    """See RaggedTensor.from_tensor."""
    if lengths is not None and padding is not None:
        raise ValueError("Specify argument `lengths` or `padding`, but not both.")
    if not isinstance(ragged_rank, int):
        raise TypeError(
            f"Argument `ragged_rank` must be an int. Received {ragged_rank}."
        )
    tensor = conversion.convert_to_tensor(tensor)
    _check_rank(tensor, ragged_rank)
    if lengths is not None and _is_nested(lengths):
        return _of_nested_lengths(tensor, lengths, ragged_rank, dtype)
    if ragged_rank > 1:
        inner = from_tensor(
            merge_dims(tensor, 0, 1), lengths, padding, ragged_rank - 1, dtype
        )
        return _uniform(inner, tensor, dtype)
    if padding is None and lengths is None:
        return _uniform(merge_dims(tensor, 0, 1), tensor, dtype)
    if lengths is None:
        lengths = _lengths_without(tensor, padding, dtype)
    return _of_lengths(tensor, lengths, dtype)


def merge_dims(x, outer, inner):
    """A dense tensor with dimensions outer to inner as one."""
    if outer == inner:
        return x
    sizes = x.shape.as_list() if x.shape.rank is not None else None
    merged = None
    if sizes is not None:
        merged = 1
        for n in sizes[outer : inner + 1]:
            merged = None if n is None or merged is None else merged * n
        static = [*sizes[:outer], merged, *sizes[inner + 1 :]]
        if static.count(None) <= 1 and 0 not in static:
            return array_ops.reshape(x, [-1 if n is None else n for n in static])
    shape = array_ops.shape(x, out_type=dtypes.int64)
    count = raw.Prod(shape[outer : inner + 1], [0], keep_dims=True)
    result = array_ops.reshape(
        x, array_ops.concat([shape[:outer], count, shape[inner + 1 :]], 0)
    )
    if sizes is not None:
        result.set_shape(static)
    return result


def _of_nested_lengths(tensor, lengths, ragged_rank, dtype):
    if ragged_rank not in (1, len(lengths)):
        raise ValueError(
            "If Argument `lengths` is a tuple of row_lengths, argument `ragged_rank` "
            f"must be len(lengths): {len(lengths)}. Received ragged_rank: {ragged_rank}."
        )
    made = from_tensor(tensor, lengths[0], None, 1, dtype)
    if len(lengths) == 1:
        return made
    return made.with_values(from_tensor(made.values, lengths[1:], None, 1, dtype))


def _is_nested(lengths):
    if not isinstance(lengths, (list, tuple)) or not lengths:
        return False
    first = lengths[0]
    if isinstance(first, _headrace.Tensor):
        return first.shape.rank != 0
    return isinstance(first, (list, tuple)) or getattr(first, "ndim", 0) > 0


def _of_lengths(tensor, lengths, dtype):
    lengths = conversion.convert_to_tensor(lengths, dtype_hint=dtype)
    lengths = math_ops.cast(lengths, dtype)
    lengths.shape.assert_has_rank(1)
    tensor.shape[:1].assert_is_compatible_with(lengths.shape)
    width = array_ops.shape(tensor, out_type=dtype)[1]
    lengths = raw.Minimum(raw.Maximum(lengths, 0), width)
    rows = array_ops.shape(tensor, out_type=dtype)[0]
    starts = array_ops.range(rows, dtype=dtype) * width
    _, kept = raw.RaggedRange(
        starts, starts + lengths, conversion.constant(1, dtype), Tsplits=dtype
    )
    return RaggedTensor.from_row_lengths(
        array_ops.gather(merge_dims(tensor, 0, 1), kept), lengths, validate=False
    )


def _uniform(values, tensor, dtype):
    """The first dimension of `tensor` over what the second and the rest became."""
    if tensor.shape[1] is not None:
        shape = array_ops.shape(tensor, out_type=dtype)
        made = RaggedTensor.from_uniform_row_length(
            values,
            conversion.constant(tensor.shape[1], dtype),
            shape[0],
            validate=False,
        )
        if tensor.shape[0] is not None:
            made.row_splits.set_shape([tensor.shape[0] + 1])
        return made
    shape = array_ops.shape(tensor, out_type=dtype)
    return RaggedTensor.from_uniform_row_length(
        values, shape[1], shape[0], validate=False
    )


def _lengths_without(tensor, padding, dtype):
    """Lengths of the rows without what equals the padding at their ends."""
    padding = conversion.convert_to_tensor(padding, tensor.dtype)
    tensor.shape[2:].assert_is_compatible_with(padding.shape)
    same = raw.Equal(tensor, padding)
    rank = tensor.shape.rank
    if rank is None:
        rank_ = array_ops.rank(same)
        same = raw.All(same, array_ops.range(2, rank_), keep_dims=False)
    elif rank > 2:
        same = raw.All(same, list(range(2, rank)), keep_dims=False)
    columns = array_ops.range(array_ops.shape(tensor, out_type=dtype)[1], dtype=dtype)
    zero = conversion.constant(0, dtype)
    lengths = array_ops.where(same, zero, columns + 1)
    padded = array_ops.pad(lengths, [[0, 0], [1, 0]])
    return raw.Max(padded, 1, keep_dims=False)


def from_sparse(sparse, dtype):
    """See RaggedTensor.from_sparse."""
    if not is_sparse(sparse):
        raise TypeError(
            "Argument `st_input` must be of type SparseTensor, but is of type "
            f"{type(sparse).__name__}."
        )
    rank = sparse.dense_shape.shape[0]
    if rank is None:
        rank = sparse.indices.shape[1] if sparse.indices.shape.rank else None
    if rank != 2:
        raise ValueError("rank(st_input) must be 2.")
    indices = math_ops.cast(sparse.indices, dtypes.int64)
    rows = math_ops.cast(indices[:, 0], dtype)
    nrows = math_ops.cast(sparse.dense_shape[0], dtype)
    columns = math_ops.cast(indices[:, 1], dtype)
    made = RaggedTensor.from_value_rowids(sparse.values, rows, nrows, validate=False)
    starts = array_ops.gather(made.row_splits, rows)
    places = array_ops.range(array_ops.size(columns, out_type=dtype), dtype=dtype)
    assertion = check_ops.assert_equal(
        columns, places - starts, message="SparseTensor is not right-ragged"
    )
    values = checks.after([assertion], sparse.values)
    return made if values is sparse.values else made.with_values(values)
