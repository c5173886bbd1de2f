"""Initializers, regularizers and constraints of a layer's weights."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.keras import (
    activation,
    constraint,
    initializer,
    regularizer,
)

_matmul = _headrace.raw_op("MatMul")


_OPTIONS = {
    "initializer": initializer.get,
    "regularizer": regularizer.get,
    "constraint": constraint.get,
}


def option(name, value):
    """What an argument such as kernel_initializer stands for."""
    return _OPTIONS[name.rpartition("_")[2]](value)


def option_names(*weights, activity=True):
    """Names of arguments: all initializers, then regularizers, then constraints."""
    return (
        *(f"{weight}_initializer" for weight in weights),
        *(f"{weight}_regularizer" for weight in weights),
        *(("activity_regularizer",) if activity else ()),
        *(f"{weight}_constraint" for weight in weights),
    )


class Weighted:
    """Mixed into layers: attributes `kernel_initializer` and the like."""

    def _take_options(self, arguments, *weights):
        """Keeps what the constructor's arguments (its locals()) say of each weight."""
        for weight in weights:
            for kind in _OPTIONS:
                name = f"{weight}_{kind}"
                setattr(self, name, option(name, arguments.get(name)))

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
