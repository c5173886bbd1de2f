"""tf.linalg."""

from headrace._load import _headrace
from headrace.framework import conversion, dtypes
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops
from headrace.ops.faces import face

cholesky = face("Cholesky", "cholesky", "input,name=None")
det = face("MatrixDeterminant", "det", "input,name=None")
inv = face("MatrixInverse", "inv", "input,adjoint=False,name=None")
solve = face("MatrixSolve", "solve", "matrix,rhs,adjoint=False,name=None")
cross = face("Cross", "cross", "a,b,name=None")
qr = face("Qr", "qr", "input,full_matrices=False,name=None")
sqrtm = face("MatrixSquareRoot", "sqrtm", "input,name=None")
logm = face("MatrixLogarithm", "logm", "input,name=None")
band_part = face("MatrixBandPart", "band_part", "input,num_lower,num_upper,name=None")
tensor_diag = face("Diag", "tensor_diag", "diagonal,name=None")
tensor_diag_part = face("DiagPart", "tensor_diag_part", "input,name=None")
_triangular = face(
    "MatrixTriangularSolve",
    "triangular_solve",
    "matrix,rhs,lower=True,adjoint=False,name=None",
)


def _tensor(x):
    return conversion.convert_to_tensor(x)


def triangular_solve(matrix, rhs, lower=True, adjoint=False, name=None):
    """Solves with triangular matrices."""
    return _triangular(matrix, rhs, lower, adjoint, name)


def cholesky_solve(chol, rhs, name=None):
    """Solves A X = rhs, given A's Cholesky factor."""
    y = _triangular(chol, rhs, True, False)
    return _triangular(chol, y, True, True, name)


def slogdet(input, name=None):
    """The sign and the logarithm of the absolute value of the determinant."""
    return _headrace.raw_op("LogMatrixDeterminant")(input=input, name=name)


def logdet(matrix, name=None):
    """The logarithm of the determinant of a positive definite matrix."""
    chol = cholesky(matrix)
    diagonal = elementwise_ops.real(diag_part(chol))
    return 2.0 * reduction_ops.reduce_sum(elementwise_ops.log(diagonal), axis=[-1])


def svd(tensor, full_matrices=False, compute_uv=True, name=None):
    """The singular value decomposition: s, u, v (or s alone)."""
    s, u, v = _headrace.raw_op("Svd")(
        input=tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name
    )
    return (s, u, v) if compute_uv else s


def eigh(tensor, name=None):
    """Eigenvalues and eigenvectors of self-adjoint matrices."""
    e, v = _headrace.raw_op("SelfAdjointEigV2")(input=tensor, compute_v=True, name=name)
    return e, v


def eigvalsh(tensor, name=None):
    """Eigenvalues of self-adjoint matrices."""
    return _headrace.raw_op("SelfAdjointEigV2")(
        input=tensor, compute_v=False, name=name
    ).e


def _eig(tensor, vectors, name):
    tensor = _tensor(tensor)
    out = {"float32": dtypes.complex64, "float64": dtypes.complex128}.get(
        tensor.dtype.name, tensor.dtype
    )
    return _headrace.raw_op("Eig")(input=tensor, Tout=out, compute_v=vectors, name=name)


def eig(tensor, name=None):
    """Eigenvalues and eigenvectors."""
    return tuple(_eig(tensor, True, name))


def eigvals(tensor, name=None):
    """Eigenvalues."""
    return _eig(tensor, False, name).e


def lu(input, output_idx_type=dtypes.int32, name=None):
    """The LU decomposition and its permutation."""
    return _headrace.raw_op("Lu")(
        input=input, output_idx_type=output_idx_type, name=name
    )


def diag(
    diagonal,
    name="diag",
    k=0,
    num_rows=-1,
    num_cols=-1,
    padding_value=0,
    align="RIGHT_LEFT",
):
    """Matrices with the given diagonals."""
    diagonal = _tensor(diagonal)
    return _headrace.raw_op("MatrixDiagV3")(
        diagonal=diagonal,
        k=k,
        num_rows=num_rows,
        num_cols=num_cols,
        padding_value=conversion.to_tensor(
            False
            if diagonal.dtype == dtypes.bool and not padding_value
            else padding_value,
            diagonal.dtype,
        ),
        align=align,
        name=name,
    )


