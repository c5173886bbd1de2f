"""Type specs as proto messages: TypeSpec.experimental_as_proto and back."""

import numpy as np

from headrace import _protos
from headrace.elements import structured
from headrace.framework import dtypes, tensor_shape, type_spec
from headrace.ragged.row_partition import RowPartitionSpec

# What StructuredValues of the engine call a plain value, by its Python class.
_PLAIN = (
    (bool, "bool_value"),
    (int, "int64_value"),
    (float, "float64_value"),
    (str, "string_value"),
)


def as_proto(spec):
    """The TensorSpecProto of a TensorSpec, the TypeSpecProto of others.

    NotImplementedError for specs that have no form outside of a program.
    """
    value = _message(_encoded(spec))
    return getattr(value, value.WhichOneof("kind"))


def from_proto(proto):
    """The spec of a message that as_proto gives; TypeError for other messages."""
    value = _protos.StructuredValue()
    for field in ("tensor_spec_value", "bounded_tensor_spec_value", "type_spec_value"):
        if isinstance(proto, type(getattr(value, field))):
            getattr(value, field).CopyFrom(proto)
            return _decoded(value)
    raise TypeError(f"{type(proto).__name__} is no message of a type spec")


def _encoded(spec):
    if isinstance(spec, RowPartitionSpec):
        state = structured.encoded(spec._serialize())
        return ("type_spec", _ROW_PARTITION, "RowPartitionSpec", state, 1)
    return structured.encoded(spec)


_ROW_PARTITION = 10  # TypeSpecProto.ROW_PARTITION_SPEC


def _message(value):
    """A StructuredValue message of what structured.encoded gives."""
    out = _protos.StructuredValue()
    if value is None:
        out.none_value.SetInParent()
    elif isinstance(value, dtypes.DType):
        out.tensor_dtype_value = value.as_datatype_enum
    elif isinstance(value, tensor_shape.TensorShape):
        out.tensor_shape_value.CopyFrom(value.as_proto())
    elif isinstance(value, tuple):
        _WRITERS[value[0]](out, *value[1:])
    else:
        field = next(name for kind, name in _PLAIN if isinstance(value, kind))
        setattr(out, field, value)
    return out


def _write_tensor_spec(out, shape, dtype, name):
    spec = out.tensor_spec_value
    spec.name = name or ""
    spec.shape.CopyFrom(shape.as_proto())
    spec.dtype = dtype.as_datatype_enum


def _write_bounded(out, shape, dtype, low, high, name):
    spec = out.bounded_tensor_spec_value
    spec.name = name or ""
    spec.shape.CopyFrom(shape.as_proto())
    spec.dtype = dtype.as_datatype_enum
    for field, bound in ((spec.minimum, low), (spec.maximum, high)):
        field.dtype = bound.dtype.as_datatype_enum
        field.tensor_shape.CopyFrom(bound.shape.as_proto())
        field.tensor_content = bound.numpy().tobytes()


def _write_type_spec(out, number, name, state, count):
    spec = out.type_spec_value
    spec.type_spec_class, spec.type_spec_class_name = number, name
    spec.type_state.CopyFrom(_message(state))
    spec.num_flat_components = count


def _write_items(out, values, field):
    target = getattr(out, field)
    target.SetInParent()
    target.values.extend(map(_message, values))


def _write_dict(out, fields):
    out.dict_value.SetInParent()
    for key, value in fields.items():
        out.dict_value.fields[key].CopyFrom(_message(value))


_WRITERS = {
    "tensor_spec": _write_tensor_spec,
    "bounded_tensor_spec": _write_bounded,
    "type_spec": _write_type_spec,
    "list": lambda out, values: _write_items(out, values, "list_value"),
    "tuple": lambda out, values: _write_items(out, values, "tuple_value"),
    "dict": _write_dict,
}


def _decoded(value):
    """What a StructuredValue message stands for."""
    kind = value.WhichOneof("kind")
    found = getattr(value, kind) if kind else None
    if kind is None or kind == "none_value":
        return None
    if kind in ("list_value", "tuple_value"):
        items = [_decoded(v) for v in found.values]
        return items if kind == "list_value" else tuple(items)
    if kind == "dict_value":
        return {k: _decoded(found.fields[k]) for k in sorted(found.fields)}
    reader = _READERS.get(kind)
    return found if reader is None else reader(found)


def _read_tensor_spec(spec):
    shape = tensor_shape.TensorShape(spec.shape)
    return type_spec.TensorSpec(shape, dtypes.as_dtype(spec.dtype), spec.name or None)


def _array(message):
    dtype = dtypes.as_dtype(message.dtype).as_numpy_dtype
    sizes = [d.size for d in message.tensor_shape.dim]
    return np.frombuffer(message.tensor_content, dtype).reshape(sizes)


def _read_bounded(spec):
    return type_spec.BoundedTensorSpec(
        tensor_shape.TensorShape(spec.shape),
        dtypes.as_dtype(spec.dtype),
        _array(spec.minimum),
        _array(spec.maximum),
        spec.name or None,
    )


def _read_type_spec(spec):
    state = _decoded(spec.type_state)
    if spec.type_spec_class == _ROW_PARTITION:
        return RowPartitionSpec._deserialize(state)
    return structured.spec_of(spec.type_spec_class, spec.type_spec_class_name, state)


_READERS = {
    "tensor_shape_value": tensor_shape.TensorShape,
    "tensor_dtype_value": dtypes.as_dtype,
    "tensor_spec_value": _read_tensor_spec,
    "bounded_tensor_spec_value": _read_bounded,
    "type_spec_value": _read_type_spec,
}
