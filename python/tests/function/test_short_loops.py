"""Loops of a few turns, which plans write out: values, gradients, effects and errors in order."""

import numpy as np
import pytest

import headrace as tf


def polynomial(x, turns):
    y = tf.zeros_like(x)
    for i in tf.range(turns):
        y = y * x + tf.cast(i, x.dtype)
    return y


@pytest.mark.parametrize("turns", [0, 1, 2, 5, 9, 40])
def test_values_and_gradients(turns):
    x = tf.constant(np.linspace(-1, 1, 7))
    short = tf.function(lambda x: polynomial(x, turns))
    any_number = tf.function(polynomial)
    assert (
        short(x).numpy().tobytes()
        == any_number(x, tf.constant(turns)).numpy().tobytes()
        == polynomial(x, turns).numpy().tobytes()
    )

    @tf.function
    def gradients(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = polynomial(x, turns)
            first = tape.gradient(y, x)
        return first, outer.gradient(first, x)

    p = np.polynomial.Polynomial(list(range(turns))[::-1] or [0])
    first, second = gradients(x)
    for got, want in ((first, p.deriv()(x.numpy())), (second, p.deriv(2)(x.numpy()))):
        got = np.zeros(7) if got is None else got
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def test_effects_stay_in_order():
    v = tf.Variable([0.0] * 3)
    n = tf.Variable(0)

    @tf.function
    def f():
        for i in tf.range(3):
            n.assign(n * 10 + i + 1)
            v.assign(tf.tensor_scatter_nd_update(v, [[i]], [tf.cast(n, tf.float32)]))
        return v.read_value()

    assert f().numpy().tolist() == [1, 12, 123]
    assert n.numpy() == 123


def test_errors_name_the_turn_s_op():
    @tf.function
    def f(x):
        for i in tf.range(3):
            x = x // (x - i)
        return x

    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Integer division by zero"
    ):
        f(tf.constant(0))


def test_draws_of_random_numbers_differ():
    tf.random.set_seed(3)

    @tf.function
    def f():
        y = tf.zeros([2])
        for _ in tf.range(3):
            y = y * 2 + tf.random.uniform([2])
        return y

    a, b = f().numpy(), f().numpy()
    assert (a != b).all()
