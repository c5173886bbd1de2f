"""tf.linalg."""

import math

import numpy as np

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes, name_scopes
from headrace.framework.name_scopes import composite
from headrace.framework.support import signatures
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops, sort_ops
from headrace.ops.faces import add_faces

add_faces(
    globals(),
    """
cholesky Cholesky(input, name=None)
det MatrixDeterminant(input, name=None)
inv MatrixInverse(input, adjoint=False, name=None)
solve MatrixSolve(matrix, rhs, adjoint=False, name=None)
cross Cross(a, b, name=None)
qr Qr(input, full_matrices=False, name=None)
sqrtm MatrixSquareRoot(input, name=None)
logm MatrixLogarithm(input, name=None)
band_part MatrixBandPart(input, num_lower, num_upper, name=None)
tensor_diag Diag(diagonal, name=None)
tensor_diag_part DiagPart(input, name=None)
triangular_solve MatrixTriangularSolve(matrix, rhs, lower=True, adjoint=False,
        name=None)
    Solves with triangular matrices.
slogdet LogMatrixDeterminant(input, name=None)
    The sign and the logarithm of the absolute value of the determinant.
lu Lu(input, output_idx_type=int32, name=None)
    The LU decomposition and its permutation.
set_diag MatrixSetDiagV3(input, diagonal, name='set_diag', k=0, align='RIGHT_LEFT')
    Matrices with their diagonals replaced.
""",
)


def _tensor(x):
    return conversion.convert_to_tensor(x)


def cholesky_solve(chol, rhs, name=None):
    """Solves A X = rhs, given A's Cholesky factor."""
    y = triangular_solve(chol, rhs, True, False)
    return triangular_solve(chol, y, True, True, name)


@composite("logdet")
def logdet(matrix, name=None):
    """The logarithm of the determinant of a positive definite matrix."""
    chol = cholesky(matrix)
    diagonal = elementwise_ops.real(diag_part(chol))
    return 2.0 * reduction_ops.reduce_sum(elementwise_ops.log(diagonal), axis=[-1])


def svd(tensor, full_matrices=False, compute_uv=True, name=None):
    """The singular value decomposition: s, u, v (or s alone)."""
    s, u, v = raw.Svd(
        tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name
    )
    return (s, u, v) if compute_uv else s


def eigh(tensor, name=None):
    """Eigenvalues and eigenvectors of self-adjoint matrices."""
    e, v = raw.SelfAdjointEigV2(tensor, compute_v=True, name=name)
    return e, v


def eigvalsh(tensor, name=None):
    """Eigenvalues of self-adjoint matrices."""
    return raw.SelfAdjointEigV2(tensor, compute_v=False, name=name).e


def _eig(tensor, vectors, name):
    tensor = _tensor(tensor)
    out = {"float32": dtypes.complex64, "float64": dtypes.complex128}.get(
        tensor.dtype.name, tensor.dtype
    )
    return raw.Eig(tensor, Tout=out, compute_v=vectors, name=name)


def eig(tensor, name=None):
    """(eigenvalues [..., n], vectors [..., n, n]) of square matrices, a column a vector;
    both are complex."""
    return tuple(_eig(tensor, True, name))


def eigvals(tensor, name=None):
    """The eigenvalues of square matrices [..., n, n]: complex numbers, [..., n]."""
    return _eig(tensor, False, name).e


def _padding(value, dtype):
    """What fills up diagonals, of their dtype: a number is a truth for booleans."""
    if value == 0 and type(value) is int and _headrace.is_eager() and dtype.is_floating:
        return value  # the operation makes it one of theirs
    if dtype == dtypes.bool and isinstance(value, (int, float)):
        value = bool(value)
    return conversion.to_tensor(value, dtype)


@signatures.having(
    "diagonal, name='diag', k=0, num_rows=-1, num_cols=-1, padding_value=0, "
    "align='RIGHT_LEFT'"
)
def diag(diagonal, padding_value, **given):
    """Matrices with the given diagonals."""
    diagonal = _tensor(diagonal)
    padding_value = _padding(padding_value, diagonal.dtype)
    return raw.MatrixDiagV3(diagonal, padding_value=padding_value, **given)


def diag_part(input, name="diag_part", k=0, padding_value=0, align="RIGHT_LEFT"):
    """Diagonals of matrices."""
    input = _tensor(input)
    return raw.MatrixDiagPartV3(
        input, k, _padding(padding_value, input.dtype), align=align, name=name
    )


