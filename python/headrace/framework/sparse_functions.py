"""Functions of tf that take sparse tensors: those under which 0 stays 0."""

from headrace.framework import dispatch
from headrace.framework.sparse_tensor import SparseTensor, SparseTensorValue, to_sparse

_ON_VALUES = """
math.abs math.asin math.asinh math.atan math.atanh math.bessel_i0e math.bessel_i1e cast
math.erf identity math.negative math.sign math.sin math.sqrt math.square stop_gradient
math.tan math.tanh
"""
_FIRST = {"identity": "input", "stop_gradient": "input"}


def on_values(api, *args, **kwargs):
    """The function of the values, at the same places."""
    x, args, kwargs = dispatch.first_of(SparseTensor, args, kwargs)
    return x.with_values(api(x.values, *args, **kwargs))


def divide(x, y, name=None):
    """A sparse tensor divided by a dense one."""
    return x / y


dispatch.convert_first(SparseTensorValue, to_sparse)
dispatch.add_functions(
    SparseTensor,
    "\n".join(
        f"{name} {_FIRST.get(name, 'x')} +framework.sparse_functions:on_values"
        for name in _ON_VALUES.split()
    )
    + "\nmath.divide x framework.sparse_functions:divide",
)
