"""Learning rates of tf.compat.v1.train that fall with the step."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.keras.optimizer import schedule


def _at(function, global_step, name):
    """function(step) as a tensor; eagerly what gives it whenever it is called."""
    if global_step is None:
        raise ValueError("Argument `global_step` must not be None")

    def rate():
        step = global_step() if _is_function(global_step) else global_step
        with tf.name_scope(name):
            return function(tf.convert_to_tensor(step))

    return rate if _headrace.is_eager() else rate()


def _is_function(value):
    return callable(value) and not isinstance(value, _headrace.VariableBase)


def exponential_decay(
    learning_rate, global_step, decay_steps, decay_rate, staircase=False, name=None
):
    """learning_rate * decay_rate ^ (step / decay_steps)."""
    made = schedule.ExponentialDecay(
        learning_rate, decay_steps, decay_rate, staircase=staircase
    )
    return _at(made, global_step, name or "ExponentialDecay")


def natural_exp_decay(
    learning_rate, global_step, decay_steps, decay_rate, staircase=False, name=None
):
    """learning_rate * e ^ (-decay_rate * step / decay_steps)."""
    rate = tf.exp(-tf.cast(decay_rate, tf.float32))
    made = schedule.ExponentialDecay(
        learning_rate, decay_steps, rate, staircase=staircase
    )
    return _at(made, global_step, name or "NaturalExpDecay")


def inverse_time_decay(
    learning_rate, global_step, decay_steps, decay_rate, staircase=False, name=None
):
    """learning_rate / (1 + decay_rate * step / decay_steps)."""
    made = schedule.InverseTimeDecay(
        learning_rate, decay_steps, decay_rate, staircase=staircase
    )
    return _at(made, global_step, name or "InverseTimeDecay")


def polynomial_decay(
    learning_rate,
    global_step,
    decay_steps,
    end_learning_rate=0.0001,
    power=1.0,
    cycle=False,
    name=None,
):
    """From one rate to another by a power of what is left of the steps."""
    made = schedule.PolynomialDecay(
        learning_rate, decay_steps, end_learning_rate, power, cycle
    )
    return _at(made, global_step, name or "PolynomialDecay")


def cosine_decay(learning_rate, global_step, decay_steps, alpha=0.0, name=None):
    """From a rate to a part of it along half a cosine."""
    made = schedule.CosineDecay(learning_rate, decay_steps, alpha)
    return _at(made, global_step, name or "CosineDecay")


def piecewise_constant(x, boundaries, values, name=None):
    """The value of the interval that x lies in."""
    made = schedule.PiecewiseConstantDecay(boundaries, values)
    return _at(made, x, name or "PiecewiseConstant")
