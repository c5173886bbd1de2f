"""tf.DType: the types of elements."""

import numpy as np

from headrace import _protos
from headrace._load import _headrace
from headrace.context.properties import read_only

_RANGES = {
    "bfloat16": (-3.3895313892515355e38, 3.3895313892515355e38),
    "qint8": (-128, 127),
    "quint8": (0, 255),
    "qint16": (-32768, 32767),
    "quint16": (0, 65535),
    "qint32": (-(2**31), 2**31 - 1),
}
_QUANTIZED = ("qint8", "quint8", "qint16", "quint16", "qint32")
_UNSIZED = ("string", "resource", "variant")
_BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


def _of_kind(doc, *kinds):
    return property(lambda self: self._kind in kinds, doc=doc)


class DType(_headrace.DTypeBase):
    """The type of a tensor's elements. One object a type: compare with `is`."""

    __slots__ = ("_kind", "_size")

    def __init__(self, type_enum, handle_data=None):
        name = self.base_dtype_name
        if name.startswith(("float", "bfloat")):
            self._kind = "float"
        elif name.startswith("complex"):
            self._kind = "complex"
        elif name in _QUANTIZED:
            self._kind = "quantized"
        elif name.startswith("int"):
            self._kind = "int"
        elif name.startswith("uint"):
            self._kind = "uint"
        else:
            self._kind = name

    @property
    def base_dtype_name(self):
        """The name without "_ref": "float32" for float32 and float32_ref."""
        name = self.name
        return name.removesuffix("_ref")

    as_datatype_enum = read_only("_number", "The number that protos have for it.")
    _type_enum = read_only("_number")

    def experimental_as_proto(self):
        """The dtype as a SerializedDType."""
        return _protos.SerializedDType(datatype=self._number)

    @classmethod
    def experimental_from_proto(cls, proto):
        """The dtype of a SerializedDType."""
        return as_dtype(proto.datatype)

    @classmethod
    def experimental_type_proto(cls):
        """The class SerializedDType."""
        return _protos.SerializedDType

    is_floating = _of_kind(
        "Whether it is a float type, quantized ones not among them.", "float"
    )
    is_complex = _of_kind("Whether it is complex64 or complex128.", "complex")
    is_integer = _of_kind(
        "Whether it is a plain integer type, signed or not.", "int", "uint"
    )
    is_unsigned = _of_kind(
        "Whether it is an integer type without negative numbers.", "uint"
    )
    is_quantized = _of_kind(
        "Whether it is one of qint8, quint8, qint16, quint16 and qint32.", "quantized"
    )
    is_bool = _of_kind("Whether it is bool.", "bool")
    is_numeric = _of_kind(
        "Whether it has numbers: integers, floats or complex ones.",
        "int",
        "uint",
        "float",
        "complex",
    )

    @property
    def is_numpy_compatible(self):
        """Whether NumPy has a type for it."""
        return self._kind not in ("resource", "variant")

    @property
    def _is_ref_dtype(self):
        return self._number > 100

    @property
    def base_dtype(self):
        """The type that a reference type refers to; others are their own."""
        return as_dtype(self._number - 100) if self._is_ref_dtype else self

    @property
    def _as_ref(self):
        return self if self._is_ref_dtype else DType(self._number + 100)

    @property
    def real_dtype(self):
        """The float type of a complex number's parts; others are their own."""
        return {"complex64": float32, "complex128": float64}.get(
            self.base_dtype_name, self
        )

    @property
    def size(self):
        """Bytes of an element; 1 for strings, resources and variants."""
        if self.base_dtype_name in _UNSIZED:
            return 1
        return _headrace.numpy_dtype(self.base_dtype).itemsize

    @property
    def as_numpy_dtype(self):
        """NumPy's type for it."""
        name = self.base_dtype_name
        if name in _QUANTIZED:
            plain = np.dtype(name.replace("quint", "uint").replace("qint", "int"))
            return np.dtype([(name, plain)])
        if name in ("resource", "variant"):
            return None if name == "variant" else _numpy_resource
        return (
            _headrace.numpy_dtype(self.base_dtype).type if name != "string" else object
        )

    def _limit(self, which):
        name = self.base_dtype_name
        if self.is_quantized or name in _RANGES:
            value = _RANGES[name][which]
            return self.as_numpy_dtype(value) if name == "bfloat16" else value
        if self.is_bool or self._kind in _UNSIZED or self.is_complex:
            raise TypeError(
                f"Cannot find {'maximum' if which else 'minimum'} value of {self}."
            )
        np_type = self.as_numpy_dtype
        if self.is_integer and name not in _BITS:
            info = np.iinfo(np_type)
            return int(info.max if which else info.min)
        if self.is_integer:
            bits = _BITS[name]
            if self.is_unsigned:
                return (1 << bits) - 1 if which else 0
            return (1 << (bits - 1)) - 1 if which else -(1 << (bits - 1))
        if name.startswith("float8"):
            import ml_dtypes

            info = ml_dtypes.finfo(np_type)
        else:
            info = np.finfo(np_type)
        return info.max if which else info.min

    @property
    def min(self):
        """The least number; TypeError for types that have none."""
        return self._limit(0)

    @property
    def max(self):
        """The largest number; TypeError for types that have none."""
        return self._limit(1)

    @property
    def limits(self, clip_negative=True):
        """The range of an image's values: (0, 1), or (0, max) for integers."""
        low, high = {
            "bool": (0, 1),
            "float16": (0, 1),
            "float32": (0, 1),
            "float64": (0, 1),
        }.get(self.name, (self.min, self.max) if self.is_integer else (0, 1))
        return (0, high) if clip_negative else (low, high)

    def is_compatible_with(self, other):
        """True where `other` is this dtype, or a reference to it.

        `other` is all that tf.as_dtype takes; what it does not take raises TypeError.
        """
        other = as_dtype(other)
        return self._number in (other._number, other.base_dtype._number)

    def is_subtype_of(self, other):
        """True where both are the same dtype: dtypes have no other order."""
        return self == other

    def most_specific_common_supertype(self, types):
        """This dtype where all of `types` equal it, else None."""
        return self if all(self == t for t in types) else None

    def __eq__(self, other):
        if other is self:
            return True
        if other is None:
            return False
        if not isinstance(other, DType):
            number = _headrace.dtype_number(other)
            return number != 0 and number == self._number
        return self._number == other._number

    def __ne__(self, other):
        return self is not other and not self == other

    def __hash__(self):
        return self._number

    def __str__(self):
        return f"<dtype: '{self.name}'>"

    def __repr__(self):
        return "tf." + self.name

    def __reduce__(self):
        return as_dtype, (self.name,)

    def __instancecheck__(self, instance):
        return getattr(instance, "dtype", None) == self


