"""tf.linalg for matrices with three diagonals, and for banded ones."""

from headrace._load import raw
from headrace.framework import conversion
from headrace.ops import array_ops, elementwise_ops, math_ops
from headrace.ops.faces import face
from headrace.ops.linalg import linalg_ops

banded_triangular_solve = face(
    "BandedTriangularSolve",
    "banded_triangular_solve",
    "bands->matrix,rhs,lower=True,adjoint=False,name=None",
)


def three_diagonals(diagonals, form):
    """The diagonals above, in and below the middle, each as long as the middle."""
    if form == "compact":
        return array_ops.unstack(
            conversion.convert_to_tensor(diagonals), num=3, axis=-2
        )
    if form == "matrix":
        compact = linalg_ops.diag_part(diagonals, k=(-1, 1), align="LEFT_RIGHT")
        return array_ops.unstack(compact, num=3, axis=-2)
    if form != "sequence":
        raise ValueError(f"Unrecognized diagonals_format: {form}")
    if not isinstance(diagonals, (tuple, list)) or len(diagonals) != 3:
        raise ValueError("Expected diagonals to be a sequence of length 3.")
    upper, middle, lower = (conversion.convert_to_tensor(d) for d in diagonals)
    return [_padded(upper, middle, [0, 1]), middle, _padded(lower, middle, [1, 0])]


def _padded(diagonal, middle, more):
    """With an element that is not read, where that is missing."""
    size, wanted = diagonal.shape[-1], middle.shape[-1]
    if size is None or wanted is None or size + 1 != wanted:
        return diagonal
    return array_ops.pad(diagonal, [[0, 0]] * (diagonal.shape.rank - 1) + [more])


def tridiagonal_matmul(diagonals, rhs, diagonals_format="compact", name=None):
    """The product of a matrix with three diagonals and `rhs` [..., M, N]."""
    upper, middle, lower = three_diagonals(diagonals, diagonals_format)
    rhs = conversion.convert_to_tensor(rhs)
    if rhs.shape.rank is not None and rhs.shape.rank < 2:
        raise ValueError(
            f"Expected rhs to have rank >= 2, but got {rhs.shape.rank}. Received shape: "
            f"{rhs.shape}"
        )
    return raw.TridiagonalMatMul(
        array_ops.expand_dims(upper, -2),
        array_ops.expand_dims(middle, -2),
        array_ops.expand_dims(lower, -2),
        rhs,
        name=name,
    )


def tridiagonal_solve(
    diagonals,
    rhs,
    diagonals_format="compact",
    transpose_rhs=False,
    conjugate_rhs=False,
    name=None,
    partial_pivoting=True,
    perturb_singular=False,
):
    """Solves A X = rhs for A with three diagonals; rhs is [..., M] or [..., M, K]."""
    if perturb_singular and not partial_pivoting:
        raise ValueError("partial_pivoting must be True if perturb_singular is True.")
    compact = array_ops.stack(three_diagonals(diagonals, diagonals_format), axis=-2)
    rhs = conversion.convert_to_tensor(rhs)
    rank = compact.shape.rank
    vector = rank is not None and rhs.shape.rank == rank - 1
    if vector:
        rhs = array_ops.expand_dims(math_ops.conj(rhs) if conjugate_rhs else rhs, -1)
    elif transpose_rhs:
        rhs = array_ops.matrix_transpose(rhs, conjugate=conjugate_rhs)
    elif conjugate_rhs:
        rhs = math_ops.conj(rhs)
    out = raw.TridiagonalSolve(
        compact,
        rhs,
        partial_pivoting=partial_pivoting,
        perturb_singular=perturb_singular,
        name=name,
    )
    return array_ops.squeeze(out, -1) if vector else out


def eigh_tridiagonal(
    alpha, beta, eigvals_only=True, select="a", select_range=None, tol=None, name=None
):
    """Eigenvalues (and vectors) of Hermitian matrices with three diagonals: `alpha`
    [n] in the middle, `beta` [n - 1] beside it. `tol` is met by any value of it: all
    digits are found."""
    if select not in ("a", "i", "v"):
        raise ValueError("'select must have a value in {'a', 'i', 'v'}.")
    if select != "a" and select_range is None:
        raise ValueError(f"'select_range' must be specified when 'select' is {select}")
    alpha, beta = (
        conversion.convert_to_tensor(alpha),
        conversion.convert_to_tensor(beta),
    )
    lower = math_ops.conj(beta) if beta.dtype.is_complex else beta
    matrix = linalg_ops.diag(alpha)
    if alpha.shape[-1] != 1:
        matrix += linalg_ops.diag(beta, k=1) + linalg_ops.diag(lower, k=-1)
    values, vectors = linalg_ops.eigh(matrix)
    if select == "i":
        first, last = select_range
        if first > last:
            raise ValueError("Got empty index range in select_range.")
        kept = slice(first, last + 1)
        values, vectors = values[kept], vectors[:, kept]
    elif select == "v":
        low, high = (math_ops.cast(v, values.dtype) for v in select_range)
        inside = elementwise_ops.logical_and(values > low, values <= high)
        values = array_ops.boolean_mask(values, inside)
        vectors = array_ops.boolean_mask(vectors, inside, axis=1)
    values = elementwise_ops.real(values) if values.dtype.is_complex else values
    return values if eigvals_only else (values, vectors)
