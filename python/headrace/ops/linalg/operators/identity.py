"""Operators of identity matrices and of their multiples."""

from headrace._load import raw
from headrace.context.properties import read_only
from headrace.framework import dtypes
from headrace.ops import array_ops, check_ops, elementwise_ops, math_ops
from headrace.ops.linalg.operators import dense_ops, hints, row_counts
from headrace.ops.linalg.operators.base import LinearOperator, takes
from headrace.ops.linalg.operators.dense_ops import adjoint_if, conj_if
from headrace.ops.linalg.operators.diagonal import REAL

_TRUE = ", ".join(f"{name}=True" for name in hints.NAMES)
_ALWAYS = {
    "is_self_adjoint": "An identity operator is always self adjoint.",
    "is_non_singular": "An identity operator is always non-singular.",
    "is_positive_definite": "An identity operator is always positive-definite.",
    "is_square": "An identity operator is always square.",
}


@takes(
    f"num_rows, batch_shape=None, dtype=None, {_TRUE}, assert_proper_shapes=False, "
    "name='LinearOperatorIdentity'",
    static=("num_rows", "batch_shape"),
)
class LinearOperatorIdentity(LinearOperator):
    """The operator of the identity matrix, of `num_rows` rows, in a batch of copies.

    `num_rows` is an integer, or a scalar tensor of one; `batch_shape` a list or vector of
    these; TypeError and ValueError for others. With `assert_proper_shapes` those that are
    not known until the graph runs are asserted then, and so are shapes of arguments.
    """

    def _begin(self, known, num_rows, batch_shape, dtype, assert_proper_shapes):
        for name, message in _ALWAYS.items():
            if not known[name]:
                raise ValueError(message)
        self._assert_proper_shapes = assert_proper_shapes
        self._num_rows = row_counts.Count(num_rows, "num_rows", assert_proper_shapes)
        self._batch_shape = row_counts.Batch(batch_shape, assert_proper_shapes)
        return dtype or dtypes.float32

    def _shape(self):
        rows = [self._num_rows.static] * 2
        return self._batch_shape.static.concatenate(rows)

    def _shape_tensor(self):
        return row_counts.joined(self._batch_shape, self._num_rows, self._num_rows)

    def _field(self, name):
        return row_counts.field(self, name)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        x = adjoint_if(x, adjoint_arg)
        x = row_counts.checked(self, x, self._num_rows)
        return self._batch_shape.broadcast(x)

    _solve = _matmul

    def _to_dense(self):
        return array_ops.eye(
            self._num_rows.value(),
            batch_shape=self._batch_shape.value(),
            dtype=self.dtype,
        )

    def _diag_part(self):
        sizes = row_counts.joined(self._batch_shape, self._num_rows)
        return array_ops.ones(sizes, self.dtype)

    _eigvals = _diag_part

    def _of_each(self, value):
        """A value for each matrix of the batch."""
        return dense_ops.filled(self._batch_shape.value(), value, self.dtype)

    def _trace(self):
        return self._of_each(self._num_rows.value())

    def _determinant(self):
        return self._of_each(1)

    _cond = _determinant

    def _log_abs_determinant(self):
        return self._of_each(0)

    def _add_to_tensor(self, x):
        return dense_ops.add_to_diagonal(x, self._diag_part(), self.shape)

    def _linop_adjoint(self):
        return self

    _linop_inverse = _linop_cholesky = _linop_adjoint

    def _assert_non_singular(self):
        return row_counts.nothing_to_assert()

    _assert_positive_definite = _assert_self_adjoint = _assert_non_singular


@takes(
    "num_rows, multiplier, is_non_singular=None, is_self_adjoint=None, "
    "is_positive_definite=None, is_square=True, assert_proper_shapes=False, "
    "name='LinearOperatorScaledIdentity'",
    {"multiplier": 0},
    static=("num_rows",),
)
class LinearOperatorScaledIdentity(LinearOperator):
    """The operator of the identity times a number: `multiplier` [...] has the batch.

    `num_rows` and `assert_proper_shapes` are as for LinearOperatorIdentity.
    """

    def _begin(self, known, num_rows, multiplier, assert_proper_shapes):
        self._assert_proper_shapes = assert_proper_shapes
        self._multiplier = dense_ops.kept(multiplier, "multiplier")
        if not self._multiplier.dtype.is_complex:
            hints.check(known, "is_self_adjoint", REAL)
        if not known["is_square"]:
            raise ValueError("A ScaledIdentity operator is always square.")
        self._num_rows = row_counts.Count(num_rows, "num_rows", assert_proper_shapes)
        return self._multiplier.dtype

    multiplier = read_only("_multiplier", "What the identity is multiplied by.")

    def _shape(self):
        return self._multiplier.shape.concatenate([self._num_rows.static] * 2)

    def _shape_tensor(self):
        rows = [self._num_rows.value()]
        return dense_ops.joined(dense_ops.sizes(self._multiplier), rows, rows)

    def _field(self, name):
        return row_counts.field(self, name)

    def _scale(self, adjoint, ndims):
        scale = conj_if(dense_ops.tensor(self._multiplier), adjoint)
        if not scale._rank() and scale._rank() is not None:
            return scale  # a number, which broadcasts
        return scale[(..., *[None] * ndims)]

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        x = adjoint_if(x, adjoint_arg)
        return row_counts.checked(self, x, self._num_rows) * self._scale(adjoint, 2)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        rhs = adjoint_if(rhs, adjoint_arg)
        return row_counts.checked(self, rhs, self._num_rows) / self._scale(adjoint, 2)

    def _diag_part(self):
        rows = self._num_rows.value()
        sizes = dense_ops.joined(dense_ops.sizes(self._multiplier), [rows])
        return array_ops.broadcast_to(self._scale(False, 1), sizes)

    _eigvals = _diag_part

    def _to_dense(self):
        eye = array_ops.eye(self._num_rows.value(), dtype=self.dtype)
        return eye * self._scale(False, 2)

    def _count(self, dtype):
        return dense_ops.filled([], self._num_rows.value(), dtype)

    def _trace(self):
        return self._multiplier * self._count(self.dtype)

    def _determinant(self):
        return elementwise_ops.pow(self._multiplier, self._count(self.dtype))

    def _log_abs_determinant(self):
        size = elementwise_ops.log(elementwise_ops.abs(self._multiplier))
        return size * self._count(size.dtype)

    def _cond(self):
        return dense_ops.filled(dense_ops.sizes(self._multiplier), 1, self.dtype)

    def _add_to_tensor(self, x):
        return dense_ops.add_to_diagonal(x, self._diag_part(), self.shape)

    def _of(self, multiplier, known):
        return LinearOperatorScaledIdentity(self._num_rows.given(), multiplier, **known)

    def _linop_adjoint(self):
        return self._of(math_ops.conj(self._multiplier), hints.of(self))

    def _linop_inverse(self):
        return self._of(raw.Reciprocal(self._multiplier), hints.of(self))

    def _linop_cholesky(self):
        return self._of(
            elementwise_ops.sqrt(self._multiplier), dict.fromkeys(hints.NAMES, True)
        )

    def _assert_non_singular(self):
        return check_ops.assert_positive(
            elementwise_ops.abs(self._multiplier), "LinearOperator was singular"
        )

    def _assert_positive_definite(self):
        return check_ops.assert_positive(
            dense_ops.real(self._multiplier),
            "LinearOperator was not positive definite.",
        )

    def _assert_self_adjoint(self):
        return dense_ops.assert_real(
            self._multiplier, "LinearOperator was not self-adjoint"
        )
