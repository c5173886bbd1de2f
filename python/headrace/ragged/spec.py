"""tf.RaggedTensorSpec."""

from headrace.framework import dtypes, tensor_shape, type_spec
from headrace.ragged.ragged_tensor import RaggedTensor, is_ragged


class RaggedTensorSpec(type_spec.TypeSpec):
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
        if rank is not None and ragged_rank >= rank:
            raise ValueError(
                f"Argument `ragged_rank` ({ragged_rank}) must be less than rank "
                f"({rank})."
            )
        self._ragged_rank = ragged_rank

    shape = property(
        lambda self: self._shape,
        doc="The static shape, with None for ragged dimensions: a TensorShape.",
    )
    dtype = property(lambda self: self._dtype, doc="The dtype of the values.")
    ragged_rank = property(
        lambda self: self._ragged_rank,
        doc="How many dimensions are held as splits; 0 for plain tensors.",
    )
    row_splits_dtype = property(
        lambda self: self._row_splits_dtype,
        doc="The dtype of the splits: int32 or int64.",
    )
    flat_values_spec = property(
        lambda self: self._flat_values_spec,
        doc=(
            "The spec of the innermost values, or None where it follows from shape and "
            "dtype."
        ),
    )

    @property
    def value_type(self):
        """tf.RaggedTensor."""
        return RaggedTensor

    def _serialize(self):
        return (self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype)

    @property
    def _component_specs(self):
        dims = self._shape.as_list() if self._shape.rank is not None else None
        inner = None if dims is None else [None, *dims[self._ragged_rank + 1 :]]
        specs = [type_spec.TensorSpec(inner, self._dtype)]
        rows = dims[0] if dims else None
        for _ in range(self._ragged_rank):
            size = None if rows is None else rows + 1
            specs.append(type_spec.TensorSpec([size], self._row_splits_dtype))
            rows = None
        return specs

    def _to_components(self, value):
        return value._components()

    def _from_components(self, parts):
        result = parts[0]
        for splits in parts[:0:-1]:
            result = RaggedTensor.from_row_splits(result, splits, validate=False)
        return result

    @classmethod
    def from_value(cls, value):
        """The spec of a RaggedTensor; TypeError for anything else."""
        if not is_ragged(value):
            raise TypeError(f"Expected a RaggedTensor, got {value!r}")
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)
