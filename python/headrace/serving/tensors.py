"""NumPy arrays as the protocols' tensors: TensorProto, JSON, and the bytes of the Open
Inference Protocol. Strings are arrays of objects: bytes (str goes in, too)."""

import base64
import math
import struct

import numpy as np

from headrace.serving import failures

# name in TensorFlow, number, name in the Open Inference Protocol, field of TensorProto
_ROWS = """
float32 DT_FLOAT 1 FP32 float_val
float64 DT_DOUBLE 2 FP64 double_val
int32 DT_INT32 3 INT32 int_val
uint8 DT_UINT8 4 UINT8 int_val
int16 DT_INT16 5 INT16 int_val
int8 DT_INT8 6 INT8 int_val
object DT_STRING 7 BYTES string_val
complex64 DT_COMPLEX64 8 - scomplex_val
int64 DT_INT64 9 INT64 int64_val
bool DT_BOOL 10 BOOL bool_val
bfloat16 DT_BFLOAT16 14 BF16 half_val
uint16 DT_UINT16 17 UINT16 int_val
complex128 DT_COMPLEX128 18 - dcomplex_val
float16 DT_HALF 19 FP16 half_val
uint32 DT_UINT32 22 UINT32 uint32_val
uint64 DT_UINT64 23 UINT64 uint64_val
"""


class _Kind:
    """A type of elements under its names."""

    def __init__(self, numpy_name, name, number, open_name, field):
        self.numpy_name, self.name, self.number = numpy_name, name, int(number)
        self.open_name, self.field = open_name, field
        self.is_string = numpy_name == "object"

    @property
    def dtype(self):
        if self.numpy_name == "bfloat16":
            import ml_dtypes

            return np.dtype(ml_dtypes.bfloat16)
        return np.dtype(self.numpy_name)


_KINDS = [_Kind(*row.split()) for row in _ROWS.strip().split("\n")]
_BY_NUMPY = {kind.numpy_name: kind for kind in _KINDS}
_BY_NUMBER = {kind.number: kind for kind in _KINDS}
_BY_NAME = {kind.name: kind for kind in _KINDS}
_BY_OPEN_NAME = {kind.open_name: kind for kind in _KINDS if kind.open_name != "-"}


def dtype_of(name):
    """The NumPy dtype of "DT_FLOAT", "FP32" or 1; None where NumPy has no such."""
    for table in (_BY_NAME, _BY_OPEN_NAME, _BY_NUMBER):
        if name in table:
            return table[name].dtype
    return None


def _python_numbers(value):
    """float32 or int32 of Python's own numbers, as TensorFlow takes them (int64 where
    they do not fit); else what NumPy says."""
    array = np.asarray(value)
    first = value
    while isinstance(first, (list, tuple)):
        first = first[0] if first else 0.0
    if type(first) in (int, float) and array.dtype == np.float64:
        return array.astype(np.float32)
    if type(first) is int and array.dtype == np.int64:
        small = np.iinfo(np.int32)
        if array.min() >= small.min and array.max() <= small.max:
            return array.astype(np.int32)
    return array


def array_of(name, value):
    """The input `name` as an array that can be sent: little-endian, in C order."""
    array = _python_numbers(value)
    if array.dtype.kind in "SU":
        array = array.astype(object)
    if array.dtype.name not in _BY_NUMPY:
        raise failures.invalid(f"input {name}: no tensor has the type {array.dtype}")
    if array.dtype.kind == "O":
        for element in array.flat:
            if not isinstance(element, (bytes, str)):
                raise failures.invalid(
                    f"input {name}: elements are to be numbers, bytes or str, not "
                    f"{type(element).__name__}"
                )
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return np.asarray(array, order="C")


def _bytes_of(element):
    return element.encode() if isinstance(element, str) else element


def reshaped(name, array, shape):
    """The array in that shape, where it has that many elements."""
    shape = tuple(int(size) for size in shape)
    if any(size < 0 for size in shape) or math.prod(shape) != array.size:
        raise failures.broken(
            f"output {name} has {array.size} elements, which shape {shape} does not hold"
        )
    return array.reshape(shape)


def to_proto(array, proto):
    """Fills a TensorProto."""
    kind = _BY_NUMPY[array.dtype.name]
    proto.dtype = kind.number
    for size in array.shape:
        proto.tensor_shape.dim.add().size = size
    if kind.is_string:
        proto.string_val.extend(_bytes_of(element) for element in array.flat)
    else:
        proto.tensor_content = array.tobytes()


