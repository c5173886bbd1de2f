"""What metrics of a graph are made of: their variables, scopes and collections."""

from headrace import _api as tf
from headrace.context import stack
from headrace.framework import execution
from headrace.framework.support import signatures
from headrace.keras.loss import squeeze_or_expand
from headrace.v1 import collections, weights as weighting
from headrace.v1.variable_scope import variable_scope, variable_v1

GraphKeys = collections.GraphKeys


def check(name):
    """RuntimeError where operations run at once."""
    execution.only_in_graphs(
        f"tf.metrics.{name} is not supported when eager execution is enabled."
    )


def metric_variable(shape, dtype, name=None):
    """A variable of zeros that is neither saved nor trained."""
    graph = stack.current()
    # As get_variable's names: the name scope in force is the variable scope's.
    full = f"{graph._core.scope}{name}" if name else graph._core.scope
    with graph.name_scope(""):
        return variable_v1(
            initial_value=lambda: tf.zeros(shape, dtype),
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
            name=full,
        )


def collected(value, update, metrics_collections, updates_collections):
    """The two, noted in the collections that are named."""
    graph = stack.current()
    for names, tensor in ((metrics_collections, value), (updates_collections, update)):
        if names:
            graph.add_to_collections(names, tensor)
    return value, update


def added(variable, amount):
    """The variable's value after `amount` was added."""
    return variable.assign_add(amount, read_value=True)


def weights_like(weights, values):
    """The weights, one for each value."""
    weights = tf.cast(weights, values.dtype)
    return weighting.broadcast(weighting.matched(weights, values), values)


def matched(labels, predictions, weights=None):
    """The tensors with a last dimension of 1 taken off where the others lack it."""
    predictions = tf.convert_to_tensor(predictions)
    labels = tf.convert_to_tensor(labels)
    predictions, labels, _ = squeeze_or_expand(predictions, labels)
    predictions.shape.assert_is_compatible_with(labels.shape)
    if weights is not None:
        weights = tf.convert_to_tensor(weights)
    return labels, predictions, weights


# What the value and the update are called and where they go: of every metric.
WHERE = signatures.from_text(
    "metrics_collections=None, updates_collections=None, name=None"
)

_PAIR = """

    `weights` broadcast to the values. Gives (value, update_op): update_op takes in the
    batch and gives the new value; both go to the collections that are named. The
    counts are local variables of the graph; RuntimeError when eager.
    """


def _described(function):
    function.__doc__ = function.__doc__.rstrip() + _PAIR
    return function


def metric(default=None, parameters=None):
    """Decorates what gives a (value, update): a metric in a scope of this name, its own
    by default, whose two results are collected. It takes the function's parameters and
    WHERE, or those of a text."""

    def decorate(function):
        scope = default or function.__name__

        def call(metrics_collections, updates_collections, name, **given):
            check(function.__name__)
            with variable_scope(name, scope):
                found = function(**given)
                return collected(*found, metrics_collections, updates_collections)

        taken = signatures.parameters_of(function) + WHERE
        if parameters:
            taken = signatures.from_text(parameters)
        return signatures.function_of(_described(function), taken, call)

    return decorate


def metric_of_metrics(function):
    """Decorates what gives (value, update) made of another metric's, given a `name`."""

    def call(metrics_collections, updates_collections, name, **given):
        check(function.__name__)
        found = function(**given, name=name)
        return collected(*found, metrics_collections, updates_collections)

    parameters = signatures.parameters_of(function)[:-1]
    return signatures.function_of(_described(function), parameters + WHERE, call)


def of_pairs(name, what, compute):
    """The metric of a compute(labels, predictions, weights) of tensors that match."""

    def function(labels, predictions, weights=None):
        return compute(*matched(labels, predictions, weights))

    return metric()(signatures.called(function, name, what))
