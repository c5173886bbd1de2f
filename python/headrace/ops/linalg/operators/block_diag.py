"""Operators of block diagonal matrices."""

from headrace.context.properties import read_only
from headrace.ops.linalg.operators import hints, parts
from headrace.ops.linalg.operators.base import takes
from headrace.ops.linalg.operators.blocks import BlockOperator

_ALWAYS = {
    name: f"The direct sum of {word} operators is always {word}."
    for name, word in (
        ("is_non_singular", "non-singular"),
        ("is_self_adjoint", "self-adjoint"),
        ("is_positive_definite", "positive definite"),
    )
}


@takes(
    "operators, is_non_singular=None, is_self_adjoint=None, is_positive_definite=None, "
    "is_square=True, name=None",
    parts.ndims,
)
class LinearOperatorBlockDiag(BlockOperator):
    """Operators along the diagonal, zeros elsewhere.

    `operators` are one or more (ValueError) of one dtype (TypeError), whose batches
    broadcast. What holds of every block holds of the whole.
    """

    def _begin(self, known, operators):
        self._operators = parts.listed(operators)
        hints.follow(known, self._operators, _ALWAYS)
        dtype = parts.common_dtype(self._operators)
        self._shape()
        return dtype

    def _default_name(self):
        return "_ds_".join(o.name for o in self._operators)

    operators = read_only("_operators", "The operators along the diagonal.")

    # --- Sizes.

    def _block_range_dimensions(self):
        return [o.range_dimension for o in self._operators]

    def _block_domain_dimensions(self):
        return [o.domain_dimension for o in self._operators]

    def _block_range_dimension_tensors(self):
        return [o.range_dimension_tensor() for o in self._operators]

    def _block_domain_dimension_tensors(self):
        return [o.domain_dimension_tensor() for o in self._operators]

    def _shape(self):
        return parts.static_shape(
            self._operators,
            self._block_range_dimensions(),
            self._block_domain_dimensions(),
        )

    def _shape_tensor(self):
        return parts.shape_tensor(
            self._operators,
            self._block_range_dimension_tensors(),
            self._block_domain_dimension_tensors(),
        )

    # --- What it does.

    def _block_matmul(self, blocks, adjoint):
        pairs = zip(self._operators, blocks, strict=True)
        return [o.matmul(x, adjoint=adjoint) for o, x in pairs]

    def _block_solve(self, blocks, adjoint):
        self._known_square("solve")
        pairs = zip(self._operators, blocks, strict=True)
        return [o.solve(x, adjoint=adjoint) for o, x in pairs]

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        if not parts.all_square(self._operators):
            return self._dense_solve(rhs, adjoint, adjoint_arg)
        return super()._solve(rhs, adjoint, adjoint_arg)

    def _known_square(self, method):
        """Whether blocks are known to be square; NotImplementedError if some are not."""
        known = parts.all_square(self._operators)
        if known is False:
            raise NotImplementedError(
                f"`{method}` not implemented for an operator whose blocks are not square."
            )
        return known

    def _diag_part(self):
        if not self._known_square("diag_part"):
            return super()._diag_part()
        return parts.vectors_of(self._operators, "diag_part")

    def _eigvals(self):
        if not self._known_square("eigvals"):
            return super()._eigvals()
        return parts.vectors_of(self._operators, "eigvals")

    def _trace(self):
        if not self._known_square("trace"):
            return super()._trace()
        return parts.total(o.trace() for o in self._operators)

    def _determinant(self):
        if not parts.all_square(self._operators):
            return super()._determinant()
        return parts.product(o.determinant() for o in self._operators)

    def _log_abs_determinant(self):
        if not parts.all_square(self._operators):
            return super()._log_abs_determinant()
        return parts.log_abs_determinant(self._operators, self.dtype)

    def _to_dense(self):
        rows = [(i, [o.to_dense()]) for i, o in enumerate(self._operators)]
        return parts.dense_of_rows(rows, self._block_size_tensors(of_rows=False))

    # --- Operators that are made of it.

    def _of(self, method, **known):
        made = [getattr(o, method)() for o in self._operators]
        return LinearOperatorBlockDiag(made, **known)

    def _linop_adjoint(self):
        return self._of("adjoint", **hints.of(self))

    def _linop_inverse(self):
        return self._of("inverse", **hints.of(self))

    def _linop_cholesky(self):
        return self._of("cholesky", is_non_singular=True, is_square=True)

    def _assert_non_singular(self):
        if not parts.all_square(self._operators):
            return super()._assert_non_singular()
        return parts.asserted(self._operators, "assert_non_singular")

    def _assert_self_adjoint(self):
        if not parts.all_square(self._operators):
            return super()._assert_self_adjoint()
        return parts.asserted(self._operators, "assert_self_adjoint")

    def _assert_positive_definite(self):
        return parts.asserted(self._operators, "assert_positive_definite")


def check_alike(left, right):
    """ValueError for two operators whose blocks cannot be multiplied one by one."""
    if len(left.operators) != len(right.operators):
        raise ValueError(
            "Can not efficiently multiply two `LinearOperatorBlockDiag`s together when "
            "number of blocks differ."
        )
    for one, other in zip(left.operators, right.operators):
        wanted, found = one.domain_dimension, other.range_dimension
        if not wanted.is_compatible_with(found):
            raise ValueError(
                f"Blocks are incompatible. Expected `x` to have dimension {wanted} but got "
                f"{found}."
            )
