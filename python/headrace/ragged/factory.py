"""tf.ragged.constant and its kin."""

import numpy as np

from headrace._load import _headrace
from headrace.framework import conversion, dtypes, name_scopes
from headrace.graph import placeholders
from headrace.ragged.ragged_tensor import RaggedTensor
from headrace.ragged.ragged_value import RaggedTensorValue

_MOST_DIMENSIONS = 254  # of a tensor


def _is_nested(x):
    return isinstance(x, (list, tuple)) or getattr(x, "ndim", 0) > 0 and _is_array(x)


def _is_array(x):
    return isinstance(x, np.ndarray)


def _depths(x):
    """(depth of scalars or None where there are none, depth of lists)."""
    if _is_array(x) and x.dtype != object and x.size:
        return x.ndim, x.ndim
    if not _is_nested(x):
        return 0, 0
    scalar, deepest = None, 1
    for v in x:
        s, d = _depths(v)
        if s is not None:
            if scalar is not None and scalar != s + 1:
                raise ValueError("all scalar values must have the same nesting depth")
            scalar = s + 1
        deepest = max(deepest, d + 1)
    return scalar, deepest


def constant(
    pylist,
    dtype=None,
    ragged_rank=None,
    inner_shape=None,
    name=None,
    row_splits_dtype=dtypes.int64,
):
    """A ragged tensor of nested lists, tuples and arrays.

    Scalars must all lie equally deep. `ragged_rank` says how many dimensions are ragged
    (by default all but the first and those of `inner_shape`), `inner_shape` the shape
    of one innermost value. Without a ragged dimension the result is a Tensor.
    ValueError or TypeError where the lists do not fit.
    """

    def make(values, shape):
        if not _is_array(values):
            values = _plain(values)
        kept = dtype
        if kept is None and not _is_array(values) and not _holds_scalars(values):
            kept = dtypes.float32
        return conversion.constant(values, kept, shape=shape)

    with name_scopes.graph_scope(name, "RaggedConstant"):
        splits_dtype = dtypes.as_dtype(row_splits_dtype)
        if splits_dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError("row_splits must have dtype int32 or int64")
        return _build(
            pylist,
            ragged_rank,
            inner_shape,
            make,
            lambda x: conversion.constant(x, dtype),
            lambda values, splits: RaggedTensor.from_row_splits(
                values, conversion.constant(splits, splits_dtype), validate=False
            ),
        )


def constant_value(
    pylist, dtype=None, ragged_rank=None, inner_shape=None, row_splits_dtype="int64"
):
    """A RaggedTensorValue of nested lists: see `tf.ragged.constant`.

    An array where no dimension is ragged.
    """
    if dtype is not None and isinstance(dtype, dtypes.DType):
        dtype = dtype.as_numpy_dtype
    splits_dtype = dtypes.as_dtype(row_splits_dtype).as_numpy_dtype

    def make(values, shape):
        values = np.array(values, dtype=dtype)
        return values if shape is None else np.reshape(values, shape)

    return _build(
        pylist,
        ragged_rank,
        inner_shape,
        make,
        lambda x: np.array(x, dtype=dtype),
        lambda values, splits: RaggedTensorValue(
            values, np.array(splits, dtype=splits_dtype)
        ),
    )


def _plain(values):
    """Lists in the place of arrays that lie in lists."""
    if _is_array(values):
        return values.tolist()
    if not isinstance(values, (list, tuple)):
        return values
    return [_plain(v) for v in values]


def _holds_scalars(values):
    if not isinstance(values, (list, tuple)):
        return True
    return any(_holds_scalars(v) for v in values)


def _scalar(x, ragged_rank, inner_shape, make):
    if ragged_rank:
        raise ValueError(
            f"Invalid pylist={x}: incompatible with ragged_rank={ragged_rank}"
        )
    if inner_shape:
        raise ValueError(
            f"Invalid pylist={x}: incompatible with dim(inner_shape)={len(inner_shape)}"
        )
    return make(x)


