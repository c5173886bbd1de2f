"""Learning rates of tf.compat.v1.train that fall with the step."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework.support import signatures
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


def _decay(name, doc, make, text):
    """The function of a schedule: make(initial_learning_rate, ...) of its parameters,
    which `text` says but for the step and the name."""
    rate, *others = signatures.from_text(text)
    step = signatures.parameter("global_step")
    parameters = [rate, step, *others, signatures.parameter("name", None)]
    default = "".join(word.capitalize() for word in name.split("_"))

    def call(learning_rate, global_step, name, **given):
        return _at(make(learning_rate, **given), global_step, name or default)

    return signatures.function_of(
        signatures.named(name, doc, __name__), parameters, call
    )


exponential_decay = _decay(
    "exponential_decay",
    "learning_rate * decay_rate ^ (step / decay_steps).",
    schedule.ExponentialDecay,
    "learning_rate, decay_steps, decay_rate, staircase=False",
)


def _natural(rate, decay_steps, decay_rate, staircase):
    factor = tf.exp(-tf.cast(decay_rate, tf.float32))
    return schedule.ExponentialDecay(rate, decay_steps, factor, staircase)


natural_exp_decay = _decay(
    "natural_exp_decay",
    "learning_rate * e ^ (-decay_rate * step / decay_steps).",
    _natural,
    "learning_rate, decay_steps, decay_rate, staircase=False",
)
inverse_time_decay = _decay(
    "inverse_time_decay",
    "learning_rate / (1 + decay_rate * step / decay_steps).",
    schedule.InverseTimeDecay,
    "learning_rate, decay_steps, decay_rate, staircase=False",
)
polynomial_decay = _decay(
    "polynomial_decay",
    "From one rate to another by a power of what is left of the steps.",
    schedule.PolynomialDecay,
    "learning_rate, decay_steps, end_learning_rate=0.0001, power=1.0, cycle=False",
)
cosine_decay = _decay(
    "cosine_decay",
    "From a rate to a part of it along half a cosine.",
    schedule.CosineDecay,
    "learning_rate, decay_steps, alpha=0.0",
)


def piecewise_constant(x, boundaries, values, name=None):
    """The value of the interval that x lies in."""
    made = schedule.PiecewiseConstantDecay(boundaries, values)
    return _at(made, x, name or "PiecewiseConstant")
