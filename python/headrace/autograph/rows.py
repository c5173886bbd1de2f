"""What loops of a graph go over one by one: rows of tensors, enumerated or together."""

import functools

from headrace._load import raw
from headrace.context import stack
from headrace.context.errors import OperatorNotAllowedInGraphError
from headrace.control_flow import tensor_array
from headrace.framework import conversion, dtypes
from headrace.ops import array_ops, elementwise_ops, graph_assert


def length(tensor):
    """The number of rows: a Python number where it is known."""
    shape = array_ops.shape(tensor)
    if tensor.shape.rank is None:
        rank = array_ops.rank(tensor)
        text = "len requires non-zero rank, got "
        check = graph_assert.make(raw.Greater(rank, 0), [text, rank])
        with stack.current().control_dependencies([check]):
            return shape[0]
    if tensor.shape.rank == 0:
        raise ValueError(f"len requires a non-scalar tensor, got one of shape {shape}")
    rows = tensor.shape[0]
    return shape[0] if rows is None else rows


class Rows:
    """Elements of a graph: `count` of them, an int32 scalar, each by `read(i)`."""

    def __init__(self, count, read):
        self.count = count
        self.read = read

    def __iter__(self):
        raise OperatorNotAllowedInGraphError(
            "Iterating over a symbolic `tf.Tensor` is not allowed: enumerate(), zip() "
            "and map() of one can be what a `for` statement goes over."
        )


def of(value):
    """The rows of a tensor, or what are rows already."""
    if isinstance(value, Rows):
        return value
    count = conversion.convert_to_tensor(length(value), dtypes.int32)
    shape = value.shape[1:] if value.shape.rank is not None else None
    array = tensor_array.TensorArray(value.dtype, size=count, element_shape=shape)
    return Rows(count, array.unstack(value).read)


def together(values):
    """Tuples of an element of each, as many as the shortest has."""
    found = [of(value) for value in values]
    count = functools.reduce(elementwise_ops.minimum, [rows.count for rows in found])
    return Rows(count, lambda i: tuple(rows.read(i) for rows in found))
