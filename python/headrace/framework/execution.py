"""How code runs at this point: eagerly or as a graph."""

import contextlib

from headrace._load import _headrace, raw
from headrace.context import known_values, stack
from headrace.framework import scopes
from headrace.framework.tensor import is_tensor


def executing_eagerly():
    """True where operations run at once."""
    return _headrace.is_eager()


def only_in_graphs(text):
    """RuntimeError, with the text, where operations run at once."""
    if _headrace.is_eager():
        raise RuntimeError(text)


def only_eagerly(error, text):
    """error(text), where operations become nodes of a graph."""
    if not _headrace.is_eager():
        raise error(text)


def node_name(name):
    """The name of a node of a graph; None where operations run at once, as they then
    have none."""
    return None if _headrace.is_eager() else name


inside_function = stack.inside_function


class init_scope:
    """Lifts operations out of functions being traced."""

    def __enter__(self):
        self._outer = None
        if not _headrace.is_eager():
            self._outer = stack.init_scope()
            self._outer.__enter__()

    def __exit__(self, *error):
        if self._outer is not None:
            self._outer.__exit__(*error)
        return False


def get_static_value(tensor, partial=False):
    """The value of a tensor where it is known without running, else None.

    With `partial` a stack of tensors may be known in parts: an array of objects, None
    where an element is not known.
    """
    if isinstance(tensor, _headrace.EagerTensor):
        try:
            return tensor.numpy()
        except NotImplementedError:
            return None
    if not isinstance(tensor, _headrace.Tensor):
        if getattr(tensor, "_is_weak_tensor", False):
            return get_static_value(tensor.tensor, partial)
        return None if is_tensor(tensor) else tensor
    return known_values.constant_value(tensor, partial)


def no_op(name=None):
    """An operation that does nothing, to hang control dependencies on; None when eager."""
    return scopes.op_of_effect("NoOp", name)


def group(*inputs, **kwargs):
    """An operation that runs all the inputs."""
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError(f"Unknown keyword arguments: {list(kwargs)}")
    if _headrace.is_eager():
        return None
    return scopes.group(inputs, name)


_at_once = contextlib.nullcontext()  # where all that is waited for has run


def control_dependencies(control_inputs):
    """Operations made inside run after `control_inputs`."""
    if _headrace.is_eager():
        if callable(control_inputs):
            control_inputs = [control_inputs]
        for c in control_inputs or ():
            if callable(c):
                c()
        return _at_once
    return scopes.control_dependencies(control_inputs)


def tuple(tensors, control_inputs=None, name=None):
    """The tensors, once all of them are computed."""
    if _headrace.is_eager():
        return tensors
    return scopes.tuple(tensors, control_inputs, name)


def timestamp(name=None):
    """Seconds since the epoch."""
    return raw.Timestamp(name=name)
