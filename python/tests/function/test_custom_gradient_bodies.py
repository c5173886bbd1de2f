"""Branches, loops, maps and functions within the gradient function of a
tf.custom_gradient that a traced function called: they read tensors of that trace, also
when the gradient is asked for outside of it, when the trace is over.

Values are TensorFlow's, or those of the same function called eagerly.
"""

import gc
import weakref

import headrace as tf
import numpy as np
import pytest


def squared(gradient):
    """x * x, traced, with gradient(d, 3 x, 2 y) for its gradient, y a copy of x: linear
    in d, as gradients are (TensorFlow's second derivatives take it for that, too)."""

    @tf.function
    def f(x):
        threefold = x * 3.0

        @tf.custom_gradient
        def g(y):
            twofold = y * 2.0
            return y * y, lambda d: gradient(d, threefold, twofold)

        return g(x)

    return f


def by_branch(d, s, z):
    return tf.cond(tf.reduce_sum(d) > 0.0, lambda: d * s * z, lambda: -d * s)


def by_case(d, s, z):
    return tf.switch_case(tf.constant(1), [lambda: d, lambda: tf.sin(d * s) * z])


def by_loop(d, s, z):
    return tf.while_loop(
        lambda i, d: i < 2, lambda i, d: (i + 1, d * s * z), (tf.constant(0), d)
    )[1]


def by_loop_of_branches(d, s, z):
    for i in tf.range(3):
        if i % 2 == 0:
            d = d * s
        else:
            d = d * z
    return d


def by_function(d, s, z):
    return tf.function(lambda d: tf.cond(d > 0.0, lambda: d * s, lambda: d * z))(d)


def by_map(d, s, z):
    rows = tf.stack([d, d * 2.0])
    looped = tf.map_fn(lambda row: row * s, rows)
    return tf.reduce_sum(looped + tf.vectorized_map(lambda row: row * s * z, rows))


def by_jacobian(d, s, z):
    with tf.GradientTape() as tape:
        tape.watch(s)
        values = tf.stack([s * s, s * z])
    return d * tf.reduce_sum(tape.jacobian(values, s))


WAYS = [by_branch, by_case, by_loop, by_loop_of_branches, by_function, by_map]
WAYS += [by_jacobian]


def first_and_second(f, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        d = inner.gradient(y, x)
    return float(d), float(outer.gradient(d, x))


@pytest.mark.parametrize("gradient", WAYS)
def test_outside_of_the_trace(gradient):
    traced, x = squared(gradient), tf.constant(0.7)
    want = first_and_second(traced.python_function, x)
    assert want[0] != 1.4  # no gradient of its own
    np.testing.assert_allclose(first_and_second(traced, x), want, rtol=1e-5)
    nested = tf.function(lambda x: traced(x) * 1.0)
    np.testing.assert_allclose(first_and_second(nested, x), want, rtol=1e-5)


@pytest.mark.parametrize("gradient", WAYS)
def test_within_branches_and_loops_of_the_trace(gradient):
    traced = squared(gradient)

    @tf.function
    def in_branch(x):
        return tf.cond(x > 0.0, lambda: traced(x), lambda: x)

    @tf.function
    def in_loop(x):
        for _ in tf.range(2):
            x = traced(x)
        return x

    def twice(x):
        return traced.python_function(traced.python_function(x))

    x = tf.constant(0.7)
    want = first_and_second(traced.python_function, x)
    np.testing.assert_allclose(first_and_second(in_branch, x), want, rtol=1e-5)
    want = first_and_second(twice, x)
    np.testing.assert_allclose(first_and_second(in_loop, x), want, rtol=1e-5)


def test_tensors_of_the_graphs_around_the_call():
    @tf.function
    def f(x):
        threefold = x * 3.0

        def branch():
            @tf.custom_gradient
            def g(y):
                def gradient(d):
                    return tf.cond(d > 0.0, lambda: d * threefold, lambda: d)

                return y * y, gradient

            return g(x)

        return tf.cond(x > 0.0, branch, lambda: x)

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert float(tape.gradient(y, x)) == 6.0


def test_jacobians_of_variables():
    class Quadratic:
        def __init__(self):
            self.a, self.b = tf.Variable(1.0), tf.Variable(2.0)

        def __call__(self, x):
            return self.a * x * x + self.b * x

    @tf.function
    def f(q, x):
        @tf.custom_gradient
        def g():
            def gradient(d, variables):
                with tf.GradientTape(persistent=True) as tape:
                    y = q(x)
                by = [tape.jacobian(y, v) for v in variables]
                return (), [2.0 * tf.reduce_sum(d * j) for j in by]

            return q(x), gradient

        return g()

    q, x = Quadratic(), tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(q, x)
    assert [float(g) for g in tape.gradient(y, [q.a, q.b])] == [28.0, 12.0]
    assert tape.gradient(y, x) is None


def test_registered_gradients():
    @tf.RegisterGradient("TestBranches")
    def branches(op, grad):
        x = op.inputs[0]
        return tf.cond(grad > 0.0, lambda: grad * x * 10.0, lambda: grad)

    @tf.function
    def f(x):
        graph = tf.compat.v1.get_default_graph()
        with graph.gradient_override_map({"Square": "TestBranches"}):
            return tf.square(x)

    assert first_and_second(f, tf.constant(3.0)) == (30.0, 10.0)


def test_tensors_of_other_traces_are_out_of_reach():
    kept = []

    @tf.function
    def other(x):
        kept.append(x * 2.0)
        return x

    other(tf.constant(1.0))
    f = squared(lambda d, s, z: tf.cond(d > 0.0, lambda: d * kept[0], lambda: d))
    x = tf.constant(1.0)
    with pytest.raises(TypeError, match="out of scope"), tf.GradientTape() as tape:
        tape.watch(x)
        tape.gradient(f(x), x)


def test_traces_are_freed():
    f, x = squared(by_loop_of_branches), tf.constant(0.7)
    first_and_second(f, x)
    end = weakref.ref(f.get_concrete_function(x).graph)
    del f
    gc.collect()
    assert end() is None
