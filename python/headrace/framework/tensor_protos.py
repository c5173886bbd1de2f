"""tf.make_tensor_proto and tf.make_ndarray."""

import numpy as np

from headrace._load import _headrace
from headrace.framework import dtypes, tensor_shape

_FIELDS = {
    "float32": "float_val",
    "float64": "double_val",
    "int32": "int_val",
    "uint8": "int_val",
    "int16": "int_val",
    "int8": "int_val",
    "uint16": "int_val",
    "qint8": "int_val",
    "quint8": "int_val",
    "qint16": "int_val",
    "quint16": "int_val",
    "qint32": "int_val",
    "int4": "int_val",
    "uint4": "int_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "float16": "half_val",
    "bfloat16": "half_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "string": "string_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
}


def make_tensor_proto(
    values, dtype=None, shape=None, verify_shape=False, allow_broadcast=False
):
    """A TensorProto of Python or NumPy data."""
    from headrace.framework import protos

    if hasattr(values, "tensor_shape") and hasattr(values, "tensor_content"):
        return values
    tensor = _headrace.make_tensor(
        values.numpy() if isinstance(values, _headrace.EagerTensor) else values, dtype
    )
    array = np.asarray(tensor.numpy())
    kind = tensor.dtype
    if shape is not None:
        shape = [int(d) for d in shape]
        count = int(np.prod(shape, dtype=np.int64))
        if verify_shape and list(array.shape) != shape:
            raise TypeError(
                f"Expected Tensor's shape: {tuple(shape)}, but got {array.shape}."
            )
        if array.size > count:
            raise ValueError(
                "Too many elements provided. Takes at most "
                f"{count}, but got {array.size}."
            )
    else:
        shape, count = list(array.shape), array.size
    proto = protos.TensorProto(
        dtype=kind.as_datatype_enum,
        tensor_shape=tensor_shape.TensorShape(shape).as_proto(),
    )
    name = kind.name
    if name == "string":
        proto.string_val.extend(bytes(x) for x in array.ravel())
    elif count == array.size and array.size > 1:
        proto.tensor_content = array.tobytes()
    elif name in ("float16", "bfloat16"):
        proto.half_val.extend(array.ravel().view(np.uint16).tolist())
    elif kind.is_complex:
        pairs = array.ravel().view(kind.real_dtype.as_numpy_dtype).tolist()
        getattr(proto, _FIELDS[name]).extend(pairs)
    elif name in _FIELDS:
        getattr(proto, _FIELDS[name]).extend(array.ravel().tolist())
    else:
        proto.tensor_content = array.tobytes()
    return proto


def make_ndarray(tensor):
    """The NumPy array of a TensorProto."""
    dtype = dtypes.as_dtype(tensor.dtype)
    shape = [d.size for d in tensor.tensor_shape.dim]
    count = int(np.prod(shape, dtype=np.int64))
    name = dtype.name
    if name == "string":
        values = list(tensor.string_val)
        values += values[-1:] * (count - len(values)) if values else []
        array = np.empty(len(values), object)
        array[:] = values
        return array.reshape(shape)
    numpy_type = _headrace.numpy_dtype(dtype)
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, numpy_type).copy().reshape(shape)
    if name not in _FIELDS:
        raise TypeError(f"Unsupported tensor type: {tensor.dtype}.")
    values = list(getattr(tensor, _FIELDS[name]))
    if name in ("float16", "bfloat16"):
        array = np.array(values, np.uint16).view(numpy_type)
    elif dtype.is_complex:
        array = np.array(values, dtype.real_dtype.as_numpy_dtype).view(numpy_type)
    else:
        array = np.array(values).astype(numpy_type)
    if array.size == 0:
        array = np.zeros(1, numpy_type)
    if array.size < count:
        array = np.concatenate([array, np.repeat(array[-1:], count - array.size)])
    return array[:count].reshape(shape)
