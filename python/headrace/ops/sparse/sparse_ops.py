"""tf.sparse."""

import builtins
import math

import numpy as np

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes, execution
from headrace.framework.indexed_slices import IndexedSlices
from headrace.framework.name_scopes import composite
from headrace.framework.sparse_tensor import (  # noqa: F401
    SparseTensor,
    is_sparse,
    to_sparse,
)
from headrace.framework.support import signatures
from headrace.ops import array_ops, check_ops, math_ops
from headrace.ops.faces import add_faces


def _int64(x):
    if not isinstance(x, _headrace.Tensor):
        return conversion.convert_to_tensor(x, dtypes.int64)
    return math_ops.cast(x, dtypes.int64)


@composite("dense_to_sparse")
def from_dense(tensor, name=None):
    """The elements of a dense tensor that are not zero."""
    tensor = conversion.convert_to_tensor(tensor)
    zero = array_ops.zeros([], tensor.dtype)
    indices = array_ops.where(raw.NotEqual(tensor, zero))
    values = array_ops.gather_nd(tensor, indices)
    shape = tensor.shape
    if shape.is_fully_defined():
        dense_shape = conversion.constant(shape.as_list(), dtypes.int64)
    else:
        dense_shape = array_ops.shape(tensor, out_type=dtypes.int64)
    return SparseTensor(indices, values, dense_shape)


def to_dense(sp_input, default_value=None, validate_indices=True, name=None):
    """A dense tensor with `default_value` where there is no entry."""
    sp = to_sparse(sp_input)
    if default_value is None:
        default_value = array_ops.zeros([], sp.dtype)
    return raw.SparseToDense(
        sp.indices,
        sp.dense_shape,
        sp.values,
        conversion.convert_to_tensor(default_value, sp.dtype),
        validate_indices=validate_indices,
        name=name,
    )


def to_indicator(sp_input, vocab_size, name=None):
    """A tensor of booleans: true where the last dimension holds that number."""
    sp = to_sparse(sp_input)
    ids = _int64(sp.values)
    indices = array_ops.concat(
        [sp.indices[:, :-1], array_ops.expand_dims(ids, 1)], axis=1
    )
    shape = array_ops.concat([sp.dense_shape[:-1], [vocab_size]], axis=0)
    true = array_ops.ones(array_ops.shape(ids), dtypes.bool)
    return to_dense(
        reorder(SparseTensor(indices, true, shape)), False, validate_indices=False
    )


def reorder(sp_input, name=None):
    """The entries in the order of their indices."""
    sp = to_sparse(sp_input)
    indices, values = raw.SparseReorder(*sp._components(), name=name)
    return _shaped(SparseTensor(indices, values, sp.dense_shape), sp.shape)


def _shaped(made, shape):
    """A sparse tensor of which `shape` is known beside what its dense_shape tells."""
    made.set_shape(shape)
    return made


def reshape(sp_input, shape, name=None):
    """The same entries under another shape."""
    sp = to_sparse(sp_input)
    shape = _int64(shape)
    indices, dense_shape = raw.SparseReshape(
        sp.indices, sp.dense_shape, shape, name=name
    )
    made = SparseTensor(indices, sp.values, dense_shape)
    wanted = execution.get_static_value(shape)
    if (
        isinstance(dense_shape, _headrace.EagerTensor)
        or wanted is None
        or not sp.shape.is_fully_defined()
    ):
        return made
    return _shaped(made, _reshaped(sp.shape.num_elements(), wanted.tolist()))


