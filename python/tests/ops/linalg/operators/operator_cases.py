"""Operators of every class, with the matrices that they stand for, by NumPy."""

import functools

import headrace as tf
import numpy as np

L = tf.linalg
SHAPES = [(), (2,), (3, 1)]
DTYPES = ["float32", "float64", "complex64", "complex128"]


def random(seed, shape, dtype):
    """Numbers that are no larger than some, and not near to zero."""
    r = np.random.RandomState(seed)
    x = r.uniform(0.5, 1.5, shape) * r.choice([-1, 1], shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * r.uniform(-1, 1, shape)
    return x.astype(dtype)


def _matrix(seed, batch, n, dtype):
    """A matrix that is far from singular."""
    return random(seed, (*batch, n, n), dtype) + (4 * np.eye(n)).astype(dtype)


def _dense_diag(d):
    return d[..., None] * np.eye(d.shape[-1], dtype=d.dtype)


def _dense_blocks(blocks):
    batch = np.broadcast_shapes(*(b.shape[:-2] for b in blocks))
    n, at = sum(b.shape[-1] for b in blocks), 0
    made = np.zeros((*batch, n, n), blocks[0].dtype)
    for b in blocks:
        k = b.shape[-1]
        made[..., at : at + k, at : at + k] = b
        at += k
    return made


def _kron(a, b):
    made = a[..., :, None, :, None] * b[..., None, :, None, :]
    size = a.shape[-1] * b.shape[-1]
    return made.reshape(*made.shape[:-4], size, size)


def _circulant(spectrum, depth):
    """By its columns: what the transforms make of unit vectors."""
    block, axes = spectrum.shape[-depth:], range(-depth, 0)
    n = int(np.prod(block))
    eye = np.eye(n).reshape(n, *block)
    found = np.fft.ifftn(
        np.fft.fftn(eye, axes=axes) * np.expand_dims(spectrum, -depth - 1), axes=axes
    )
    return found.reshape(*found.shape[:-depth], n).swapaxes(-1, -2)


def _toeplitz(col, row):
    n = col.shape[-1]
    made = np.zeros((*col.shape, n), col.dtype)
    for i in range(n):
        for j in range(n):
            made[..., i, j] = col[..., i - j] if i >= j else row[..., j - i]
    return made


def _tridiag(upper, middle, lower):
    made = _dense_diag(middle)
    for i in range(middle.shape[-1] - 1):
        made[..., i, i + 1], made[..., i + 1, i] = upper[..., i], lower[..., i + 1]
    return made


def _householder(v):
    v = v / np.sqrt(np.sum(np.abs(v) ** 2, -1, keepdims=True))
    outer = v[..., :, None] * v[..., None, :].conj()
    return np.eye(v.shape[-1], dtype=v.dtype) - 2 * outer


def _adjoint(a):
    return a.swapaxes(-1, -2).conj()


# Each case: (arrays, the operator of them, the matrix of them).


def _full(batch, t):
    a = _matrix(1, batch, 4, t)
    return [a], L.LinearOperatorFullMatrix, a


def _lower(batch, t):
    a = _matrix(2, batch, 4, t)
    return [a], L.LinearOperatorLowerTriangular, np.tril(a)


def _diag(batch, t):
    d = random(3, (*batch, 4), t)
    return [d], L.LinearOperatorDiag, _dense_diag(d)


def _scaled(batch, t):
    m = random(4, batch, t)
    made = np.asarray(m)[..., None, None] * np.eye(3, dtype=t)
    return [m], functools.partial(L.LinearOperatorScaledIdentity, 3), made


def _identity(batch, t):
    shape = np.array(batch, "int32")

    def make(sizes):
        return L.LinearOperatorIdentity(3, batch_shape=sizes, dtype=t)

    return [shape], make, np.broadcast_to(np.eye(3, dtype=t), (*batch, 3, 3))


def _circulant_case(depth):
    def case(batch, t):
        block = [(4,), (2, 3), (2, 1, 2)][depth - 1]
        spectrum = random(5, (*batch, *block), "complex128")
        if np.dtype(t).kind == "f":  # the spectrum of a real matrix
            axes = range(-depth, 0)
            spectrum = np.fft.fftn(spectrum.real, axes=axes)
        name = "LinearOperatorCirculant" + ("" if depth == 1 else f"{depth}D")
        wide = {4: "complex64", 8: "complex64", 16: "complex128"}[
            np.dtype(t).itemsize * (2 if np.dtype(t).kind == "f" else 1)
        ]
        spectrum = spectrum.astype(wide)
        made = _circulant(spectrum, depth)
        made = made.real if np.dtype(t).kind == "f" else made
        return [spectrum], lambda s: getattr(L, name)(s, t), made.astype(t)

    return case


def _toeplitz_case(batch, t):
    col, row = random(6, (*batch, 4), t), random(7, (*batch, 4), t)
    col[..., 0] += 5
    return [col, row], L.LinearOperatorToeplitz, _toeplitz(col, row)


def _tridiag_case(form):
    def case(batch, t):
        rows = random(8, (*batch, 3, 4), t)
        rows[..., 1, :] += 5
        dense = _tridiag(*(rows[..., i, :] for i in range(3)))
        if form == "compact":
            return [rows], L.LinearOperatorTridiag, dense
        if form == "matrix":
            return [dense], lambda d: L.LinearOperatorTridiag(d, "matrix"), dense
        parts = [rows[..., i, :].copy() for i in range(3)]
        return parts, lambda *d: L.LinearOperatorTridiag(list(d), "sequence"), dense

    return case


def _householder_case(batch, t):
    v = random(9, (*batch, 4), t)
    return [v], L.LinearOperatorHouseholder, _householder(v)


def _permutation(batch, t):
    r = np.random.RandomState(10)
    perm = np.argsort(r.rand(*batch, 4), -1).astype("int32")
    made = np.eye(4, dtype=t)[perm]
    return [perm], lambda p: L.LinearOperatorPermutation(p, t), made


def _kronecker(batch, t):
    a, d = _matrix(11, batch, 3, t), random(12, (2,), t)

    def make(a, d):
        parts = [L.LinearOperatorFullMatrix(a), L.LinearOperatorDiag(d)]
        return L.LinearOperatorKronecker(parts)

    return [a, d], make, _kron(a, _dense_diag(d))


def _block_diag(batch, t):
    a, d = _matrix(13, batch, 2, t), random(14, (3,), t)

    def make(a, d):
        parts = [L.LinearOperatorFullMatrix(a), L.LinearOperatorDiag(d)]
        return L.LinearOperatorBlockDiag(parts)

    return [a, d], make, _dense_blocks([a, _dense_diag(d)])


def _block_lower(batch, t):
    a, b, d = _matrix(15, batch, 2, t), random(16, (3, 2), t), random(17, (3,), t)
    made = _dense_blocks([a, _dense_diag(d)])
    made[..., 2:, :2] = b

    def make(a, b, d):
        full = L.LinearOperatorFullMatrix
        rows = [[full(a)], [full(b), L.LinearOperatorDiag(d)]]
        return L.LinearOperatorBlockLowerTriangular(rows)

    return [a, b, d], make, made


def _composition(batch, t):
    a, b = _matrix(18, batch, 3, t), _matrix(19, (), 3, t)

    def make(a, b):
        parts = [L.LinearOperatorFullMatrix(a), L.LinearOperatorLowerTriangular(b)]
        return L.LinearOperatorComposition(parts)

    return [a, b], make, a @ np.tril(b)


def _low_rank(batch, t):
    d, u = random(20, (4,), t) * 9, random(21, (*batch, 4, 2), t)
    k, v = random(22, (2,), t), random(23, (4, 2), t)

    def make(d, u, k, v):
        return L.LinearOperatorLowRankUpdate(L.LinearOperatorDiag(d), u, k, v)

    return [d, u, k, v], make, _dense_diag(d) + (u * k) @ _adjoint(v)


def _low_rank_definite(batch, t):
    d, u = np.abs(random(24, (4,), t)).astype(t), random(25, (*batch, 4, 2), t)

    def make(d, u):
        base = L.LinearOperatorDiag(d, is_positive_definite=True, is_self_adjoint=True)
        return L.LinearOperatorLowRankUpdate(base, u)

    return [d, u], make, _dense_diag(d) + u @ _adjoint(u)


def _definite(batch, t):
    a = _matrix(26, batch, 3, t)
    a = a @ _adjoint(a)

    def make(a):
        return L.LinearOperatorFullMatrix(
            a, is_self_adjoint=True, is_positive_definite=True
        )

    return [a], make, a


def _adjoint_case(batch, t):
    a = _matrix(27, batch, 3, t)
    make = lambda a: L.LinearOperatorAdjoint(L.LinearOperatorFullMatrix(a))
    return [a], make, _adjoint(a)


def _inversion(batch, t):
    a = _matrix(28, batch, 3, t)
    make = lambda a: L.LinearOperatorInversion(L.LinearOperatorFullMatrix(a))
    return [a], make, np.linalg.inv(a)


CASES = {
    "full": _full,
    "definite": _definite,
    "lower": _lower,
    "diag": _diag,
    "scaled": _scaled,
    "identity": _identity,
    "circulant": _circulant_case(1),
    "circulant2d": _circulant_case(2),
    "circulant3d": _circulant_case(3),
    "toeplitz": _toeplitz_case,
    "tridiag": _tridiag_case("compact"),
    "tridiag_matrix": _tridiag_case("matrix"),
    "tridiag_sequence": _tridiag_case("sequence"),
    "householder": _householder_case,
    "permutation": _permutation,
    "kronecker": _kronecker,
    "block_diag": _block_diag,
    "block_lower": _block_lower,
    "composition": _composition,
    "low_rank": _low_rank,
    "low_rank_definite": _low_rank_definite,
    "adjoint": _adjoint_case,
    "inversion": _inversion,
}
