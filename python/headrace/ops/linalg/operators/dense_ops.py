"""Matrices in batches: what the kernels want of them, given what operators have."""

import functools

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes
from headrace.ops import (
    array_ops,
    check_ops,
    elementwise_ops,
    math_ops,
    reduction_ops,
)
from headrace.ops.linalg import linalg_ops


def kept(value, name, dtype=None):
    """A variable as it is, to be read each time that it is used; else a tensor."""
    if isinstance(value, _headrace.VariableBase):
        return value
    return conversion.convert_to_tensor(value, dtype=dtype, name=name)


def tensor(value):
    """What a variable holds now; a tensor as it is."""
    if isinstance(value, _headrace.Tensor):
        return value
    return conversion.convert_to_tensor(value)


def sizes(x):
    """The shape of a tensor or variable: a list where it is known, else a tensor."""
    known = x._sizes() if isinstance(x, _headrace.Tensor) else x.shape._dims
    return array_ops.shape(x) if known is None or None in known else list(known)


def batch_of(x, ndims):
    """The shape without its last `ndims` sizes, as sizes() gives it."""
    return sizes(x)[:-ndims]


def joined(*parts):
    """Sizes, in lists or tensors, one behind the other: a list where all are known."""
    known = []
    for part in parts:
        if not _is_known(part):
            break
        known += part
    else:
        return known
    parts = [p for p in parts if isinstance(p, _headrace.Tensor) or len(p)]
    return array_ops.concat(parts, 0)


def _is_known(sizes):
    if isinstance(sizes, _headrace.Tensor):
        return False
    for size in sizes:
        if isinstance(size, _headrace.Tensor):
            return False
    return True


def broadcast(one, other):
    """The shape that two batch shapes broadcast to: a list where both are known."""
    if isinstance(one, list) and isinstance(other, list):
        if one == other:
            return one
        return array_ops.broadcast_static_shape(one, other).as_list()
    one, other = (conversion.convert_to_tensor(s, dtypes.int32) for s in (one, other))
    return array_ops.broadcast_dynamic_shape(one, other)


def reshape(x, shape):
    """A tensor with these sizes; as it is where it is known to have them."""
    known = x._sizes()
    if isinstance(shape, list) and known is not None and shape == list(known):
        return x
    return array_ops.reshape(x, shape)


def filled(sizes, value, dtype):
    """A tensor of these sizes with a number everywhere, one of Python or a tensor."""
    if isinstance(value, _headrace.Tensor):
        value = math_ops.cast(value, dtype)
    else:
        value = conversion.constant(value, dtype)
    return value if isinstance(sizes, list) and not sizes else raw.Fill(sizes, value)


def matmul(a, b, adjoint_a=False, adjoint_b=False):
    """The product of tensors [..., M, N]; what tf.linalg.matmul gives."""
    is_plain = a._rank() == 2 == b._rank() and a.dtype._kind == "float"
    if is_plain and _headrace.is_eager():
        return raw.MatMul(a, b, transpose_a=adjoint_a, transpose_b=adjoint_b)
    return math_ops.matmul(a, b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)


def adjoint_if(x, wanted):
    """The conjugate transpose of `x` where that is wanted."""
    return linalg_ops.adjoint(x) if wanted else x


def conj_if(x, wanted):
    """The conjugate of `x` where that is wanted."""
    return math_ops.conj(x) if wanted else x


def joined_batches(*matrices):
    """The matrices with one batch shape; as they are where they have it already."""
    if all(m._rank() == 2 for m in matrices):
        return list(matrices)
    batches = [batch_of(m, 2) for m in matrices]
    whole = functools.reduce(broadcast, batches)
    if isinstance(whole, list) and all(batch == whole for batch in batches):
        return list(matrices)
    return [with_batch(m, whole) for m in matrices]


def with_batch(x, batch, ndims=2):
    """`x` broadcast to a batch shape in front of its last `ndims` sizes."""
    if ndims:
        batch = joined(batch, sizes(x)[-ndims:])
    return array_ops.broadcast_to(x, batch)


