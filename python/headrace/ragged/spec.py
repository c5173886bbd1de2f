"""tf.RaggedTensorSpec."""

import numpy as np

from headrace._load import _headrace
from headrace.context.properties import read_only
from headrace.framework import dtypes, tensor_shape, type_spec
from headrace.ragged import variants
from headrace.ragged.ragged_tensor import RaggedTensor, is_ragged
from headrace.ragged.ragged_value import RaggedTensorValue


class RaggedTensorSpec(type_spec.ValuesSpec):
    """What a ragged tensor is like."""

    def __init__(
        self,
        shape=None,
        dtype=dtypes.float32,
        ragged_rank=None,
        row_splits_dtype=dtypes.int64,
        flat_values_spec=None,
    ):
        self._shape = tensor_shape.as_shape(shape)
        if flat_values_spec is not None:
            if dtype is None:
                dtype = flat_values_spec.dtype
            elif dtypes.as_dtype(dtype) != flat_values_spec.dtype:
                raise ValueError("dtype must be the same as flat_values_spec.dtype")
        self._dtype = dtypes.as_dtype(dtype)
        self._row_splits_dtype = dtypes.as_dtype(row_splits_dtype)
        self._flat_values_spec = flat_values_spec
        rank = self._shape.rank
        if ragged_rank is None:
            if rank is None:
                raise ValueError(
                    "Must specify ragged_rank or a shape with a known rank."
                )
            ragged_rank = rank - 1
        if not isinstance(ragged_rank, int):
            raise TypeError(
                "Argument `ragged_rank` must be an int. Received an object of type "
                f"{type(ragged_rank).__name__}."
            )
        if rank is not None and ragged_rank >= rank:
            raise ValueError(
                f"Argument `ragged_rank` ({ragged_rank}) must be less than rank "
                f"({rank})."
            )
        self._ragged_rank = ragged_rank

    shape = read_only(
        "_shape", "The static shape, with None for ragged dimensions: a TensorShape."
    )
    dtype = read_only("_dtype", "The dtype of the values.")
    ragged_rank = read_only(
        "_ragged_rank", "How many dimensions are held as splits; 0 for plain tensors."
    )
    row_splits_dtype = read_only(
        "_row_splits_dtype", "The dtype of the splits: int32 or int64."
    )
    flat_values_spec = read_only(
        "_flat_values_spec",
        "The spec of the innermost values, or None where it follows from shape and "
        "dtype.",
    )

    def _to_legacy_output_classes(self):
        return self  # types and shapes do not tell the ragged rank

    @property
    def value_type(self):
        """tf.RaggedTensor, or tf.Tensor where `ragged_rank` is 0."""
        return RaggedTensor if self._ragged_rank > 0 else _headrace.Tensor

    def _serialize(self):
        parts = (self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype)
        if self._flat_values_spec is not None:
            parts += (self._flat_values_spec,)
        return parts

    def is_compatible_with(self, spec_or_value):
        """Whether a value or another spec fits; a tensor, or what flat_values_spec says,
        where `ragged_rank` is 0.
        """
        if self._ragged_rank == 0 and self._flat_values_spec is not None:
            if not isinstance(spec_or_value, RaggedTensorSpec):
                return self._flat_values_spec.is_compatible_with(spec_or_value)
        elif self._ragged_rank == 0:
            other = spec_or_value
            if not isinstance(other, type_spec.TypeSpec):
                other = type_spec.type_spec_from_value(other)
            if isinstance(other, type_spec.TensorSpec):
                own = type_spec.TensorSpec(self._shape, self._dtype)
                return own.is_compatible_with(other)
        return super().is_compatible_with(spec_or_value)

    @property
    def _component_specs(self):
        if self._ragged_rank <= 0:
            if self._flat_values_spec is not None:
                return [self._flat_values_spec]
            return [type_spec.TensorSpec(self._shape, self._dtype)]
        dims = self._shape.as_list() if self._shape.rank is not None else None
        specs = [self._flat_values_spec]
        if specs[0] is None:
            inner = None
            if dims is not None:
                total = _product(dims[: self._ragged_rank + 1])
                inner = [total, *dims[self._ragged_rank + 1 :]]
            specs = [type_spec.TensorSpec(inner, self._dtype)]
        for i in range(self._ragged_rank):
            rows = None if dims is None else _product(dims[: i + 1])
            size = None if rows is None else rows + 1
            specs.append(type_spec.TensorSpec([size], self._row_splits_dtype))
        return specs

    def _to_components(self, value):
        return value._components() if is_ragged(value) else [value]

    def _from_components(self, parts):
        if all(isinstance(p, np.ndarray) for p in parts):
            return RaggedTensorValue.of(list(parts))
        result = parts[0]
        if self._ragged_rank <= 0:
            return result
        rank = self._shape.rank
        if rank is not None and isinstance(result, _headrace.SymbolicTensor):
            if result.shape.rank is None:
                result.set_shape([None, *self._shape[self._ragged_rank + 1 :]])
        dims = self._shape.as_list() if rank is not None else None
        for i in range(self._ragged_rank, 0, -1):
            splits = parts[i]
            splits.set_shape([None])
            uniform = None if dims is None else dims[i]
            result = RaggedTensor._of_splits(result, splits, uniform=uniform)
        if rank is not None:
            result._set_shape(self._shape)
        return result

    @classmethod
    def from_value(cls, value):
        """The spec of a RaggedTensor; AttributeError for anything else."""
        return cls(
            value.shape,
            value.flat_values.dtype,
            value.ragged_rank,
            value.row_splits.dtype,
        )

    # --- As elements of datasets and of maps: one variant each.

    @property
    def _flat_tensor_specs(self):
        return [type_spec.TensorSpec(None, dtypes.variant)]

    def _to_tensor_list(self, value):
        self._check_rank_of(value)
        return [variants.to_variant(value, batched_input=False)]

    def _to_batched_tensor_list(self, value):
        self._check_rank_of(value)
        return [variants.to_variant(value, batched_input=True)]

    def _check_rank_of(self, value):
        found = value.ragged_rank if is_ragged(value) else 0
        if found != max(self._ragged_rank, 0):
            raise ValueError(
                f"Ragged rank of value {found} does not match ragged rank of type "
                f"{self._ragged_rank}."
            )

    def _from_tensor_list(self, tensor_list):
        result = variants.from_variant(
            tensor_list[0],
            self._dtype,
            self._ragged_rank,
            row_splits_dtype=self._row_splits_dtype,
        )
        if self._shape.rank is None:
            return result
        if self._ragged_rank <= 0:
            result.set_shape(self._shape)
            return result
        if result.flat_values.shape.rank is None:
            result.flat_values.set_shape([None, *self._shape[self._ragged_rank + 1 :]])
        result._set_shape(self._shape)
        return result

    _from_compatible_tensor_list = _from_tensor_list

    def _batch(self, batch_size):
        return RaggedTensorSpec(
            tensor_shape.TensorShape([batch_size]).concatenate(self._shape),
            self._dtype,
            self._ragged_rank + 1,
            self._row_splits_dtype,
        )

    def _unbatch(self):
        # Rows of a dense tensor stay elements of their kind: -1 for the spec of those.
        return RaggedTensorSpec(
            self._shape[1:] if self._shape.rank is not None else None,
            self._dtype,
            self._ragged_rank - 1,
            self._row_splits_dtype,
        )


def _product(sizes):
    result = 1
    for n in sizes:
        if n is None:
            return None
        result *= n
    return result
