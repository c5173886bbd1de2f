"""tf.custom_gradient, tf.recompute_grad, tf.grad_pass_through."""

import functools
import inspect

from headrace._load import _headrace
from headrace.framework import conversion, nest
from headrace.framework.indexed_slices import from_gradient, to_gradient


class Bind:
    """Marks a function that decorated methods too."""

    def __init__(self, f):
        self._f = f
        functools.update_wrapper(self, f)

    def __call__(self, *args, **kwargs):
        return _call(self._f, args, kwargs)

    def __get__(self, instance, owner):
        if instance is None:
            return self
        return functools.partial(self.__call__, instance)


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
    flat = nest.flatten(args, expand_composites=True)
    inputs = [
        conversion.convert_to_tensor(x)
        if not isinstance(x, _headrace.VariableBase)
        else x
        for x in flat
    ]
    args = nest.pack_sequence_as(args, inputs, expand_composites=True) if flat else args
    if not _headrace.has_recorders():
        result, _ = f(*args, **kwargs)
        return result
    watcher = _headrace.Tape(True, True)
    stop = _headrace.StopRecording()
    stop.enter()
    try:
        watcher.start()
        try:
            result, grad_fn = f(*args, **kwargs)
        finally:
            watcher.stop()
    finally:
        stop.exit()
    used = _variables_of(watcher, inputs)
    outputs = [_fresh(x) for x in nest.flatten(result, expand_composites=True)]
    _record(f, grad_fn, inputs, used, outputs, result)
    return nest.pack_sequence_as(result, outputs, expand_composites=True)


def _variables_of(watcher, inputs):
    from headrace.framework import variables

    given = {x.handle._id for x in inputs if isinstance(x, _headrace.VariableBase)}
    return [
        variables.of_handle(h)
        for h in watcher.watched_variables()
        if h._id not in given
    ]


def _fresh(x):
    """A tensor of its own, so that the tape tells it from the inputs."""
    stop = _headrace.StopRecording()
    stop.enter()
    try:
        return _headrace.raw_op("Identity")(input=conversion.convert_to_tensor(x))
    finally:
        stop.exit()


def _record(f, grad_fn, inputs, used, outputs, result):
    name = getattr(f, "__name__", "custom")
    wants_variables = _takes_variables(grad_fn)
    if used and not wants_variables:
        raise TypeError(
            "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since "
            f"function uses variables: {used}"
        )

    def backward(grads):
        given = [
            conversion.convert_to_tensor(from_gradient(g))
            if g is not None
            else _zeros(o)
            for g, o in zip(grads, outputs)
        ]
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
            raise ValueError(
                "custom_gradient function expected to return "
                f"{len(inputs)} gradients, but returned {len(flat)} instead."
            )
        return [to_gradient(g) for g in flat + list(of_variables)]

    _headrace.record_custom(name, inputs + used, outputs, backward)


def _zeros(x):
    return _headrace.raw_op("ZerosLike")(x=x)


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
        from headrace.eager.backprop import GradientTape

        result = f(*args, **kwargs)

        def grad(*grads, **grad_kwargs):
            variables = grad_kwargs.get("variables") or []
            with GradientTape() as tape:
                watched = nest.flatten(args)
                tape.watch([x for x in watched if hasattr(x, "dtype")])
                again = f(*args, **kwargs)
            found = tape.gradient(again, watched + list(variables), list(grads))
            n = len(watched)
            return (found[:n], found[n:]) if variables else found[:n]

        return result, grad

    return inner


def no_gradient(op_type):
    """Says that ops of a type have no gradient: known from the op itself."""
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
