"""Learning rates of tf.compat.v1.train that fall with the step."""

import math

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework.support import signatures
from headrace.keras.optimizer import schedule


def _at(function, global_step, name, named=False):
    """function(step) as a tensor, of the scope's own name if it is to be named; eagerly
    what gives it whenever it is called."""
    if global_step is None:
        raise ValueError("Argument `global_step` must not be None")

    def rate():
        step = global_step() if _is_function(global_step) else global_step
        with tf.name_scope(name) as scope:
            found = function(tf.convert_to_tensor(step))
            if _headrace.is_eager() or not named:
                return found
            return tf.identity(found, name=scope)

    return rate if _headrace.is_eager() else rate()


def _is_function(value):
    return callable(value) and not isinstance(value, _headrace.VariableBase)


def _decay(name, doc, make, text, scope=None, named=True):
    """The function of a schedule: make(initial_learning_rate, ...) of its parameters,
    which `text` says but for the step and the name; its scope, and whether the result
    has this very name."""
    rate, *others = signatures.from_text(text)
    step = signatures.parameter("global_step")
    parameters = [rate, step, *others, signatures.parameter("name", None)]
    default = scope or "".join(word.capitalize() for word in name.split("_"))

    def call(learning_rate, global_step, name, **given):
        made = make(learning_rate, **given)
        return _at(made, global_step, name or default, named)

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
    scope="ExponentialDecay",
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
    named=False,
)


cosine_decay_restarts = _decay(
    "cosine_decay_restarts",
    "Half cosines from a rate down to a part of it, each longer and lower by factors.",
    schedule.CosineDecayRestarts,
    "learning_rate, first_decay_steps, t_mul=2.0, m_mul=1.0, alpha=0.0",
    scope="SGDRDecay",
)


def _linear_cosine(rate, decay_steps, num_periods, alpha, beta, noise=None):
    """The function of a step: a line down to 0, which `noise` may be added to, times
    cosine waves."""

    def decayed(step):
        start = tf.convert_to_tensor(rate)
        step = tf.cast(step, start.dtype)
        whole = tf.cast(decay_steps, start.dtype)
        done = tf.minimum(step, whole) / whole
        line = 1.0 - done
        if noise is not None:
            line = line + noise(tf.minimum(step, whole))
        waves = tf.cast(2.0 * num_periods, start.dtype) * done
        wave = 0.5 * (1.0 + tf.cos(math.pi * waves))
        return start * ((alpha + line) * wave + beta)

    return decayed


linear_cosine_decay = _decay(
    "linear_cosine_decay",
    "rate * ((alpha + 1 - step / decay_steps) * cosine waves + beta).",
    _linear_cosine,
    "learning_rate, decay_steps, num_periods=0.5, alpha=0.0, beta=0.001",
)


def _noisy(rate, decay_steps, initial_variance, variance_decay, **given):
    def noise(step):
        variance = initial_variance / tf.pow(1.0 + step, variance_decay)
        return tf.random.normal(step.shape, stddev=tf.sqrt(variance), dtype=step.dtype)

    return _linear_cosine(rate, decay_steps, noise=noise, **given)


noisy_linear_cosine_decay = _decay(
    "noisy_linear_cosine_decay",
    "As linear_cosine_decay, with normal noise whose variance falls with the step.",
    _noisy,
    "learning_rate, decay_steps, initial_variance=1.0, variance_decay=0.55, "
    "num_periods=0.5, alpha=0.0, beta=0.001",
)


def piecewise_constant(x, boundaries, values, name=None):
    """The value of the interval that x lies in."""
    made = schedule.PiecewiseConstantDecay(boundaries, values)
    return _at(made, x, name or "PiecewiseConstant")
