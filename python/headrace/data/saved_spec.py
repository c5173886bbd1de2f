"""PATH/dataset_spec.pb: what the elements of a saved dataset are like."""

import os

from headrace.elements.structure import SparseTensorSpec
from headrace.framework import dtypes, errors
from headrace.framework.interop.system_errors import system_errors
from headrace.framework.support import protos
from headrace.framework.tensor_shape import TensorShape
from headrace.framework.type_spec import NoneTensorSpec, TensorSpec
from headrace.io import gfile
from headrace.ragged.spec import RaggedTensorSpec

_FILE = "dataset_spec.pb"


def to_proto(spec):
    """A StructuredValue of a spec."""
    value = protos.message("tensorflow.StructuredValue")()
    if isinstance(spec, TensorSpec):
        value.tensor_spec_value.name = spec.name or ""
        value.tensor_spec_value.shape.CopyFrom(spec.shape.as_proto())
        value.tensor_spec_value.dtype = spec.dtype.as_datatype_enum
    elif isinstance(spec, dict):
        value.dict_value.SetInParent()
        for k, v in spec.items():
            value.dict_value.fields[k].CopyFrom(to_proto(v))
    elif type(spec) is tuple:
        value.tuple_value.SetInParent()
        for v in spec:
            value.tuple_value.values.add().CopyFrom(to_proto(v))
    elif isinstance(spec, tuple) and hasattr(spec, "_fields"):
        value.named_tuple_value.name = type(spec).__name__
        for k, v in zip(spec._fields, spec):
            pair = value.named_tuple_value.values.add()
            pair.key = k
            pair.value.CopyFrom(to_proto(v))
    else:
        _put_composite(spec, value.type_spec_value)
    return value


def _put_composite(spec, proto):
    proto.type_state.tuple_value.SetInParent()
    state = proto.type_state.tuple_value.values
    if isinstance(spec, NoneTensorSpec):
        proto.type_spec_class = 12
        proto.type_spec_class_name = "tf.NoneTensorSpec"
        return
    if isinstance(spec, SparseTensorSpec):
        proto.type_spec_class = 1
        proto.type_spec_class_name = "SparseTensorSpec"
        proto.num_flat_components = 3
    elif isinstance(spec, RaggedTensorSpec):
        proto.type_spec_class = 3
        proto.type_spec_class_name = "RaggedTensorSpec"
        proto.num_flat_components = spec.ragged_rank + 1
    else:
        raise NotImplementedError(f"saving datasets of {type(spec).__name__}")
    state.add().tensor_shape_value.CopyFrom(spec.shape.as_proto())
    state.add().tensor_dtype_value = spec.dtype.as_datatype_enum
    if isinstance(spec, RaggedTensorSpec):
        state.add().int64_value = spec.ragged_rank
        state.add().tensor_dtype_value = spec.row_splits_dtype.as_datatype_enum


def of_proto(value):
    """The spec that a StructuredValue holds."""
    kind = value.WhichOneof("kind")
    if kind == "tensor_spec_value":
        v = value.tensor_spec_value
        return TensorSpec(
            TensorShape(v.shape), dtypes.as_dtype(v.dtype), name=v.name or None
        )
    if kind == "dict_value":
        fields = value.dict_value.fields
        return {k: of_proto(fields[k]) for k in sorted(fields)}
    if kind == "tuple_value":
        return tuple(of_proto(v) for v in value.tuple_value.values)
    if kind == "type_spec_value":
        return _composite(value.type_spec_value)
    if kind is None:
        raise errors.DataLossError._of("Dataset.load: element_spec is cut")
    raise NotImplementedError(
        f"Dataset.load: the saved element_spec holds a {kind}; pass element_spec"
    )


def _composite(proto):
    state = proto.type_state.tuple_value.values
    if proto.type_spec_class_name == "tf.NoneTensorSpec":
        return NoneTensorSpec()
    if proto.type_spec_class in (1, 3) and len(state) >= 2:
        shape = TensorShape(state[0].tensor_shape_value)
        dtype = dtypes.as_dtype(state[1].tensor_dtype_value)
        if proto.type_spec_class == 1:
            return SparseTensorSpec(shape, dtype)
        if len(state) >= 4:
            splits = dtypes.as_dtype(state[3].tensor_dtype_value)
            return RaggedTensorSpec(shape, dtype, state[2].int64_value, splits)
    raise NotImplementedError(
        "Dataset.load: the saved element_spec holds a "
        f"{proto.type_spec_class_name}; pass element_spec"
    )


def write(path, packed):
    """Puts a serialised spec into a folder, which is made."""
    gfile.makedirs(path)
    file = os.path.join(path, _FILE)
    with system_errors(file):
        with open(file + ".tmp", "wb") as f:
            f.write(packed)
            f.flush()
            os.fsync(f.fileno())
        os.replace(file + ".tmp", file)


def read(path):
    """The spec in a folder."""
    from google.protobuf.message import DecodeError

    file = os.path.join(path, _FILE)
    try:
        with system_errors(file), open(file, "rb") as f:
            data = f.read()
    except errors.NotFoundError:
        raise errors.NotFoundError._of(
            f"tf.data snapshot element_spec file not found: {file}."
        ) from None
    try:
        value = protos.message("tensorflow.StructuredValue").FromString(data)
    except DecodeError as e:
        raise errors.DataLossError._of(f"{file} is damaged: {e}") from None
    return of_proto(value)
