"""tf.keras.optimizers.experimental: checkpoints as TensorFlow's newer optimizers'.

They train as those of tf.keras.optimizers do, and read the same files. What they
write has lists of variables in place of slots (`optimizer/_variables/1`), as
Keras 2.11 and later have it.
"""

from headrace import _api as tf
from headrace.keras.optimizer import current


class _Listing:
    """Mixed with an optimizer: its checkpoints have lists."""

    _keras_module = "keras.optimizers.experimental"
    _writes_lists = True

    def _after(self, known):
        super()._after(known)
        if self._schedule is not None and known:
            rate = next(iter(known.values()))["lr"]
            self._current_learning_rate.assign(
                tf.cast(rate, tf.float32), read_value=False
            )


class Optimizer(_Listing, current.Optimizer):
    """The base of these optimizers."""


class SGD(_Listing, current.SGD):
    """SGD whose checkpoints have lists."""


class Adam(_Listing, current.Adam):
    """Adam whose checkpoints have lists."""


class AdamW(_Listing, current.AdamW):
    """AdamW whose checkpoints have lists."""


class RMSprop(_Listing, current.RMSprop):
    """RMSprop whose checkpoints have lists."""


class Adagrad(_Listing, current.Adagrad):
    """Adagrad whose checkpoints have lists."""


class Ftrl(_Listing, current.Ftrl):
    """Ftrl whose checkpoints have lists."""


class Adadelta(_Listing, current.Adadelta):
    """Adadelta whose checkpoints have lists."""


class Adamax(_Listing, current.Adamax):
    """Adamax whose checkpoints have lists."""


class Nadam(_Listing, current.Nadam):
    """Nadam whose checkpoints have lists."""
