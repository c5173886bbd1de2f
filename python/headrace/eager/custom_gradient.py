"""tf.custom_gradient, tf.recompute_grad, tf.grad_pass_through."""

import contextlib
import functools
import inspect
import types

import numpy as np

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.eager import named_gradients
from headrace.eager.backprop import GradientTape
from headrace.framework import conversion, nest, variables
from headrace.framework.indexed_slices import IndexedSlices, from_gradient, to_gradient


class Bind:
    """A function with a custom gradient; methods do not differentiate their object."""

    def __init__(self, f):
        self._f = f
        functools.update_wrapper(self, f)

    def __call__(self, *args, **kwargs):
        return _call(self._f, args, kwargs)

    def __getattr__(self, name):
        if name != "__signature__":  # which inspect asks for: that of the function
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
            )
        try:
            return inspect.signature(self.__dict__["__wrapped__"])
        except (KeyError, ValueError) as e:  # a copy in the making; a builtin
            raise AttributeError(name) from e

    def __get__(self, instance, owner):
        if instance is None:
            return self
        return Bind(self._f.__get__(instance, owner))


def custom_gradient(f=None):
    """A function that returns its result and the function of its gradient."""
    if f is None:
        return custom_gradient
    return Bind(f)


def _takes_variables(function):
    try:
        spec = inspect.getfullargspec(function)
    except TypeError:
        return False
    return (
        "variables" in spec.args or "variables" in spec.kwonlyargs or bool(spec.varkw)
    )


def _call(f, args, kwargs):
    graph = stack.current()
    if graph is not None and kwargs:
        raise ValueError(
            "The custom_gradient decorator currently supports keywords arguments only "
            "when eager execution is enabled."
        )
    flat = nest.flatten(args, expand_composites=True)
    given = [
        conversion.convert_to_tensor(x)
        if not isinstance(x, _headrace.VariableBase)
        else x
        for x in flat
    ]
    inputs = [_inside(graph, x) for x in given]
    args = nest.pack_sequence_as(args, inputs, expand_composites=True) if flat else args
    if graph is None and not _headrace.has_recorders():
        result, _ = f(*args, **kwargs)
        return nest.map_structure(_as_tensor, result)
    if _headrace.has_recorders():
        for x in given:  # tapes watch variables that f hands on unread, too
            if isinstance(x, _headrace.VariableBase):
                x._read()
    # What f computes is seen by tapes: gradients of the gradient go back there.
    watcher = _headrace.Tape(True, True)
    watcher.start()
    try:
        result, grad_fn = f(*args, **kwargs)
    finally:
        watcher.stop()
    used = _variables_of(watcher, inputs)
    _check_takes_variables(grad_fn, used)
    stop = _headrace.StopRecording()
    stop.enter()
    try:
        outputs = [
            conversion.convert_to_tensor(x)
            for x in nest.flatten(result, expand_composites=True)
        ]
        # Tensors of their own, which tapes tell from the inputs.
        if graph is None:
            outputs = [raw.Identity(x) for x in outputs]
            backward = _backward(grad_fn, inputs, used, outputs, result)
        else:
            outputs, backward = _record_in(
                graph, grad_fn, inputs, used, outputs, result
            )
    finally:
        stop.exit()
    if _headrace.has_recorders():
        name = getattr(f, "__name__", "custom")
        _headrace.record_custom(name, given + used, outputs, backward)
    return nest.pack_sequence_as(result, outputs, expand_composites=True)


def _as_tensor(x):
    of_numpy = isinstance(x, (np.ndarray, np.generic))
    plain = x is None or hasattr(x, "dtype") and not of_numpy
    return x if plain else conversion.convert_to_tensor(x)


def _inside(graph, x):
    """What the function being traced calls x: its gradient is asked for there."""
    if graph is None or not graph.building_function:
        return x
    return x if isinstance(x, _headrace.VariableBase) else graph.capture(x)


def _variables_of(watcher, inputs):
    given = {x.handle._id for x in inputs if isinstance(x, _headrace.VariableBase)}
    found = [
        variables.of_handle(h)
        for h in watcher.watched_variables()
        if h._id not in given
    ]
    return [v for v in found if v is not None]  # f may have made some and let them go


def _check_takes_variables(grad_fn, used):
    if used and not _takes_variables(grad_fn):
        raise TypeError(
            "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since "
            f"function uses variables: {used}"
        )


def _record_in(graph, grad_fn, inputs, used, results, structure):
    """Adds a node that names the gradient; its first outputs, and the gradient."""
    outputs = []
    backward = _backward(grad_fn, inputs, used, outputs, structure)
    if graph.building_function:
        _bring_in(grad_fn, graph, set())
    entry = named_gradients.CustomGradient(graph, backward, len(results))
    values = results + [
        x._read() if isinstance(x, _headrace.VariableBase) else x for x in inputs + used
    ]
    made = _headrace.identities_with_gradient(values, entry.name)
    outputs.extend(made[: len(results)])
    return list(outputs), backward


