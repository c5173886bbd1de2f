"""tf.compat.v1.to_float and the like: casts by name."""

from headrace.framework import dtypes
from headrace.ops import math_ops


def _cast_to(name, dtype, label):
    def cast(x, name=label):
        return math_ops.cast(x, dtype, name)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"The values as {dtype.name}."
    return cast


to_bfloat16 = _cast_to("to_bfloat16", dtypes.bfloat16, "ToBFloat16")
to_complex64 = _cast_to("to_complex64", dtypes.complex64, "ToComplex64")
to_complex128 = _cast_to("to_complex128", dtypes.complex128, "ToComplex128")
to_double = _cast_to("to_double", dtypes.float64, "ToDouble")
to_float = _cast_to("to_float", dtypes.float32, "ToFloat")
to_int32 = _cast_to("to_int32", dtypes.int32, "ToInt32")
to_int64 = _cast_to("to_int64", dtypes.int64, "ToInt64")