def _reshaped(count, sizes):
    """The sizes with -1 made out; ValueError where `count` elements do not fit."""
    open_ones = sizes.count(-1)
    if open_ones > 1:
        raise ValueError(f"At most one dimension can be inferred (-1). Found: {sizes}")
    known = math.prod(s for s in sizes if s != -1)
    fits = (known and count % known == 0) if open_ones else count == known
    if not fits:
        shown = [None if s == -1 else s for s in sizes]
        raise ValueError(
            f"Cannot reshape a tensor with {count} elements to shape {shown} "
            f"({known} elements)."
        )
    return [count // known if s == -1 else s for s in sizes]


def expand_dims(sp_input, axis=None, name=None):
    """A dimension of size 1 at `axis`."""
    sp = to_sparse(sp_input)
    rank = sp.shape.rank
    axis = -1 if axis is None else axis
    if rank is None:  # what is out of range fails when the graph runs
        rank = array_ops.size(sp.dense_shape)
    elif not -rank - 1 <= axis <= rank:
        raise ValueError(f"axis={axis} not in [{-rank - 1}, {rank}]")
    axis = axis + rank + 1 if axis < 0 else axis
    column = array_ops.zeros_like(sp.indices[:, :1])
    indices = array_ops.concat([sp.indices[:, :axis], column, sp.indices[:, axis:]], 1)
    shape = array_ops.concat([sp.dense_shape[:axis], [1], sp.dense_shape[axis:]], 0)
    return SparseTensor(indices, sp.values, shape)


def eye(num_rows, num_columns=None, dtype=dtypes.float32, name=None):
    """Ones on the diagonal of a sparse matrix."""
    num_rows = conversion.convert_to_tensor(num_rows, dtype_hint=dtypes.int64)
    num_rows = math_ops.cast(num_rows, dtypes.int64)
    if num_columns is None:
        size = num_columns = num_rows
    else:
        num_columns = conversion.convert_to_tensor(num_columns, dtype_hint=dtypes.int64)
        num_columns = math_ops.cast(num_columns, dtypes.int64)
        size = raw.Minimum(num_rows, num_columns)
    diagonal = array_ops.range(size, dtype=dtypes.int64)
    return SparseTensor(
        array_ops.stack([diagonal, diagonal], axis=1),
        array_ops.ones(array_ops.reshape(size, [1]), dtype),
        array_ops.stack([num_rows, num_columns]),
    )


def concat(axis, sp_inputs, expand_nonconcat_dims=False, name=None):
    """Sparse tensors one after another along `axis`."""
    parts = [to_sparse(s) for s in sp_inputs]
    if len(parts) == 1:
        return parts[0]
    shapes = [s.dense_shape for s in parts]
    known = _joined([s.shape for s in parts], axis, expand_nonconcat_dims)
    if expand_nonconcat_dims:
        most = raw.Max(array_ops.stack(shapes), 0, keep_dims=False)
        rank = parts[0].shape.rank
        at = axis + rank if axis < 0 else axis
        shapes = [
            array_ops.concat([most[:at], s[at : at + 1], most[at + 1 :]], 0)
            for s in shapes
        ]
    made = SparseTensor(
        *raw.SparseConcat(
            [s.indices for s in parts],
            [s.values for s in parts],
            shapes,
            concat_dim=axis,
            name=name,
        )
    )
    return _shaped(made, known)


def _joined(shapes, axis, expand):
    """The shape of tensors of these shapes one after another, as far as it is known."""
    rank = shapes[0].rank
    if any(s.rank is None or s.rank != rank for s in shapes):
        return None
    if not -rank <= axis < rank:  # which the op says
        return None
    columns = list(zip(*(s.as_list() for s in shapes)))
    sizes = [
        (max(column) if None not in column else None) if expand else column[0]
        for column in columns
    ]
    along = columns[axis]
    sizes[axis] = None if None in along else sum(along)
    return sizes


def split(sp_input=None, num_split=None, axis=None, name=None):
    """The pieces of a sparse tensor along `axis`."""
    sp = to_sparse(sp_input)
    if num_split is None or axis is None:
        raise ValueError("num_split and axis are required")
    indices, values, shapes = raw.SparseSplit(
        _int64(axis), *sp._components(), num_split=num_split, name=name
    )
    return [SparseTensor(*parts) for parts in zip(indices, values, shapes)]


def slice(sp_input, start, size, name=None):
    """The part that begins at `start` and has `size`."""
    sp = to_sparse(sp_input)
    return SparseTensor(
        *raw.SparseSlice(*sp._components(), _int64(start), _int64(size), name=name)
    )


def transpose(sp_input, perm=None, name=None):
    """The dimensions in another order."""
    sp = to_sparse(sp_input)
    rank = sp.shape.rank
    if perm is None and rank is None:
        perm = array_ops.range(array_ops.size(sp.dense_shape) - 1, -1, -1)
    elif perm is None:
        perm = list(builtins.range(rank))[::-1]
    made = SparseTensor(
        array_ops.gather(sp.indices, perm, axis=1),
        sp.values,
        array_ops.gather(sp.dense_shape, perm),
    )
    if sp.shape.is_fully_defined():
        order = execution.get_static_value(conversion.convert_to_tensor(perm))
        if order is not None:
            made.set_shape([sp.shape[k] for k in order.tolist()])
    return reorder(made)


def add(a, b, threshold=0):
    """The sum of two tensors of which one or both are sparse."""
    if not is_sparse(a) and not is_sparse(b):
        raise TypeError(
            "At least one input should be SparseTensor; do you mean to use tf.add()?"
        )
    if is_sparse(a) and is_sparse(b):
        a, b = to_sparse(a), to_sparse(b)
        real = a.dtype.real_dtype
        made = SparseTensor(
            *raw.SparseAdd(
                *a._components(),
                *b._components(),
                conversion.convert_to_tensor(threshold, real),
            )
        )
        shape = a.shape.merge_with(b.shape)
        return _shaped(made, shape if shape.is_fully_defined() else None)
    if is_sparse(b):
        a, b = b, a
    a = to_sparse(a)
    return raw.SparseTensorDenseAdd(
        *a._components(), conversion.convert_to_tensor(b, dtype_hint=a.dtype)
    )


def _extreme(op, sp_a, sp_b, name):
    a, b = to_sparse(sp_a), to_sparse(sp_b)
    extreme = getattr(raw, op)
    indices, values = extreme(*a._components(), *b._components(), name=name)
    return SparseTensor(indices, values, a.dense_shape)


def maximum(sp_a, sp_b, name=None):
    """The larger of two sparse tensors, element by element."""
    return _extreme("SparseSparseMaximum", sp_a, sp_b, name)


def minimum(sp_a, sp_b, name=None):
    """The smaller of two sparse tensors, element by element."""
    return _extreme("SparseSparseMinimum", sp_a, sp_b, name)


def sparse_dense_matmul(sp_a, b, adjoint_a=False, adjoint_b=False, name=None):
    """The product of two matrices of which one is sparse."""
    if is_sparse(b):
        if is_sparse(sp_a):
            raise TypeError("only one of the two matrices may be sparse")
        swapped = sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a)
        return array_ops.matrix_transpose(swapped, conjugate=True)
    sp = to_sparse(sp_a)
    return raw.SparseTensorDenseMatMul(
        *sp._components(),
        conversion.convert_to_tensor(b, dtype_hint=sp.dtype),
        adjoint_a=adjoint_a,
        adjoint_b=adjoint_b,
        name=name,
    )


