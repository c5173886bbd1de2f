"""Matrix functions made of factorizations."""

import headrace as tf
import numpy as np
import pytest

L = tf.linalg
_random = np.random.RandomState(4)
A = _random.randn(2, 4, 4)


@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 20.0])
@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_exponential(scale, kind):
    a = (scale * A).astype(kind)
    if kind == "complex128":
        a = a * (1 + 0.3j)
    values, vectors = np.linalg.eig(a)
    want = vectors * np.exp(values)[:, None, :] @ np.linalg.inv(vectors)
    want = want if kind == "complex128" else want.real
    made = L.expm(a)
    assert made.dtype == kind
    np.testing.assert_allclose(made, want, rtol=1e-8, atol=1e-8 * np.abs(want).max())
    np.testing.assert_allclose(tf.function(L.expm)(a), made)


def test_exponential_has_a_gradient():
    x = tf.Variable(0.1 * A[0])
    with tf.GradientTape() as tape:
        y = tf.linalg.trace(L.expm(x))
    # Of the trace it is the exponential, transposed.
    np.testing.assert_allclose(tape.gradient(y, x), L.expm(x).numpy().T, rtol=1e-8)


def test_factors():
    factors, perm = L.lu(A)
    rhs = _random.randn(2, 4, 3)
    np.testing.assert_allclose(L.lu_solve(factors, perm, rhs), np.linalg.solve(A, rhs))
    np.testing.assert_allclose(L.lu_reconstruct(factors, perm), A, atol=1e-12)
    made = L.lu_matrix_inverse(factors, perm)
    np.testing.assert_allclose(made, np.linalg.inv(A), rtol=1e-8)
    one, order = L.lu(A[0])
    made = L.lu_solve(one, order, rhs[0])
    np.testing.assert_allclose(made, np.linalg.solve(A[0], rhs[0]))


@pytest.mark.parametrize("shape", [(4, 4), (4, 2), (2, 4), (3, 4, 2)])
def test_pseudo_inverse_and_rank(shape):
    a = _random.randn(*shape)
    np.testing.assert_allclose(L.pinv(a), np.linalg.pinv(a), rtol=1e-8)
    np.testing.assert_array_equal(L.matrix_rank(a), np.linalg.matrix_rank(a))
    flat = np.ones(shape)
    np.testing.assert_array_equal(L.matrix_rank(flat), np.linalg.matrix_rank(flat))
    np.testing.assert_allclose(L.pinv(flat), np.linalg.pinv(flat), rtol=1e-8)