def _check_depth(ragged_rank):
    if ragged_rank >= _MOST_DIMENSIONS:
        raise ValueError(
            f"ragged_rank={ragged_rank}: tensors have at most {_MOST_DIMENSIONS} "
            "dimensions"
        )


def _build(pylist, ragged_rank, inner_shape, make, make_scalar, over):
    if _headrace.Tensor in type(pylist).__mro__:
        pylist = pylist.numpy()
    if inner_shape is not None:
        inner_shape = tuple(inner_shape)
    if not _is_nested(pylist):
        return _scalar(pylist, ragged_rank, inner_shape, make_scalar)
    scalar, depth = _depths(pylist)
    if scalar is not None:
        if depth > scalar:
            raise ValueError(
                f"Invalid pylist={pylist}: empty list nesting is greater than scalar "
                "value nesting"
            )
        depth = scalar
    given = ragged_rank is not None
    if given:
        _check_rank(pylist, ragged_rank, inner_shape, scalar, depth)
    elif inner_shape is None:
        ragged_rank = max(0, depth - 1)
    else:
        ragged_rank = max(0, depth - 1 - len(inner_shape))
    _check_depth(ragged_rank)
    whole_shape = inner_shape  # where no dimension is ragged
    if inner_shape is None:
        inner_shape = _inner_shape(pylist, ragged_rank, depth)
    elif given and scalar is not None and scalar != ragged_rank + 1 + len(inner_shape):
        raise ValueError(
            f"Invalid pylist={pylist}: incompatible with ragged_rank={ragged_rank} and "
            f"dim(inner_shape)={len(inner_shape)}"
        )
    if ragged_rank == 0:
        return make(pylist, whole_shape)
    values, levels = pylist, []
    for _ in range(ragged_rank):
        splits = [0]
        for row in values:
            splits.append(splits[-1] + len(row))
        levels.append(splits)
        values = [v for row in values for v in row]
    result = make(values, (len(values), *inner_shape))
    for splits in reversed(levels):
        result = over(result, splits)
    return result


def _check_rank(pylist, ragged_rank, inner_shape, scalar, depth):
    if ragged_rank < 0:
        raise ValueError(f"Invalid ragged_rank={ragged_rank}: must be nonnegative")
    if scalar is not None and ragged_rank >= scalar:
        raise ValueError(
            f"pylist has scalar values depth {scalar}, but ragged_rank={ragged_rank} "
            f"requires scalar value depth greater than {ragged_rank}"
        )
    if scalar is None and depth > ragged_rank + 1 and inner_shape == ():
        raise ValueError(
            f"Invalid pylist={pylist}: incompatible with ragged_rank={ragged_rank} and "
            "dim(inner_shape)=0"
        )


def _inner_shape(pylist, ragged_rank, depth):
    """The shape of what lies below the ragged dimensions, which must be regular."""
    values = pylist
    for _ in range(ragged_rank):
        values = [v for row in values for v in row]
    shape = []
    for _ in range(depth - ragged_rank - 1):
        sizes = {len(v) for v in values}
        if len(sizes) > 1:
            raise ValueError("inner values have inconsistent shape")
        shape.append(sizes.pop() if sizes else 0)
        values = [v for row in values for v in row]
    return tuple(shape)


def placeholder(dtype, ragged_rank, value_shape=None, name=None):
    """A ragged tensor of placeholders, for graphs whose runs are fed.

    `value_shape` is the shape of one innermost value. RuntimeError when eager.
    """
    if ragged_rank == 0:
        return placeholders.placeholder(dtype, value_shape, name)
    with name_scopes.graph_scope(name, "RaggedPlaceholder"):
        shape = None
        if value_shape is not None:
            shape = [None, *getattr(value_shape, "as_list", lambda: value_shape)()]
        result = placeholders.placeholder(dtype, shape, "flat_values")
        for i in reversed(range(ragged_rank)):
            splits = placeholders.placeholder(dtypes.int64, [None], f"row_splits_{i}")
            result = RaggedTensor.from_row_splits(result, splits, validate=False)
        return result
