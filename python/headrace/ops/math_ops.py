"""Arithmetic on tensors."""

from headrace._load import _headrace
from headrace.framework import conversion, dtypes
from headrace.ops.faces import face

_cast = face("Cast", "cast", "x, DstT, Truncate=False, name=None")


def cast(x, dtype, name=None):
    """The values as another type."""
    dtype = dtypes.as_dtype(dtype).base_dtype
    if not isinstance(x, _headrace.Tensor):
        x = conversion.convert_to_tensor(x)
    if x.dtype is dtype:
        return x
    return _cast(x, dtype, False, name)


add = face("AddV2", "add", "x, y, name=None")
subtract = face("Sub", "subtract", "x, y, name=None")
multiply = face("Mul", "multiply", "x, y, name=None")
_real_div = face("RealDiv", "truediv", "x, y, name=None")

_DIVIDED_AS = {
    "uint8": dtypes.float32,
    "int8": dtypes.float32,
    "uint16": dtypes.float32,
    "int16": dtypes.float32,
    "uint32": dtypes.float64,
    "int32": dtypes.float64,
    "uint64": dtypes.float64,
    "int64": dtypes.float64,
}


def truediv(x, y, name=None):
    """x / y; integers become floats, as in Python."""
    x = conversion.convert_to_tensor(x, dtype_hint=getattr(y, "dtype", None))
    y = conversion.convert_to_tensor(y, dtype_hint=x.dtype)
    if x.dtype != y.dtype:
        raise TypeError(
            f"`x` and `y` must have the same dtype, got {x.dtype!r} != {y.dtype!r}."
        )
    wanted = _DIVIDED_AS.get(x.dtype.name)
    if wanted is not None:
        x, y = cast(x, wanted), cast(y, wanted)
    return _real_div(x, y, name)


def logical_xor(x, y, name="LogicalXor"):
    """x xor y, of booleans."""
    raw = _headrace.raw_op
    either = raw("LogicalOr")(x=x, y=y)
    both = raw("LogicalAnd")(x=x, y=y)
    return raw("LogicalAnd")(x=either, y=raw("LogicalNot")(x=both), name=name)


_mat_mul = face(
    "MatMul", "matmul", "a, b, transpose_a=False, transpose_b=False, name=None"
)
_batch_mat_mul = face(
    "BatchMatMulV2", "matmul", "x, y, adj_x=False, adj_y=False, name=None"
)


def matmul(
    a,
    b,
    transpose_a=False,
    transpose_b=False,
    adjoint_a=False,
    adjoint_b=False,
    a_is_sparse=False,
    b_is_sparse=False,
    output_type=None,
    grad_a=False,
    grad_b=False,
    name=None,
):
    """The matrix product of the last two dimensions."""
    if transpose_a and adjoint_a:
        raise ValueError(
            "Only one of `transpose_a` and `adjoint_a` can be True. Received "
            f"`transpose_a`={transpose_a}, `adjoint_a`={adjoint_a}."
        )
    if transpose_b and adjoint_b:
        raise ValueError(
            "Only one of `transpose_b` and `adjoint_b` can be True. Received "
            f"`transpose_b`={transpose_b}, `adjoint_b`={adjoint_b}."
        )
    tensor = _headrace.Tensor
    if not isinstance(a, tensor):
        a = conversion.convert_to_tensor(
            a, dtype_hint=b.dtype.base_dtype if isinstance(b, tensor) else None
        )
    if not isinstance(b, tensor):
        b = conversion.convert_to_tensor(b, dtype_hint=a.dtype.base_dtype)
    if output_type is not None and output_type != a.dtype:
        raise NotImplementedError(
            f"matmul: output_type {output_type} of {a.dtype} is not supported"
        )
    rank_a, rank_b = a._rank(), b._rank()
    if (rank_a is None or rank_a > 2) and (rank_b is None or rank_b > 2 or rank_b == 2):
        batch = True
    else:
        batch = rank_b is not None and rank_b > 2 and rank_a is not None and rank_a >= 2
    if batch:
        if transpose_a:
            a, adjoint_a = conj(a), True
        if transpose_b:
            b, adjoint_b = conj(b), True
        return _batch_mat_mul(a, b, adjoint_a, adjoint_b, name)
    if adjoint_a:
        a, transpose_a = conj(a), True
    if adjoint_b:
        b, transpose_b = conj(b), True
    return _mat_mul(a, b, transpose_a, transpose_b, name)


def conj(x, name=None):
    """The complex conjugate; real tensors as they are."""
    if isinstance(x, _headrace.Tensor) and not x.dtype.is_complex:
        return x
    x = conversion.convert_to_tensor(x)
    if not x.dtype.is_complex:
        return x
    return _headrace.raw_op("Conj")(input=x, name=name)


_equal = face("Equal", "equal", "x, y, incompatible_shape_error=True, name=None")
_not_equal = face(
    "NotEqual", "not_equal", "x, y, incompatible_shape_error=True, name=None"
)


def tensor_equals(self, other):
    """What `==` gives."""
    if other is None:
        return False
    return _equal(self, other, False)


def tensor_not_equals(self, other):
    """What `!=` gives."""
    if other is None:
        return True
    return _not_equal(self, other, False)
