"""Operators of Householder reflections."""

from headrace.context import errors
from headrace.context.properties import read_only
from headrace.ops import array_ops, math_ops
from headrace.ops.linalg import linalg_ops
from headrace.ops.linalg.operators import dense_ops, hints, row_counts
from headrace.ops.linalg.operators.base import LinearOperator, takes
from headrace.ops.linalg.operators.dense_ops import adjoint_if
from headrace.ops.nn import nn_ops


@takes(
    "reflection_axis, HINTS, name='LinearOperatorHouseholder'", {"reflection_axis": 1}
)
class LinearOperatorHouseholder(LinearOperator):
    """The reflection at the hyperplane through zero that is orthogonal to an axis.

    `reflection_axis` [..., N] need not have the length 1; ValueError for a scalar.
    """

    def _begin(self, known, reflection_axis):
        self._reflection_axis = dense_ops.kept(reflection_axis, "reflection_axis")
        dense_ops.check_rank(self._reflection_axis, 1, "reflection_axis")
        hints.check(
            known, "is_self_adjoint", "A Householder operator is always self adjoint."
        )
        if known["is_positive_definite"]:
            raise ValueError("A Householder operator is always non-positive definite.")
        known["is_positive_definite"] = False
        hints.check(known, "is_square", "A Householder operator is always square.")
        return self._reflection_axis.dtype

    reflection_axis = read_only("_reflection_axis", "The axis.")

    def _shape(self):
        shape = self._reflection_axis.shape
        return shape.concatenate(shape[-1:]) if shape.rank is not None else shape

    def _shape_tensor(self):
        sizes = dense_ops.sizes(self._reflection_axis)
        return dense_ops.joined(sizes, sizes[-1:])

    def _unit(self):
        return nn_ops.l2_normalize(dense_ops.tensor(self._reflection_axis), axis=-1)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        x = adjoint_if(x, adjoint_arg)
        column = array_ops.expand_dims(self._unit(), -1)
        along = dense_ops.matmul(column, x, adjoint_a=True)
        return x - 2 * column * along

    _solve = _matmul

    def _to_dense(self):
        column = array_ops.expand_dims(self._unit(), -1)
        twice = 2 * dense_ops.matmul(column, column, adjoint_b=True)
        diagonal = linalg_ops.diag_part(twice)
        return linalg_ops.set_diag(-twice, 1 - diagonal)

    def _diag_part(self):
        unit = self._unit()
        return 1 - 2 * unit * math_ops.conj(unit)

    def _of_each(self, value):
        return dense_ops.filled(self._sizes()[:-2], value, self.dtype)

    def _trace(self):
        return self._of_each(self._sizes()[-1] - 2)

    def _determinant(self):
        return self._of_each(-1)

    def _log_abs_determinant(self):
        return self._of_each(0)

    def _cond(self):
        return self._of_each(1)

    def _eigvals(self):
        sizes = self._sizes()[:-1]
        least = dense_ops.joined(sizes[:-1], [1])
        ones = dense_ops.joined(sizes[:-1], [sizes[-1] - 1])
        return array_ops.concat(
            [-array_ops.ones(least, self.dtype), array_ops.ones(ones, self.dtype)], -1
        )

    def _linop_adjoint(self):
        return self

    _linop_inverse = _linop_adjoint

    def _assert_positive_definite(self):
        raise errors.InvalidArgumentError._of(
            "Householder operators are always non-positive definite."
        )

    def _assert_non_singular(self):
        return row_counts.nothing_to_assert()

    _assert_self_adjoint = _assert_non_singular
