"""Ragged tensors as text."""

import numpy as np

from headrace.framework import dtypes
from headrace.ops import array_ops, string_ops
from headrace.ragged.indexing import getitem
from headrace.ragged.ragged_tensor import RaggedTensor, levels
from headrace.ragged.reductions import reduce_join


def of_array(array):
    """Rows as NumPy lays out arrays of objects, elements as str gives them."""

    def element(x):
        return of_array(x) if isinstance(x, np.ndarray) else str(x)

    if not array.size:
        return str(array.tolist())
    return np.array2string(array, separator=", ", formatter={"all": element})


def formatted(ragged, summarize):
    """The text of a ragged tensor, as a scalar tensor of strings."""
    x = ragged
    if x.shape.rank > x.ragged_rank + 1:
        inner = x.flat_values.shape.rank - 1
        flat = RaggedTensor.from_tensor(x.flat_values, ragged_rank=inner)
        x = x.with_flat_values(flat)
    flat = x.flat_values
    if flat.dtype == dtypes.string:
        texts = string_ops.join(["'", flat, "'"])
    else:
        texts = string_ops.as_string(flat)
    for level in reversed(levels(x)):
        texts = _rows_as_text(level.with_values(texts), summarize)
    outer = array_ops.expand_dims(texts, 0)
    whole = RaggedTensor.from_tensor(outer)
    return array_ops.squeeze(_rows_as_text(whole, summarize), [0])


def _rows_as_text(rows, summarize):
    def joined(x):
        return reduce_join(x, axis=1, separator=", ")

    every = joined(rows)
    if summarize >= 0:
        whole = slice(None)
        head = joined(getitem(rows, (whole, slice(None, summarize))))
        tail = joined(getitem(rows, (whole, slice(-summarize, None))))
        short = string_ops.join([head, ", ..., ", tail])
        every = array_ops.where(rows.row_lengths() > 2 * summarize, short, every)
    return string_ops.join(["[", every, "]"])
