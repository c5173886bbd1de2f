"""Scopes of the strategies under which models were made."""

import contextlib

from headrace import _api as tf
from headrace.context import strategies


def in_scope(strategy):
    """The scope of a model's strategy, unless code is in it."""
    if strategy is None or strategies.strategy() is strategy:
        return contextlib.nullcontext()
    return strategy.scope()


def check_variables(variables):
    """ValueError for a model's variables that were not made in the scope of the strategy
    in force."""
    strategy = strategies.strategy()
    if strategy is None:
        return
    for v in variables:
        if not strategy.extended.variable_created_in_scope(v):
            raise ValueError(
                f"Variable ({v}) was not created in the distribution strategy scope of "
                f"({strategy}). It is most likely because some layers, model, or optimizer "
                "was being created outside the distribution strategy scope. Try to make "
                "sure your code looks similar to the following.\n"
                "with strategy.scope():\n  model=_create_model()\n  model.compile(...)"
            )


def check_scope(strategy, metrics):
    """ValueError for metrics that were made in another scope than the model."""
    for metric in tf.nest.flatten(metrics):
        for v in getattr(metric, "weights", ()):
            if getattr(v, "_distribute_strategy", None) is not strategy:
                raise ValueError(
                    f"Metric ({metric}) passed to `model.compile` was created inside a "
                    "different distribution strategy scope than the model. All metrics "
                    "must be created in the same distribution strategy scope as the model "
                    f"(in this case {strategy}). If you pass in a string identifier for a "
                    "metric to compile, the metric will automatically be created in the "
                    "correct distribution strategy scope."
                )
