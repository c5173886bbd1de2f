"""Functions of one or two numbers, element by element: one op each."""

import builtins

import numpy as np

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes
from headrace.framework.indexed_slices import IndexedSlices
from headrace.framework.name_scopes import composite
from headrace.ops import array_ops, clip_ops, math_ops
from headrace.ops.faces import add_faces

add_faces(
    globals(),
    """
(x, name=None) Acos Acosh Asin Asinh Atan Atanh BesselI0 BesselI0e BesselI1 BesselI1e
        BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 Ceil
        Cos Cosh Dawsn Digamma Erf Erfc Erfinv Exp Expint Expm1 Floor FresnelCos
        FresnelSin IsFinite IsInf IsNan Lgamma Log Log1p LogicalNot Ndtri Reciprocal
        Rint Rsqrt Sigmoid Sin Sinh Spence Sqrt Square Tan Tanh Invert
negative Neg
atan2 Atan2(y, x, name=None)
betainc Betainc(a, b, x, name=None)
(x, y, name=None) BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift Greater
        GreaterEqual Less LessEqual LogicalAnd LogicalOr Maximum Minimum
        SquaredDifference Xdivy Xlog1py Xlogy
divide_no_nan_op DivNoNan(x, y, name=None)
floordiv FloorDiv(x, y, name=None)
floormod FloorMod(x, y, name=None)
truncatediv TruncateDiv(x, y, name=None)
truncatemod TruncateMod(x, y, name=None)
realdiv RealDiv(x, y, name=None)
(a, x, name=None) Igamma Igammac Polygamma
multiply_no_nan_op MulNoNan(x, y, name=None)
nextafter NextAfter(x1, x2, name=None)
zeta Zeta(x, q, name=None)
_abs=abs Abs
_complex_abs=abs ComplexAbs(x, Tout=None, name=None)
sign Sign
    -1, 0 or 1; for complex numbers x / |x|.
pow Pow(x, y, name=None)
    x to the power of y.
_round=round Round
""",
)


def _tensor(x, hint=None):
    return x if isinstance(x, _headrace.Tensor) else conversion.to_tensor(x, None, hint)


def abs(x, name=None):
    """The absolute value; of complex numbers the magnitude."""
    x = _tensor(x)
    if x.dtype.is_complex:
        return _complex_abs(x, x.dtype.real_dtype, name)
    return _abs(x, name)


def round(x, name=None):
    """To the nearest integer, halves to even."""
    x = _tensor(x)
    return x if x.dtype.is_integer else _round(x, name)


@composite("Angle")
def angle(input, name=None):
    """The argument of complex numbers; 0 or pi of real ones."""
    input = _tensor(input)
    if input.dtype.is_complex:
        return raw.Angle(input, Tout=input.dtype.real_dtype, name=name)
    zeros = array_ops.zeros_like(input)
    pi = conversion.to_tensor(3.141592653589793, input.dtype)
    return array_ops.where(input < 0, zeros + pi, zeros)


def real(input, name=None):
    """The real part."""
    input = _tensor(input)
    if not input.dtype.is_complex:
        if not (input.dtype.is_floating or input.dtype.is_integer):
            raise TypeError(
                "input must be a numeric tensor, but got tensor with dtype "
                f"{input.dtype!r}"
            )
        return input
    return raw.Real(input, Tout=input.dtype.real_dtype, name=name)


def imag(input, name=None):
    """The imaginary part; zeros for real numbers."""
    input = _tensor(input)
    if not input.dtype.is_complex:
        return array_ops.zeros_like(input)
    return raw.Imag(input, Tout=input.dtype.real_dtype, name=name)


def complex(real, imag, name=None):
    """Complex numbers of two real parts."""
    real, imag = _tensor(real), _tensor(imag)
    kinds = {"float32": dtypes.complex64, "float64": dtypes.complex128}
    if real.dtype != imag.dtype or real.dtype.name not in kinds:
        raise TypeError(
            "The `real` and `imag` components have incorrect types: "
            f"{real.dtype.name} {imag.dtype.name}. They must be consistent, and one of "
            f"{[dtypes.float32, dtypes.float64]}"
        )
    return raw.Complex(real, imag, Tout=kinds[real.dtype.name], name=name)


def divide(x, y, name=None):
    """x / y, as Python divides."""
    if name is None:
        return _tensor(x, getattr(y, "dtype", None)) / y
    return math_ops.truediv(x, y, name)


