"""Specs, plain values and structures of them as SavedModels and datasets keep them.

`_headrace` has a StructuredValue as None, a number, a text, a shape, a dtype, or a tuple
that begins with what it is (src/bind/structured_value.h).
"""

import collections

import numpy as np

from headrace import _names
from headrace._load import _headrace
from headrace.context import errors
from headrace.framework import nest
from headrace.framework.dtypes import DType
from headrace.framework.extension import extension_type
from headrace.framework.sparse_tensor import SparseTensorSpec
from headrace.framework.tensor_shape import TensorShape
from headrace.framework.type_spec import (
    BoundedTensorSpec,
    IndexedSlicesSpec,
    NoneTensorSpec,
    TensorSpec,
    TypeSpec,
    VariableSpec,
    flat_tensor_specs,
)
from headrace.ragged.spec import RaggedTensorSpec

# The numbers of TypeSpecProto.TypeSpecClass.
_CLASSES = {
    1: SparseTensorSpec,
    2: IndexedSlicesSpec,
    3: RaggedTensorSpec,
    9: VariableSpec,
}
_NUMBERS = {cls: number for number, cls in _CLASSES.items()}
_REGISTERED, _EXTENSION_TYPE = 12, 13
_BY_NAME = {"tf.NoneTensorSpec": NoneTensorSpec}
# Modules whose classes of extension types SavedModels may name before they are loaded.
_LATE = dict.fromkeys(
    ("tf.WeakTensor.Spec", "tf.EagerWeakTensor.Spec", "tf.GraphWeakTensor.Spec"),
    "numpy_api.weak_tensor",
)

_named_tuples = {}  # (name, fields) -> class


def _named_tuple(name, fields):
    key = (name, *fields)
    if key not in _named_tuples:
        _named_tuples[key] = collections.namedtuple(name, fields, rename=True)
    return _named_tuples[key]


def decoded(value):
    """The Python value of a StructuredValue."""
    if not isinstance(value, tuple):
        return value
    return _DECODERS[value[0]](*value[1:])


def _of_public_class(name):
    """The class of specs that is called "tf.a.BSpec": that of values of tf.a.B."""
    public = name.removeprefix("tf.").removesuffix("Spec")
    if _names.row_of(public) is None:
        return None
    return getattr(_names.public(public), "_spec_class", None)


def _type_spec(number, name, state, _):
    return spec_of(number, name, decoded(state))


def spec_of(number, name, state):
    """The spec of a class, by its number or else its name, that has this state."""
    cls = _CLASSES.get(number) or _BY_NAME.get(name) or _of_public_class(name)
    if number == _EXTENSION_TYPE:
        if name in _LATE:
            _names.module(_LATE[name])
        cls = extension_type.registered.get(name)
    if cls is None:
        raise NotImplementedError(
            f"a saved function or dataset takes or gives values of {name}, which is not "
            "supported"
        )
    try:
        return cls._deserialize(state)
    except (AttributeError, TypeError, ValueError) as e:
        raise errors.DataLossError._of(f"no state of {name}: {e}") from None


def _bounded(shape, dtype, minimum, maximum, name):
    return BoundedTensorSpec(shape, dtype, minimum.numpy(), maximum.numpy(), name)


def _fields(name, pairs):
    cls = _named_tuple(name, [field for field, _ in pairs])
    return cls(*(decoded(v) for _, v in pairs))


_DECODERS = {
    "list": lambda values: [decoded(v) for v in values],
    "tuple": lambda values: tuple(decoded(v) for v in values),
    "dict": lambda fields: {k: decoded(fields[k]) for k in sorted(fields)},
    "named_tuple": _fields,
    "tensor_spec": TensorSpec,
    "bounded_tensor_spec": _bounded,
    "type_spec": _type_spec,
    "tensor": lambda tensor: tensor,
    "array": lambda tensor: tensor.numpy(),
}


def encoded(value):
    """A Python value as a StructuredValue; NotImplementedError where it has none."""
    if value is None or isinstance(value, (bool, int, float, str, DType, TensorShape)):
        return value
    if type(value) is TensorSpec:
        return ("tensor_spec", value.shape, value.dtype, value.name)
    if isinstance(value, BoundedTensorSpec):
        low, high = map(_headrace.make_tensor, (value.minimum, value.maximum))
        return (
            "bounded_tensor_spec",
            value.shape,
            value.dtype,
            low,
            high,
            value.name,
        )
    if isinstance(value, TypeSpec):
        return _encoded_spec(value)
    if isinstance(value, _headrace.EagerTensor):
        return ("tensor", value)
    if isinstance(value, (np.ndarray, np.generic)):
        return ("array", _headrace.make_tensor(value))
    if isinstance(value, (list, tuple, dict)):
        return _encoded_structure(value)
    raise NotImplementedError(
        f"a function or dataset takes or gives {value!r}, a {type(value).__name__}, "
        "which SavedModels and saved datasets have no form for"
    )


def _encoded_structure(value):
    if isinstance(value, dict):
        return ("dict", {str(k): encoded(v) for k, v in value.items()})
    if hasattr(value, "_fields"):
        pairs = [(k, encoded(v)) for k, v in zip(value._fields, value)]
        return ("named_tuple", type(value).__name__, pairs)
    kind = "list" if isinstance(value, list) else "tuple"
    return (kind, [encoded(v) for v in nest.children(value)])


def _encoded_spec(spec):
    cls = type(spec)
    state = encoded(tuple(spec._serialize()))
    if cls in _NUMBERS:
        flat = len(flat_tensor_specs(spec))
        return ("type_spec", _NUMBERS[cls], cls.__name__, state, flat)
    if hasattr(cls, "saved_as"):
        flat = len(flat_tensor_specs(spec))
        return ("type_spec", _REGISTERED, cls.saved_as, state, flat)
    for name, registered in _BY_NAME.items():
        if cls is registered:
            return ("type_spec", _REGISTERED, name, state, 0)
    name = cls.__dict__.get("_registered_name")
    if name is not None:
        flat = len(flat_tensor_specs(spec))
        return ("type_spec", _EXTENSION_TYPE, name, state, flat)
    raise NotImplementedError(
        f"a function or dataset takes or gives a {cls.__name__}, which SavedModels and "
        "saved datasets have no form for"
    )