def _bring_in(function, graph, seen):
    """Captures what a gradient function reads of the graphs around `graph`.

    Later, when the gradient is asked for, only the graph's own values can be had.
    """
    around = {g._core.id for g in stack.entered() if g is not None}
    around.discard(graph._core.id)
    if not around or id(function) in seen:
        return
    seen.add(id(function))
    for cell in getattr(function, "__closure__", None) or ():
        try:
            content = cell.cell_contents
        except ValueError:  # nothing was put in yet
            continue
        for x in nest.flatten(content, expand_composites=True):
            if isinstance(x, types.FunctionType):
                _bring_in(x, graph, seen)
            elif (
                isinstance(x, _headrace.SymbolicTensor)
                and _headrace.graph_id(x) in around
            ):
                graph.capture(x)


def _backward(grad_fn, inputs, used, outputs, structure):
    """What gives gradients of inputs and variables used for gradients of outputs, the
    tensors of `structure`: the function gets and gives composites where it has them."""
    whole = len(nest.flatten(structure)) == len(outputs)

    def backward(grads):
        given = [
            conversion.convert_to_tensor(from_gradient(g))
            if g is not None
            else named_gradients.zeros_like(o)
            for g, o in zip(grads, outputs)
        ]
        if not whole:
            given = nest.flatten(
                nest.pack_sequence_as(structure, given, expand_composites=True)
            )
        if used:
            found, of_variables = grad_fn(*given, variables=used)
            if len(of_variables) != len(used):
                raise ValueError(
                    "Must return gradient for each variable from "
                    "@custom_gradient grad_fn."
                )
        else:
            found, of_variables = grad_fn(*given), []
        flat = nest.flatten(found)
        if len(flat) != len(inputs):
            flat = _parts(flat)
        if len(flat) != len(inputs):
            raise ValueError(
                "custom_gradient function expected to return "
                f"{len(inputs)} gradients, but returned {len(flat)} instead."
            )
        return [to_gradient(g) for g in flat + list(of_variables)]

    return backward


def _parts(gradients):
    """The components of composites, but for those that are gradients of tensors;
    what no gradient is, such as the splits of a ragged one, as None."""
    parts = []
    for g in gradients:
        if isinstance(g, IndexedSlices):
            parts.append(g)
            continue
        for x in nest.flatten(g, expand_composites=True):
            integer = isinstance(x, _headrace.Tensor) and x.dtype.is_integer
            parts.append(None if integer else x)
    return parts


def grad_pass_through(f):
    """f, with the gradient of the identity."""

    @custom_gradient
    def wrapped(*args, **kwargs):
        def grad(*grads, **grad_kwargs):
            variables = grad_kwargs.get("variables")
            if variables is not None:
                return grads, [None] * len(variables)
            return grads

        return f(*args, **kwargs), grad

    return wrapped


def recompute_grad(f):
    """f, whose intermediate values are computed anew for the gradient."""

    @custom_gradient
    def inner(*args, **kwargs):
        result = f(*args, **kwargs)
        scope = _variable_scope()

        def grad(*grads, **grad_kwargs):
            variables = grad_kwargs.get("variables") or []
            with scope(), GradientTape() as tape:
                # Each argument on its own, also where two are the same tensor.
                own = nest.map_structure(_as_own, args)
                watched = nest.flatten(own)
                tape.watch([x for x in watched if hasattr(x, "dtype")])
                again = f(*own, **kwargs)
            found = tape.gradient(again, watched + list(variables), list(grads))
            n = len(watched)
            return (found[:n], found[n:]) if variables else found[:n]

        return result, grad

    inner.__wrapped__ = f
    return inner


_scopes = []


def register_scopes(function):
    """Says what gives, of the variable scope in force, a function that makes contexts in
    which get_variable finds what it finds there: v1/variable_scope.py does."""
    _scopes[:] = [function]


def _variable_scope():
    """What makes contexts in which get_variable finds what it finds here."""
    if stack.current() is None:
        return contextlib.nullcontext
    if _scopes:
        return _scopes[0]()
    # No scope was ever entered; the function may be the first that makes variables.
    return lambda: _scopes[0]()() if _scopes else contextlib.nullcontext()


def _as_own(x):
    return raw.Identity(x) if isinstance(x, _headrace.Tensor) else x


def no_gradient(op_type):
    """Says that ops of a type have no gradient: known from the op itself."""
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
