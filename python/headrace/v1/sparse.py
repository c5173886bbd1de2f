"""TensorFlow 1's functions of sparse tensors."""

import functools

from headrace import _api as tf
from headrace.framework.sparse_tensor import SparseTensorValue  # noqa: F401
from headrace.ops.sparse.placeholders import sparse_placeholder  # noqa: F401


_sparsely = {"output_is_sparse": True}
sparse_reduce_max_sparse = functools.partial(tf.sparse.reduce_max, **_sparsely)
sparse_reduce_sum_sparse = functools.partial(tf.sparse.reduce_sum, **_sparsely)


class KeywordRequired:
    """The default of a first parameter that nobody may pass."""

    def __repr__(self):
        return "KeywordRequired()"


def sparse_split(
    keyword_required=KeywordRequired(),  # noqa: B008
    sp_input=None,
    num_split=None,
    axis=None,
    name=None,
    split_dim=None,
):
    """A sparse tensor in parts; by keywords alone."""
    if not isinstance(keyword_required, KeywordRequired):
        raise ValueError("Keyword arguments are required for this function.")
    for what, value in (("sp_input", sp_input), ("num_split", num_split)):
        if value is None:
            raise ValueError(f"{what} is required")
    if axis is not None and split_dim is not None:
        raise ValueError("Cannot specify both 'split_dim' and 'axis'.")
    axis = split_dim if axis is None else axis
    if axis is None:
        raise ValueError("axis is required")
    return tf.sparse.split(sp_input, num_split, axis, name)


def sparse_to_dense(sparse_values, default_value, **given):
    """A dense tensor with values at indices; the row in signatures.txt has all
    parameters."""
    values = tf.convert_to_tensor(sparse_values)
    if values.dtype != tf.string:
        default_value = tf.cast(default_value, values.dtype)
    return tf.raw_ops.SparseToDense(
        sparse_values=values, default_value=default_value, **given
    )