def diag_part(input, name="diag_part", k=0, padding_value=0, align="RIGHT_LEFT"):
    """Diagonals of matrices."""
    input = _tensor(input)
    return _headrace.raw_op("MatrixDiagPartV3")(
        input=input,
        k=k,
        padding_value=conversion.to_tensor(
            False
            if input.dtype == dtypes.bool and not padding_value
            else padding_value,
            input.dtype,
        ),
        align=align,
        name=name,
    )


def set_diag(input, diagonal, name="set_diag", k=0, align="RIGHT_LEFT"):
    """Matrices with their diagonals replaced."""
    return _headrace.raw_op("MatrixSetDiagV3")(
        input=input, diagonal=diagonal, k=k, align=align, name=name
    )


def trace(x, name=None):
    """Sums of diagonals."""
    return reduction_ops.reduce_sum(diag_part(x), [-1], name=name)


def adjoint(matrix, name=None):
    """The conjugate transpose."""
    return array_ops.matrix_transpose(matrix, conjugate=True)


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


def norm(tensor, ord="euclidean", axis=None, keepdims=None, name=None):
    """Norms of vectors (or of matrices, for two axes)."""
    matrix = isinstance(axis, (tuple, list)) and len(axis) == 2
    keepdims = bool(keepdims)
    tensor = _tensor(tensor)
    if ord in ("fro", "euclidean", 2, 2.0) and not (matrix and ord in (2, 2.0)):
        if ord == "fro" and not matrix and axis is not None:
            raise ValueError(
                "'ord' must be a supported vector norm in ['euclidean', 1, 2, inf], got "
                f"{ord}"
            )
        if matrix:
            axis = list(axis)
        conj = math_ops.conj(tensor)
        total = reduction_ops.reduce_sum(tensor * conj, axis, True)
        result = elementwise_ops.sqrt(total)
    else:
        magnitude = elementwise_ops.abs(tensor)
        result = _other_norm(tensor, magnitude, ord, axis, matrix)
    if tensor.dtype.is_complex and result.dtype.is_complex:
        result = elementwise_ops.real(result)
    if keepdims:
        return result
    drop = axis if isinstance(axis, (list, tuple)) else None if axis is None else [axis]
    return array_ops.squeeze(result, drop)


def _other_norm(tensor, magnitude, ord, axis, matrix):
    import math

    total, high = reduction_ops.reduce_sum, reduction_ops.reduce_max
    if matrix:
        row, col = axis
        if ord in (1, 1.0):
            return high(total(magnitude, row, True), col, True)
        if ord == math.inf:
            return high(total(magnitude, col, True), row, True)
        if ord in (2, 2.0):
            singular = svd(tensor, compute_uv=False)
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
        raise ValueError(
            f"'ord' must be a supported vector norm in ['euclidean', 1, 2, "
            f"inf], got {ord}"
        )
    power = conversion.to_tensor(float(ord), magnitude.dtype)
    inverse = conversion.to_tensor(1.0 / ord, magnitude.dtype)
    return elementwise_ops.pow(
        total(elementwise_ops.pow(magnitude, power), axis, True), inverse
    )


def normalize(tensor, ord="euclidean", axis=None, name=None):
    """(the tensor over its norm, the norm)."""
    tensor = _tensor(tensor)
    size = norm(tensor, ord, axis, keepdims=True)
    return tensor / math_ops.cast(size, tensor.dtype), size


def lstsq(matrix, rhs, l2_regularizer=0.0, fast=True, name=None):
    """Least squares solutions."""
    return _headrace.raw_op("MatrixSolveLs")(
        matrix=matrix,
        rhs=rhs,
        l2_regularizer=conversion.to_tensor(l2_regularizer, dtypes.float64),
        fast=fast,
        name=name,
    )


def lbeta(x, name=None):
    """The logarithm of the beta function of the last dimension's numbers."""
    from headrace.ops import elementwise_ops, reduction_ops

    x = conversion.convert_to_tensor(x)
    whole = elementwise_ops.lgamma(reduction_ops.reduce_sum(x, [-1]))
    parts = reduction_ops.reduce_sum(elementwise_ops.lgamma(x), [-1])
    return _headrace.raw_op("Sub")(x=parts, y=whole, name=name)
