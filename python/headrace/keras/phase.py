"""Whether a model trains or not: known when a graph is built, or when it is run."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework import execution


def is_tensor(condition):
    """Whether a condition is a tensor or variable, and no Python value."""
    return isinstance(condition, (_headrace.Tensor, _headrace.VariableBase))


def is_off(condition):
    """Whether it is known that a model does not train."""
    return not is_tensor(condition) and not condition


def choose(condition, yes, no):
    """yes() or no(), by a condition that is known, else a tf.cond of both."""
    if is_tensor(condition):
        known = execution.get_static_value(tf.convert_to_tensor(condition))
        if known is None:
            return tf.cond(tf.cast(condition, tf.bool), yes, no)
        condition = known
    return yes() if condition else no()


def dropped(x, rate, condition):
    """x, in training with the share `rate` of its elements dropped."""
    return choose(condition, lambda: tf.nn.dropout(x, rate), lambda: x)
