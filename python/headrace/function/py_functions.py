"""tf.numpy_function and tf.py_function: Python functions as ops, by token."""

import collections
import functools
import itertools
import traceback
import weakref

import numpy as np

from headrace._load import _headrace
from headrace.context import errors, stack
from headrace.context.locks import ForkLock
from headrace.eager.backprop import GradientTape
from headrace.framework import conversion, dtypes, nest
from headrace.framework.type_spec import TypeSpec, of_parts, parts_of, to_parts

_numbers = itertools.count()
_functions = weakref.WeakValueDictionary()
_TAPES_KEPT = 16  # of a function's calls whose gradient was not asked for yet


class _Function:
    """A function and what its results must be."""

    def __init__(self, function, types):
        self.function = function
        self.types = types
        self.token = f"pyfunc_{next(_numbers)}"
        _functions[self.token] = self

    def __call__(self, tensors):
        result = self.function(*[t.numpy() for t in tensors])
        return [conversion.convert_to_tensor(_as_array(r)) for r in _listed(result)]


class _EagerFunction(_Function):
    """A function of tensors, and the tapes of its last calls."""

    def __init__(self, function, types):
        super().__init__(function, types)
        self._tapes = collections.OrderedDict()
        self._lock = ForkLock()

    def __call__(self, tensors):
        tape, out = self._recorded(tensors)
        key = _address(out)
        if key is not None:
            with self._lock:
                self._tapes[key] = tape, out, tensors
                if len(self._tapes) > _TAPES_KEPT:
                    self._tapes.popitem(last=False)
        return out

    def run_here(self, tensors, name):
        """The call where operations run at once: the tapes that are recording see
        what the function computes."""
        try:
            out = self._results(tensors)
        except Exception as e:
            raise _error(e, describe(e), name) from None
        if len(out) != len(self.types):
            text = (
                f"{self.token} returns {len(out)} values, but expects to see "
                f"{len(self.types)} values."
            )
            raise _error(ValueError(), text, name)
        return out

    def _results(self, tensors):
        result = self.function(*tensors)
        values = _listed(result)
        # What a list has beyond the types is not looked at, as upstream's.
        extra = [] if values is result else values[len(self.types) :]
        return [_as_tensor(r, t) for r, t in zip(values, self.types)] + extra

    def _recorded(self, tensors):
        with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch([t for t in tensors if _is_differentiable(t)])
            out = self._results(tensors)
        return tape, out

    def gradient(self, n, values, again=False):
        """Gradients of the first n values, the inputs; outputs and their gradients
        follow. Of the call that gave the outputs; of a new one where it is gone, or
        where a tape has to see it (`again`)."""
        outputs = values[n : (len(values) + n) // 2]
        found = None
        if not again:
            with self._lock:
                found = self._tapes.pop(_address(outputs), None)
        if found is None:
            found = (*self._recorded(values[:n]), values[:n])
        tape, out, inputs = found
        return _gradients(tape, out, inputs, values[n + len(outputs) :])


class _GradientOf:
    """The gradient of a function with n inputs, as a function."""

    def __init__(self, base, n):
        self._base, self._n = base, n

    def __call__(self, tensors):
        return self._base.gradient(self._n, tensors)

    def gradient(self, n, values, again=True):
        inputs = values[:n]
        with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch([t for t in inputs if _is_differentiable(t)])
            out = self._base.gradient(self._n, inputs, again=True)
        return _gradients(tape, out, inputs, values[n + len(out) :])


def _gradients(tape, outputs, inputs, output_gradients):
    wanted = [t for t in inputs if _is_differentiable(t)]
    return tape.gradient(
        outputs, wanted, output_gradients=output_gradients, unconnected_gradients="zero"
    )


def _error(raised, text, name):
    """What an op says when Python raised."""
    for kind, error in (
        (StopIteration, errors.OutOfRangeError),
        ((ValueError, TypeError), errors.InvalidArgumentError),
        (MemoryError, errors.ResourceExhaustedError),
        (NotImplementedError, errors.UnimplementedError),
        (Exception, errors.UnknownError),
    ):
        if isinstance(raised, kind):
            return error(None, None, f"{text} [Op:EagerPyFunc] name: {name or ''}")


def _address(tensors):
    """Where the first floating tensor's bytes are, None where there is none."""
    for t in tensors:
        if isinstance(t, _headrace.Tensor) and _is_differentiable(t):
            array = np.asarray(t)
            return array.__array_interface__["data"][0] if array.size else None
    return None


def _is_differentiable(tensor):
    return tensor.dtype.is_floating or tensor.dtype.is_complex


def call(token, tensors):
    """Called natively: the results of the function of that token."""
    with stack.entering(None):
        return _of_token(token)(tensors)


def _of_token(token):
    if token.startswith("gradient:"):
        _, inputs, base = token.split(":", 2)
        return _GradientOf(_of_token(base), int(inputs))
    f = _functions.get(token)
    if f is None:
        raise ValueError(f"callback {token} is not found")
    return f


def _listed(result):
    """The values that a function gives: a list or tuple of them, or one."""
    if result is None:
        return []
    return result if isinstance(result, (list, tuple)) else [result]


def _as_tensor(value, dtype):
    if isinstance(value, _headrace.VariableBase):
        value = value.read_value()
    return conversion.convert_to_tensor(value, dtype)


def _as_array(value):
    """NumPy's array of it; of what dtype is for the caller of the op to have said."""
    return value if isinstance(value, _headrace.Tensor) else np.asarray(value)


def describe(error):
    """What an op's error says of what Python raised."""
    if isinstance(error, StopIteration):
        return "StopIteration: Iteration finished."
    lines = "".join(traceback.format_exception(error))
    return f"{type(error).__name__}: {error}\n{lines}\n"


def _emit(op, f, inputs, name):
    """The op's outputs, the operation where it has none and a graph is built. The
    function lives as long as the graph, or the call."""
    graph = stack.current()
    if graph is not None:
        graph.__dict__.setdefault("_py_functions", []).append(f)
    inputs = [conversion.convert_to_tensor(x) for x in inputs]
    out = _headrace.raw_op(op)(input=inputs, token=f.token, Tout=f.types, name=name)
    if graph is not None and not f.types:
        return graph._last_operation()
    return [] if out is None else out


def _called_with_arrays(func, inp):
    """What numpy_function does where operations run at once: a plain call, of which
    neither the errors nor the dtypes are changed."""
    result = func(*[np.array(conversion.convert_to_tensor(x)) for x in inp])
    out = [
        None if r is None else conversion.convert_to_tensor(r)
        for r in nest.flatten(result)
    ]
    return out[0] if len(out) == 1 else out


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    """func of NumPy arrays, as an op without gradient.

    Args:
      func: takes arrays, returns arrays (or a list of them) of the dtypes Tout.
      inp: the arguments, as tensors or what converts to them.
      Tout: a dtype or a list of dtypes.
      stateful: False says that equal arguments give equal results.
      name: of the op.

    Without `func`, returns a decorator.
    """
    if func is None:
        return _decorator(numpy_function, Tout, stateful=stateful)
    if _headrace.is_eager():
        return _called_with_arrays(func, inp or [])
    many = isinstance(Tout, (list, tuple))
    types = (
        [] if Tout is None else [dtypes.as_dtype(t) for t in (Tout if many else [Tout])]
    )
    op = "PyFunc" if stateful else "PyFuncStateless"
    out = _emit(op, _Function(func, types), nest.flatten(list(inp or [])), name)
    if Tout is None:
        return None
    return out if many else out[0]


def py_function(func=None, inp=None, Tout=None, name=None):
    """func of eager tensors, as an op with the gradient of what func computes.

    Args:
      func: takes tensors, returns tensors (or a list of them); Tout=[] where it
        returns nothing.
      inp: the arguments; composite tensors arrive as such.
      Tout: a dtype or TypeSpec, or a list of them.
      name: of the op.

    Without `func`, returns a decorator. A call's tape is kept for its gradient; of
    calls long past the function is called again.
    """
    if func is None:
        return _decorator(py_function, Tout)
    inp = list(inp or [])
    many = isinstance(Tout, (list, tuple))
    specs = list(Tout) if many else [Tout]
    types = [t for spec in specs for t in _component_types(spec)]

    @functools.wraps(func)
    def of_components(*tensors):
        arguments = nest.pack_sequence_as(inp, tensors, expand_composites=True)
        result = func(*arguments)
        if not any(_is_composite(s) for s in specs):
            return result
        results = result if many else [result]
        return [c for s, r in zip(specs, results) for c in _components(s, r)]

    f = _EagerFunction(of_components, types)
    inputs = nest.flatten(inp, expand_composites=True)
    if _headrace.is_eager():
        out = f.run_here([conversion.convert_to_tensor(x) for x in inputs], name)
    else:
        out = _emit("EagerPyFunc", f, inputs, name)
    if not specs:
        return out
    parts = iter(out)
    results = [
        of_parts(s, [next(parts) for _ in parts_of(s)])
        if _is_composite(s)
        else next(parts)
        for s in specs
    ]
    return results if many else results[0]


def _is_composite(spec):
    return isinstance(spec, TypeSpec) and hasattr(spec, "_component_specs")


def _component_types(spec):
    if _is_composite(spec):
        return [s.dtype for s in parts_of(spec)]
    return [spec.dtype if isinstance(spec, TypeSpec) else dtypes.as_dtype(spec)]


def _components(spec, value):
    return to_parts(spec, value) if _is_composite(spec) else [value]


def _decorator(maker, Tout, **options):
    def decorate(func):
        @functools.wraps(func)
        def wrapped(*args):
            return maker(func, list(args), Tout, **options)

        return wrapped

    return decorate
