"""Operators that are Kronecker products of others."""

import math

from headrace.context import errors
from headrace.context.properties import read_only
from headrace.framework import dtypes
from headrace.ops import array_ops, elementwise_ops, math_ops
from headrace.ops.linalg.operators import base, dense_ops, hints, parts
from headrace.ops.linalg.operators.base import LinearOperator, takes
from headrace.ops.linalg.operators.dense_ops import adjoint_if

_ALWAYS = {
    name: f"The Kronecker product of {word} operators is always {word}. Expected argument "
    f"`{name}` to be True. Received: False."
    for name, word in (
        ("is_non_singular", "non-singular"),
        ("is_self_adjoint", "self-adjoint"),
        ("is_positive_definite", "positive-definite"),
    )
}


@takes("operators, HINTS, name=None", parts.ndims)
class LinearOperatorKronecker(LinearOperator):
    """The Kronecker product of operators, which is never built.

    `operators` are one or more (ValueError) of one dtype (TypeError), whose batches
    broadcast. What holds of every factor holds of the product.
    """

    def _begin(self, known, operators):
        self._operators = parts.listed(operators, parts.EMPTY_ARGUMENT)
        hints.follow(known, self._operators, _ALWAYS)
        dtype = parts.common_dtype(self._operators)
        self._shape()
        return dtype

    def _default_name(self):
        return "_x_".join(o.name for o in self._operators)

    operators = read_only("_operators", "The factors.")

    def _shape(self):
        sizes = []
        for place in (-2, -1):
            each = [base.size(operator.shape, place) for operator in self._operators]
            sizes.append(None if None in each else math.prod(each))
        return parts.static_batch(self._operators).concatenate(sizes)

    def _shape_tensor(self):
        ops = self._operators
        sizes = [o._sizes()[-2:] for o in ops]
        ends = [parts.product(s[i] for s in sizes) for i in (0, 1)]
        return dense_ops.joined(parts.batch_sizes(ops), ends)

    def _apply(self, x, apply, adjoint):
        """What `apply` of each factor makes of its part of the rows of x.

        The rows of a factor's turn come first, all else is columns; then the result is
        turned, so that the next factor's rows come first.
        """
        ops = self._operators
        rows, columns = map(list, zip(*map(_sizes, ops)))
        if not adjoint:
            rows, columns = columns, rows
        left = [*rows, dense_ops.sizes(x)[-1]]
        for operator, count in zip(ops, columns):
            x = array_ops.matrix_transpose(apply(operator, _split(x, left)))
            left = [*left[1:], count]
        return array_ops.matrix_transpose(_split(x, left))

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return self._apply(
            adjoint_if(x, adjoint_arg),
            lambda operator, part: operator.matmul(part, adjoint=adjoint),
            adjoint,
        )

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        if not parts.all_square(self._operators):
            return self._dense_solve(rhs, adjoint, adjoint_arg)
        return self._apply(
            adjoint_if(rhs, adjoint_arg),
            lambda operator, part: operator.solve(part, adjoint=adjoint),
            adjoint,
        )

    def _to_dense(self):
        first, *others = [o.to_dense() for o in self._operators]
        for other in others:
            first = _of_matrices(first, other)
        return first

    def _diag_part(self):
        if not parts.all_square(self._operators):
            return super()._diag_part()
        return _of_vectors(o.diag_part() for o in self._operators)

    def _eigvals(self):
        if not parts.all_square(self._operators):
            return super()._eigvals()
        return _of_vectors(o.eigvals() for o in self._operators)

    def _trace(self):
        if not parts.all_square(self._operators):
            return super()._trace()
        return parts.product(o.trace() for o in self._operators)

    def _powers(self):
        """Each factor, and how often its determinant is in the product's."""
        total = self._sizes()[-1]
        for operator in self._operators:
            size = operator._sizes()[-1]
            if isinstance(total, int) and isinstance(size, int):
                power = total / size if size else 0
            else:
                total, size = (math_ops.cast(n, dtypes.float64) for n in (total, size))
                power = elementwise_ops.divide_no_nan(total, size)
            yield operator, dense_ops.filled([], power, self.dtype)

    def _determinant(self):
        if not parts.all_square(self._operators):
            return super()._determinant()
        return parts.product(
            elementwise_ops.pow(o.determinant(), n) for o, n in self._powers()
        )

    def _log_abs_determinant(self):
        if not parts.all_square(self._operators):
            return super()._log_abs_determinant()
        return parts.total(
            math_ops.cast(o.log_abs_determinant(), self.dtype) * n
            for o, n in self._powers()
        )

    def _of(self, method, **known):
        factors = [getattr(o, method)() for o in self._operators]
        return LinearOperatorKronecker(factors, **known)

    def _linop_adjoint(self):
        return self._of("adjoint", **hints.of(self))

    def _linop_inverse(self):
        return self._of("inverse", **hints.of(self))

    def _linop_cholesky(self):
        return self._of("cholesky", is_non_singular=True, is_square=True)

    def _check_factors(self):
        if any(o.is_square is False for o in self._operators):
            raise errors.InvalidArgumentError._of(
                "All Kronecker factors must be square for the product to be invertible. "
                "Expected hint `is_square` to be True for every operator in argument "
                "`operators`."
            )

    def _assert_non_singular(self):
        self._check_factors()
        return parts.asserted(self._operators, "assert_non_singular")

    def _assert_self_adjoint(self):
        self._check_factors()
        return parts.asserted(self._operators, "assert_self_adjoint")


def _sizes(operator):
    """The numbers of rows and of columns, as known as they are."""
    if operator.shape.is_fully_defined():
        return operator.shape[-2:].as_list()
    rows, columns = operator.range_dimension.value, operator.domain_dimension.value
    if rows is None:
        rows = operator.range_dimension_tensor()
    if columns is None:
        columns = operator.domain_dimension_tensor()
    return rows, columns


def _split(x, sizes):
    """[..., first of the sizes, all others] of a tensor of matrices."""
    ends = [sizes[0], parts.product(sizes[1:])]
    return array_ops.reshape(x, dense_ops.joined(dense_ops.batch_of(x, 2), ends))


def _of_vectors(vectors):
    """The Kronecker product of vectors [..., N]."""
    first, *others = vectors
    for other in others:
        table = array_ops.expand_dims(first, -1) * array_ops.expand_dims(other, -2)
        size = dense_ops.sizes(first)[-1] * dense_ops.sizes(other)[-1]
        sizes = dense_ops.joined(dense_ops.batch_of(table, 2), [size])
        first = array_ops.reshape(table, sizes)
    return first


def _of_matrices(left, right):
    """The Kronecker product of matrices [..., M, N]."""
    columns = array_ops.expand_dims(array_ops.expand_dims(left, -1), -3)
    rows = array_ops.expand_dims(array_ops.expand_dims(right, -2), -4)
    table = columns * rows
    one, other = dense_ops.sizes(left)[-2:], dense_ops.sizes(right)[-2:]
    ends = [one[i] * other[i] for i in (0, 1)]
    return array_ops.reshape(
        table, dense_ops.joined(dense_ops.batch_of(table, 4), ends)
    )
