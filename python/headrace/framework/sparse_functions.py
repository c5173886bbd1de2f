"""Functions of tf that take sparse tensors, those under which 0 stays 0, and those that
leave IndexedSlices what they are: others take the whole tensor."""

from headrace.framework import dispatch
from headrace.framework.indexed_slices import IndexedSlices
from headrace.framework.sparse_tensor import SparseTensor, SparseTensorValue, to_sparse

_ON_VALUES = """
math.abs math.asin math.asinh math.atan math.atanh math.bessel_i0e math.bessel_i1e cast
math.erf math.negative math.sign math.sin math.sqrt math.square math.tan math.tanh
"""
_SAME = ("identity", "stop_gradient")


def on_values(api, *args, **kwargs):
    """The function of the values, at the same places."""
    x, args, kwargs = dispatch.first_of(SparseTensor, args, kwargs)
    return x.with_values(api(x.values, *args, **kwargs))


def same(api, *args, **kwargs):
    """The same of an identity, which keeps all that is known of the shape."""
    x, _, _ = dispatch.first_of(SparseTensor, args, kwargs)
    made = on_values(api, *args, **kwargs)
    made.set_shape(x.shape)
    return made


def on_rows(api, *args, **kwargs):
    """The function of the rows that slices have, at the same places."""
    x, args, kwargs = dispatch.first_of(IndexedSlices, args, kwargs)
    return IndexedSlices(api(x.values, *args, **kwargs), x.indices, x.dense_shape)


def divide(x, y, name=None):
    """A sparse tensor divided by a dense one."""
    return x / y


def _rows(names, parameter, target):
    return [f"{n} {parameter} +framework.sparse_functions:{target}" for n in names]


dispatch.convert_first(SparseTensorValue, to_sparse)
dispatch.add_functions(
    SparseTensor,
    "\n".join(
        [
            *_rows(_ON_VALUES.split(), "x", "on_values"),
            *_rows(_SAME, "input", "same"),
            "math.divide x framework.sparse_functions:divide",
        ]
    ),
)
dispatch.add_functions(
    IndexedSlices,
    "\n".join([*_rows(["cast"], "x", "on_rows"), *_rows(_SAME, "input", "on_rows")]),
)
