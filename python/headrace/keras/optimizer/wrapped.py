"""Optimizers of tf.compat.v1.train as a model's."""

from headrace import _api as tf
from headrace.context import stack
from headrace.framework.trackable import AutoTrackable
from headrace.keras import settings


class TFOptimizer(AutoTrackable):
    """An optimizer of tf.compat.v1.train that trains a Keras model.

    Attributes:
      optimizer: the optimizer itself.
      iterations: how often gradients were applied: an int64 variable.
    """

    use_ema = False

    def __init__(self, optimizer, iterations=None):
        self.optimizer = optimizer
        self._iterations = iterations

    @property
    def iterations(self):
        """How often gradients were applied: an int64 variable."""
        if self._iterations is None:
            with stack.init_scope(), tf.name_scope("TFOptimizer/"):
                self._iterations = settings.variable(0, "int64", "iterations")
        return self._iterations

    def get_gradients(self, loss, params):
        """A list of (gradient, variable)."""
        return self.optimizer.compute_gradients(loss, params)

    def minimize(self, loss, var_list, tape=None):
        """Computes gradients of the loss, a tensor that `tape` recorded, and applies
        them."""
        gradients = tape.gradient(loss, var_list)
        self.apply_gradients(zip(gradients, var_list))

    def apply_gradients(self, grads_and_vars):
        """Updates variables by their gradients and counts the step."""
        return self.optimizer.apply_gradients(
            grads_and_vars, global_step=self.iterations
        )

    def get_updates(self, loss, params):
        """The operations of a graph that make one training step."""
        if not params:
            return []
        found = [self.apply_gradients(self.get_gradients(loss, params))]
        for variable in self.weights:
            settings.keep(variable)
        return found

    @property
    def weights(self):
        """A list of the variables that the optimizer made."""
        return list(self.optimizer.variables())

    variables = weights

    def get_config(self):
        """Not there: NotImplementedError."""
        raise NotImplementedError(
            "Optimizers of tf.compat.v1.train have no configuration: use one of "
            "tf.keras.optimizers to save a model with its optimizer"
        )


def is_one(identifier):
    """Whether something is an optimizer that TFOptimizer takes."""
    needed = ("compute_gradients", "apply_gradients", "_create_slots")
    return not isinstance(identifier, type) and all(
        hasattr(identifier, name) for name in needed
    )
