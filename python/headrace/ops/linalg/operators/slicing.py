"""Operators of a part of a batch: what is indexed are the tensors that they hold."""

from headrace.framework import dtypes
from headrace.ops import array_ops
from headrace.ops.linalg.operators import dense_ops


def of_batch(operator, slices):
    """The operator of a part of the batch; ValueError for more than one `...`."""
    slices = tuple(slices) if isinstance(slices, (list, tuple)) else (slices,)
    if sum(s is Ellipsis for s in slices) > 1:
        raise ValueError(f"Found multiple `...` in slices {slices}")
    if not any(s is Ellipsis for s in slices):
        slices = (*slices, Ellipsis)
    return _of_batch(operator, slices, operator)


def _of_batch(operator, slices, whole):
    """The part of an operator that is used in `whole`, and broadcasts to its batch."""
    given = dict(operator.parameters)
    dims = operator._experimental_parameter_ndims_to_matrix_ndims
    for name, ndims in dims.items():
        value = operator._field(name)
        if value is not None and given[name] is not None:
            given[name] = _sliced(value, ndims, slices, whole)
    has_batch = "batch_shape" in given
    if has_batch and (operator is whole or given["batch_shape"] is not None):
        marks = array_ops.ones(whole.batch_shape_tensor(), dtypes.bool)
        given["batch_shape"] = array_ops.shape(marks[slices])
    return type(operator)(**given)


def _sliced(value, ndims, slices, whole):
    if isinstance(value, (list, tuple)):
        return [_sliced(v, n, slices, whole) for v, n in zip(value, ndims, strict=True)]
    if hasattr(value, "_experimental_parameter_ndims_to_matrix_ndims"):
        return _of_batch(value, slices, whole)
    x = dense_ops.tensor(value)
    own = x.shape[: x.shape.rank - ndims] if x.shape.rank is not None else None
    if own is None or not own.is_fully_defined() or own != whole.batch_shape:
        x = dense_ops.with_batch(x, whole.batch_shape_tensor(), ndims)
    return x[(*slices, *[slice(None)] * ndims)]
