"""tf.linalg.experimental.conjugate_gradient."""

import collections

from headrace.control_flow import loops
from headrace.framework import conversion, name_scopes
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops
from headrace.ops.linalg import linalg_ops

_State = collections.namedtuple("CGState", ["i", "x", "r", "p", "gamma"])


def conjugate_gradient(
    operator,
    rhs,
    preconditioner=None,
    x=None,
    tol=1e-5,
    max_iter=20,
    name="conjugate_gradient",
):
    """Solves operator @ x = rhs by conjugate gradients.

    Args:
      operator: self-adjoint and positive definite: has `dtype`, `shape` and `matvec`,
        such as a tf.linalg.LinearOperator.
      rhs: [..., N], of the operator's dtype.
      preconditioner: an operator that is near to the inverse.
      x: where to start, [..., N]; zeros unless given.
      tol: ends when each residual's norm is at most `tol` times that of its `rhs`.
      max_iter: the most steps.
      name: of the operations.

    Returns:
      A named tuple: steps `i` (int32), solution `x`, residual `r`, direction `p` and
      `gamma`, the product of the residual and its preconditioned form.

    Raises:
      ValueError: the operator is known not to be self-adjoint or positive definite.
    """
    if not (operator.is_self_adjoint and operator.is_positive_definite):
        raise ValueError("Expected a self-adjoint, positive definite operator.")
    with name_scopes.name_scope(name):
        rhs = conversion.convert_to_tensor(rhs, dtype=operator.dtype)
        return _solve(operator, rhs, preconditioner, x, tol, max_iter)


def _dot(a, b):
    return array_ops.squeeze(
        math_ops.matmul(a[..., None], b[..., None], adjoint_a=True), [-2, -1]
    )


def _solve(operator, rhs, preconditioner, x, tol, max_iter):
    if x is None:
        x, residual = array_ops.zeros_like(rhs), rhs
    else:
        x = conversion.convert_to_tensor(x, dtype=operator.dtype)
        residual = rhs - operator.matvec(x)
    limit = tol * elementwise_ops.real(linalg_ops.norm(rhs, axis=-1))

    def preconditioned(r):
        return r if preconditioner is None else preconditioner.matvec(r)

    def goes_on(state):
        left = elementwise_ops.real(linalg_ops.norm(state.r, axis=-1)) > limit
        return elementwise_ops.logical_and(
            state.i < max_iter, reduction_ops.reduce_any(left)
        )

    def step(state):
        z = operator.matvec(state.p)
        alpha = state.gamma / _dot(state.p, z)
        x = state.x + alpha[..., None] * state.p
        r = state.r - alpha[..., None] * z
        q = preconditioned(r)
        gamma = _dot(r, q)
        p = q + (gamma / state.gamma)[..., None] * state.p
        return [_State(state.i + 1, x, r, p, gamma)]

    p = preconditioned(residual)
    first = _State(conversion.constant(0), x, residual, p, _dot(residual, p))
    return loops.while_loop(goes_on, step, [first])[0]
