"""Operators that are products of others."""

import itertools

from headrace.context.properties import read_only
from headrace.ops.linalg.operators import dense_ops, hints, parts, wrappers
from headrace.ops.linalg.operators.base import LinearOperator, takes
from headrace.ops.linalg.operators.dense_ops import adjoint_if


@takes("operators, HINTS, name=None", parts.ndims)
class LinearOperatorComposition(LinearOperator):
    """The product of operators: the last one is applied first.

    `operators` are one or more (ValueError), of one dtype (TypeError), whose sizes fit
    (ValueError) and whose batches broadcast. A product A A^H is known to be self-adjoint.
    """

    def _begin(self, known, operators):
        self._operators = parts.listed(operators)
        dtype = parts.common_dtype(self._operators)
        always = "The composition of non-singular operators is always non-singular."
        hints.follow(known, self._operators, {"is_non_singular": always})
        _check_palindrome(known, self._operators)
        self._shape()
        return dtype

    def _default_name(self):
        return "_o_".join(o.name for o in self._operators)

    operators = read_only("_operators", "The operators, the last applied one first.")

    def _shape(self):
        ops = self._operators
        for left, right in itertools.pairwise(ops):
            left.domain_dimension.assert_is_compatible_with(right.range_dimension)
        ends = [ops[0].range_dimension.value, ops[-1].domain_dimension.value]
        return parts.static_batch(ops).concatenate(ends)

    def _shape_tensor(self):
        first, last = self._operators[0], self._operators[-1]
        rows = first._sizes()[-2], last._sizes()[-1]
        return dense_ops.joined(parts.batch_sizes(self._operators), rows)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        x = adjoint_if(x, adjoint_arg)
        for operator in self._operators if adjoint else reversed(self._operators):
            x = operator.matmul(x, adjoint=adjoint)
        return x

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        if not parts.all_square(self._operators):
            return self._dense_solve(rhs, adjoint, adjoint_arg)
        rhs = adjoint_if(rhs, adjoint_arg)
        for operator in reversed(self._operators) if adjoint else self._operators:
            rhs = operator.solve(rhs, adjoint=adjoint)
        return rhs

    def _to_dense(self):
        *others, last = self._operators
        dense = last.to_dense()
        for operator in reversed(others):
            dense = operator.matmul(dense)
        return dense

    def _determinant(self):
        if not parts.all_square(self._operators):
            return super()._determinant()
        return parts.product(o.determinant() for o in self._operators)

    def _log_abs_determinant(self):
        if not parts.all_square(self._operators):
            return super()._log_abs_determinant()
        return parts.log_abs_determinant(self._operators, self.dtype)

    def _assert_non_singular(self):
        if not parts.all_square(self._operators):
            return super()._assert_non_singular()
        return parts.asserted(self._operators, "assert_non_singular")


def _are_adjoint(left, right):
    if left is right:
        return left.is_self_adjoint
    for one, other in ((left, right), (right, left)):
        if isinstance(one, wrappers.LinearOperatorAdjoint) and one.operator is other:
            return True
    return False


def _check_palindrome(known, operators):
    """Sets the hints of a product such as A B B^H A^H, and of a single operator."""
    half, is_odd = divmod(len(operators), 2)
    if is_odd and (half or not operators[0].is_self_adjoint):
        return
    if not all(map(_are_adjoint, operators[:half], operators[::-1])):
        return
    hints.check(
        known,
        "is_self_adjoint",
        "The composition was determined to be self-adjoint but user provided incorrect "
        "`False` hint.",
    )
    if known["is_non_singular"] and not is_odd:
        hints.check(
            known,
            "is_positive_definite",
            "The composition was determined to be non-singular and have the form A @ A.H, "
            "hence it must be positive-definite. The user provided an incorrect `False` "
            "hint.",
        )
