"""Ragged tensors as single tensors of variants: elements of datasets, rows of maps."""

from headrace._load import raw
from headrace.framework import conversion, dtypes
from headrace.ragged.ragged_tensor import RaggedTensor, is_ragged


def to_variant(x, batched_input=False, name=None):
    """A scalar variant that holds a tensor or ragged tensor; with `batched_input` a
    vector of variants, one for each row."""
    if is_ragged(x):
        *splits, values = *x.nested_row_splits, x.flat_values
    else:
        splits, values = [], conversion.convert_to_tensor(x)
    return raw.RaggedTensorToVariant(
        list(splits), values, batched_input=batched_input, name=name
    )


def from_variant(
    variant,
    dtype,
    output_ragged_rank,
    input_ragged_rank=None,
    row_splits_dtype=dtypes.int64,
    name=None,
):
    """The ragged tensor, or the tensor where `output_ragged_rank` is 0, that variants
    hold.

    The dimensions of `variant` become dimensions of the result: its ragged rank is theirs
    plus `input_ragged_rank`, the ragged rank of each variant (inferred where None).
    ValueError where the numbers contradict each other.
    """
    variant = conversion.convert_to_tensor(variant, dtype=dtypes.variant)
    rank = variant.shape.rank
    if rank is not None and input_ragged_rank is not None:
        if output_ragged_rank != input_ragged_rank + rank:
            raise ValueError(
                f"Argument `output_ragged_rank` ({output_ragged_rank}) must be equal to "
                f"`input_ragged_rank` + `variant.shape.ndims` ({input_ragged_rank} + "
                f"{rank})."
            )
    splits, values = raw.RaggedTensorFromVariant(
        variant,
        input_ragged_rank=-1 if input_ragged_rank is None else input_ragged_rank,
        output_ragged_rank=max(output_ragged_rank, 0),
        Tvalues=dtypes.as_dtype(dtype),
        Tsplits=dtypes.as_dtype(row_splits_dtype),
        name=name,
    )
    return RaggedTensor.from_nested_row_splits(values, list(splits), validate=False)
