"""Models of graphs as they would be without one: for what saves code that runs at once."""

import copy

from headrace import _api as tf
from headrace.context import stack
from headrace.keras import settings

# What holds tensors and runs of a graph, and where it is a list, an empty one stands.
_OF_GRAPHS = "updates call_losses inbound outbound graph_training steps losses".split()
_OF_GRAPHS += ["compiled_metrics", "compiled_with", "steps_variable"]
_OF_MODELS = "optimizer history train_function test_function predict_function".split()


def copy_of(model):
    """A copy of a model whose call is code, or of a layer, its variables outside of all
    graphs with the values that Keras' session has; it is not compiled."""
    memo, values = {}, settings.batch_get_value(model.weights)
    with stack.entering(None):
        for v, value in zip(model.weights, values):
            name = v.name.rpartition(":")[0]
            memo[id(v)] = tf.Variable(
                value, trainable=v.trainable, name=name, dtype=v.dtype
            )
        for layer in model._flatten_layers():
            for name in _OF_GRAPHS:
                _leave_out(layer._keras.__dict__.get(name), memo)
            for name in _OF_MODELS:
                _leave_out(layer.__dict__.get(name), memo)
        made = copy.deepcopy(model, memo)
        for layer in made._flatten_layers():
            layer._keras.made_in_graph = False
    return made


def _leave_out(thing, memo):
    if thing is not None:
        memo[id(thing)] = type(thing)() if isinstance(thing, (list, dict)) else None
