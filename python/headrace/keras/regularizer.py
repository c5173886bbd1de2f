"""tf.keras.regularizers."""

import math

from headrace import _api as tf
from headrace.context import stack
from headrace.keras import serialization, settings


class Regularizer:
    """A penalty of a weight: called with it, gives a scalar."""

    _keras_module = "keras.regularizers"

    def __call__(self, x):
        return 0.0

    @classmethod
    def from_config(cls, config):
        """A regularizer of the dict that get_config() gave."""
        return cls(**config)

    def get_config(self):
        """The constructor's arguments as a dict.
        Subclasses that are saved define it."""
        config = serialization.config_of(self)
        if not config:
            raise NotImplementedError(f"{self} does not implement get_config()")
        return config


def _checked(x, name):
    if isinstance(x, (str, dict)) or x is None or math.isinf(x) or math.isnan(x):
        raise ValueError(
            f"Value: {x} is not a valid regularization penalty number, expected an int "
            f"or float value for argument {name}."
        )
    with stack.entering(None):  # a number also where graphs are built
        return float(tf.constant(x, settings.floatx()))


class L1L2(Regularizer):
    """l1 times the sum of |x| and l2 times the sum of squares."""

    def __init__(self, l1=0.0, l2=0.0):
        self.l1 = _checked(0.0 if l1 is None else l1, "l1")
        self.l2 = _checked(0.0 if l2 is None else l2, "l2")

    def __call__(self, x):
        out = tf.constant(0.0, x.dtype)
        if self.l1:
            out += self.l1 * tf.reduce_sum(tf.abs(x))
        if self.l2:
            out += 2.0 * self.l2 * tf.nn.l2_loss(x)
        return out


class L1(Regularizer):
    """l1 times the sum of |x|."""

    def __init__(self, l1=0.01, **kwargs):
        self.l1 = _checked(kwargs.pop("l", 0.01 if l1 is None else l1), "l1")
        if kwargs:
            raise TypeError(f"Argument(s) not recognized: {kwargs}")

    def __call__(self, x):
        return self.l1 * tf.reduce_sum(tf.abs(x))


class L2(Regularizer):
    """l2 times the sum of squares."""

    def __init__(self, l2=0.01, **kwargs):
        self.l2 = _checked(kwargs.pop("l", 0.01 if l2 is None else l2), "l2")
        if kwargs:
            raise TypeError(f"Argument(s) not recognized: {kwargs}")

    def __call__(self, x):
        return 2.0 * self.l2 * tf.nn.l2_loss(x)


class OrthogonalRegularizer(Regularizer):
    """Penalises rows (or columns) of a matrix that are not orthogonal."""

    def __init__(self, factor=0.01, mode="rows"):
        if mode not in ("rows", "columns"):
            raise ValueError(
                'Invalid value for argument `mode`. Expected one of {"rows", '
                f'"columns"}}. Received: mode={mode}'
            )
        self.factor, self.mode = _checked(factor, "factor"), mode

    def __call__(self, x):
        if x.shape.rank != 2:
            raise ValueError(
                "Inputs to OrthogonalRegularizer must have rank 2. Received: "
                f"inputs.shape={x.shape}"
            )
        rows = self.mode == "rows"
        x = tf.math.l2_normalize(x, axis=1 if rows else 0)
        products = tf.matmul(x, x, transpose_a=not rows, transpose_b=rows)
        size = x.shape[0] if rows else x.shape[1]
        off = products * (1.0 - tf.eye(size, dtype=x.dtype))
        pairs = max(size * (size - 1.0) / 2.0, 1.0)
        return self.factor * 0.5 * tf.reduce_sum(tf.abs(off)) / pairs


def l1_l2(l1=0.01, l2=0.01):
    """The L1L2 of these factors: l1 times the sum of |x|, l2 times that of x**2."""
    return L1L2(l1=l1, l2=l2)


_NAMES = serialization.classes_of(globals(), Regularizer)
_NAMES.update(l1=L1, l2=L2, l1_l2=l1_l2, orthogonal_regularizer=OrthogonalRegularizer)
get, deserialize = serialization.getter(_NAMES, "regularizer")
serialize = serialization.serializer("regularizer")
