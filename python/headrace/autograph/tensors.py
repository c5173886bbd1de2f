"""What the operators take for tensors, and graphs to try things in."""

import contextlib

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import conversion, dtypes, nest
from headrace.graph.func_graph import FuncGraph

TENSORS = (_headrace.Tensor, _headrace.VariableBase)


def is_tensor(value):
    """Whether a value is a tensor, or a variable, which is read as one."""
    return isinstance(value, TENSORS)


def in_graph():
    """Whether operations become nodes of a graph here."""
    return not _headrace.is_eager()


def tensor(value):
    """The value as a tensor."""
    return conversion.convert_to_tensor(value)


def bool_scalar(value, what):
    """The condition of a statement as a tensor, which must be a bool scalar.

    A tensor of one element, or one of which too little is known, will do.
    """
    value = tensor(value)
    if value.dtype == dtypes.bool and value.shape.num_elements() in (1, None):
        return value
    hint = (
        ""
        if value.dtype == dtypes.bool
        else "to use as boolean Tensor, use `tf.cast`; "
    )
    raise ValueError(
        f"condition of {what} expected to be `tf.bool` scalar, got {value!s}; {hint}"
        "to check for None, use `is not None`"
    )


@contextlib.contextmanager
def scratch_graph():
    """A graph inside of the current one, thrown away with all that is made in it."""
    outer = stack.current()
    graph = FuncGraph("tmp", outer)
    graph.is_branch = True
    graph.keeps_effects = outer.keeps_effects
    graph.outer_scope = outer._core.scope
    graph.share_variables(outer)
    with graph.as_default():
        yield graph


def leaves(value):
    """The leaves of a structure; composite values are leaves."""
    return nest.flatten(value)
