"""Operators of matrices of blocks with none above the diagonal."""

from headrace.context.properties import read_only
from headrace.framework import conversion
from headrace.ops.linalg.operators import (
    composition,
    diagonal,
    hints,
    identity,
    parts,
    whole,
)
from headrace.ops.linalg.operators.base import takes
from headrace.ops.linalg.operators.blocks import BlockOperator


@takes(
    "operators, HINTS, name='LinearOperatorBlockLowerTriangular'",
    lambda operator: {
        "operators": [[0] * len(row) for row in operator.operators],
    },
)
class LinearOperatorBlockLowerTriangular(BlockOperator):
    """Blocks on and below the diagonal, zeros above it.

    `operators` is a list of rows: row i has i + 1 operators, of which the last one stands
    on the diagonal and is square. ValueError where there are more or less, or their sizes
    differ within a row or column; TypeError where their dtypes differ.
    """

    def _begin(self, known, operators):
        rows = parts.listed_rows(operators)
        self._operators = rows
        diagonal = self._diagonal()
        _check_hints(known, diagonal)
        dtype = parts.common_dtype([o for row in rows for o in row])
        self._check_sizes_of_blocks()
        self._shape()
        return dtype

    operators = read_only("_operators", "The rows of operators.")

    def _diagonal(self):
        return [row[-1] for row in self._operators]

    def _flat(self):
        return [o for row in self._operators for o in row]

    def _check_sizes_of_blocks(self):
        rows = self._operators
        for i, row in enumerate(rows):
            for j, operator in enumerate(row[:-1]):
                for name, other, at in (
                    ("domain_dimension", rows[j][j], f"[{j}][{j}]"),
                    ("range_dimension", row[-1], f"[{i}][{i}]"),
                ):
                    mine, its = getattr(operator, name), getattr(other, name)
                    if not mine.is_compatible_with(its):
                        raise ValueError(
                            f"Argument `operators[{i}][{j}].{name}` ({mine}) must be the "
                            f"same as `operators{at}.{name}` ({its})."
                        )

    # --- Sizes: those of the square operators on the diagonal.

    def _block_range_dimensions(self):
        return [row[0].range_dimension for row in self._operators]

    def _block_domain_dimensions(self):
        return [o.domain_dimension for o in self._diagonal()]

    def _block_range_dimension_tensors(self):
        return [row[0].range_dimension_tensor() for row in self._operators]

    def _block_domain_dimension_tensors(self):
        return [o.domain_dimension_tensor() for o in self._diagonal()]

    def _shape(self):
        return parts.static_shape(
            self._flat(),
            self._block_range_dimensions(),
            self._block_domain_dimensions(),
        )

    def _shape_tensor(self):
        return parts.shape_tensor(
            self._flat(),
            self._block_range_dimension_tensors(),
            self._block_domain_dimension_tensors(),
        )

    # --- What it does.

    def _column(self, j):
        """The operators of a column, from the diagonal down."""
        return [row[j] for row in self._operators[j:]]

    def _block_matmul(self, blocks, adjoint):
        if adjoint:
            terms = (
                [o.matmul(x, adjoint=True) for o, x in zip(self._column(j), blocks[j:])]
                for j in range(len(blocks))
            )
        else:
            terms = (
                [o.matmul(x) for o, x in zip(row, blocks)] for row in self._operators
            )
        return list(map(parts.total, terms))

    def _block_solve(self, blocks, adjoint):
        """Row by row, from the first, or for the adjoint from the last."""
        count = len(blocks)
        found = [None] * count
        for i in reversed(range(count)) if adjoint else range(count):
            rest = blocks[i]
            if adjoint:
                for o, x in zip(self._column(i)[1:], found[i + 1 :]):
                    rest -= o.matmul(x, adjoint=True)
            else:
                for o, x in zip(self._operators[i][:-1], found):
                    rest -= o.matmul(x)
            found[i] = self._operators[i][-1].solve(rest, adjoint=adjoint)
        return found

    def _diag_part(self):
        return parts.vectors_of(self._diagonal(), "diag_part")

    def _eigvals(self):
        return parts.vectors_of(self._diagonal(), "eigvals")

    def _trace(self):
        return parts.total(o.trace() for o in self._diagonal())

    def _determinant(self):
        return parts.product(o.determinant() for o in self._diagonal())

    def _log_abs_determinant(self):
        return parts.log_abs_determinant(self._diagonal(), self.dtype)

    def _to_dense(self):
        rows = [(0, [o.to_dense() for o in row]) for row in self._operators]
        return parts.dense_of_rows(rows, self._block_size_tensors(of_rows=False))

    def _assert_non_singular(self):
        return parts.asserted(self._diagonal(), "assert_non_singular")

    def _linop_inverse(self):
        """Block by block, row by row, as the matrix times its inverse is the identity."""
        rows = []
        for i, row in enumerate(self._operators):
            own = row[-1].inverse()
            minus = identity.LinearOperatorScaledIdentity(
                row[-1]._sizes()[-1],
                conversion.constant(-1, self.dtype),
            )
            made = []
            for j in range(i):
                terms = [row[k].matmul(rows[k][j]) for k in range(j, i)]
                made.append(minus.matmul(own.matmul(_added(terms))))
            rows.append([*made, own])
        return LinearOperatorBlockLowerTriangular(rows, **hints.of(self))


def _check_hints(known, diagonal):
    hints.check(
        known,
        "is_square",
        "`LinearOperatorBlockLowerTriangular` must be square. Expected argument "
        "`is_square` to be True. Received: False.",
    )
    for i, operator in enumerate(diagonal):
        if operator.is_square is False:
            raise ValueError(
                "Matrices on the diagonal (the final elements of each row-partition in the "
                "`operators` list) must be square. Expected argument "
                f"`operators[{i}][-1].is_square` to be True. Received: False."
            )
    words = "A blockwise lower-triangular operator with {} on the main diagonal is always {}. "
    wanted = "Expected argument `is_non_singular` to be True. Received: {}."
    each = [operator.is_non_singular for operator in diagonal]
    if all(each):
        text = words.format("non-singular operators", "non-singular")
        hints.check(known, "is_non_singular", text + wanted.format(False))
    elif False in each:
        if known["is_non_singular"]:
            text = words.format("a singular operator", "singular")
            raise ValueError(text + wanted.format(True))
        known["is_non_singular"] = False


def _added(terms):
    """The sum of operators: diagonal if all of them are, else of a whole matrix."""
    if len(terms) == 1 and not isinstance(
        terms[0], composition.LinearOperatorComposition
    ):
        return terms[0]
    kinds = (
        diagonal.LinearOperatorDiag,
        identity.LinearOperatorIdentity,
        identity.LinearOperatorScaledIdentity,
    )
    if all(isinstance(t, kinds) for t in terms):
        return diagonal.LinearOperatorDiag(parts.total(t.diag_part() for t in terms))
    return whole.LinearOperatorFullMatrix(parts.total(t.to_dense() for t in terms))
