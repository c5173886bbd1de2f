"""Operators of Toeplitz matrices."""

from headrace.context.properties import read_only
from headrace.framework import dtypes
from headrace.ops import array_ops, check_ops, elementwise_ops, math_ops
from headrace.ops.linalg.operators import dense_ops, hints
from headrace.ops.linalg.operators.base import LinearOperator, takes
from headrace.ops.signal import signal_ops


@takes("col, row, HINTS, name='LinearOperatorToeplitz'", {"col": 1, "row": 1})
class LinearOperatorToeplitz(LinearOperator):
    """Matrices with the same number all along a diagonal, by first column and first row.

    `col` and `row` are [..., N] (ValueError for others); of the diagonal, the number is
    col[..., 0]. Products go by a circulant matrix of twice the size.
    """

    def _begin(self, known, col, row):
        self._row = dense_ops.kept(row, "row")
        self._col = dense_ops.kept(col, "col")
        dense_ops.check_rank(self._row, 1, "row", row)
        dense_ops.check_rank(self._col, 1, "col", col)
        hints.check(
            known, "is_square", "Only square Toeplitz operators currently supported."
        )
        sizes = [x.shape[-1] if x.shape.rank else None for x in (self._row, self._col)]
        if None not in sizes and sizes[0] != sizes[1]:
            raise ValueError(
                "Expected square matrix, got row and col with mismatched dimensions."
            )
        return self._row.dtype

    col = read_only("_col", "The first column.")
    row = read_only("_row", "The first row.")

    def _shape(self):
        shape = array_ops.broadcast_static_shape(self._row.shape, self._col.shape)
        return shape.concatenate(shape[-1:]) if shape.rank is not None else shape

    def _shape_tensor(self):
        sizes = dense_ops.broadcast(
            dense_ops.sizes(self._row), dense_ops.sizes(self._col)
        )
        return dense_ops.joined(sizes, sizes[-1:])

    def _ends(self, adjoint=False):
        """(the column, the row) with one batch shape; those of the adjoint."""
        col, row = dense_ops.tensor(self._col), dense_ops.tensor(self._row)
        if not 1 == col._rank() == row._rank():
            ends = (array_ops.expand_dims(x, -2) for x in (col, row))
            ends = dense_ops.joined_batches(*ends)
            col, row = (array_ops.squeeze(x, [-2]) for x in ends)
        if not adjoint:
            return col, row
        col, row = math_ops.conj(col), math_ops.conj(row)
        return array_ops.concat([col[..., :1], row[..., 1:]], -1), col

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        wide = self.dtype in (dtypes.float64, dtypes.complex128, dtypes.int64)
        kind = dtypes.complex128 if wide else dtypes.complex64
        col, row = self._ends(adjoint)
        behind = array_ops.reverse(row[..., 1:], [-1])
        ring = array_ops.concat([col, array_ops.zeros_like(col[..., :1]), behind], -1)
        rows = math_ops.conj(x) if adjoint_arg else array_ops.matrix_transpose(x)
        more = dense_ops.sizes(ring)[-1] - dense_ops.sizes(rows)[-1]
        sizes = dense_ops.joined(dense_ops.batch_of(rows, 1), [more])
        rows = array_ops.concat([rows, dense_ops.filled(sizes, 0, rows.dtype)], -1)
        spectrum = signal_ops.fft(math_ops.cast(ring, kind))[..., None, :]
        found = signal_ops.ifft(spectrum * signal_ops.fft(math_ops.cast(rows, kind)))
        found = array_ops.matrix_transpose(found)[..., : dense_ops.sizes(col)[-1], :]
        found = found if self.dtype.is_complex else elementwise_ops.real(found)
        return math_ops.cast(found, self.dtype)

    def _diag_part(self):
        first = dense_ops.tensor(self._col)[..., :1]
        return array_ops.broadcast_to(first, self._sizes()[:-1])

    def _to_dense(self):
        col, row = self._ends()
        line = array_ops.concat([array_ops.reverse(row[..., 1:], [-1]), col], -1)
        count = dense_ops.sizes(col)[-1]
        at = array_ops.range(count)
        return array_ops.gather(line, at[:, None] - at[None, :] + count - 1, axis=-1)

    def _assert_self_adjoint(self):
        return check_ops.assert_equal(
            self._row,
            math_ops.conj(self._col),
            "row and col are not the same, and so this operator is not self-adjoint.",
        )
