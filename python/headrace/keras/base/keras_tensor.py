"""What layers are called with to describe a functional model."""

import collections

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import late
from headrace.context.properties import read_only
from headrace.framework.tensor import Reference


_NO_SUCH = (
    "Keras symbolic inputs/outputs do not implement `{name}`. You may be trying to pass "
    "TF-Keras symbolic inputs/outputs to a TF API that does not register dispatching, "
    "preventing TF-Keras from automatically converting the API call to a lambda layer in "
    "the Functional Model."
)
_NOR_TRUE = (
    " This error will also get raised if you try asserting a symbolic input/output "
    "directly."
)


class KerasTensor:
    """A tensor that is yet to come: its shape, dtype and the layer that makes it.

    Attributes:
      history: a History: layer, index of the layer's call, index of the output.
      mask_spec: the TensorSpec of the mask that will come with it, or None.
      inferred_value: of integers that shapes are made of, a list with None for those
        that are not known yet; else None.
    """

    inferred_value = _mask = None

    def __init__(self, shape, dtype, name=None, mask_spec=None):
        self._set_spec(tf.TensorSpec(shape, dtype, name), name, mask_spec)

    @staticmethod
    def of_spec(spec, name=None, mask_spec=None):
        """One for values of a spec that has a `shape`, of the class for such values."""
        kinds = (
            (tf.RaggedTensorSpec, RaggedKerasTensor),
            (
                tf.SparseTensorSpec,
                SparseKerasTensor,
            ),
        )
        cls = next((c for kind, c in kinds if isinstance(spec, kind)), KerasTensor)
        made = cls.__new__(cls)
        made._set_spec(spec, name, mask_spec)
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
        return call_of(self)

    _keras_history = read_only("history")

    @property
    def _keras_mask(self):
        """The mask that will come with it, described as it is; None where none will."""
        if self.mask_spec is None:
            return None
        if self._mask is None or self._mask.type_spec != self.mask_spec:
            self._mask = KerasTensor.of_spec(self.mask_spec)
        return self._mask

    @_keras_mask.setter
    def _keras_mask(self, mask):
        self.mask_spec = mask and tf.TensorSpec(mask.shape, mask.dtype)

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
            f"You are passing {self}, an intermediate TF-Keras symbolic input/output, to "
            "a function that needs a tensor: it stands for a value of a model that is "
            "being described. Use layers, operators and functions of tf on it, not "
            "`tf.raw_ops`, `tf.cond` or gradient tapes; wrap other functions in a "
            "`tf.keras.layers.Lambda` layer or in the `call` of a layer of your own."
        )

    _is_tensor_like = True

    @property
    def op(self):
        """Not there: TypeError."""
        raise TypeError(_NO_SUCH.format(name="op"))

    def ref(self):
        """Something that stands for it and may be a key."""
        return Reference(self)

    def __hash__(self):
        raise TypeError(
            f"Tensors are unhashable (this tensor: {self}). Instead, use tensor.ref() as "
            "the key."
        )

    def __array__(self, *args, **kwargs):
        self.__tf_tensor__()

    def __len__(self):
        raise TypeError(_NO_SUCH.format(name="__len__") + _NOR_TRUE)

    def __iter__(self):
        size = self.shape[0] if self.shape.rank else None
        if size is None:
            raise TypeError(
                "Cannot iterate over a Tensor with unknown first dimension."
            )
        return iter([self[i] for i in range(size)])

    def __bool__(self):
        self.__len__()

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


def is_composite(x):
    """Whether x is a sparse or ragged tensor: values of several tensors."""
    return isinstance(x, (tf.SparseTensor, tf.RaggedTensor))


History = collections.namedtuple("History", "layer node_index tensor_index")


def history(x):
    """The History of a value of a model: of a KerasTensor, or of a tensor of a plain graph
    that layers made of an Input there; None of all else."""
    if isinstance(x, KerasTensor):
        return x.history
    if is_composite(x):
        return x.__dict__.get("_keras_history")
    if not isinstance(x, _headrace.SymbolicTensor) or x.graph.building_function:
        return None
    return x.graph.__dict__.get("_keras_histories", {}).get(x._id)


def is_described(x):
    """Whether x is a value of a model that is being described."""
    return isinstance(x, KerasTensor) or history(x) is not None


def call_of(x):
    """The call that makes a value of a model: one of its layer's inbound_nodes."""
    layer, index, _ = history(x)
    return layer.inbound_nodes[index]


def key(x):
    """What tells a value of a model from all others."""
    return x._id if isinstance(x, _headrace.SymbolicTensor) else id(x)


def set_history(x, found):
    """Says which call makes a value of a model."""
    if isinstance(x, KerasTensor):
        x.history = found
        return
    x._keras_history = found
    graph = (x._components()[0] if is_composite(x) else x).graph
    known = graph.__dict__.setdefault("_keras_histories", {})
    if not is_composite(x):  # the Python objects of tensors come and go
        known[x._id] = found


class RaggedKerasTensor(KerasTensor):
    """A ragged tensor that is yet to come: its parts and methods are layers."""

    ragged_rank = read_only("type_spec.ragged_rank", "How many dimensions have splits.")


class SparseKerasTensor(KerasTensor):
    """A sparse tensor that is yet to come: its parts and methods are layers."""


# What layers of these names may ask of a value: its parts, and methods.
PARTS = {
    RaggedKerasTensor: "values flat_values row_splits nested_row_splits".split(),
    SparseKerasTensor: "indices values dense_shape".split(),
}
METHODS = {
    RaggedKerasTensor: (
        "value_rowids nested_value_rowids nrows row_starts row_limits row_lengths "
        "nested_row_lengths bounding_shape with_values with_flat_values "
        "with_row_splits_dtype merge_dims to_tensor to_sparse"
    ).split(),
    SparseKerasTensor: ["with_values"],
}


def _part(name):
    def part(self):
        return late.keras_part_of(self, name)

    return property(part, doc=f"The value's {name}.")


def _method(name):
    def method(self, *args, **kwargs):
        return late.keras_result_of(self, name, args, kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The value's {name}()."
    return method


def _add_members():
    for cls, names in PARTS.items():
        for name in names:
            setattr(cls, name, _part(name))
    for cls, names in METHODS.items():
        for name in names:
            setattr(cls, name, _method(name))


_add_members()


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
    return is_described(x)
