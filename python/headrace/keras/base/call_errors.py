"""Errors of a layer's call, told with the layer and what it was called with."""

from headrace import _api as tf
from headrace.autograph.calls import in_graph
from headrace.context import stack
from headrace.context.errors import OpError
from headrace.function import user_errors
from headrace.keras.base.call_context import context


def call(layer, *args, **kwargs):
    """layer.call(*args, **kwargs), converted where a graph is made. Its error is one of
    the same class that names the innermost layer and shows the arguments."""
    try:
        return in_graph(layer.call)(*args, **kwargs)
    except Exception as e:
        error = _told(e, layer, args, kwargs)
        if error is e:
            raise
        traceback = e.__traceback__
    raise error.with_traceback(traceback) from None


def _told(error, layer, args, kwargs):
    """The error to raise: the very one where it is told already, in graphs of
    TensorFlow 1, and where the arguments are none of the call's."""
    graph = stack.current()
    if hasattr(error, "_keras_call_info_injected") or (
        graph is not None and not stack.executing_eagerly_outside_functions()
    ):
        return error
    signature = layer._call_signature()
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return error
    if graph is not None and _is_converted(layer):
        error = user_errors.in_user_code(error, error.__traceback__) or error
    first = error.args[0] if error.args else ""
    text = error.message if isinstance(error, OpError) else first
    # The call that finds what a symbolic tensor becomes is told apart by its quotes.
    outermost = graph is not None and len(context.names) <= 1
    quote = '"' if outermost and graph.name == "keras_graph" else "'"
    who = f"layer {quote}{layer.name}{quote} (type {type(layer).__name__})"
    shown = "\n".join(
        f"  • {name}={_described(given[name]) if name in given else p.default}"
        for name, p in signature.parameters.items()
    )
    made = _remade(
        error,
        f"Exception encountered when calling {who}.\n\n{text}\n\n"
        f"Call arguments received by {who}:\n{shown}",
    )
    made._keras_call_info_injected = True
    return made


def _is_converted(layer):
    """Whether the call is code of the user, and not of this package."""
    module = getattr(layer.call, "__module__", None) or ""
    return module.partition(".")[0] != "headrace"


def _described(value):
    return tf.nest.map_structure(_leaf, value)


def _leaf(x):
    if tf.is_tensor(x) and isinstance(x, tf.Tensor):
        return f"tf.Tensor(shape={x.shape}, dtype={x.dtype.name})"
    return repr(x)


def _remade(error, text):
    if isinstance(error, OpError):
        return type(error)(error.node_def, error.op, text)
    try:
        return type(error)(text)
    except TypeError:
        return RuntimeError(text)