@composite("Trace", ends=True)
def trace(x, name=None):
    """Sums of diagonals."""
    return reduction_ops.reduce_sum(diag_part(x), [-1], name=name)


def adjoint(matrix, name=None):
    """The conjugate transpose."""
    return array_ops.matrix_transpose(matrix, conjugate=True)


@composite("MatVec")
def matvec(
    a,
    b,
    transpose_a=False,
    adjoint_a=False,
    a_is_sparse=False,
    b_is_sparse=False,
    name=None,
):
    """Matrices times vectors."""
    product = math_ops.matmul(
        a, array_ops.expand_dims(b, -1), transpose_a=transpose_a, adjoint_a=adjoint_a
    )
    return array_ops.squeeze(product, [-1], name=name)


@composite("norm")
def norm(tensor, ord="euclidean", axis=None, keepdims=None, name=None):
    """Norms of vectors (or of matrices, for two axes).

    Euclidean norms have the tensor's dtype, also a complex one; others are real.
    """
    matrix = isinstance(axis, (tuple, list)) and len(axis) == 2
    if isinstance(axis, (tuple, list)) and (not matrix or axis[0] == axis[1]):
        raise ValueError(
            "'axis' must be None, an integer, or a tuple of 2 unique integers, got "
            f"{axis}"
        )
    keepdims = bool(keepdims)
    tensor = _tensor(tensor)
    if ord in ("fro", "euclidean", 2, 2.0) and not (matrix and ord in (2, 2.0)):
        if ord == "fro" and not matrix and axis is not None:
            raise ValueError(f"'ord' must be a supported vector norm, got {ord}")
        if matrix:
            axis = list(axis)
        conj = math_ops.conj(tensor)
        total = reduction_ops.reduce_sum(tensor * conj, axis, True)
        if tensor.dtype.is_complex:
            total = elementwise_ops.real(total)  # the rest is rounding
        result = math_ops.cast(elementwise_ops.sqrt(total), tensor.dtype)
    else:
        magnitude = elementwise_ops.abs(tensor)
        result = _other_norm(tensor, magnitude, ord, axis, matrix)
    if keepdims:
        return result
    drop = axis if isinstance(axis, (list, tuple)) else None if axis is None else [axis]
    return array_ops.squeeze(result, drop)


def _other_norm(tensor, magnitude, ord, axis, matrix):
    total, high = reduction_ops.reduce_sum, reduction_ops.reduce_max
    if matrix:
        row, col = axis
        if ord in (1, 1.0):
            return high(total(magnitude, row, True), col, True)
        if ord == math.inf:
            return high(total(magnitude, col, True), row, True)
        if ord in (2, 2.0):
            singular = elementwise_ops.abs(svd(tensor, compute_uv=False))
            return array_ops.expand_dims(high(singular, -1, True), -1)
        raise ValueError(
            "'ord' must be a supported matrix norm in ['euclidean', 'fro', 1, 2, inf], "
            f"got {ord}"
        )
    if ord in (1, 1.0):
        return total(magnitude, axis, True)
    if ord == math.inf:
        return high(magnitude, axis, True)
    if not isinstance(ord, (int, float)) or ord <= 0:
        raise ValueError(f"'ord' must be a supported vector norm, got {ord}")
    power = conversion.to_tensor(float(ord), magnitude.dtype)
    inverse = conversion.to_tensor(1.0 / ord, magnitude.dtype)
    return elementwise_ops.pow(
        total(elementwise_ops.pow(magnitude, power), axis, True), inverse
    )


@composite("normalize")
def normalize(tensor, ord="euclidean", axis=None, name=None):
    """(the tensor over its norm, the norm, of the tensor's dtype)."""
    tensor = _tensor(tensor)
    size = math_ops.cast(norm(tensor, ord, axis, keepdims=True), tensor.dtype)
    return tensor / size, size


def lstsq(matrix, rhs, l2_regularizer=0.0, fast=True, name=None):
    """Least squares solutions."""
    return raw.MatrixSolveLs(
        matrix,
        rhs,
        conversion.to_tensor(l2_regularizer, dtypes.float64),
        fast=fast,
        name=name,
    )


