"""Operators of matrices with three diagonals."""

from headrace.context.properties import read_only
from headrace.ops import array_ops, check_ops, math_ops
from headrace.ops.linalg import linalg_ops, tridiagonal_ops
from headrace.ops.linalg.operators import dense_ops, parts
from headrace.ops.linalg.operators.base import LinearOperator, takes
from headrace.ops.linalg.operators.dense_ops import adjoint_if

_COMPACT, _MATRIX, _SEQUENCE = _FORMATS = ("compact", "matrix", "sequence")


def _ndims(operator):
    form = operator.diagonals_format
    return {"diagonals": [1, 1, 1] if form == _SEQUENCE else 2}


@takes(
    "diagonals, diagonals_format='compact', HINTS, name='LinearOperatorTridiag'", _ndims
)
class LinearOperatorTridiag(LinearOperator):
    """Matrices with zeros but on the diagonal and beside it.

    `diagonals_format` says what `diagonals` are: "compact", [..., 3, N], rows above, on
    and below the diagonal, of which the first one's last and the last one's first number
    are not read; "sequence", these as a list of three; or "matrix", [..., N, N].
    """

    def _begin(self, known, diagonals, diagonals_format):
        if diagonals_format not in _FORMATS:
            raise ValueError(
                "Argument `diagonals_format` must be one of compact, matrix, or sequence. "
                f"Received : {diagonals_format}."
            )
        self._diagonals_format = diagonals_format
        if diagonals_format == _SEQUENCE:
            self._diagonals = [dense_ops.kept(d, "diagonals") for d in diagonals]
            if len(self._diagonals) != 3:
                raise ValueError(
                    "Argument `diagonals` must be a list of three with format sequence. "
                    f"Received {len(self._diagonals)}."
                )
            for diagonal in self._diagonals:
                dense_ops.check_rank(diagonal, 1, "diagonals")
            return self._diagonals[1].dtype
        self._diagonals = dense_ops.kept(diagonals, "diagonals")
        dense_ops.check_rank(self._diagonals, 2, "diagonals")
        return self._diagonals.dtype

    diagonals = read_only("_diagonals", "The diagonals, in their format.")
    diagonals_format = read_only(
        "_diagonals_format", "What the diagonals are given as."
    )

    def _three(self, adjoint=False):
        """The diagonals above, in and below the middle, [..., N] of one batch shape."""
        given = self._diagonals
        if self._diagonals_format == _SEQUENCE:
            given = [dense_ops.tensor(d) for d in given]
        rows = tridiagonal_ops.three_diagonals(given, self._diagonals_format)
        if self._diagonals_format == _SEQUENCE:
            rows = (array_ops.expand_dims(row, -2) for row in rows)
            rows = dense_ops.joined_batches(*rows)
            rows = (array_ops.squeeze(row, [-2]) for row in rows)
        upper, middle, lower = rows
        if not adjoint:
            return upper, middle, lower
        upper, middle, lower = (math_ops.conj(d) for d in (upper, middle, lower))
        return array_ops.roll(lower, -1, -1), middle, array_ops.roll(upper, 1, -1)

    def _compact(self, adjoint=False):
        if self._diagonals_format == _COMPACT and not adjoint:
            return dense_ops.tensor(self._diagonals)
        return array_ops.stack(self._three(adjoint), -2)

    def _shape(self):
        form, given = self._diagonals_format, self._diagonals
        if form != _SEQUENCE:
            shape = given.shape
            if form == _MATRIX or shape.rank is None:
                return shape
            return shape[:-2].concatenate([shape[-1], shape[-1]])
        batches = [d.shape[:-1] for d in given]
        count = given[1].shape[-1] if given[1].shape.rank else None
        return parts.joined_static(batches).concatenate([count, count])

    def _shape_tensor(self):
        if self._diagonals_format == _MATRIX:
            return dense_ops.sizes(self._diagonals)
        sizes = dense_ops.sizes(self._three()[1])
        return dense_ops.joined(sizes, sizes[-1:])

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        both = dense_ops.joined_batches(
            self._compact(adjoint), adjoint_if(x, adjoint_arg)
        )
        return tridiagonal_ops.tridiagonal_matmul(*both)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return dense_ops.solved(
            tridiagonal_ops.tridiagonal_solve,
            self._compact(adjoint),
            adjoint_if(rhs, adjoint_arg),
        )

    def _diag_part(self):
        if self._diagonals_format == _COMPACT:
            return dense_ops.tensor(self._diagonals)[..., 1, :]
        return self._three()[1]

    def _to_dense(self):
        if self._diagonals_format == _MATRIX:
            return dense_ops.tensor(self._diagonals)
        return linalg_ops.diag(self._compact(), k=(-1, 1), align="LEFT_RIGHT")

    def _assert_self_adjoint(self):
        upper, _, lower = self._three()
        return check_ops.assert_equal(
            math_ops.conj(lower[..., 1:]),
            upper[..., :-1],
            "This tridiagonal operator has non-conjugate subdiagonal and superdiagonal.",
        )
