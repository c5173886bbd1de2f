"""Python functions that run inside graphs and datasets, by token."""

import itertools
import traceback
import weakref

import numpy as np

from headrace._load import _headrace
from headrace.data.functions import raw
from headrace.framework import conversion, dtypes, nest

_numbers = itertools.count()
_functions = weakref.WeakValueDictionary()


class _Function:
    """A function and what its results must be."""

    def __init__(self, function, types):
        self.function = function
        self.types = types
        self.token = f"pyfunc_{next(_numbers)}"
        _functions[self.token] = self


def call(token, tensors):
    """Called natively: the results of the function of that token."""
    f = _functions.get(token)
    if f is None:
        raise ValueError(f"callback {token} is not found")
    result = f.function(*[t.numpy() for t in tensors])
    if result is None:
        result = []
    elif not isinstance(result, (list, tuple)) or len(f.types) == 1:
        single = isinstance(result, (list, tuple)) and len(result) == 1
        result = list(result) if single else [result]
    return [
        conversion.convert_to_tensor(_as_array(r, t)) for r, t in zip(result, f.types)
    ] + list(result[len(f.types) :])


def _as_array(value, dtype):
    if isinstance(value, _headrace.Tensor):
        return value
    if dtype == dtypes.string:
        return conversion.convert_to_tensor(value, dtypes.string)
    array = np.asarray(value)
    if array.dtype == np.dtype(dtype.as_numpy_dtype):
        return array
    return (
        array if isinstance(value, np.ndarray) else array.astype(dtype.as_numpy_dtype)
    )


def describe(error):
    """What an op's error says of what Python raised."""
    if isinstance(error, StopIteration):
        return "StopIteration: Iteration finished."
    lines = "".join(traceback.format_exception(error))
    return f"{type(error).__name__}: {error}\n{lines}\n"


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    """func of NumPy arrays, as an op."""
    many = isinstance(Tout, (list, tuple))
    types = [dtypes.as_dtype(t) for t in (Tout if many else [Tout])]
    types = [] if Tout is None else types
    f = _Function(func, types)
    from headrace.graph import stack

    graph = stack.current()
    if graph is None:
        keep = [f]  # for the length of the call
    else:
        keep = graph.__dict__.setdefault("_py_functions", [])
        keep.append(f)
    inputs = [conversion.convert_to_tensor(x) for x in nest.flatten(list(inp or []))]
    op = "PyFunc" if stateful else "PyFuncStateless"
    out = raw(op)(input=inputs, token=f.token, Tout=types, name=name)
    if Tout is None:
        return None
    return out if many else out[0]
