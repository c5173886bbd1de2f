"""Variables that a function takes as an argument and captures as well."""

import numpy as np
import pytest

import headrace as tf


@pytest.fixture
def v():
    return tf.Variable([2.0, 3.0])


def _gradient(f, *args, of):
    with tf.GradientTape() as tape:
        y = f(*args)
    return tape.gradient(y, of).numpy().tolist()


def test_gradient_is_the_sum_of_both_ways(v):
    @tf.function
    def f(a):
        return tf.reduce_sum(a * a * v)

    assert _gradient(f, v, of=v) == [12.0, 27.0]


def test_tapes_inside_see_one_variable(v):
    @tf.function
    def f(a):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(a * a * v)
        return tape.gradient(y, [a, v])

    of_argument, of_captured = f(v)
    assert of_argument.numpy().tolist() == [12.0, 27.0]
    assert of_captured.numpy().tolist() == [12.0, 27.0]


def test_gradients_inside_see_one_variable(v):
    @tf.function
    def f(a):
        return tf.gradients(tf.reduce_sum(a * a * v), [a, v])

    for g in f(v):
        assert g.numpy().tolist() == [12.0, 27.0]


def test_the_same_variable_twice(v):
    @tf.function
    def f(a, b):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(a * a * b)
        return tape.gradient(y, [a, b])

    for g in f(v, v):
        assert g.numpy().tolist() == [12.0, 27.0]
    other = tf.Variable([1.0, 1.0])
    of_first, of_second = f(v, other)
    assert of_first.numpy().tolist() == [4.0, 6.0]
    assert of_second.numpy().tolist() == [4.0, 9.0]


def test_other_variables_stay_apart_in_any_order(v):
    @tf.function
    def f(a):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(a * v)
        return [y, *tape.gradient(y, [a, v])]

    other = tf.Variable([5.0, 7.0])
    for _ in range(2):
        y, of_argument, of_captured = f(other)
        assert float(y) == 31.0
        assert of_argument.numpy().tolist() == [2.0, 3.0]
        assert of_captured.numpy().tolist() == [5.0, 7.0]
        y, of_argument, of_captured = f(v)
        assert float(y) == 13.0
        assert of_argument.numpy().tolist() == [4.0, 6.0]
        assert of_captured.numpy().tolist() == [4.0, 6.0]
    assert f.experimental_get_tracing_count() == 3  # one finds the clash


def test_nested_functions(v):
    @tf.function
    def inner(a):
        return tf.reduce_sum(a * v)

    @tf.function
    def outer(a):
        with tf.GradientTape() as tape:
            y = inner(a) + inner(v)
        return tape.gradient(y, [a, v])

    for g in outer(v):
        assert g.numpy().tolist() == [8.0, 12.0]


def test_variables_inside_structures(v):
    @tf.function
    def f(parts):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(parts["x"] * v) + parts["y"]
        return tape.gradient(y, [parts["x"], v])

    for g in f({"x": v, "y": tf.constant(1.0)}):
        assert g.numpy().tolist() == [4.0, 6.0]


@pytest.mark.parametrize("watched", ["argument", "captured"])
def test_forward_mode_inside(v, watched):
    @tf.function
    def f(a):
        primal = a if watched == "argument" else v
        with tf.autodiff.ForwardAccumulator(primal, tf.constant([1.0, 10.0])) as acc:
            y = tf.reduce_sum(a * a * v)
        return acc.jvp(y)

    assert float(f(v)) == 282.0


def test_forward_mode_around(v):
    @tf.function
    def f(a):
        return tf.reduce_sum(a * a * v)

    with tf.autodiff.ForwardAccumulator(v, tf.constant([1.0, 10.0])) as acc:
        y = f(v)
    assert float(acc.jvp(y)) == 282.0


def test_assignments_through_either_name(v):
    @tf.function
    def f(a):
        a.assign_add([1.0, 1.0])
        v.assign_add([10.0, 10.0])
        return a + v

    assert f(v).numpy().tolist() == [26.0, 28.0]


def test_concrete_functions_know_their_variable(v):
    @tf.function
    def f(a):
        return a * v

    other = tf.Variable([5.0, 7.0])
    of_v, of_other = f.get_concrete_function(v), f.get_concrete_function(other)
    assert of_v is not of_other
    assert of_v is f.get_concrete_function(v)
    np.testing.assert_array_equal(of_v(v), [4.0, 9.0])
    np.testing.assert_array_equal(of_other(other), [10.0, 21.0])
