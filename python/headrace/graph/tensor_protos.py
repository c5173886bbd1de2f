"""tf.make_tensor_proto and tf.make_ndarray."""

import numpy as np

from headrace._load import _headrace
from headrace.framework import dtypes, tensor_shape
from headrace.framework.dimension import Dimension
from headrace.framework.support import protos
from headrace.graph.graph import Graph

_FIELDS = {
    name: field
    for field, names in (
        ("float_val", "float32"),
        ("double_val", "float64"),
        ("int_val", "int32 uint8 int16 int8 uint16 int4 uint4 int2 uint2"),
        ("int_val", "qint8 quint8 qint16 quint16 qint32"),
        ("int64_val", "int64"),
        ("bool_val", "bool"),
        ("half_val", "float16 bfloat16"),
        ("uint32_val", "uint32"),
        ("uint64_val", "uint64"),
        ("string_val", "string"),
        ("scomplex_val", "complex64"),
        ("dcomplex_val", "complex128"),
    )
    for name in names.split()
}
# Where there is more than one element they are written as bytes.
_AS_BYTES = set(
    "float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "qint8 quint8 qint16 quint16 qint32".split()
)


def make_tensor_proto(
    values, dtype=None, shape=None, verify_shape=False, allow_broadcast=False
):
    """A TensorProto of Python or NumPy data.

    Args:
      values: numbers, text, lists of them, arrays and what NumPy makes arrays of. A
        quantized number is a tuple of an integer.
      dtype: of the elements; what the values are unless it is given.
      shape: the proto's shape. Fewer values than it has elements stand for the rest
        too, by the last of them.
      verify_shape: the values must have that shape (TypeError).
      allow_broadcast: a single value may stand for all elements.

    Raises:
      TypeError: values that no tensor can hold, or not one of `dtype`.
      ValueError: rows of unequal lengths, None, more values than the shape takes.
    """
    if hasattr(values, "tensor_shape") and hasattr(values, "tensor_content"):
        return values
    array, kind = _array_of(values, None if dtype is None else dtypes.as_dtype(dtype))
    if shape is not None:
        shape = [int(d) for d in shape]
        _check_shape(array, shape, verify_shape, allow_broadcast)
        count = int(np.prod(shape, dtype=np.int64))
    else:
        shape, count = list(array.shape), array.size
    proto = protos.TensorProto(
        dtype=kind.as_datatype_enum,
        tensor_shape=tensor_shape.TensorShape(shape).as_proto(),
    )
    name = kind.name
    if name == "string":
        proto.string_val.extend(bytes(x) for x in array.ravel())
    elif name in _AS_BYTES and count == array.size and array.size > 1:
        proto.tensor_content = array.tobytes()
    elif name in ("float16", "bfloat16"):
        proto.half_val.extend(array.ravel().view(np.uint16).tolist())
    elif kind.is_complex:
        pairs = array.ravel().view(kind.real_dtype.as_numpy_dtype).tolist()
        getattr(proto, _FIELDS[name]).extend(pairs)
    elif name in _FIELDS:
        flat = array.ravel()
        numbers = map(int, flat) if name in _SMALL else flat.tolist()
        getattr(proto, _FIELDS[name]).extend(numbers)
    else:
        proto.tensor_content = array.tobytes()
    return proto


def _check_shape(array, shape, verify_shape, allow_broadcast):
    if verify_shape and list(array.shape) != shape:
        raise TypeError(
            f"Expected Tensor's shape: {tuple(shape)}, but got {array.shape}."
        )
    count = int(np.prod(shape, dtype=np.int64))
    if array.size > count:
        raise ValueError(
            f"Too many elements provided. Takes at most {count}, but got {array.size}."
        )


_SMALL = ("int4", "uint4", "int2", "uint2")


def _array_of(values, dtype):
    """The values as an array, and their dtype."""
    if values is None:
        raise ValueError("None values not supported.")
    fields = getattr(getattr(values, "dtype", None), "fields", None)
    if fields and len(fields) == 1 and dtype is None:
        dtype = dtypes.as_dtype(*fields)
    if dtype is not None and dtype.is_quantized:
        return _quantized(values, dtype), dtype
    if isinstance(values, _headrace.EagerTensor):
        values = values.numpy()
    elif hasattr(values, "__array__") or hasattr(values, "__array_interface__"):
        values = np.asarray(values)
    elif dtype is not None and dtype.is_integer:
        values = _sizes(values)
    if dtype is not None and dtype.name in _SMALL:
        return np.asarray(values).astype(dtype.as_numpy_dtype), dtype
    try:
        tensor = _headrace.make_tensor(values, dtype)
    except (TypeError, ValueError):
        # The same in the words of graphs, which is where protos are for.
        with Graph().as_default():
            _headrace.make_tensor(values, dtype)
        raise
    return np.asarray(tensor.numpy()), tensor.dtype


def _sizes(values):
    """The values with sizes of shapes as integers."""
    if isinstance(values, (list, tuple)):
        return [_sizes(v) for v in values]
    return values.value if isinstance(values, Dimension) else values


def _quantized(values, dtype):
    """The integers in tuples of one, which quantized numbers are."""
    leaf = values
    while isinstance(leaf, list) and leaf:
        leaf = leaf[0]
    if not isinstance(leaf, (tuple, np.ndarray, np.void)):
        raise TypeError(
            f"Expected {dtype.name}, but got {leaf} of type '{type(leaf).__name__}'."
        )
    while isinstance(leaf, tuple) and leaf and isinstance(leaf[0], tuple):
        values, leaf = list(values), leaf[0]
    numbers = np.array(values, dtype.as_numpy_dtype)
    return np.ascontiguousarray(numbers[dtype.name]).reshape(numbers.shape)


def make_ndarray(tensor):
    """The NumPy array of a TensorProto, of the dtype's `as_numpy_dtype`."""
    dtype = dtypes.as_dtype(tensor.dtype)
    array = _numbers(tensor, dtype)
    return array.view(dtype.as_numpy_dtype) if dtype.is_quantized else array


def _numbers(tensor, dtype):
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
