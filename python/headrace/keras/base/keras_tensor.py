"""What layers are called with to describe a functional model."""

import collections

from headrace import _api as tf
from headrace.context.properties import read_only
from headrace.keras.base import dispatch


class KerasTensor:
    """A tensor that is yet to come: its shape, dtype and the layer that makes it.

    Attributes:
      history: (layer, index of the layer's call, index of the output).
      mask_spec: the TensorSpec of the mask that will come with it, or None.
    """

    def __init__(self, shape, dtype, name=None, mask_spec=None):
        self._set_spec(tf.TensorSpec(shape, dtype, name), name, mask_spec)

    @classmethod
    def of_spec(cls, spec, name=None):
        """One for values of an extension type, whose spec has a `shape`."""
        made = cls.__new__(cls)
        made._set_spec(spec, name, None)
        return made

    def _set_spec(self, spec, name, mask_spec):
        self.type_spec = spec
        self._name = name
        self.mask_spec = mask_spec
        self.history = None

    shape = read_only(
        "type_spec.shape", "The static shape: a TensorShape, with None for the batch."
    )

    dtype = read_only("type_spec.dtype", "The tf.DType.")

    name = read_only("_name", "The name: a str, or None.")

    @property
    def node(self):
        """The call that makes it: one of the layer's inbound_nodes."""
        layer, index, _ = self.history
        return layer.inbound_nodes[index]

    _keras_history = read_only("history")

    def get_shape(self):
        """The same as `shape`."""
        return self.shape

    def set_shape(self, shape):
        """Says more of the shape."""
        known = self.shape.merge_with(shape)
        self.type_spec = tf.TensorSpec(known, self.dtype, self.type_spec.name)

    def __repr__(self):
        layer = f" (created by layer '{self.history[0].name}')" if self.history else ""
        if not isinstance(self.type_spec, tf.TensorSpec):
            return f"<KerasTensor: type_spec={self.type_spec!r}{layer}>"
        shape = tuple(self.shape.as_list()) if self.shape.rank is not None else None
        return f"<KerasTensor: shape={shape} dtype={self.dtype.name}{layer}>"

    def __str__(self):
        parts = [f"type_spec={self.type_spec!r}"]
        if self.name:
            parts.append(f"name='{self.name}'")
        if self.history:
            parts.append(f"description=\"created by layer '{self.history[0].name}'\"")
        return f"KerasTensor({', '.join(parts)})"

    def __tf_tensor__(self, dtype=None, name=None):
        raise TypeError(
            f"Cannot convert {self!r} to a tensor: it stands for a value of a model that "
            "is being described. Use layers, operators and functions of tf on it; wrap "
            "other functions in a `tf.keras.layers.Lambda` layer."
        )

    def __array__(self, *args, **kwargs):
        self.__tf_tensor__()

    def __len__(self):
        raise TypeError("Keras symbolic inputs/outputs do not implement `__len__`.")

    def __iter__(self):
        size = self.shape[0] if self.shape.rank else None
        if size is None:
            raise TypeError(
                "Cannot iterate over a Tensor with unknown first dimension."
            )
        return iter([self[i] for i in range(size)])

    def __bool__(self):
        raise TypeError("The value of a KerasTensor is not known: it has no truth.")

    __array_priority__ = 100


_OPERATORS = {
    "__add__": ("__operators__.add", lambda a, b: a + b),
    "__radd__": ("__operators__.add", lambda a, b: b + a),
    "__sub__": ("math.subtract", lambda a, b: a - b),
    "__rsub__": ("math.subtract", lambda a, b: b - a),
    "__mul__": ("math.multiply", lambda a, b: a * b),
    "__rmul__": ("math.multiply", lambda a, b: b * a),
    "__truediv__": ("math.truediv", lambda a, b: a / b),
    "__rtruediv__": ("math.truediv", lambda a, b: b / a),
    "__floordiv__": ("math.floordiv", lambda a, b: a // b),
    "__mod__": ("math.floormod", lambda a, b: a % b),
    "__pow__": ("math.pow", lambda a, b: a**b),
    "__rpow__": ("math.pow", lambda a, b: b**a),
    "__matmul__": ("linalg.matmul", lambda a, b: a @ b),
    "__rmatmul__": ("linalg.matmul", lambda a, b: b @ a),
    "__lt__": ("math.less", lambda a, b: a < b),
    "__le__": ("math.less_equal", lambda a, b: a <= b),
    "__gt__": ("math.greater", lambda a, b: a > b),
    "__ge__": ("math.greater_equal", lambda a, b: a >= b),
    "__neg__": ("math.negative", lambda a: -a),
    "__abs__": ("math.abs", abs),
}
_Slice = collections.namedtuple("_Slice", ["start", "stop", "step"])


def _parts(key):
    """A key in which KerasTensors are found: slices as tuples."""
    if isinstance(key, tuple):
        return tuple(_parts(k) for k in key)
    return _Slice(key.start, key.stop, key.step) if isinstance(key, slice) else key


def _key(parts):
    if isinstance(parts, _Slice):
        return slice(*parts)
    return tuple(_key(p) for p in parts) if isinstance(parts, tuple) else parts


def _item(self, key):
    name, function = "__operators__.getitem", lambda a, parts: a[_key(parts)]
    return dispatch.as_layer(name, function, (self, _parts(key)), {})


def _operator(name, function):
    return lambda self, *others: dispatch.as_layer(name, function, (self, *others), {})


for _method, (_name, _function) in _OPERATORS.items():
    setattr(KerasTensor, _method, _operator(_name, _function))
KerasTensor.__getitem__ = _item


def find(structure):
    """The KerasTensors in args or kwargs of a call."""
    return [x for x in tf.nest.flatten(structure) if isinstance(x, KerasTensor)]


def is_keras_tensor(x):
    """Whether x describes a value of a model; ValueError for what is no tensor."""
    if not tf.is_tensor(x) and not isinstance(x, KerasTensor):
        raise ValueError(
            f"Unexpectedly found an instance of type `{type(x)}`. Expected a symbolic "
            "tensor instance."
        )
    return isinstance(x, KerasTensor)
