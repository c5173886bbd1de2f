"""Functions of tf called with KerasTensors become layers.

Nothing is asked of a program that describes no functional model: when the first
KerasTensor is handed out the public functions are wrapped, once. A wrapped function that meets a
KerasTensor where it needs a tensor is put into a TFOpLambda layer as a whole.
"""

import functools

from headrace import _names
from headrace.framework import nest
from headrace.keras import settings

_ROOMS = ("ops.", "ragged.", "framework.conversion:convert_to_tensor")


_wrapped = {}  # by function: its aliases stay one


class KerasTensorMet(TypeError):
    """A value was needed of a tensor that is yet to come."""


KerasTensorMet.__name__ = KerasTensorMet.__qualname__ = "TypeError"
KerasTensorMet.__module__ = "builtins"


def _wrap(public, target, function):
    if not target.startswith(_ROOMS) or isinstance(function, type):
        return function
    if not callable(function):
        return function
    if function in _wrapped:
        return _wrapped[function]

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except KerasTensorMet:
            from headrace.keras.engine.keras_tensor import find

            if not find((args, kwargs)):
                raise
        return as_layer(_names.main_name(target) or public, function, args, kwargs)

    _wrapped[function] = wrapped
    return wrapped


def as_layer(name, function, args, kwargs):
    """The KerasTensors that the function gives, by a layer of its own."""
    from headrace.keras.engine.keras_tensor import find, is_keras_tensor
    from headrace.keras.layer.lambdas import TFOpLambda

    tensors = find((args, kwargs))

    def call(inputs):
        values = iter(inputs if isinstance(inputs, (list, tuple)) else [inputs])
        inner_args, inner_kwargs = nest.map_structure(
            lambda x: next(values) if is_keras_tensor(x) else x, (args, kwargs)
        )
        return function(*inner_args, **inner_kwargs)

    layer = TFOpLambda(call, name=settings.unique_name(f"tf.{name}"))
    return layer(tensors if len(tensors) > 1 else tensors[0])


def install():
    """Wraps the public functions, those found already and those yet to be found."""
    _names.wrap_functions(_wrap)
