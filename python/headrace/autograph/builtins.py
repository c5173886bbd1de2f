"""Python's builtins for tensors."""

from headrace._load import raw
from headrace.framework.execution import get_static_value
from headrace.ops import array_ops


def length(tensor):
    """The number of rows: a Python number where it is known."""
    if tensor.shape.rank is not None and tensor.shape.rank > 0:
        rows = tensor.shape[0]
        return array_ops.shape(tensor)[0] if rows is None else rows
    shape = array_ops.shape(tensor)
    if tensor.shape.rank == 0:
        raise ValueError(f"len requires a non-scalar tensor, got one of shape {shape}")
    return shape[0]


def overload_of(f):
    """What stands for a builtin that is called with tensors; `f` itself for others."""
    return f