def _elements(kind, proto):
    """The elements of the proto, without its shape."""
    content = proto.tensor_content
    if content:
        if kind.is_string or len(content) % kind.dtype.itemsize:
            raise failures.broken(f"{len(content)} bytes are no {kind.name}")
        return np.frombuffer(content, kind.dtype).copy()
    values = getattr(proto, kind.field)
    if kind.is_string:
        made = np.empty(len(values), object)
        made[:] = list(values)
        return made
    if kind.field == "half_val":
        return np.array(values, np.uint16).view(kind.dtype)
    if kind.field.endswith("complex_val"):
        part = np.float32 if kind.field[0] == "s" else np.float64
        return np.array(values[: len(values) // 2 * 2], part).view(kind.dtype)
    return np.array(values, kind.dtype)


def from_proto(name, proto):
    """The array of a TensorProto; the last value given repeats to the end."""
    kind = _BY_NUMBER.get(proto.dtype)
    if kind is None:
        raise failures.broken(
            f"output {name} is of type {proto.dtype}, which is unknown"
        )
    made = _elements(kind, proto)
    shape = [dim.size for dim in proto.tensor_shape.dim]
    size = math.prod(shape) if all(n >= 0 for n in shape) else -1
    if not proto.tensor_content and made.size < size:
        try:
            whole = np.empty(size, kind.dtype)
        except (MemoryError, ValueError):
            raise failures.broken(
                f"output {name}: shape {shape} is too large"
            ) from None
        whole[: made.size] = made
        last = b"" if kind.is_string else 0
        whole[made.size :] = made[-1] if made.size else last
        made = whole
    return reshaped(name, made, shape)


def to_json(array):
    """What json.dumps takes: nested lists; bytes as {"b64": ...}, str as it is."""
    if array.dtype.kind != "O":
        return array.astype(np.float64).tolist() if _is_small(array) else array.tolist()

    def element(value):
        if isinstance(value, str):
            return value
        return {"b64": base64.b64encode(value).decode()}

    def nested(value):
        return [nested(v) for v in value] if isinstance(value, list) else element(value)

    return nested(array.tolist())


def _is_small(array):
    return array.dtype.name in ("float16", "bfloat16")


def from_json(name, value, dtype):
    """The array of nested lists in an answer; `dtype` None: as NumPy guesses."""
    if dtype is None or dtype.kind != "O":
        try:
            return np.array(value, dtype)
        except (TypeError, ValueError, OverflowError) as e:
            raise failures.broken(f"output {name} is no tensor: {e}") from None
    shape, first = [], value
    while isinstance(first, list):
        shape.append(len(first))
        first = first[0] if first else None
    made = []

    def gather(part):
        if isinstance(part, list):
            for p in part:
                gather(p)
        elif isinstance(part, dict):
            made.append(base64.b64decode(str(part.get("b64", ""))))
        else:
            made.append(str(part).encode("utf-8", "surrogateescape"))

    gather(value)
    array = np.empty(len(made), object)
    array[:] = made
    return reshaped(name, array, shape)


def open_name(name, array):
    """The datatype of the Open Inference Protocol."""
    found = _BY_NUMPY[array.dtype.name].open_name
    if found == "-":
        raise failures.unimplemented(
            f"input {name}: the Open Inference Protocol has no {array.dtype.name}"
        )
    return found


def to_bytes(array):
    """The bytes of the Open Inference Protocol: strings with their lengths before."""
    if array.dtype.kind != "O":
        return array.tobytes()
    parts = []
    for element in map(_bytes_of, array.flat):
        parts += [struct.pack("<I", len(element)), element]
    return b"".join(parts)


def from_bytes(name, datatype, shape, data):
    """The array that such bytes hold."""
    kind = _BY_OPEN_NAME.get(datatype)
    if kind is None:
        raise failures.broken(f"output {name} is of type {datatype}, which is unknown")
    if not kind.is_string:
        if len(data) % kind.dtype.itemsize:
            raise failures.broken(f"output {name}: {len(data)} bytes are no {datatype}")
        return reshaped(name, np.frombuffer(data, kind.dtype).copy(), shape)
    made, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at) if at + 4 <= len(data) else (-1,)
        if length < 0 or at + 4 + length > len(data):
            raise failures.broken(f"output {name}: its strings are cut short")
        made.append(bytes(data[at + 4 : at + 4 + length]))
        at += 4 + length
    array = np.empty(len(made), object)
    array[:] = made
    return reshaped(name, array, shape)
