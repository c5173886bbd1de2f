"""tf.keras.optimizers.schedules: learning rates as functions of the step."""

import math

from headrace import _api as tf
from headrace.keras import serialization
from headrace.keras.classes import takes


class LearningRateSchedule:
    """Called with a step, gives the rate."""

    _keras_module = "keras.optimizers.schedules"

    def __call__(self, step):
        raise NotImplementedError(
            f"Learning rate schedule '{type(self).__name__}' must override "
            "`__call__(self, step)`."
        )

    def get_config(self):
        """The constructor's arguments as a dict.
        Subclasses that are saved define it."""
        config = serialization.config_of(self)
        if not config:
            raise NotImplementedError(
                f"Learning rate schedule '{type(self).__name__}' must override "
                "`get_config()` in order to be serializable."
            )
        return config

    @classmethod
    def from_config(cls, config):
        """A schedule of the dict that get_config() gave."""
        return cls(**config)


def _rate(number):
    return tf.convert_to_tensor(number, dtype_hint=tf.float32)


@takes("initial_learning_rate, decay_steps, decay_rate, staircase=False, name=None")
class _RateDecay(LearningRateSchedule):
    """Falls by a rate that is reached every `decay_steps`."""

    def __call__(self, step):
        start = _rate(self.initial_learning_rate)
        dtype = start.dtype
        periods = tf.cast(step, dtype) / tf.cast(self.decay_steps, dtype)
        if self.staircase:
            periods = tf.floor(periods)
        return self._decayed(start, tf.cast(self.decay_rate, dtype), periods)


class ExponentialDecay(_RateDecay):
    """rate^(step / decay_steps) of the first rate; by steps where `staircase`."""

    def _decayed(self, start, rate, periods):
        return start * tf.pow(rate, periods)


class InverseTimeDecay(_RateDecay):
    """The first rate over 1 + rate step / decay_steps; by steps where `staircase`."""

    def _decayed(self, start, rate, periods):
        return start / (1.0 + rate * periods)


@takes(
    "initial_learning_rate, decay_steps, end_learning_rate=0.0001, power=1.0, "
    "cycle=False, name=None"
)
class PolynomialDecay(LearningRateSchedule):
    """From the first rate to the last along a power of the steps left."""

    def __call__(self, step):
        rate = _rate(self.initial_learning_rate)
        end = tf.cast(self.end_learning_rate, rate.dtype)
        step = tf.cast(step, rate.dtype)
        whole = tf.cast(self.decay_steps, rate.dtype)
        if self.cycle:
            times = tf.where(tf.equal(step, 0), 1.0, tf.math.ceil(step / whole))
            whole = whole * times
        else:
            step = tf.minimum(step, whole)
        left = tf.pow(1.0 - step / whole, tf.cast(self.power, rate.dtype))
        return (rate - end) * left + end


@takes("boundaries, values, name=None")
class PiecewiseConstantDecay(LearningRateSchedule):
    """values[i] up to boundaries[i], the last value behind them all."""

    def _begin(self):
        boundaries, values = self.boundaries, self.values
        if len(boundaries) != len(values) - 1:
            raise ValueError(
                "The length of boundaries should be 1 less than the length of values. "
                f"Received: boundaries={boundaries} of length {len(boundaries)}, and "
                f"values={values} of length {len(values)}."
            )

    def __call__(self, step):
        step = tf.convert_to_tensor(step)
        limits = tf.cast(tf.convert_to_tensor(self.boundaries), step.dtype)
        passed = tf.reduce_sum(tf.cast(step > limits, tf.int32))
        values = tf.convert_to_tensor(self.values, dtype_hint=tf.float32)
        return tf.gather(values, passed)


def _cosine(done):
    """From 1 to 0 along half a wave, as `done` goes from 0 to 1."""
    return 0.5 * (1.0 + tf.cos(tf.constant(math.pi, done.dtype) * done))


@takes(
    "initial_learning_rate, decay_steps, alpha=0.0, name=None, warmup_target=None, "
    "warmup_steps=0"
)
class CosineDecay(LearningRateSchedule):
    """Half a cosine wave down to `alpha` of the rate, after a warm-up if wanted."""

    def _decayed(self, step, whole, start):
        wave = _cosine(tf.minimum(step, whole) / whole)
        return start * ((1 - self.alpha) * wave + self.alpha)

    def __call__(self, step):
        start = _rate(self.initial_learning_rate)
        dtype = start.dtype
        step = tf.cast(step, dtype)
        whole = tf.cast(self.decay_steps, dtype)
        if self.warmup_target is None:
            return self._decayed(step, whole, start)
        target = tf.cast(self.warmup_target, dtype)
        warm = tf.cast(self.warmup_steps, dtype)
        rising = (target - start) * (step / warm) + start
        falling = self._decayed(tf.minimum(step, warm + whole) - warm, whole, target)
        return tf.where(step < warm, rising, falling)


@takes(
    "initial_learning_rate, first_decay_steps, t_mul=2.0, m_mul=1.0, alpha=0.0, "
    "name=None"
)
class CosineDecayRestarts(LearningRateSchedule):
    """Half waves that begin anew, each `t_mul` longer and `m_mul` as high."""

    def __call__(self, step):
        start = _rate(self.initial_learning_rate)
        dtype = start.dtype
        done = tf.cast(step, dtype) / tf.cast(self.first_decay_steps, dtype)
        times, scale = tf.cast(self.t_mul, dtype), tf.cast(self.m_mul, dtype)
        if self.t_mul == 1.0:
            restarts = tf.floor(done)
            done = done - restarts
        else:
            restarts = tf.floor(
                tf.math.log(1.0 - done * (1.0 - times)) / tf.math.log(times)
            )
            passed = (1.0 - times**restarts) / (1.0 - times)
            done = (done - passed) / times**restarts
        wave = scale**restarts * _cosine(done)
        return start * ((1 - self.alpha) * wave + self.alpha)


_CLASSES = serialization.classes_of(globals(), LearningRateSchedule)
_, deserialize = serialization.getter(_CLASSES, "decay")
serialize = serialization.serializer("learning_rate_schedule")
