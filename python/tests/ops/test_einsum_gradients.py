"""Gradients of Einsum where an ellipsis stands anywhere, for sizes that broadcast, and
where labels are repeated or summed: against those of the equation written out."""

import headrace as tf
import numpy as np
import pytest

RANDOM = np.random.RandomState(4)

# Equation, shapes, and NumPy's, where an ellipsis has no dimension to stand for.
CASES = [
    ("...->", [()]),
    ("a...a->", [(3, 3)]),
    ("...a->a", [(4,)]),
    ("...,...->...", [(2, 1), (3,)]),
    ("...ij,...jk->...ik", [(3, 2), (5, 2, 4)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 2), (4, 2, 3)]),
    ("ij...,jk...->ik...", [(3, 2, 1), (2, 4)]),
    ("ij...,jk...->ik...", [(3, 2, 4), (2, 5, 1)]),
    ("i...j,j...k->i...k", [(3, 1, 2, 2), (2, 2, 3, 1, 4)]),
    ("i...j,jk->...ik", [(3, 2, 1, 4), (4, 2)]),
    ("ij,j...k->k...i", [(2, 3), (3, 1, 2, 4)]),
    ("a...,b->...", [(3, 2), (4,)]),
    ("ij,jk...k->i...", [(3, 2), (2, 4, 1, 4)]),
    ("aab,b...c->a...c", [(2, 2, 3), (3, 1, 1, 4)]),
    ("aab...,bc...->c...a", [(2, 2, 3, 1), (3, 2, 4)]),
]


def _numeric(f, xs, i, d):
    """The slopes of sum(f * d) by x i, by central differences."""
    slope = np.zeros_like(xs[i])
    for at in np.ndindex(*xs[i].shape):
        values = []
        for sign in (1, -1):
            moved = [x.copy() for x in xs]
            moved[i][at] += sign * 1e-6
            values.append((f(*moved) * d).sum())
        slope[at] = (values[0] - values[1]) / 2e-6
    return slope


@pytest.mark.parametrize("traced", ["eager", "known", "unknown"])
@pytest.mark.parametrize("equation, shapes", CASES)
def test_gradient(equation, shapes, traced):
    xs = [np.asarray(RANDOM.randn(*s)) for s in shapes]

    def plain(*xs):
        return np.einsum(equation, *xs)

    d = np.asarray(RANDOM.randn(*np.shape(plain(*xs))))

    def slopes(*xs):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = tf.raw_ops.Einsum(inputs=xs, equation=equation)
        return tape.gradient(y, xs, output_gradients=tf.constant(d))

    if traced == "known":
        slopes = tf.function(slopes)
    if traced == "unknown":
        spec = [tf.TensorSpec(None, tf.float64) for _ in xs]
        slopes = tf.function(slopes, input_signature=spec)
    made = slopes(*map(tf.constant, xs))
    for i, slope in enumerate(made):
        assert slope.shape == xs[i].shape
        np.testing.assert_allclose(
            slope, _numeric(plain, xs, i, d), rtol=1e-5, atol=1e-8
        )
