"""Dataset.padded_batch."""

import numpy as np

from headrace._load import _headrace, raw
from headrace.data.dataset import DatasetSpec, as_bool, as_int, made, method
from headrace.data.transforms import batched_spec
from headrace.elements import nest, structure
from headrace.framework import conversion, dtypes, execution, tensor_shape
from headrace.framework.type_spec import TensorSpec


def shape_vector(shape):
    """A shape as an int64 vector with -1 for sizes left open."""
    if isinstance(shape, _headrace.Tensor):
        return conversion.convert_to_tensor(shape, dtypes.int64)
    shape = tensor_shape.as_shape(shape)
    return as_int(np.array([-1 if d is None else d for d in shape.as_list()], np.int64))


@method
def padded_batch(
    self,
    batch_size,
    padded_shapes=None,
    padding_values=None,
    drop_remainder=False,
    name=None,
):
    """Consecutive elements, padded at their ends to one shape and stacked.

    `padded_shapes` has the shape of each part; sizes of None or -1 are the largest
    of the batch. `padding_values` are scalars: 0 and "" by default.
    """
    spec = self.element_spec
    _check_dense(spec)
    vectors = [_padded_shape(s) for s in _padded_shapes(spec, padded_shapes)]
    size = as_int(batch_size)
    padded = [_padded_spec(s, v) for s, v in zip(nest.flatten(spec), vectors)]
    out = batched_spec(nest.pack(spec, padded), size, drop_remainder)
    variant = raw.PaddedBatchDatasetV2(
        self._variant_tensor,
        size,
        vectors,
        _values(spec, padding_values),
        as_bool(drop_remainder),
        output_shapes=structure.flat_shapes(out),
    )
    return made("PaddedBatchDataset", variant, out, [self], (), "PaddedBatchDataset")


def _check_dense(spec):
    for s in nest.flatten(spec):
        if isinstance(s, DatasetSpec):
            raise TypeError("`padded_batch` is not supported for datasets of datasets")
        if not isinstance(s, TensorSpec):
            raise TypeError(
                "`padded_batch` is only supported for datasets that produce tensor "
                "elements but type spec of elements in the input dataset is not a "
                f"subclass of TensorSpec: `{s}`."
            )


def _padded_shapes(spec, shapes):
    """One shape a component of the spec."""
    leaves = nest.flatten(spec)
    if shapes is None:
        for i, s in enumerate(leaves):
            if s.shape.rank is None:
                raise ValueError(
                    "You must provide `padded_shapes` argument because component "
                    f"{i} has unknown rank."
                )
        return [s.shape for s in leaves]
    return nest.flatten_up_to(spec, shapes)


def _padded_shape(shape):
    """A padded shape that a user gave as a vector."""
    try:
        return as_int(shape_vector(tensor_shape.as_shape(shape)))
    except (TypeError, ValueError):
        vector = conversion.convert_to_tensor(shape)
    if vector.dtype == dtypes.int32 and not isinstance(shape, _headrace.Tensor):
        vector = conversion.convert_to_tensor(shape, dtypes.int64)
    if vector.shape.rank not in (None, 1):
        raise ValueError(
            f"Padded shape {shape} must be a `tf.int64` vector tensor, but its shape "
            f"was {vector.shape}."
        )
    if vector.dtype != dtypes.int64:
        raise TypeError(
            f"Padded shape {shape} must be a `tf.int64` vector tensor, but its element "
            f"type was {vector.dtype.name}."
        )
    return vector


def _padded_spec(s, vector):
    """The spec of a component padded to the shape in a vector."""
    dims = execution.get_static_value(vector)
    if dims is None:
        rank = vector.shape[0] if vector.shape.rank else None
        return TensorSpec(tensor_shape.unknown_shape(rank), s.dtype)
    shape = tensor_shape.TensorShape([None if d < 0 else int(d) for d in dims])
    fits = s.shape.rank is None or (
        s.shape.rank == shape.rank
        and all(a is None or b is None or a <= b for a, b in zip(s.shape, shape))
    )
    if not fits:
        raise ValueError(
            f"The padded shape {shape} is not compatible with the shape {s.shape} of "
            "the corresponding input component."
        )
    return TensorSpec(shape, s.dtype)


def _values(spec, values):
    """One scalar a component."""
    leaves = nest.flatten(spec)
    if values is None or not nest.is_nested(values):
        given = [values] * len(leaves)
    else:
        types = nest.map_structure(lambda s: np.asarray(0), spec)
        nest.flatten_up_to(values, types)
        given = nest.flatten(values)
    return [_value(s, v) for s, v in zip(leaves, given)]


def _value(s, value):
    if value is None:
        zero = "" if s.dtype == dtypes.string else np.zeros([], s.dtype.as_numpy_dtype)
        return conversion.convert_to_tensor(zero)
    value = conversion.convert_to_tensor(value)
    if value.shape.rank != 0:
        raise ValueError(
            "Invalid `padding_values`. `padding_values` values should be scalars, but "
            f"got {value.shape}."
        )
    if value.dtype != s.dtype:
        raise TypeError(
            f"Invalid `padding_values`. `padding_values` values type {value.dtype} "
            f"does not match type {s.dtype} of the corresponding input component."
        )
    return value
