"""Operators of matrices of zeros."""

from headrace.context import errors
from headrace.framework import dtypes
from headrace.ops import elementwise_ops, reduction_ops
from headrace.ops.linalg.operators import dense_ops, row_counts
from headrace.ops.linalg.operators.base import LinearOperator, takes
from headrace.ops.linalg.operators.dense_ops import adjoint_if


@takes(
    "num_rows, num_columns=None, batch_shape=None, dtype=None, is_non_singular=False, "
    "is_self_adjoint=True, is_positive_definite=False, is_square=True, "
    "assert_proper_shapes=False, name='LinearOperatorZeros'",
    static=("num_rows", "num_columns", "batch_shape"),
)
class LinearOperatorZeros(LinearOperator):
    """The operator of a matrix of zeros, in a batch of copies.

    It has `num_rows` rows and `num_columns` columns (as many unless given); these,
    `batch_shape` and `assert_proper_shapes` are as for LinearOperatorIdentity.
    """

    def _begin(
        self, known, num_rows, num_columns, batch_shape, dtype, assert_proper_shapes
    ):
        for wrong, what in (
            (known["is_square"] and not known["is_self_adjoint"], "self adjoint"),
            (known["is_non_singular"], "singular"),
            (known["is_positive_definite"], "not positive-definite"),
        ):
            if wrong:
                raise ValueError(f"A zero operator is always {what}.")
        self._assert_proper_shapes = assert_proper_shapes
        self._num_rows = row_counts.Count(num_rows, "num_rows", assert_proper_shapes)
        self._num_columns = self._num_rows
        if num_columns is not None:
            self._num_columns = row_counts.Count(
                num_columns, "num_columns", assert_proper_shapes
            )
        rows, columns = self._num_rows.static, self._num_columns.static
        if known["is_square"] and None not in (rows, columns) and rows != columns:
            raise ValueError(
                "LinearOperatorZeros initialized as is_square=True, but got "
                f"num_rows({rows}) != num_columns({columns})"
            )
        self._batch_shape = row_counts.Batch(batch_shape, assert_proper_shapes)
        return dtype or dtypes.float32

    def _shape(self):
        rows = [self._num_rows.static, self._num_columns.static]
        return self._batch_shape.static.concatenate(rows)

    def _shape_tensor(self):
        return row_counts.joined(self._batch_shape, self._num_rows, self._num_columns)

    def _field(self, name):
        return row_counts.field(self, name)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        x = adjoint_if(x, adjoint_arg)
        mine, its = self._num_rows, self._num_columns
        if adjoint:
            mine, its = its, mine
        x = self._batch_shape.broadcast(row_counts.checked(self, x, its))
        sizes = dense_ops.sizes(x)
        sizes = dense_ops.joined(sizes[:-2], [mine.value()], sizes[-1:])
        return dense_ops.filled(sizes, 0, self.dtype)

    def _to_dense(self):
        return dense_ops.filled(self._shape_tensor(), 0, self.dtype)

    def _diag_part(self):
        sizes = self._sizes()
        batch, ends = sizes[:-2], sizes[-2:]
        is_list = isinstance(ends, list)
        least = min(ends) if is_list else reduction_ops.reduce_min(ends)
        return dense_ops.filled(dense_ops.joined(batch, [least]), 0, self.dtype)

    _eigvals = _diag_part

    def _of_each(self):
        return dense_ops.filled(self._batch_shape.value(), 0, self.dtype)

    _trace = _determinant = _of_each

    def _log_abs_determinant(self):
        return elementwise_ops.log(self._of_each())

    def _add_to_tensor(self, x):
        return self._to_dense() + x

    def _linop_adjoint(self):
        if self.is_square:
            return self
        return super()._linop_adjoint()

    def _assert_non_singular(self):
        raise errors.InvalidArgumentError._of(
            "Zero operators are always non-invertible."
        )

    def _assert_positive_definite(self):
        raise errors.InvalidArgumentError._of(
            "Zero operators are always non-positive definite."
        )

    def _assert_self_adjoint(self):
        return row_counts.nothing_to_assert()
