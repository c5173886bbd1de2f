"""Operators of permutation matrices."""

import numpy as np

from headrace._load import _headrace, raw
from headrace.context.properties import read_only
from headrace.framework import dtypes, execution
from headrace.ops import array_ops, math_ops, sort_ops
from headrace.ops.linalg.operators import dense_ops, row_counts
from headrace.ops.linalg.operators.base import LinearOperator, takes
from headrace.ops.linalg.operators.dense_ops import adjoint_if

_INVERTIBLE = (dtypes.int32, dtypes.int64)
_ALWAYS = (
    "A Permutation operator is always {}. Expected argument `{}` to be True. Received: "
    "False."
)


@takes(
    "perm, dtype=dtypes.float32, HINTS, name='LinearOperatorPermutation'", {"perm": 1}
)
class LinearOperatorPermutation(LinearOperator):
    """The matrix P of a permutation: row i of P x is row perm[i] of x.

    `perm` [..., N] is of an integer dtype (TypeError) and holds each number below N once
    (ValueError where its values are known).
    """

    def _begin(self, known, perm, dtype):
        self._perm = dense_ops.kept(perm, "perm")
        _check(self._perm, perm)
        for name, word in (
            ("is_non_singular", "non-singular"),
            ("is_square", "square"),
        ):
            if known[name] is False:
                raise ValueError(_ALWAYS.format(word, name))
        known["is_square"] = True
        return dtype

    perm = read_only("_perm", "The permutation.")

    def _field(self, name):
        return self.dtype if name == "dtype" else super()._field(name)

    def _shape(self):
        shape = self._perm.shape
        return shape.concatenate(shape[-1:]) if shape.rank is not None else shape

    def _shape_tensor(self):
        sizes = dense_ops.sizes(self._perm)
        return dense_ops.joined(sizes, sizes[-1:])

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        x = adjoint_if(x, adjoint_arg)
        perm = dense_ops.tensor(self._perm)
        if adjoint:
            perm = self._inverted(perm)
        if perm.shape.rank == 1:
            return array_ops.gather(x, perm, axis=-2)
        x, perm = dense_ops.joined_batches(x, array_ops.expand_dims(perm, -1))
        if x.shape.rank is None:
            return math_ops.matmul(_dense(perm[..., 0], self.dtype), x)
        return array_ops.gather(x, perm[..., 0], axis=-2, batch_dims=x.shape.rank - 2)

    def _inverted(self, perm):
        # What a variable or a graph's tensor holds was not checked: sorting takes all.
        is_known = isinstance(self._perm, _headrace.EagerTensor)
        if is_known and perm._rank() == 1 and perm.dtype in _INVERTIBLE:
            return math_ops.invert_permutation(perm)
        return sort_ops.argsort(perm, axis=-1)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        return self._matmul(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _to_dense(self):
        return _dense(dense_ops.tensor(self._perm), self.dtype)

    def _diag_part(self):
        perm = dense_ops.tensor(self._perm)
        return math_ops.cast(math_ops.equal(perm, _places(perm)), self.dtype)

    def _of_each(self, value):
        return dense_ops.filled(self._sizes()[:-2], value, self.dtype)

    def _log_abs_determinant(self):
        return self._of_each(0)

    def _cond(self):
        return self._of_each(1)

    def _assert_non_singular(self):
        return row_counts.nothing_to_assert()


def _dense(perm, dtype):
    wanted = array_ops.expand_dims(perm, -1)
    return math_ops.cast(math_ops.equal(_places(perm), wanted), dtype)


def _places(perm):
    """0, 1, ... for the numbers of a permutation."""
    places = raw.Range(0, dense_ops.sizes(perm)[-1], 1)
    return math_ops.cast(places, perm.dtype)


def _check(perm, given):
    if not perm.dtype.is_integer:
        raise TypeError(f"Argument `perm` must be integer dtype. Received: {given}.")
    if perm.shape.rank == 0:
        raise ValueError(
            f"Argument `perm` must have at least 1 dimension. Received: {given}."
        )
    known = execution.get_static_value(perm)
    if known is None or not isinstance(known, np.ndarray):
        return
    count = known.shape[-1]
    if (np.sort(known, axis=-1) != np.arange(count)).any():
        raise ValueError(
            "Argument `perm` must be a vector of unique integers from 0 to "
            f"{count - 1}."
        )
