"""What is known of a graph's tensors without running it."""

import numpy as np

from headrace._load import _headrace


def constant_value(tensor, partial=False):
    """A symbolic tensor's value as an array, where tracing knows it, or None.

    With `partial` a stack of tensors is an array of objects: the value of each, None
    for those that are not known.
    """
    known, node = _headrace.known_value(tensor), _headrace.node_of(tensor)
    if known is not None:
        return None if _may_be_fed(node) else known.numpy()
    rule = _RULES.get(node.type)
    return None if rule is None else rule(tensor, node, partial)


def _may_be_fed(node):
    """Whether a value is computed from one that stands for what a session may feed."""
    todo, seen = [node], set()
    while todo:
        node = todo.pop()
        if node.type == "PlaceholderWithDefault":
            return True
        if node.type != "Const" and node.name not in seen:
            seen.add(node.name)
            todo += [_headrace.node_of(x) for x in node.inputs()]
    return False


def _shape(tensor, node, partial):
    shape = node.inputs()[0].shape
    if not shape.is_fully_defined():
        return None
    return np.array(shape.as_list(), tensor.dtype.as_numpy_dtype)


def _pack(tensor, node, partial):
    axis = tensor.op.get_attr("axis")
    values = [constant_value(x, partial) for x in node.inputs()]
    if all(v is not None and v.dtype != object for v in values):
        return np.stack(values, axis)
    if not partial or axis != 0 or all(v is None for v in values):
        return None
    stacked = np.empty(len(values), object)
    stacked[:] = values
    return stacked


def _parts(tensor, value, axis, cut):
    """The part of `value` that an output is: cut(value, axis) has all of them."""
    if value is None or (value.dtype == object and axis != 0):
        return None
    return cut(value, axis)[tensor.value_index]


def _unpack(tensor, node, partial):
    value = constant_value(node.inputs()[0], partial)
    axis = tensor.op.get_attr("axis")
    return _parts(tensor, value, axis, lambda v, a: list(np.moveaxis(v, a, 0)))


def _split(tensor, node, partial):
    axis, value = node.inputs()
    axis = constant_value(axis)
    if axis is None:
        return None
    count = tensor.op.get_attr("num_split")
    value = constant_value(value, partial)
    return _parts(tensor, value, int(axis), lambda v, a: np.split(v, count, a))


def _split_by_sizes(tensor, node, partial):
    value, sizes, axis = node.inputs()
    sizes, axis = constant_value(sizes), constant_value(axis)
    if sizes is None or axis is None or (sizes < 0).any():
        return None
    ends = np.cumsum(sizes)[:-1]
    value = constant_value(value, partial)
    return _parts(tensor, value, int(axis), lambda v, a: np.split(v, ends, a))


_RULES = {
    "Shape": _shape,
    "Pack": _pack,
    "Unpack": _unpack,
    "Split": _split,
    "SplitV": _split_by_sizes,
}
