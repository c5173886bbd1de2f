"""Optimizers of ready-made estimators: by name, made, or made by a function."""

import contextlib

from headrace import _api as tf
from headrace.estimator.heads.base import updates_of
from headrace.keras.optimizer import legacy
from headrace.keras.optimizer.base import BaseOptimizer
from headrace.v1 import collections
from headrace.v1.train import global_step
from headrace.v1.train.optimizer import rules as optimizers
from headrace.v1.train.optimizer.base import Optimizer
from headrace.v1.variable_scope import variable_scope

_NAMES = {
    "Adagrad": legacy.Adagrad,
    "Adam": legacy.Adam,
    "Ftrl": legacy.Ftrl,
    "RMSProp": legacy.RMSprop,
    "SGD": legacy.SGD,
}
_NAMES_V1 = {
    "Adagrad": optimizers.AdagradOptimizer,
    "Adam": optimizers.AdamOptimizer,
    "Ftrl": optimizers.FtrlOptimizer,
    "RMSProp": optimizers.RMSPropOptimizer,
    "SGD": optimizers.GradientDescentOptimizer,
}


def _by_name(optimizer, names, rate):
    if optimizer not in names:
        raise ValueError(
            f"Unsupported optimizer name: {optimizer}. Supported names are: "
            f"{tuple(sorted(names))}"
        )
    return names[optimizer]() if rate is None else names[optimizer](rate)


def instance(optimizer, rate=None):
    """A Keras optimizer. A name stands for one with the learning rate `rate`, its own
    default where that is None. ValueError for others, TypeError for no optimizer."""
    if isinstance(optimizer, str):
        return _by_name(optimizer, _NAMES, rate)
    if callable(optimizer) and not isinstance(optimizer, BaseOptimizer):
        optimizer = optimizer()
    if not isinstance(optimizer, BaseOptimizer):
        raise ValueError(
            "The given object is not a tf.keras.optimizers.Optimizer instance. Given: "
            f"{optimizer}"
        )
    return _fresh(optimizer)


def instance_v1(optimizer, rate):
    """A tf.compat.v1.train.Optimizer. A name stands for one with the learning rate
    `rate`. ValueError for others and for no optimizer."""
    if isinstance(optimizer, str):
        return _by_name(optimizer, _NAMES_V1, rate)
    if callable(optimizer):
        optimizer = optimizer()
    if not isinstance(optimizer, Optimizer):
        raise ValueError(
            f"The given object is not an Optimizer instance. Given: {optimizer}"
        )
    return optimizer


def _fresh(optimizer):
    """One of the same settings: graphs that are made one after the other each have
    variables of their own."""
    return type(optimizer).from_config(optimizer.get_config())


class Plan:
    """Which variables of a graph each optimizer changes: [(optimizer, scope)]; the
    first one counts the graph's step."""

    def __init__(self, parts):
        self._parts = parts

    def update(self, loss):
        """The operation of one step."""
        keys, done = collections.GraphKeys, []
        graph = tf.compat.v1.get_default_graph()
        for place, (optimizer, scope) in enumerate(self._parts):
            variables = graph.get_collection(keys.TRAINABLE_VARIABLES, f"{scope}/")
            if isinstance(optimizer, Optimizer):
                with self._slots_within(scope):
                    done.append(optimizer.minimize(loss, var_list=variables))
                continue
            if place == 0:
                optimizer.iterations = global_step.get_or_create_global_step()
            done.append(updates_of(optimizer, loss, variables))
        return tf.group(*done)

    def _slots_within(self, scope):
        """Where slots are made: those of a model of one part within its scope, as
        upstream's, whose names in checkpoints tell it."""
        if len(self._parts) > 1:
            return contextlib.nullcontext()
        return variable_scope(scope, auxiliary_name_scope=False)

    def counts(self):
        """Whether the first optimizer counts the step itself."""
        return not isinstance(self._parts[0][0], Optimizer)
