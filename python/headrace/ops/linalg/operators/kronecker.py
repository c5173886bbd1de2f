"""Operators that are Kronecker products of others."""

from headrace.context import errors
from headrace.context.properties import read_only
from headrace.framework import dtypes
from headrace.ops import array_ops, elementwise_ops, math_ops
from headrace.ops.linalg.operators import dense_ops, hints, parts
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
        rows, columns = 1, 1
        for operator in self._operators:
            rows *= operator.range_dimension
            columns *= operator.domain_dimension
        sizes = [getattr(n, "value", n) for n in (rows, columns)]
        return parts.static_batch(self._operators).concatenate(sizes)

    def _shape_tensor(self):
        ops = self._operators
        rows = parts.product(o.range_dimension_tensor() for o in ops)
        columns = parts.product(o.domain_dimension_tensor() for o in ops)
        return array_ops.concat([parts.batch_tensor(ops), [rows, columns]], 0)

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
        total = math_ops.cast(self.domain_dimension_tensor(), dtypes.float64)
        for operator in self._operators:
            size = math_ops.cast(operator.domain_dimension_tensor(), dtypes.float64)
            yield operator, elementwise_ops.divide_no_nan(total, size)

    def _determinant(self):
        if not parts.all_square(self._operators):
            return super()._determinant()
        return parts.product(
            elementwise_ops.pow(o.determinant(), math_ops.cast(n, self.dtype))
            for o, n in self._powers()
        )

    def _log_abs_determinant(self):
        if not parts.all_square(self._operators):
            return super()._log_abs_determinant()
        return parts.total(
            math_ops.cast(o.log_abs_determinant(), self.dtype)
            * math_ops.cast(n, self.dtype)
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
    rows, columns = operator.range_dimension.value, operator.domain_dimension.value
    if rows is None:
        rows = operator.range_dimension_tensor()
    if columns is None:
        columns = operator.domain_dimension_tensor()
    return rows, columns


def _split(x, sizes):
    """[..., first of the sizes, all others] of a tensor of matrices."""
    ends = [sizes[0], parts.product(sizes[1:])]
    return array_ops.reshape(x, array_ops.concat([dense_ops.batch_of(x, 2), ends], 0))


def _of_vectors(vectors):
    """The Kronecker product of vectors [..., N]."""
    first, *others = vectors
    for other in others:
        table = first[..., :, None] * other[..., None, :]
        size = dense_ops.sizes(first)[-1] * dense_ops.sizes(other)[-1]
        sizes = array_ops.concat([dense_ops.batch_of(table, 2), [size]], 0)
        first = array_ops.reshape(table, sizes)
    return first


def _of_matrices(left, right):
    """The Kronecker product of matrices [..., M, N]."""
    table = left[..., :, None, :, None] * right[..., None, :, None, :]
    sizes = dense_ops.sizes(left)[-2:] * dense_ops.sizes(right)[-2:]
    return array_ops.reshape(
        table, array_ops.concat([dense_ops.batch_of(table, 4), sizes], 0)
    )