@composite("div_no_nan", ends=True)
def divide_no_nan(x, y, name=None):
    """x / y, and 0 where y is 0."""
    x = conversion.convert_to_tensor(x, name="x")
    if not isinstance(y, _headrace.Tensor):
        y = conversion.convert_to_tensor(y, x.dtype, name="y")
    if x.dtype.base_dtype != y.dtype.base_dtype:
        raise TypeError(
            f"`x` and `y` must have the same dtype, got {x.dtype!r} != {y.dtype!r}."
        )
    math_ops.check_numeric(x.dtype, "tf.math.divide_no_nan")
    if x.dtype.is_integer:
        wide = dtypes.float64 if x.dtype.size >= 4 else dtypes.float32
        x, y = math_ops.cast(x, wide), math_ops.cast(y, wide)
    return divide_no_nan_op(x, y, name)  # noqa: F821  (made from the table)


@composite("multiply_no_nan", ends=True)
def multiply_no_nan(x, y, name=None):
    """x * y, and 0 where y is 0, whatever x is."""
    x = _tensor(x)
    y = conversion.convert_to_tensor(y, dtype=x.dtype, name="y")
    return multiply_no_nan_op(x, y, name)  # noqa: F821


def reciprocal_no_nan(x, name=None):
    """1 / x, and 0 where x is 0."""
    x = _tensor(x)
    one = conversion.to_tensor(1, x.dtype)
    return divide_no_nan_op(one, x, name)  # noqa: F821


@composite("erfcinv")
def erfcinv(x, name=None):
    """The inverse of erfc."""
    x = _tensor(x)
    return -ndtri(0.5 * x) * (0.5**0.5)  # noqa: F821


@composite("LogSigmoid", ends=True)
def log_sigmoid(x, name=None):
    """log(sigmoid(x)), without overflow."""
    return negative(raw.Softplus(-_tensor(x)), name)  # noqa: F821


@composite("scalar_mul", ends=True)
def scalar_mul(scalar, x, name=None):
    """scalar * x; x may be IndexedSlices."""
    scalar = conversion.convert_to_tensor(scalar, dtype=x.dtype, name="scalar")
    if scalar.shape.rank not in (None, 0):
        raise ValueError(
            f"The input scalar must be a 0-D value. Received shape {scalar.shape}."
        )
    if isinstance(x, IndexedSlices):
        return IndexedSlices(
            math_ops.multiply(scalar, x.values, name), x.indices, x.dense_shape
        )
    return math_ops.multiply(scalar, x, name)


@composite("polyval")
def polyval(coeffs, x, name=None):
    """The polynomial with those coefficients, highest first, at x."""
    if not isinstance(coeffs, list):
        raise ValueError(
            f"Argument coeffs must be list type. Received type {type(coeffs)}."
        )
    x = _tensor(x)
    if not coeffs:
        return array_ops.zeros_like(x, name=name)
    total = _tensor(coeffs[0], x.dtype)
    for c in coeffs[1:]:
        total = c + total * x
    return total


@composite("saturate_cast", ends=True)
def saturate_cast(value, dtype, name=None):
    """A cast that clips to the range of the type."""
    value = conversion.convert_to_tensor(value, name="value")
    dtype = dtypes.as_dtype(dtype).base_dtype
    if value.dtype.is_complex:
        value = real(value)
    (least, most), (low, high) = _range(value.dtype), _range(dtype)
    infinite = value.dtype.is_floating and not dtype.is_floating
    if infinite or least < low or most > high:
        low, high = (_limit(value.dtype, x) for x in (low, high))
        value = clip_ops.clip_by_value(value, low, high)
    return math_ops.cast(value, dtype, name)


def _range(dtype):
    """(min, max) as Python numbers, which compare exactly whatever their types."""
    number = float if dtype.is_floating else int
    return number(dtype.min), number(dtype.max)


def _limit(dtype, limit):
    """`limit` in `dtype`: where that does not hold it, the next number towards 0."""
    least, most = _range(dtype)
    limit = builtins.min(builtins.max(limit, least), most)
    rounded = dtype.as_numpy_dtype(limit)
    if dtype.is_floating and builtins.abs(float(rounded)) > builtins.abs(limit):
        rounded = np.nextafter(rounded, dtype.as_numpy_dtype(0))
    return rounded
