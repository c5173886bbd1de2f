"""Functions of tf called with KerasTensors become layers.

A function that meets a KerasTensor where it needs a tensor raises; the dispatcher then
puts it into a TFOpLambda layer as a whole. It is registered when the first KerasTensor is
handed out, so that other programs pay nothing.
"""

from headrace import _names
from headrace.context import late
from headrace.framework import dispatch, nest
from headrace.keras import settings
from headrace.keras.base import keras_tensor


class _KerasDispatcher(dispatch.GlobalOpDispatcher):
    """Makes a layer of a call that KerasTensors take part in."""

    def handle(self, op, args, kwargs):
        if op._row is None or not keras_tensor.find((args, kwargs)):
            return self.NOT_SUPPORTED
        name = _names.main_name(op._row) or op.__name__
        return as_layer(name, op.__wrapped__, args, kwargs)


def as_layer(name, function, args, kwargs):
    """The KerasTensors that the function gives, by a layer of its own."""
    tensors = keras_tensor.find((args, kwargs))

    def call(inputs):
        values = iter(inputs if isinstance(inputs, (list, tuple)) else [inputs])
        inner_args, inner_kwargs = nest.map_structure(
            lambda x: next(values) if isinstance(x, keras_tensor.KerasTensor) else x,
            (args, kwargs),
        )
        return function(*inner_args, **inner_kwargs)

    layer = late.TFOpLambda(call, name=settings.unique_name(f"tf.{name}"))
    return layer(tensors if len(tensors) > 1 else tensors[0])


_installed = []


def install():
    """Registers the dispatcher, once a process."""
    if not _installed:
        _installed.append(_KerasDispatcher())
        _installed[0].register()
