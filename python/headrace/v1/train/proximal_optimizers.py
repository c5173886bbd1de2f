"""Optimizers of tf.compat.v1.train with penalties: proximal ones, and AdagradDA."""

from headrace import _api as tf
from headrace.v1.train.optimizer import Optimizer, filled
from headrace.v1.train.optimizers import AdagradOptimizer


class ProximalGradientDescentOptimizer(Optimizer):
    """Down the gradient, then towards zero by L1 and L2 penalties.

    All rates and strengths are numbers or scalar tensors.
    """

    def __init__(
        self,
        learning_rate,
        l1_regularization_strength=0.0,
        l2_regularization_strength=0.0,
        use_locking=False,
        name="ProximalGradientDescent",
    ):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1 = l1_regularization_strength
        self._l2 = l2_regularization_strength

    def _arguments(self, variable):
        return {
            "alpha": self._number(self._learning_rate, variable),
            "l1": self._number(self._l1, variable),
            "l2": self._number(self._l2, variable),
        }

    def _apply_dense(self, gradient, variable):
        self._update(
            "ApplyProximalGradientDescent",
            variable,
            delta=gradient,
            **self._arguments(variable),
        )

    def _apply_sparse(self, values, rows, variable):
        self._update(
            "SparseApplyProximalGradientDescent",
            variable,
            grad=values,
            indices=rows,
            **self._arguments(variable),
        )


class ProximalAdagradOptimizer(AdagradOptimizer):
    """Rates fall with the squares seen so far, then L1 and L2 penalties.

    ValueError where `initial_accumulator_value` is not positive.
    """

    def __init__(
        self,
        learning_rate,
        initial_accumulator_value=0.1,
        l1_regularization_strength=0.0,
        l2_regularization_strength=0.0,
        use_locking=False,
        name="ProximalAdagrad",
    ):
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)
        self._l1 = l1_regularization_strength
        self._l2 = l2_regularization_strength

    def _arguments(self, variable):
        return {
            **super()._arguments(variable),
            "l1": self._number(self._l1, variable),
            "l2": self._number(self._l2, variable),
        }

    def _apply_dense(self, gradient, variable):
        self._update(
            "ApplyProximalAdagrad", variable, grad=gradient, **self._arguments(variable)
        )

    def _apply_sparse(self, values, rows, variable):
        self._update(
            "SparseApplyProximalAdagrad",
            variable,
            grad=values,
            indices=rows,
            **self._arguments(variable),
        )


class AdagradDAOptimizer(Optimizer):
    """Adagrad by dual averaging: weights follow from the sums of all gradients.

    `global_step` is the step counter's variable or tensor. ValueError where
    `initial_gradient_squared_accumulator_value` is not positive.
    """

    def __init__(
        self,
        learning_rate,
        global_step,
        initial_gradient_squared_accumulator_value=0.1,
        l1_regularization_strength=0.0,
        l2_regularization_strength=0.0,
        use_locking=False,
        name="AdagradDA",
    ):
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError(
                "initial_gradient_squared_accumulator_value must be positive: "
                f"{initial_gradient_squared_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial = initial_gradient_squared_accumulator_value
        self._l1 = l1_regularization_strength
        self._l2 = l2_regularization_strength
        self._global_step = global_step

    def _create_slots(self, variables):
        for v in variables:
            self._zeros_slot(v, "gradient_accumulator", self._name)
            self._make_slot(
                v,
                "gradient_squared_accumulator",
                self._name,
                filled(v, self._initial),
            )

    def _arguments(self, variable):
        sums, squares = (
            self.get_slot(variable, name)
            for name in ("gradient_accumulator", "gradient_squared_accumulator")
        )
        return {
            "gradient_accumulator": sums,
            "gradient_squared_accumulator": squares,
            "lr": self._number(self._learning_rate, variable),
            "l1": self._number(self._l1, variable),
            "l2": self._number(self._l2, variable),
            "global_step": tf.cast(self._global_step, tf.int64) + 1,
        }

    def _apply_dense(self, gradient, variable):
        self._update(
            "ApplyAdagradDA", variable, grad=gradient, **self._arguments(variable)
        )

    def _apply_sparse(self, values, rows, variable):
        self._update(
            "SparseApplyAdagradDA",
            variable,
            grad=values,
            indices=rows,
            **self._arguments(variable),
        )
