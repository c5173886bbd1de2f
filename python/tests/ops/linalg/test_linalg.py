"""Decompositions and solvers: values and gradients."""

import headrace as tf
import numpy as np
import pytest
from driver import RECORDED, Row, cases, check

BOTH = ("float32", "float64")
EXACT = ("float64",)
_random = np.random.RandomState(13)


def some(*shape):
    return _random.randn(*shape).round(3)


def regular(n):
    return some(n, n) + n * np.eye(n)


def hermitian(n):
    a = some(n, n)
    return a @ a.T + n * np.eye(n)


def nearest(points, centers, k):
    far = np.square(points[:, None] - centers).sum(-1)
    order = np.argsort(far, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(far, order, axis=1)


def _nearest(points, centers, k, want=None, error=None):
    inputs = {"points": points, "centers": centers, "k": np.array(k, "int64")}
    return Row(
        "NearestNeighbors",
        inputs,
        want,
        dtypes=("float32",),
        fixed=("k",),
        gradient=(),
        error=error,
    )


ROWS = [
    Row("MatrixInverse", {"input": regular(3)}, np.linalg.inv, dtypes=EXACT),
    Row(
        "MatrixInverse",
        {"input": regular(3)},
        lambda a: np.linalg.inv(a).T,
        {"adjoint": True},
        dtypes=EXACT,
    ),
    Row(
        "MatrixInverse",
        {"input": np.ones((2, 2))},
        error="Input is not invertible.",
        dtypes=EXACT,
    ),
    Row(
        "MatrixSolve",
        {"matrix": regular(3), "rhs": some(3, 2)},
        np.linalg.solve,
        dtypes=EXACT,
    ),
    Row(
        "MatrixTriangularSolve",
        {"matrix": regular(3), "rhs": some(3, 2)},
        lambda a, b: np.linalg.solve(np.tril(a), b),
        dtypes=EXACT,
    ),
    Row("MatrixDeterminant", {"input": regular(3)}, np.linalg.det, dtypes=EXACT),
    Row("LogMatrixDeterminant", {"input": regular(3)}, np.linalg.slogdet, dtypes=EXACT),
    Row(
        "Cholesky",
        {"input": hermitian(70)},
        np.linalg.cholesky,
        dtypes=EXACT,
        gradient=(),
    ),
    *(
        Row(
            "Cholesky",
            {"input": hermitian(n)},
            np.linalg.cholesky,
            dtypes=EXACT,
            gradient=(),
        )
        for n in (0, 1, 48, 49, 145)
    ),
    *(
        Row(
            "Cholesky",
            {"input": a},
            lambda a: np.tril(np.full_like(a, np.nan)),
            dtypes=EXACT,
        )
        for a in (-np.eye(2), np.eye(60) * np.nan)
    ),
    Row(
        "MatrixInverse",
        {"input": regular(110)},
        np.linalg.inv,
        dtypes=EXACT,
        gradient=(),
    ),
    Row("Qr", {"input": some(4, 3)}, RECORDED, dtypes=EXACT),
    Row("Qr", {"input": some(2, 3)}, RECORDED, dtypes=EXACT),
    Row("Svd", {"input": some(4, 3)}, RECORDED, dtypes=EXACT),
    Row(
        "MatrixSolveLs",
        {"matrix": some(4, 3), "rhs": some(4, 2), "l2_regularizer": np.float64(0.1)},
        lambda a, b, r: np.linalg.solve(a.T @ a + r * np.eye(3), a.T @ b),
        dtypes=EXACT,
        gradient=("matrix", "rhs"),
    ),
    Row(
        "TridiagonalSolve",
        {"diagonals": some(3, 4) + [[0], [5], [0]], "rhs": some(4, 2)},
        lambda d, b: np.linalg.solve(
            np.diag(d[1]) + np.diag(d[0][:-1], 1) + np.diag(d[2][1:], -1), b
        ),
        dtypes=EXACT,
    ),
    Row(
        "TridiagonalMatMul",
        {
            "superdiag": some(1, 4),
            "maindiag": some(1, 4),
            "subdiag": some(1, 4),
            "rhs": some(4, 2),
        },
        lambda u, m, d, b: (
            (np.diag(m[0]) + np.diag(u[0][:-1], 1) + np.diag(d[0][1:], -1)) @ b
        ),
        dtypes=EXACT,
    ),
    Row(
        "BandedTriangularSolve",
        {"matrix": some(2, 4) + [[4], [0]], "rhs": some(4, 2)},
        lambda a, b: np.linalg.solve(np.diag(a[0]) + np.diag(a[1][1:], -1), b),
        dtypes=EXACT,
    ),
    Row("MatrixSquareRoot", {"input": hermitian(3)}, RECORDED, dtypes=EXACT),
    *(
        _nearest(some(n, 3), some(m, 3), k, nearest)
        for n, m, k in ((4, 5, 2), (3, 2, 9), (1, 4, 0), (2, 0, 3), (300, 40, 3))
    ),
    _nearest([[0.0, 0.0]], [[0, 1], [3, 3], [1, 0]], 2, ([[0, 2]], [[1.0, 1.0]])),
    _nearest(
        [[0.0]], [[1], [np.nan], [np.inf]], 3, ([[1, 0, 2]], [[np.nan, 1, np.inf]])
    ),
    _nearest(some(2, 3), some(2, 2), 1, error="point_dimensions == center_dimensions"),
    _nearest(some(3), some(2, 3), 1, error="points should be a matrix"),
    _nearest(some(2, 3), some(3), 1, error="centers should be a matrix"),
    _nearest(some(2, 3), some(2, 3), [1], error="k should be a scalar"),
    _nearest(some(0, 3), some(2, 3), 1, error="Expected points.rows() > 0"),
    _nearest(some(2, 3), some(2, 3), -1, error="k must be at least 0, got -1"),
]


@pytest.mark.parametrize("row, dtype", cases(ROWS))
def test_row(row, dtype):
    check(row, dtype)


def test_complex_qr_has_the_phase_of_householder_reflections():
    """The diagonal of R is real; that of its first column has the sign that
    TensorFlow's has, against the real part of what it reflects."""
    rng = np.random.default_rng(3)
    for rows, columns in ((3, 3), (5, 2), (2, 4)):
        a = rng.normal(size=(2, rows, columns, 2)) @ [1, 1j]
        for full in (False, True):
            q, r = (t.numpy() for t in tf.linalg.qr(a, full_matrices=full))
            diagonal = np.diagonal(r, axis1=1, axis2=2)
            np.testing.assert_allclose(diagonal.imag, 0, atol=1e-12)
            np.testing.assert_allclose(q @ r, a, atol=1e-12)
            first = np.linalg.norm(a[:, :, 0], axis=1)
            np.testing.assert_allclose(
                diagonal[:, 0].real, -np.sign(a[:, 0, 0].real) * first
            )