def _folded(solver, matrix, rhs):
    """Solves for all of a batch with one matrix: the batch becomes columns."""
    rank = rhs._rank()
    first = [rank - 2, *range(rank - 2), rank - 1]
    columns = array_ops.transpose(rhs, first)
    flat = array_ops.reshape(columns, joined(sizes(rhs)[-2:-1], [-1]))
    found = array_ops.reshape(solver(matrix, flat), sizes(columns))
    return array_ops.transpose(found, [*range(1, rank - 1), 0, rank - 1])


def solved(solver, matrix, rhs):
    """What `solver(matrix, rhs)` gives for two whose batches broadcast."""
    ranks = matrix._rank(), rhs._rank()
    if ranks == (2, 2):
        return solver(matrix, rhs)
    is_empty = None not in ranks and 0 in rhs._sizes()
    if ranks[0] == 2 and (ranks[1] or 0) > 2 and not is_empty:
        return _folded(solver, matrix, rhs)
    return solver(*joined_batches(matrix, rhs))


def solve(matrix, rhs, adjoint=False):
    """The solution of matrix @ x = rhs, whose batches broadcast."""
    if matrix._rank() == 2 == rhs._rank():
        return linalg_ops.solve(matrix, rhs, adjoint)
    return solved(lambda m, r: linalg_ops.solve(m, r, adjoint), matrix, rhs)


def triangular_solve(matrix, rhs, adjoint=False):
    """The same for the lower triangle of a matrix."""
    if matrix._rank() == 2 == rhs._rank():
        return linalg_ops.triangular_solve(matrix, rhs, True, adjoint)
    return solved(
        lambda m, r: linalg_ops.triangular_solve(m, r, True, adjoint), matrix, rhs
    )


def cholesky_solve(factor, rhs):
    """The same for a matrix that has this Cholesky factor."""
    return solved(linalg_ops.cholesky_solve, factor, rhs)


# --- What matrices are asserted to be.


def assert_no_zeros(x, message):
    """Asserts that no element has the modulus 0."""
    size = elementwise_ops.abs(tensor(x))
    return check_ops.assert_less(array_ops.zeros([], size.dtype), size, message)


def assert_real(x, message):
    """Asserts that no element of a complex tensor has an imaginary part."""
    part = elementwise_ops.imag(tensor(x))
    return check_ops.assert_equal(array_ops.zeros([], part.dtype), part, message)


ZERO_DIAGONAL = "Singular operator:  Diagonal contained zero values."


# --- What constructors want.


def check_rank(x, least, name, shown=None):
    """ValueError, which shows it, for a tensor with less dimensions than are needed."""
    if x.shape.rank is not None and x.shape.rank < least:
        noun = "dimension" if least == 1 else "dimensions"
        raise ValueError(
            f"Argument {name} must have at least {least} {noun}.  Found: "
            f"{x if shown is None else shown!s}"
        )


# --- Numbers of a matrix.


def real(x):
    """The real part; a real tensor as it is."""
    x = tensor(x)
    return elementwise_ops.real(x) if x.dtype.is_complex else x


def log_abs_product(x):
    """The logarithm, a real number, of the absolute value of the product of the last
    dimension."""
    sizes_of = elementwise_ops.log(elementwise_ops.abs(tensor(x)))
    return reduction_ops.reduce_sum(sizes_of, [-1])


def ratio(values):
    """The largest absolute value of the last dimension over the least one."""
    values = tensor(values)
    sizes_of = elementwise_ops.abs(values)
    most = reduction_ops.reduce_max(sizes_of, [-1])
    return most / reduction_ops.reduce_min(sizes_of, [-1])


def add_to_diagonal(x, diagonal, shape):
    """x plus the matrices of that static shape which have this diagonal."""
    known = shape.is_fully_defined() and x.shape.is_fully_defined()
    if known and (
        x._sizes() == shape._dims
        or array_ops.broadcast_static_shape(shape, x.shape) == x.shape
    ):
        return linalg_ops.set_diag(x, linalg_ops.diag_part(x) + diagonal)
    return x + linalg_ops.diag(diagonal)
