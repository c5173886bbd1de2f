"""Triangular systems of sizes below, at and above those of the kernels' blocks."""

import numpy as np
import pytest

import headrace as tf


def _system(n, m, dtype, lower):
    random = np.random.RandomState(n + m)
    a = random.randn(n, n) / n + 2.0 * np.eye(n)
    b = random.randn(n, m)
    if dtype.startswith("complex"):
        a, b = a + 1j * random.randn(n, n) / n, b + 1j * random.randn(n, m)
    triangle = np.tril(a) if lower else np.triu(a)
    # The other triangle is not read.
    given = np.where(
        np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T, a, np.nan
    )
    return given.astype(dtype), triangle.astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n, m", [(1, 1), (5, 2), (47, 3), (48, 1), (49, 70), (150, 1)])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_triangles_and_their_adjoints(dtype, n, m, lower, adjoint):
    given, triangle, b = _system(n, m, dtype, lower)
    found = tf.linalg.triangular_solve(given, b, lower=lower, adjoint=adjoint)
    wanted = np.linalg.solve(triangle.conj().T if adjoint else triangle, b)
    rtol = 1e-4 if dtype in ("float32", "complex64") else 1e-10
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("n", [3, 48, 101])
def test_adjoints_of_whole_matrices(dtype, n):
    random = np.random.RandomState(n)
    a = random.randn(n, n) / n + 2.0 * np.eye(n)
    if dtype == "complex64":
        a = a + 1j * random.randn(n, n) / n
    a, b = a.astype(dtype), random.randn(n, 2).astype(dtype)
    found = tf.linalg.solve(a, b, adjoint=True)
    np.testing.assert_allclose(
        found, np.linalg.solve(a.conj().T, b), rtol=2e-3, atol=1e-4
    )
    inverse = tf.linalg.inv(a, adjoint=True)
    np.testing.assert_allclose(inverse, np.linalg.inv(a.conj().T), rtol=2e-3, atol=1e-4)


def test_a_gradient_through_a_large_triangle():
    given, triangle, b = _system(100, 2, "float64", True)
    a = tf.constant(triangle)
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = tf.reduce_sum(tf.linalg.triangular_solve(a, b) ** 2)
    x = np.linalg.solve(triangle, b)
    wanted = -np.tril(np.linalg.solve(triangle.T, 2 * x) @ x.T)
    np.testing.assert_allclose(tape.gradient(y, a), wanted, rtol=1e-9, atol=1e-9)
