"""How often values occur: tf.math.bincount and tf.sparse.bincount."""

import collections

import headrace as tf
from headrace.framework.name_scopes import composite
from headrace.framework.sparse_tensor import SparseTensor, is_sparse
from headrace.ops import axis_moves
from headrace.ragged import broadcast, checks


def _is_ragged(x):
    return getattr(x, "_is_ragged", False)


def _parts(x):
    """(kind, what its ops take) of dense, sparse or ragged values."""
    if is_sparse(x):
        parts = {"indices": x.indices, "values": x.values, "dense_shape": x.dense_shape}
        return "Sparse", parts
    if _is_ragged(x):
        splits = tf.cast(x.row_splits, tf.int64)
        return "Ragged", {"splits": splits, "values": x.flat_values}
    return "Dense", {"values": tf.convert_to_tensor(x)}


def _weights_of(values, weights, dtype):
    """The weights as a dense tensor, once they are of the values' kind and shape."""
    if weights is None:
        return tf.constant([], dtype)
    of_kind = _is_ragged if _is_ragged(values) else is_sparse
    if (
        of_kind(values) != of_kind(weights)
        or is_sparse(weights)
        and not is_sparse(values)
    ):
        _refuse(values, weights)
    if is_sparse(weights):
        same = tf.debugging.assert_equal(
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
    dtype=tf.int32,
    name=None,
    axis=None,
    binary_output=False,
):
    """How often each integer that is not negative occurs: in all of `arr`, or with
    axis=-1 in each row."""
    from headrace.ops import reduction_ops

    if axis is not None:
        _check_axis(axis)
    if not is_sparse(arr) and not _is_ragged(arr):
        return reduction_ops.bincount(
            arr, weights, minlength, maxlength, dtype, name, axis, binary_output
        )
    kind, parts = _parts(arr)
    if axis in (None, 0):
        weights = None if weights is None else _weights_of(arr, weights, dtype)
        how = (minlength, maxlength, dtype, name, 0, binary_output)
        return reduction_ops.bincount(parts["values"], weights, *how)
    values = parts["values"]
    if values.dtype not in (tf.int32, tf.int64):
        values = parts["values"] = tf.cast(values, tf.int32)
    size = tf.cast(tf.size(values) > 0, values.dtype) * (tf.reduce_max(values) + 1)
    if minlength is not None:
        size = tf.maximum(tf.cast(minlength, values.dtype), size)
    if maxlength is not None:
        size = tf.minimum(tf.cast(maxlength, values.dtype), size)
    return getattr(tf.raw_ops, kind + "Bincount")(
        **parts,
        size=size,
        weights=_weights_of(arr, weights, dtype),
        binary_output=binary_output,
        name=name,
    )


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
    with tf.name_scope(name or "count"):
        if axis is not None:
            _check_axis(axis)
        kind, parts = _parts(values)
        for what, bound in (("minlength", minlength), ("maxlength", maxlength)):
            if bound is not None and bound < 0:
                raise ValueError(f"{what}={bound} must be >= 0.")
        counts = _weights_of(values, weights, tf.int32)
        if kind == "Dense" and parts["values"].dtype not in (tf.int32, tf.int64):
            parts["values"] = tf.cast(parts["values"], tf.int64)
        if axis in (None, 0):
            kind, parts = "Dense", {"values": tf.reshape(parts["values"], [-1])}
            if weights is not None:
                counts = tf.reshape(counts, [-1])
        made = getattr(tf.raw_ops, kind + "CountSparseOutput")(
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
    x = tf.convert_to_tensor(inputs)
    dtype = x.dtype
    if not dtype.is_floating:  # as exact as the numbers need
        dtype = tf.float64 if dtype in (tf.int32, tf.int64) else tf.float32
    rank = x.shape.rank
    if rank == 0:
        return IsotonicRegression(tf.cast(x, dtype), tf.constant(0))
    if rank is not None and not -rank <= axis < rank:
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    moved, back = axis_moves.with_axis_last(x, axis)
    rows = tf.reshape(moved, [-1, tf.shape(moved)[-1]])
    sign = rows if decreasing else -rows
    made, parts = tf.raw_ops.IsotonicRegression(input=sign, output_dtype=dtype)
    made = made if decreasing else -made
    shape = tf.shape(moved)
    return IsotonicRegression(
        back(tf.reshape(made, shape)), back(tf.reshape(parts, shape))
    )
