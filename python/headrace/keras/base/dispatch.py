"""Functions of tf called with KerasTensors become layers.

A function that meets a KerasTensor where it needs a tensor raises; the dispatcher then
puts it into a TFOpLambda layer as a whole. It is registered when the first KerasTensor is
handed out, so that other programs pay nothing.
"""

from headrace.context import late
from headrace.framework import dispatch
from headrace.keras.base import keras_tensor


class _KerasDispatcher(dispatch.GlobalOpDispatcher):
    """Makes a layer of a call that KerasTensors take part in."""

    def handle(self, op, args, kwargs):
        if op._row is None or not keras_tensor.find((args, kwargs)):
            return self.NOT_SUPPORTED
        return late.keras_layer_of(op, args, kwargs)


_installed = []


def install():
    """Registers the dispatcher, once a process."""
    if not _installed:
        _installed.append(_KerasDispatcher())
        _installed[0].register()
