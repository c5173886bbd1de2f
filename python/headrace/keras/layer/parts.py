"""Initializers, regularizers and constraints of a layer's weights."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework.support import signatures
from headrace.keras.classes import with_constructor

_matmul = _headrace.raw_op("MatMul")


def option_names(*weights, activity=True):
    """Names of arguments: all initializers, then regularizers, then constraints."""
    return (
        *(f"{weight}_initializer" for weight in weights),
        *(f"{weight}_regularizer" for weight in weights),
        *(("activity_regularizer",) if activity else ()),
        *(f"{weight}_constraint" for weight in weights),
    )


_INITIALIZERS = {"recurrent": "orthogonal", "embeddings": "uniform"}
_INITIALIZERS |= dict.fromkeys(("bias", "beta", "alpha", "moving_mean"), "zeros")
_INITIALIZERS |= dict.fromkeys(("gamma", "moving_variance"), "ones")


def takes(
    text, *weights, initialized=(), before="kwargs", activity=True, between="", **fixed
):
    """classes.takes() for layers: adds the parameters of `weights` to those in the text.

    Of those in `initialized` there is an initializer only. They come before the
    parameter `before`, those of the text `between` behind the initializers; with
    `activity` the activity_regularizer is among them.
    """
    names = [
        name
        for name in option_names(*weights, *initialized, activity=activity and weights)
        if not name.startswith(initialized or "0") or name.endswith("_initializer")
    ]

    def of(name):
        weight, _, kind = name.rpartition("_")
        initial = _INITIALIZERS.get(weight, "glorot_uniform")
        return signatures.parameter(name, initial if kind == "initializer" else None)

    def decorate(cls):
        parameters = signatures.from_text(f"self, {text}")
        place = [p.name for p in parameters].index(before)
        added = [of(name) for name in names]
        middle = len(weights) + len(initialized)
        added[middle:middle] = signatures.from_text(between)
        parameters[place:place] = added
        return with_constructor(cls, parameters, fixed, {"activity_regularizer"})

    return decorate


class Weighted:
    """Mixed into layers with attributes `kernel_initializer` and the like."""

    def _new_weight(self, kind, shape, name=None, initializer=None, **kwargs):
        """A weight with the options of that kind, as they are now."""
        return self.add_weight(
            name=name or kind,
            shape=shape,
            initializer=initializer or getattr(self, f"{kind}_initializer"),
            regularizer=getattr(self, f"{kind}_regularizer", None),
            constraint=getattr(self, f"{kind}_constraint", None),
            **kwargs,
        )


def counted_axes(axes, rank):
    """Axes counted from the first; ValueError for what is none of inputs of that rank, or
    is said twice."""
    axes = [a + rank if a < 0 else a for a in axes]
    if any(not 0 <= a < rank for a in axes):
        raise ValueError(
            "Invalid value for `axis` argument. Expected 0 <= axis < inputs.rank (with "
            f"inputs.rank={rank}). Received: axis={tuple(axes)}"
        )
    if len(set(axes)) != len(axes):
        raise ValueError(f"Duplicate axis: {tuple(axes)}")
    return axes


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
    if not isinstance(inputs, _headrace.Tensor):
        if isinstance(inputs, tf.experimental.ExtensionType):
            return tf.matmul(inputs, kernel)  # as its type says
        if isinstance(inputs, tf.SparseTensor):
            out = tf.sparse.sparse_dense_matmul(inputs, kernel)
            return shaped(out, [inputs.shape[0], size])
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
