"""Operators of matrices that are given whole, and of their lower triangles."""

from headrace.context.properties import read_only
from headrace.framework import dtypes
from headrace.ops import reduction_ops
from headrace.ops.linalg import linalg_ops
from headrace.ops.linalg.operators import dense_ops, hints
from headrace.ops.linalg.operators.base import LinearOperator, takes
from headrace.ops.linalg.operators.dense_ops import adjoint_if

_DTYPES = (
    *(dtypes.float16, dtypes.float32, dtypes.float64),
    *(dtypes.complex64, dtypes.complex128),
)


@takes("matrix, HINTS, name='LinearOperatorFullMatrix'", {"matrix": 2})
class LinearOperatorFullMatrix(LinearOperator):
    """The operator of a matrix [..., M, N] that is given whole.

    `matrix` is of a floating or complex dtype (TypeError) and has two dimensions or more
    (ValueError). Solving goes by the Cholesky factor where hints allow it.
    """

    def _begin(self, known, matrix):
        self._matrix = dense_ops.kept(matrix, "matrix")
        dtype, rank = self._matrix.dtype, self._matrix.shape.rank
        if dtype not in _DTYPES:
            raise TypeError(
                f"Argument `matrix` must have dtype in [{', '.join(map(repr, _DTYPES))}]. "
                f"Received: {dtype}."
            )
        if rank is not None and rank < 2:
            raise ValueError(
                f"Argument `matrix` must have at least 2 dimensions. Received: {matrix}."
            )
        return dtype

    matrix = read_only("_matrix", "The matrix: a tensor or variable.")

    def _shape(self):
        return self._matrix.shape

    def _shape_tensor(self):
        return dense_ops.sizes(self._matrix)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return dense_ops.matmul(dense_ops.tensor(self._matrix), x, adjoint, adjoint_arg)

    def _to_dense(self):
        return dense_ops.tensor(self._matrix)

    def _diag_part(self):
        return linalg_ops.diag_part(self._matrix)

    def _determinant(self):
        if self._is_self_adjoint and self._is_positive_definite:
            return super()._determinant()
        return linalg_ops.det(self._matrix)

    def _log_abs_determinant(self):
        if self._is_self_adjoint and self._is_positive_definite:
            return super()._log_abs_determinant()
        return linalg_ops.slogdet(self._matrix)[1]

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        if self._is_self_adjoint and self._is_positive_definite:
            return self._dense_solve(rhs, adjoint, adjoint_arg)
        rhs = adjoint_if(rhs, adjoint_arg)
        return dense_ops.solve(dense_ops.tensor(self._matrix), rhs, adjoint)


@takes("tril, HINTS, name='LinearOperatorLowerTriangular'", {"tril": 2})
class LinearOperatorLowerTriangular(LinearOperator):
    """The operator of the lower triangle, diagonal included, of matrices [..., N, N].

    What stands above the diagonal is not read. Solving takes N^2 steps for a column.
    """

    def _begin(self, known, tril):
        hints.check(
            known,
            "is_square",
            "Only square lower triangular operators supported at this time.",
        )
        self._tril = dense_ops.kept(tril, "tril")
        dense_ops.check_rank(self._tril, 2, "tril")
        return self._tril.dtype

    tril = read_only("_tril", "The matrix whose lower triangle counts.")

    def _shape(self):
        return self._tril.shape

    def _shape_tensor(self):
        return dense_ops.sizes(self._tril)

    def _diag_part(self):
        return linalg_ops.diag_part(self._tril)

    def _to_dense(self):
        return linalg_ops.band_part(self._tril, -1, 0)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return dense_ops.matmul(self._to_dense(), x, adjoint, adjoint_arg)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        rhs = adjoint_if(rhs, adjoint_arg)
        return dense_ops.triangular_solve(dense_ops.tensor(self._tril), rhs, adjoint)

    def _determinant(self):
        return reduction_ops.reduce_prod(self._diag_part(), [-1])

    def _log_abs_determinant(self):
        return dense_ops.log_abs_product(self._diag_part())

    def _eigvals(self):
        return self._diag_part()

    def _assert_non_singular(self):
        return dense_ops.assert_no_zeros(self._diag_part(), dense_ops.ZERO_DIAGONAL)
