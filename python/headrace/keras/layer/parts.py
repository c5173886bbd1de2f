"""Initializers, regularizers and constraints of a layer's weights."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.keras import (
    activation,
    constraint,
    initializer,
    regularizer,
    serialization,
)

_matmul = _headrace.raw_op("MatMul")


class WeightOptions:
    """What a layer was told about one weight."""

    def __init__(self, init, regularize=None, constrain=None):
        self.initializer = initializer.get(init)
        self.regularizer = regularizer.get(regularize)
        self.constraint = constraint.get(constrain)

    def add_to(self, layer, name, shape, **kwargs):
        return layer.add_weight(
            name=name,
            shape=shape,
            initializer=self.initializer,
            regularizer=self.regularizer,
            constraint=self.constraint,
            **kwargs,
        )


class Weighted:
    """Mixed into layers: attributes `kernel_initializer` and the like."""

    def _take_options(self, **given):
        """Of each weight, (initializer, regularizer, constraint)."""
        object.__setattr__(self, "_options", {})
        for name, (init, regularize, constrain) in given.items():
            options = WeightOptions(init, regularize, constrain)
            self._options[name] = options
            setattr(self, f"{name}_initializer", options.initializer)
            setattr(self, f"{name}_regularizer", options.regularizer)
            setattr(self, f"{name}_constraint", options.constraint)

    def _new_weight(self, kind, shape, name=None, **kwargs):
        """A weight with the options of that kind, as they are now."""
        return self.add_weight(
            name=name or kind,
            shape=shape,
            initializer=getattr(self, f"{kind}_initializer"),
            regularizer=getattr(self, f"{kind}_regularizer"),
            constraint=getattr(self, f"{kind}_constraint"),
            **kwargs,
        )

    def _options_config(self, activity=True):
        """Configurations: all initializers, then regularizers, then constraints."""
        say = serialization.serialize
        names = list(self._options)
        config = {
            f"{n}_initializer": say(getattr(self, f"{n}_initializer")) for n in names
        }
        for n in names:
            config[f"{n}_regularizer"] = say(getattr(self, f"{n}_regularizer"))
        if activity:
            config["activity_regularizer"] = say(self.activity_regularizer)
        for n in names:
            config[f"{n}_constraint"] = say(getattr(self, f"{n}_constraint"))
        return config


def tuple_of(value, count, name, allow_zero=False):
    """`value` as `count` integers."""
    given = (value,) * count if isinstance(value, int) else tuple(value)
    least = 0 if allow_zero else 1
    if len(given) != count or any(not isinstance(v, int) or v < least for v in given):
        raise ValueError(
            f"The `{name}` argument must be a tuple of {count} integers. Received: "
            f"{value}"
        )
    return given


def times_kernel(inputs, kernel, size):
    """inputs @ kernel over the last axis of inputs, `size` wide, of any rank."""
    rank = inputs.shape.rank
    if rank == 2 or rank is None:
        return _matmul(a=inputs, b=kernel)
    out = tf.tensordot(inputs, kernel, [[rank - 1], [0]])
    return shaped(out, inputs.shape.as_list()[:-1] + [size])


def shaped(x, sizes):
    """x, known to have these sizes by what comes after it in a graph."""
    if isinstance(x, _headrace.EagerTensor):
        return x
    if x.shape.rank is not None and x.shape.as_list() == list(sizes):
        return x
    return tf.ensure_shape(x, sizes)


activation_of = activation.get
activation_name = activation.serialize
