"""What functions of tf do with operators: tf.linalg.matmul(operator, x) and its like."""

from headrace.framework import dispatch, nest
from headrace.ops.linalg import linalg_ops
from headrace.ops.linalg.operators import base

_HERE = "ops.linalg.operators.functions"
_TABLE = """
linalg.adjoint matrix adjoint
linalg.cholesky input cholesky
linalg.det input det
linalg.diag_part input diag_part
linalg.inv input inv
linalg.logdet matrix logdet
linalg.matmul a,b matmul
linalg.matvec a matvec
linalg.solve matrix,rhs solve
linalg.trace x trace
"""


def adjoint(matrix, name=None):
    """tf.linalg.adjoint of an operator."""
    return matrix.adjoint(name)


def cholesky(input, name=None):
    """tf.linalg.cholesky of an operator."""
    return input.cholesky(name)


def det(input, name=None):
    """tf.linalg.det of an operator."""
    return input.determinant(name)


def diag_part(input, name="diag_part", k=0, padding_value=0, align="RIGHT_LEFT"):
    """tf.linalg.diag_part of an operator: its main diagonal."""
    return input.diag_part(name)


def inv(input, adjoint=False, name=None):
    """tf.linalg.inv of an operator."""
    inverse = input.inverse(name)
    return inverse.adjoint() if adjoint else inverse


def logdet(matrix, name=None):
    """tf.linalg.logdet of an operator, which is hinted to be positive definite."""
    if not (matrix.is_positive_definite and matrix.is_self_adjoint):
        raise ValueError("Expected matrix to be self-adjoint positive definite.")
    return matrix.log_abs_determinant(name)


def matmul(
    a,
    b,
    transpose_a=False,
    transpose_b=False,
    adjoint_a=False,
    adjoint_b=False,
    a_is_sparse=False,
    b_is_sparse=False,
    output_type=None,
    grad_a=False,
    grad_b=False,
    name=None,
):
    """tf.linalg.matmul where one factor is an operator, or both are."""
    _check_plain(transpose_a or transpose_b, a_is_sparse or b_is_sparse)
    name = name or "matmul"
    if isinstance(a, base.LinearOperator):
        return a.matmul(b, adjoint_a, adjoint_b, name)
    turned = b.matmul(a, not adjoint_b, not adjoint_a, name)
    return linalg_ops.adjoint(turned)


def matvec(
    a,
    b,
    transpose_a=False,
    adjoint_a=False,
    a_is_sparse=False,
    b_is_sparse=False,
    name=None,
):
    """tf.linalg.matvec of an operator."""
    _check_plain(transpose_a, a_is_sparse or b_is_sparse)
    return a.matvec(b, adjoint_a, name or "matvec")


def _check_plain(transposed, sparse):
    if transposed:
        raise ValueError("Transposing not supported at this time.")
    if sparse:
        raise ValueError("Sparse methods not supported at this time.")


def solve(matrix, rhs, adjoint=False, name=None):
    """tf.linalg.solve with an operator as matrix, and possibly as right hand side."""
    if not isinstance(matrix, base.LinearOperator):
        raise ValueError(  # noqa: TRY004
            "Passing in `matrix` as a Tensor and `rhs` as a LinearOperator is not "
            "supported."
        )
    return matrix.solve(rhs, adjoint, name=name or "solve")


def trace(x, name=None):
    """tf.linalg.trace of an operator."""
    return x.trace(name)


def on_parts(api, *args, **kwargs):
    """The function of each tensor of an operator."""
    operator, args, kwargs = dispatch.first_of(base.LinearOperator, args, kwargs)
    return nest.map_structure(
        lambda part: api(part, *args, **kwargs), operator, expand_composites=True
    )


def register():
    """Makes the functions answer for those of tf."""
    rows = [line.rsplit(" ", 1) for line in _TABLE.strip().splitlines()]
    table = [f"{row} {_HERE}:{name}" for row, name in rows]
    table += [
        f"{name} input +{_HERE}:on_parts" for name in ("identity", "stop_gradient")
    ]
    dispatch.add_functions(base.LinearOperator, "\n".join(table))


register()
