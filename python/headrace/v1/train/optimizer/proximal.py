"""Optimizers of tf.compat.v1.train with penalties: proximal ones, and AdagradDA."""

from headrace import _api as tf
from headrace.v1.train.optimizer.base import Optimizer
from headrace.v1.train.optimizer.rules import (
    AdagradOptimizer,
    check_positive,
    numbers,
    takes,
)


class ProximalGradientDescentOptimizer(Optimizer):
    """Down the gradient, then towards zero by L1 and L2 penalties.

    All rates and strengths are numbers or scalar tensors.
    """

    _op = "ProximalGradientDescent"
    _number_inputs = numbers("alpha=learning_rate l1 l2")

    __init__ = takes(
        "learning_rate, l1_regularization_strength=0.0, "
        "l2_regularization_strength=0.0, use_locking=False, "
        "name='ProximalGradientDescent'"
    )

    def _change(self, gradient, variable):
        arguments = self._arguments(variable)
        self._update(f"Apply{self._op}", variable, delta=gradient, **arguments)


class ProximalAdagradOptimizer(AdagradOptimizer):
    """Rates fall with the squares seen so far, then L1 and L2 penalties.

    ValueError where `initial_accumulator_value` is not positive.
    """

    _op = "ProximalAdagrad"
    _number_inputs = numbers("lr=learning_rate l1 l2")

    __init__ = takes(
        "learning_rate, initial_accumulator_value=0.1, "
        "l1_regularization_strength=0.0, l2_regularization_strength=0.0, "
        "use_locking=False, name='ProximalAdagrad'"
    )


class AdagradDAOptimizer(Optimizer):
    """Adagrad by dual averaging: weights follow from the sums of all gradients.

    `global_step` is the step counter's variable or tensor. ValueError where
    `initial_gradient_squared_accumulator_value` is not positive.
    """

    _op = "AdagradDA"
    _slots_begin = {"gradient_accumulator": 0}
    _slots_begin["gradient_squared_accumulator"] = "_initial"
    _number_inputs = numbers("lr=learning_rate l1 l2")

    __init__ = takes(
        "learning_rate, global_step, "
        "initial_gradient_squared_accumulator_value=0.1, "
        "l1_regularization_strength=0.0, l2_regularization_strength=0.0, "
        "use_locking=False, name='AdagradDA'"
    )

    def _begin(self):
        check_positive("initial_gradient_squared_accumulator_value", self._initial)

    def _arguments(self, variable):
        arguments = super()._arguments(variable)
        arguments["global_step"] = tf.cast(self._global_step, tf.int64) + 1
        return arguments
