"""What layers are called with to describe a functional model."""

from headrace import _api as tf
from headrace.context import late
from headrace.context.properties import read_only


class KerasTensor:
    """A tensor that is yet to come: its shape, dtype and the layer that makes it.

    Attributes:
      history: (layer, index of the layer's call, index of the output).
      mask_spec: the TensorSpec of the mask that will come with it, or None.
      inferred_value: of integers that shapes are made of, a list with None for those
        that are not known yet; else None.
    """

    inferred_value = None

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
        known = self.inferred_value
        known = "" if known is None else f" inferred_value={known}"
        return f"<KerasTensor: shape={shape} dtype={self.dtype.name}{known}{layer}>"

    def __str__(self):
        parts = [f"type_spec={self.type_spec!r}"]
        if self.inferred_value is not None:
            parts.append(f"inferred_value={self.inferred_value}")
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


# Operators and the functions that they are: of truth values and of integers, where these
# differ. Those that end in "r" have a reflected method.
_OPERATORS = """
add __operators__.add r
sub math.subtract r
mul math.multiply r
truediv math.truediv r
floordiv compat.v1.floor_div r
mod math.floormod r
pow math.pow r
matmul linalg.matmul r
and math.logical_and bitwise.bitwise_and r
or math.logical_or bitwise.bitwise_or r
xor math.logical_xor bitwise.bitwise_xor r
lt math.less
le math.less_equal
gt math.greater
ge math.greater_equal
neg math.negative
abs math.abs
invert math.logical_not bitwise.invert
"""


def _operator(symbol, of_integers=None, is_reflected=False):
    def method(self, *others):
        operands = [self, *others]
        if is_reflected:
            is_float = type(others[0]) is int and self.dtype.is_floating
            operands = [float(others[0]) if is_float else others[0], self]
        is_bitwise = of_integers and self.dtype != tf.bool
        name = of_integers if is_bitwise else symbol
        return late.keras_layer_of(name, operands, {"name": None})

    return method


for _line in _OPERATORS.strip().split("\n"):
    _name, *_symbols = _line.split()
    _has_reflected = _symbols[-1] == "r"
    if _has_reflected:
        _symbols.pop()
        _method = _operator(*_symbols, is_reflected=True)
        setattr(KerasTensor, f"__r{_name}__", _method)
    setattr(KerasTensor, f"__{_name}__", _operator(*_symbols))


def _item(self, key):
    spec = _spec_of(key)
    return late.keras_layer_of("__operators__.getitem", (self, spec), {})


def _spec_of(key):
    """The slice_spec of what stands in the brackets: slices are dicts."""
    if isinstance(key, tuple):
        return tuple(_spec_of(part) for part in key)
    if isinstance(key, slice):
        return {"start": key.start, "stop": key.stop, "step": key.step}
    return key


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