@composite("lbeta")
def lbeta(x, name=None):
    """The logarithm of the beta function of the last dimension's numbers."""
    x = conversion.convert_to_tensor(x)
    whole = elementwise_ops.lgamma(reduction_ops.reduce_sum(x, [-1]))
    parts = reduction_ops.reduce_sum(elementwise_ops.lgamma(x), [-1])
    return raw.Sub(parts, whole, name=name)


def _floating(a, hint=None):
    a = conversion.convert_to_tensor(a, dtype_hint=hint)
    if not a.dtype.is_floating:
        raise TypeError(
            f"Input `a` must have `float`-like `dtype` (saw {a.dtype.name})."
        )
    return a


def pinv(a, rcond=None, validate_args=False, name=None):
    """The pseudo-inverse: singular values up to `rcond` times the largest count as
    zero. Arguments are always validated."""
    with name_scopes.name_scope(name or "pinv"):
        a = _floating(a)
        if rcond is None:
            sizes = math_ops.cast(
                reduction_ops.reduce_max(array_ops.shape(a)[-2:]), a.dtype
            )
            rcond = 10.0 * sizes * np.finfo(a.dtype.as_numpy_dtype).eps
        s, u, v = svd(a, full_matrices=False)
        limit = math_ops.cast(rcond, a.dtype) * reduction_ops.reduce_max(s, -1)
        infinity = conversion.constant(np.inf, a.dtype)
        s = array_ops.where(s > array_ops.expand_dims(limit, -1), s, infinity)
        return math_ops.matmul(v / array_ops.expand_dims(s, -2), u, adjoint_b=True)


def matrix_rank(a, tol=None, validate_args=False, name=None):
    """How many singular values are above `tol`. Arguments are always validated."""
    with name_scopes.name_scope(name or "matrix_rank"):
        a = _floating(a, hint=dtypes.float32)
        s = svd(a, compute_uv=False)
        if tol is None:
            size = math_ops.cast(
                reduction_ops.reduce_max(array_ops.shape(a)[-2:]), a.dtype
            )
            eps = np.finfo(a.dtype.as_numpy_dtype).eps
            tol = eps * size * reduction_ops.reduce_max(s, -1, True)
        return reduction_ops.reduce_sum(math_ops.cast(s > tol, dtypes.int32), -1)


def _lower_of(lower_upper):
    lower = band_part(lower_upper, -1, 0)
    ones = array_ops.ones(array_ops.shape(lower)[:-1], lower.dtype)
    return set_diag(lower, ones)


def lu_solve(lower_upper, perm, rhs, validate_args=False, name=None):
    """x of A x = rhs, from the factors of A. Arguments are always validated."""
    with name_scopes.name_scope(name or "lu_solve"):
        factors = conversion.convert_to_tensor(lower_upper)
        rhs = conversion.convert_to_tensor(rhs, dtype=factors.dtype)
        perm = conversion.convert_to_tensor(perm)
        batch = array_ops.broadcast_static_shape(
            factors.shape[:-2], rhs.shape[:-2]
        ).as_list()
        rhs = array_ops.broadcast_to(rhs, batch + rhs.shape[-2:].as_list())
        perm = array_ops.broadcast_to(perm, batch + perm.shape[-1:].as_list())
        rows = array_ops.gather(rhs, perm, batch_dims=len(batch), axis=-2)
        half = triangular_solve(_lower_of(factors), rows)
        return triangular_solve(factors, half, lower=False)


def lu_reconstruct(lower_upper, perm, validate_args=False, name=None):
    """The matrix of the factors. Arguments are always validated."""
    with name_scopes.name_scope(name or "lu_reconstruct"):
        factors = conversion.convert_to_tensor(lower_upper)
        perm = conversion.convert_to_tensor(perm)
        made = math_ops.matmul(_lower_of(factors), band_part(factors, 0, -1))
        back = sort_ops.argsort(perm, -1)
        return array_ops.gather(made, back, batch_dims=perm.shape.rank - 1, axis=-2)


def lu_matrix_inverse(lower_upper, perm, validate_args=False, name=None):
    """The inverse, from the factors. Arguments are always validated."""
    with name_scopes.name_scope(name or "lu_matrix_inverse"):
        factors = conversion.convert_to_tensor(lower_upper)
        one = array_ops.eye(array_ops.shape(factors)[-1], dtype=factors.dtype)
        one = array_ops.broadcast_to(one, array_ops.shape(factors))
        return lu_solve(factors, perm, one)
