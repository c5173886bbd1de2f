"""Operators with an update of low rank."""

from headrace.context.properties import read_only
from headrace.framework.settings import logging
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops
from headrace.ops.linalg import linalg_ops
from headrace.ops.linalg.operators import dense_ops, diagonal, hints, identity, parts
from headrace.ops.linalg.operators.base import LinearOperator, dimension, takes
from headrace.ops.linalg.operators.dense_ops import adjoint_if


@takes(
    "base_operator, u, diag_update=None, v=None, is_diag_update_positive=None, HINTS, "
    "name='LinearOperatorLowRankUpdate'",
    {"base_operator": 0, "u": 2, "diag_update": 1, "v": 2},
)
class LinearOperatorLowRankUpdate(LinearOperator):
    """The operator L + U D V^H: an operator, and an update of rank K.

    `u` and `v` are [..., N, K], `v` is `u` unless given; D is diagonal, `diag_update`
    [..., K], or the identity. ValueError where sizes differ. Where K is small, solving
    and determinants cost little more than those of L, by the capacitance matrix
    D^-1 + V^H L^-1 U.
    """

    def _begin(self, known, base_operator, u, diag_update, v, is_diag_update_positive):
        if not isinstance(base_operator, LinearOperator):
            raise TypeError(
                "Expected a LinearOperator as `base_operator`. Found: "
                f"{type(base_operator)}."
            )
        self._base_operator = base_operator
        self._u = dense_ops.kept(u, "u")
        self._v = self._u if v is None else dense_ops.kept(v, "v")
        self._diag_update = None
        if diag_update is not None:
            self._diag_update = dense_ops.kept(diag_update, "diag_update")
        self._check_diagonal(is_diag_update_positive)
        self._check_known(known, v is None)
        self._check_shapes()
        self._make_diagonal()
        return base_operator.dtype

    base_operator = read_only("_base_operator", "The operator that is updated: L.")
    u = read_only("_u", "The matrix U.")
    v = read_only("_v", "The matrix V.")
    diag_update = read_only("_diag_update", "The diagonal of D, or None.")
    diag_operator = read_only("_diag_operator", "The operator of D.")
    is_diag_update_positive = read_only(
        "_is_diag_update_positive", "Whether D is known to be positive."
    )

    # --- What is known of it.

    def _check_diagonal(self, is_positive):
        if self._diag_update is None:
            if is_positive is False:
                raise ValueError(
                    "Default diagonal is the identity, which is positive.  However, user "
                    "set 'is_diag_update_positive' to False."
                )
            is_positive = True
        elif is_positive and self._diag_update.dtype.is_complex:
            logging.warning(
                "Note: setting is_diag_update_positive with a complex dtype means that "
                "diagonal is real and positive."
            )
        self._is_diag_update_positive = is_positive

    def _check_known(self, known, is_symmetric):
        base, positive = self._base_operator, self._is_diag_update_positive
        is_real = positive or not self._diag_update.dtype.is_complex
        if not (is_symmetric and base.is_self_adjoint and is_real):
            self._use_cholesky = False
            return
        hints.check(
            known,
            "is_self_adjoint",
            "A = L + UDU^H, with L self-adjoint and D real diagonal.  Since UDU^H is "
            "self-adjoint, this must be a self-adjoint operator.",
        )
        self._use_cholesky = bool(base.is_positive_definite and positive)
        if self._use_cholesky:
            for name in ("is_positive_definite", "is_non_singular"):
                hints.check(
                    known,
                    name,
                    "Arguments imply this is self-adjoint positive-definite operator.",
                )

    def _check_shapes(self):
        base = self._base_operator
        sizes = array_ops.broadcast_static_shape(self._u.shape, self._v.shape)
        base.domain_dimension.assert_is_compatible_with(dimension(sizes, -2))
        if self._diag_update is not None:
            rank = dimension(self._diag_update.shape, -1)
            dimension(sizes, -1).assert_is_compatible_with(rank)

    def _make_diagonal(self):
        if self._diag_update is not None:
            self._diag_operator = diagonal.LinearOperatorDiag(
                self._diag_update, is_positive_definite=self._is_diag_update_positive
            )
            return
        rank = dimension(self._u.shape, -1).value
        if rank is None:
            rank = dense_ops.sizes(self._u)[-1]
        self._diag_operator = identity.LinearOperatorIdentity(
            rank, dtype=self._base_operator.dtype
        )

    # --- What it does.

    def _shape(self):
        batches = [self._base_operator.batch_shape, self._diag_operator.batch_shape]
        batches += [self._u.shape[:-2], self._v.shape[:-2]]
        return parts.joined_static(batches).concatenate(self._base_operator.shape[-2:])

    def _shape_tensor(self):
        sizes = self._base_operator._sizes()
        batch = sizes[:-2]
        for other in (
            self._diag_operator._sizes()[:-2],
            dense_ops.batch_of(self._u, 2),
            dense_ops.batch_of(self._v, 2),
        ):
            batch = dense_ops.broadcast(batch, other)
        return dense_ops.joined(batch, sizes[-2:])

    def _factors(self, adjoint=False):
        u, v = dense_ops.tensor(self._u), dense_ops.tensor(self._v)
        return (v, u) if adjoint else (u, v)

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        u, v = self._factors(adjoint)
        first = self._base_operator.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
        inner = dense_ops.matmul(v, x, adjoint_a=True, adjoint_b=adjoint_arg)
        inner = self._diag_operator.matmul(inner, adjoint=adjoint)
        return first + dense_ops.matmul(u, inner)

    def _capacitance(self):
        u, v = self._factors()
        inner = dense_ops.matmul(v, self._base_operator.solve(u), adjoint_a=True)
        shape = self._diag_operator.shape
        if self._diag_update is None:
            return dense_ops.add_to_diagonal(
                inner, self._diag_operator._diag_part(), shape
            )
        inverse = 1 / dense_ops.tensor(self._diag_update)
        return dense_ops.add_to_diagonal(inner, inverse, shape)

    def _solve(self, rhs, adjoint=False, adjoint_arg=False):
        base = self._base_operator
        u, v = self._factors(adjoint)
        first = base.solve(adjoint_if(rhs, adjoint_arg), adjoint=adjoint)
        inner = dense_ops.matmul(v, first, adjoint_a=True)
        if self._use_cholesky:
            factor = linalg_ops.cholesky(self._capacitance())
            inner = dense_ops.cholesky_solve(factor, inner)
        else:
            inner = dense_ops.solve(self._capacitance(), inner, adjoint)
        return first - base.solve(dense_ops.matmul(u, inner), adjoint=adjoint)

    def _determinant(self):
        if self._use_cholesky:
            return elementwise_ops.exp(self.log_abs_determinant())
        of_parts = self._diag_operator.determinant(), self._base_operator.determinant()
        return parts.product([linalg_ops.det(self._capacitance()), *of_parts])

    def _log_abs_determinant(self):
        capacitance = self._capacitance()
        if self._use_cholesky:
            diag = linalg_ops.diag_part(linalg_ops.cholesky(capacitance))
            inner = 2 * reduction_ops.reduce_sum(elementwise_ops.log(diag), [-1])
        else:
            inner = linalg_ops.slogdet(capacitance)[1]
        for operator in (self._diag_operator, self._base_operator):
            inner += math_ops.cast(operator.log_abs_determinant(), self.dtype)
        return inner

    def _diag_part(self):
        u, v = self._factors()
        terms = (
            u
            * math_ops.conj(v)
            * array_ops.expand_dims(self._diag_operator.diag_part(), -2)
        )
        return self._base_operator.diag_part() + reduction_ops.reduce_sum(terms, [-1])

    def _to_dense(self):
        u, v = self._factors()
        right = self._diag_operator.matmul(v, adjoint_arg=True)
        return self._base_operator.to_dense() + dense_ops.matmul(u, right)