def _reduce(op, sp_input, axis, keepdims, output_is_sparse, name):
    sp = to_sparse(sp_input)
    if axis is None:
        axis = list(builtins.range(sp.shape.rank))
    result = getattr(raw, op + "Sparse" if output_is_sparse else op)(
        *sp._components(),
        conversion.convert_to_tensor(axis, dtypes.int32),
        keep_dims=bool(keepdims),
        name=name,
    )
    return SparseTensor(*result) if output_is_sparse else result


def reduce_sum(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
    """Sums over dimensions."""
    return _reduce("SparseReduceSum", sp_input, axis, keepdims, output_is_sparse, name)


def reduce_max(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
    """The greatest entries over dimensions."""
    return _reduce("SparseReduceMax", sp_input, axis, keepdims, output_is_sparse, name)


def softmax(sp_input, name=None):
    """Softmax over the entries of each innermost row."""
    sp = to_sparse(sp_input)
    return sp.with_values(raw.SparseSoftmax(*sp._components(), name=name))


def fill_empty_rows(sp_input, default_value, name=None):
    """(filled, which rows were empty): an entry in column 0 of each empty row."""
    sp = to_sparse(sp_input)
    indices, values, empty, _ = raw.SparseFillEmptyRows(
        *sp._components(),
        conversion.convert_to_tensor(default_value, sp.dtype),
        name=name,
    )
    return SparseTensor(indices, values, sp.dense_shape), empty


def retain(sp_input, to_retain):
    """The entries for which `to_retain` is true."""
    sp = to_sparse(sp_input)
    to_retain = conversion.convert_to_tensor(to_retain)
    to_retain.shape.assert_is_compatible_with(sp.values.shape)
    kept = array_ops.reshape(array_ops.where(to_retain), [-1])
    return SparseTensor(
        array_ops.gather(sp.indices, kept),
        array_ops.gather(sp.values, kept),
        sp.dense_shape,
    )


def mask(a, mask_indices, name=None):
    """IndexedSlices without the rows of `mask_indices`."""
    kept, to_gather = raw.ListDiff(a.indices, mask_indices)
    return IndexedSlices(array_ops.gather(a.values, to_gather), kept, a.dense_shape)


def reset_shape(sp_input, new_shape=None):
    """The entries in another shape of the same rank; by default the tightest."""
    sp = to_sparse(sp_input)
    if new_shape is None:
        most = raw.Max(sp.indices, 0, keep_dims=False)
        return SparseTensor(sp.indices, sp.values, raw.Maximum(most, -1) + 1)
    shape = _int64(new_shape)
    shape.shape.with_rank(1).assert_is_compatible_with(sp.dense_shape.shape)
    given = execution.get_static_value(shape)
    sizes = sp.shape.as_list() if sp.shape.rank is not None else [None]
    if given is not None and None not in sizes:
        if any(have > want for have, want in zip(sizes, given)):
            raise ValueError(
                "Requested new_shape should have dimension sizes >= sp_input.shape. "
                f"Found new_shape ({given}), sp_input.shape ({np.array(sizes)})."
            )
    else:
        rank = array_ops.shape(sp.dense_shape)
        check_ops.assert_equal(rank, array_ops.shape(shape, out_type=rank.dtype))
        check_ops.assert_less_equal(sp.dense_shape, shape)
    return SparseTensor(sp.indices, sp.values, shape)


def map_values(op, *args, **kwargs):
    """`op` of the values of sparse tensors that all have the same places."""
    found = []

    def values_of(x):
        if is_sparse(x):
            found.append(to_sparse(x))
            return found[-1].values
        return x

    args = [values_of(x) for x in args]
    kwargs = {k: values_of(v) for k, v in kwargs.items()}
    if not found:
        raise ValueError("No SparseTensor in argument list of map_values")
    for other in found[1:]:
        _assert_same_places(found[0], other)
    return SparseTensor(found[0].indices, op(*args, **kwargs), found[0].dense_shape)


def _segments(kind, name, what):
    def reduce(
        data, indices, segment_ids, num_segments=None, name=None, sparse_gradient=False
    ):
        more = {} if num_segments is None else {"num_segments": num_segments}
        op = "SparseSegment" + kind + ("WithNumSegments" if more else "")
        return getattr(raw, op)(
            data,
            indices,
            segment_ids,
            sparse_gradient=sparse_gradient,
            name=name,
            **more,
        )

    doc = f"""{what} of the rows data[indices] of each segment.

    `indices` and `segment_ids` are int32 or int64 of one length, the ids sorted from 0;
    an index may repeat. The result is [num_segments, ...], or up to the last id without
    it; segments without rows are 0. Ids that go down or are too large, and indices out
    of range, raise InvalidArgumentError. With `sparse_gradient` the gradient of `data`
    is IndexedSlices.
    """
    return signatures.called(reduce, name, doc)


_ROOT = "The sum over the root of the number"
segment_sum = _segments("Sum", "segment_sum", "The sum")
segment_mean = _segments("Mean", "segment_mean", "The mean")
segment_sqrt_n = _segments("SqrtN", "segment_sqrt_n", _ROOT)


def _assert_same_places(a, b):
    if a.indices is b.indices:
        return
    check_ops.assert_equal(a.indices, b.indices)
    check_ops.assert_equal(a.dense_shape, b.dense_shape)


def edit_distance(hypothesis, truth, normalize=True, name="edit_distance"):
    """The Levenshtein distances between the sequences of two sparse tensors."""
    for x, what in ((hypothesis, "hypothesis"), (truth, "truth")):
        if not is_sparse(x):
            raise TypeError(f"{what.capitalize()} must be a SparseTensor.")
    a, b = to_sparse(hypothesis), to_sparse(truth)
    return raw.EditDistance(
        *a._components(), *b._components(), normalize=normalize, name=name
    )


def _serialized(op, sp_input, out_type, name):
    parts = to_sparse(sp_input)._components()
    return getattr(raw, op)(*parts, out_type=out_type, name=name)


def serialize_sparse(sp_input, out_type=dtypes.string, name=None):
    """Indices, values and shape as a vector of three strings (or variants)."""
    return _serialized("SerializeSparse", sp_input, out_type, name)


def serialize_many_sparse(sp_input, out_type=dtypes.string, name=None):
    """The same of each row: a matrix [rows, 3]."""
    return _serialized("SerializeManySparse", sp_input, out_type, name)


def deserialize_many_sparse(serialized_sparse, dtype, rank=None, name=None):
    """What serialize_many_sparse wrote, stacked along a new first dimension."""
    indices, values, shape = raw.DeserializeManySparse(
        serialized_sparse, dtype=dtype, name=name
    )
    if rank is not None:
        indices.set_shape([None, rank])
        shape.set_shape([rank])
    return SparseTensor(indices, values, shape)


add_faces(
    globals(),
    """
ragged_fill_empty_rows RaggedFillEmptyRows(value_rowids, values, nrows, default_value,
        name=None)
    Ragged rows, empty ones with a single value.
ragged_fill_empty_rows_grad RaggedFillEmptyRowsGrad(reverse_index_map, grad_values,
        name=None)
    The gradients of ragged_fill_empty_rows by values and default value.
""",
)
