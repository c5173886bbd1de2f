"""Operators of diagonal matrices."""

from headrace.context.properties import read_only
from headrace.ops import (
    array_ops,
    check_ops,
    elementwise_ops,
    math_ops,
    reduction_ops,
)
from headrace.ops.linalg import linalg_ops
from headrace.ops.linalg.operators import dense_ops, hints
from headrace.ops.linalg.operators.base import LinearOperator, takes
from headrace.ops.linalg.operators.dense_ops import adjoint_if, conj_if

REAL = "A real diagonal operator is always self adjoint."


@takes("diag, HINTS, name='LinearOperatorDiag'", {"diag": 1})
class LinearOperatorDiag(LinearOperator):
    """The operator of a diagonal matrix, of which the diagonal [..., N] is given.

    ValueError for a scalar, and for a real diagonal hinted not to be self-adjoint.
    """

    def _begin(self, known, diag):
        self._diag = dense_ops.kept(diag, "diag")
        dense_ops.check_rank(self._diag, 1, "diag")
        if not self._diag.dtype.is_complex:
            hints.check(known, "is_self_adjoint", REAL)
        hints.check(
            known, "is_square", "Only square diagonal operators currently supported."
        )
        return self._diag.dtype

    diag = read_only("_diag", "The diagonal: a tensor or variable.")

    def _shape(self):
        return self._diag.shape.concatenate(self._diag.shape[-1:])

    def _shape_tensor(self):
        sizes = dense_ops.sizes(self._diag)
        return dense_ops.joined(sizes, sizes[-1:])

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        rows = array_ops.expand_dims(conj_if(self._diag, adjoint), -1)
        return rows * adjoint_if(x, adjoint_arg)

    def _matvec(self, x, adjoint=False):
        return conj_if(self._diag, adjoint) * x

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        rows = array_ops.expand_dims(conj_if(self._diag, adjoint), -1)
        return adjoint_if(rhs, adjoint_arg) / rows

    def _solvevec(self, rhs, adjoint=False):
        return rhs / conj_if(self._diag, adjoint)

    def _to_dense(self):
        return linalg_ops.diag(self._diag)

    def _diag_part(self):
        return dense_ops.tensor(self._diag)

    _eigvals = _diag_part

    def _determinant(self):
        return reduction_ops.reduce_prod(self._diag, [-1])

    def _log_abs_determinant(self):
        found = dense_ops.log_abs_product(self._diag)
        return found if found.dtype is self._dtype else math_ops.cast(found, self.dtype)

    def _add_to_tensor(self, x):
        return dense_ops.add_to_diagonal(x, self._diag, self.shape)

    def _cond(self):
        return dense_ops.ratio(self._diag)

    def _linop_adjoint(self):
        if not self.dtype.is_complex:
            return self
        return LinearOperatorDiag(math_ops.conj(self._diag), **hints.of(self))

    def _linop_inverse(self):
        return LinearOperatorDiag(1 / dense_ops.tensor(self._diag), **hints.of(self))

    def _linop_cholesky(self):
        return LinearOperatorDiag(
            elementwise_ops.sqrt(self._diag),
            is_non_singular=True,
            is_self_adjoint=True,
            is_positive_definite=True,
            is_square=True,
        )

    def _assert_non_singular(self):
        return dense_ops.assert_no_zeros(self._diag, dense_ops.ZERO_DIAGONAL)

    def _assert_positive_definite(self):
        if self.dtype.is_complex:
            message = (
                "Diagonal operator had diagonal entries with non-positive real part, "
            )
        else:
            message = "Real diagonal operator had non-positive diagonal entries, "
        part = dense_ops.real(self._diag)
        return check_ops.assert_positive(
            part, message + "thus was not positive definite."
        )

    def _assert_self_adjoint(self):
        return dense_ops.assert_real(
            self._diag,
            "This diagonal operator contained non-zero imaginary values.   Thus it was "
            "not self-adjoint.",
        )