_numpy_resource = np.dtype([("resource", np.ubyte)])


def as_dtype(type_value):
    """The DType that `type_value` names: a DType, enum number, name, NumPy type."""
    if isinstance(type_value, DType):
        return type_value
    number = _headrace.dtype_number(type_value)
    if not number:
        dtype = getattr(type_value, "dtype", None)
        tensor = isinstance(type_value, _headrace.Tensor)
        if dtype is not None and dtype is not type_value and not tensor:
            return as_dtype(dtype)
        raise TypeError(
            f"Cannot convert the argument `type_value`: {type_value!r} to a "
            "TensorFlow DType."
        )
    return DType(number)


def check_integer(tensor, name):
    """TypeError unless the tensor, the argument of that name, is of integers."""
    if not tensor.dtype.is_integer:
        raise TypeError(
            f"Argument `tensor` (name: {name}) must be of type integer. Received "
            f"`tensor` = {tensor} of dtype: {tensor.dtype}"
        )


float32 = DType(1)
float64 = double = DType(2)
int32 = DType(3)
uint8 = DType(4)
int16 = DType(5)
int8 = DType(6)
string = DType(7)
complex64 = DType(8)
int64 = DType(9)
bool = DType(10)  # upstream's name
qint8 = DType(11)
quint8 = DType(12)
qint32 = DType(13)
bfloat16 = DType(14)
qint16 = DType(15)
quint16 = DType(16)
uint16 = DType(17)
complex128 = DType(18)
float16 = half = DType(19)
resource = DType(20)
variant = DType(21)
uint32 = DType(22)
uint64 = DType(23)
float8_e5m2 = DType(24)
float8_e4m3fn = DType(25)
float8_e4m3fnuz = DType(26)
float8_e4m3b11fnuz = DType(27)
float8_e5m2fnuz = DType(28)
int4 = DType(29)
uint4 = DType(30)
int2 = DType(31)
uint2 = DType(32)

QUANTIZED_DTYPES = frozenset(
    DType(t._number + ref)
    for t in (qint8, quint8, qint16, quint16, qint32)
    for ref in (0, 100)
)

# Reference types (variables of graphs of TensorFlow 1): number + 100.
for _number in range(1, 24):
    DType(_number + 100)

# What a division of integers gives, by their names.
DIVIDED_AS = dict.fromkeys(("uint8", "int8", "uint16", "int16"), float32)
DIVIDED_AS |= dict.fromkeys(("uint32", "int32", "uint64", "int64"), float64)
