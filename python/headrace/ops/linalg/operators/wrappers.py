"""Operators that are the adjoint or the inverse of another one."""

from headrace.context.properties import read_only
from headrace.ops import math_ops
from headrace.ops.linalg import linalg_ops
from headrace.ops.linalg.operators import dense_ops, hints
from headrace.ops.linalg.operators.base import LinearOperator, takes

_WORDS = dict(
    zip(hints.NAMES, ("non-singular", "self-adjoint", "positive-definite", "square"))
)


def _same_hints(known, operator, other):
    """Completes hints by those of the operator; ValueError where the two differ.

    `other` is what the matrix is called whose hints are the same.
    """
    for name, word in _WORDS.items():
        mine, its = known[name], getattr(operator, name)
        if None not in (mine, its) and bool(mine) != bool(its):
            raise ValueError(
                f"An operator is {word} if and only if its {other} is {word}."
            )
        known[name] = its if mine is None else mine


@takes("operator, HINTS, name=None", {"operator": 0})
class LinearOperatorAdjoint(LinearOperator):
    """The conjugate transpose of an operator.

    Its hints are the operator's (ValueError for others).
    """

    def _begin(self, known, operator):
        _same_hints(known, operator, "adjoint")
        self._operator = operator
        return operator.dtype

    def _default_name(self):
        return f"{self._operator.name}_adjoint"

    operator = read_only("_operator", "The operator that this is the adjoint of.")

    def _shape(self):
        shape = self._operator.shape
        if shape.rank is None:
            return shape
        return shape[:-2].concatenate([shape[-1], shape[-2]])

    def _shape_tensor(self):
        sizes = self._operator._sizes()
        return dense_ops.joined(sizes[:-2], sizes[-1:], sizes[-2:-1])

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return self._operator.matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _matvec(self, x, adjoint=False):
        return self._operator.matvec(x, adjoint=not adjoint)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._operator.solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solvevec(self, rhs, adjoint=False):
        return self._operator.solvevec(rhs, adjoint=not adjoint)

    def _to_dense(self):
        return linalg_ops.adjoint(self._operator.to_dense())

    def _add_to_tensor(self, x):
        return self.to_dense() + x

    def _diag_part(self):
        return math_ops.conj(self._operator.diag_part())

    def _eigvals(self):
        return math_ops.conj(self._operator.eigvals())

    def _trace(self):
        return math_ops.conj(self._operator.trace())

    def _determinant(self):
        return math_ops.conj(self._operator.determinant())

    def _log_abs_determinant(self):
        return self._operator.log_abs_determinant()

    def _cond(self):
        return self._operator.cond()

    def _linop_adjoint(self):
        return self._operator

    def _assert_non_singular(self):
        return self._operator.assert_non_singular()

    def _assert_positive_definite(self):
        return self._operator.assert_positive_definite()

    def _assert_self_adjoint(self):
        return self._operator.assert_self_adjoint()


_NEEDED = ("is_non_singular", "is_square")


@takes("operator, HINTS, name=None", {"operator": 0})
class LinearOperatorInversion(LinearOperator):
    """The inverse of an operator: its products are the operator's solutions.

    ValueError where hints say that there is none; else these are the operator's.
    """

    def _begin(self, known, operator):
        for name in _NEEDED:
            if getattr(operator, name) is False or known[name] is False:
                raise ValueError(
                    f"Argument `{name}` or argument `operator` must have supplied hint "
                    f"`{name}` equal to `True` or `None`. Found `operator.{name}`: "
                    f"{getattr(operator, name)}, `{name}`: {known[name]}."
                )
        _same_hints(known, operator, "inverse")
        self._operator = operator
        return operator.dtype

    def _default_name(self):
        return f"{self._operator.name}_inv"

    operator = read_only("_operator", "The operator that this is the inverse of.")

    def _shape(self):
        return self._operator.shape

    def _shape_tensor(self):
        return self._operator.shape_tensor()

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return self._operator.solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._operator.matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _eigvals(self):
        return 1.0 / self._operator.eigvals()

    def _determinant(self):
        return 1.0 / self._operator.determinant()

    def _log_abs_determinant(self):
        return -1.0 * self._operator.log_abs_determinant()

    def _cond(self):
        return self._operator.cond()

    def _linop_inverse(self):
        return self._operator

    def _assert_non_singular(self):
        return self._operator.assert_non_singular()

    def _assert_positive_definite(self):
        return self._operator.assert_positive_definite()

    def _assert_self_adjoint(self):
        return self._operator.assert_self_adjoint()
