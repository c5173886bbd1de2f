"""How often values occur: tf.math.bincount and tf.sparse.bincount."""

import collections

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes, name_scopes
from headrace.framework.name_scopes import composite
from headrace.framework.sparse_tensor import SparseTensor, is_sparse
from headrace.ops import (
    array_ops,
    axis_moves,
    check_ops,
    elementwise_ops,
    math_ops,
    reduction_ops,
)
from headrace.ragged import broadcast, checks


def _is_ragged(x):
    return getattr(x, "_is_ragged", False)


def _parts(x):
    """(kind, what its ops take) of dense, sparse or ragged values."""
    if is_sparse(x):
        parts = {"indices": x.indices, "values": x.values, "dense_shape": x.dense_shape}
        return "Sparse", parts
    if _is_ragged(x):
        splits = math_ops.cast(x.row_splits, dtypes.int64)
        return "Ragged", {"splits": splits, "values": x.flat_values}
    return "Dense", {"values": conversion.convert_to_tensor(x)}


def _weights_of(values, weights, dtype):
    """The weights as a dense tensor, once they are of the values' kind and shape."""
    if weights is None:
        return conversion.constant([], dtype)
    of_kind = _is_ragged if _is_ragged(values) else is_sparse
    if (
        of_kind(values) != of_kind(weights)
        or is_sparse(weights)
        and not is_sparse(values)
    ):
        _refuse(values, weights)
    if is_sparse(weights):
        same = check_ops.assert_equal(
            weights.indices,
            values.indices,
            message="'weights' and 'values' must have the same indices.",
        )
        return checks.after([same], weights.values)
    if not _is_ragged(values):
        if _is_ragged(weights):
            _refuse(values, weights)
        return weights
    rows = broadcast.same_rows(
        [weights, values], "'weights' and 'values' must have the same row splits."
    )
    return rows.flat_values


def _refuse(values, weights):
    if _is_ragged(values):
        raise ValueError(
            "`weights` must be a RaggedTensor if `values` is a RaggedTensor. Received "
            f"argument weights={weights} of type: {type(weights).__name__}."
        )
    kind = "SparseTensor" if is_sparse(values) else "tf.Tensor"
    raise ValueError(
        f"Argument `weights` must be a {kind} if `values` is a {kind}. Received "
        f"weights={weights} of type: {type(weights).__name__}"
    )


def _check_axis(axis):
    if axis not in (0, -1):
        raise ValueError(
            f"Unsupported value for argument axis={axis}. Only 0 and -1 are "
            "currently supported."
        )


@composite("bincount")
def bincount(
    arr,
    weights=None,
    minlength=None,
    maxlength=None,
    dtype=dtypes.int32,
    name=None,
    axis=None,
    binary_output=False,
):
    """How often each integer that is not negative occurs: in all of `arr`, or with
    axis=-1 in each row."""
    if axis is not None:
        _check_axis(axis)
    if not is_sparse(arr) and not _is_ragged(arr):
        how = (minlength, maxlength, axis, binary_output, name)
        return _of_dense(conversion.convert_to_tensor(arr), weights, dtype, *how)
    kind, parts = _parts(arr)
    values = parts["values"]
    if axis in (None, 0):
        weights = None if weights is None else _weights_of(arr, weights, dtype)
        how = (minlength, maxlength, 0, binary_output, name)
        return _of_dense(values, weights, dtype, *how)
    parts["values"] = values = _as_integers(values)
    return _headrace.raw_op(kind + "Bincount")(
        **parts,
        size=_size(values, minlength, maxlength),
        weights=_weights_of(arr, weights, dtype),
        binary_output=binary_output,
        name=name,
    )


def _as_integers(values):
    known = values.dtype in (dtypes.int32, dtypes.int64)
    return values if known else math_ops.cast(values, dtypes.int32)


def _size(values, minlength, maxlength):
    """How many numbers are counted: up to the largest, within the bounds."""
    size = math_ops.cast(array_ops.size(values) > 0, values.dtype) * (
        reduction_ops.reduce_max(values) + 1
    )
    if minlength is not None:
        size = elementwise_ops.maximum(math_ops.cast(minlength, values.dtype), size)
    if maxlength is not None:
        size = elementwise_ops.minimum(math_ops.cast(maxlength, values.dtype), size)
    return size


def _of_dense(arr, weights, dtype, minlength, maxlength, axis, binary_output, name):
    arr = _as_integers(arr)
    size = _size(arr, minlength, maxlength)
    if axis is None:
        arr = array_ops.reshape(arr, [-1])
        if weights is not None:
            weights = array_ops.reshape(weights, [-1])
    if weights is None:
        weights = _headrace.to_tensor([], dtype, None)
    return raw.DenseBincount(arr, size, weights, binary_output=binary_output, name=name)


def sparse_bincount(
    values,
    weights=None,
    axis=0,
    minlength=None,
    maxlength=None,
    binary_output=False,
    name=None,
):
    """The same as a sparse tensor of what occurs."""
    with name_scopes.name_scope(name or "count"):
        if axis is not None:
            _check_axis(axis)
        kind, parts = _parts(values)
        for what, bound in (("minlength", minlength), ("maxlength", maxlength)):
            if bound is not None and bound < 0:
                raise ValueError(f"{what}={bound} must be >= 0.")
        if kind == "Dense" and parts["values"].dtype not in (
            dtypes.int32,
            dtypes.int64,
        ):
            parts["values"] = math_ops.cast(parts["values"], dtypes.int64)
        counts = _weights_of(values, weights, parts["values"].dtype)
        if axis in (None, 0):
            kind, parts = "Dense", {"values": array_ops.reshape(parts["values"], [-1])}
            if weights is not None:
                counts = array_ops.reshape(counts, [-1])
        made = _headrace.raw_op(kind + "CountSparseOutput")(
            **parts,
            weights=counts,
            minlength=-1 if minlength is None else minlength,
            maxlength=-1 if maxlength is None else maxlength,
            binary_output=binary_output,
        )
        return SparseTensor(*made)


IsotonicRegression = collections.namedtuple("IsotonicRegression", "output segments")


def isotonic_regression(inputs, decreasing=True, axis=-1):
    """(the closest values that never increase along `axis`, or never decrease; the
    number of the constant part that each lies in)."""
    x = conversion.convert_to_tensor(inputs)
    dtype = x.dtype
    if not dtype.is_floating:  # as exact as the numbers need
        dtype = (
            dtypes.float64 if dtype in (dtypes.int32, dtypes.int64) else dtypes.float32
        )
    rank = x.shape.rank
    if rank == 0:
        return IsotonicRegression(math_ops.cast(x, dtype), conversion.constant(0))
    if rank is not None and not -rank <= axis < rank:
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    moved, back = axis_moves.with_axis_last(x, axis)
    rows = array_ops.reshape(moved, [-1, array_ops.shape(moved)[-1]])
    sign = rows if decreasing else -rows
    made, parts = raw.IsotonicRegression(sign, output_dtype=dtype)
    made = made if decreasing else -made
    shape = array_ops.shape(moved)
    return IsotonicRegression(
        back(array_ops.reshape(made, shape)), back(array_ops.reshape(parts, shape))
    )
