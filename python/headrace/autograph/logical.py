"""and, or, not, == and != of tensors."""

from headrace.autograph import tensors
from headrace.control_flow import branches
from headrace.ops import elementwise_ops, math_ops


def and_(a, b):
    """`a() and b()`; `b` is evaluated where it matters only."""
    first = a()
    if not _branches(first):
        return first and b()
    first = tensors.tensor(first)
    return branches.cond(first, b, lambda: first)


def or_(a, b):
    """`a() or b()`; `b` is evaluated where it matters only."""
    first = a()
    if not _branches(first):
        return first or b()
    first = tensors.tensor(first)
    return branches.cond(first, lambda: first, b)


def _branches(value):
    return tensors.is_tensor(value) and tensors.in_graph()


def not_(a):
    """`not a`, element by element of a tensor."""
    if tensors.is_tensor(a):
        return elementwise_ops.logical_not(tensors.tensor(a))
    return not a


def eq(a, b):
    """`a == b`, element by element of tensors."""
    if tensors.is_tensor(a) or tensors.is_tensor(b):
        return math_ops.equal(a, b)
    return a == b


def not_eq(a, b):
    """`a != b`, element by element of tensors."""
    return not_(eq(a, b))
