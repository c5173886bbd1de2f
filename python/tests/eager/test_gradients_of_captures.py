"""tf.gradients inside of bodies, of what is outside of them."""

import gc
import weakref

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1


def value(x):
    with v1.Session(graph=x.graph) as session:
        return session.run(x)


def test_inside_a_loop_and_a_branch():
    with tf.Graph().as_default():
        x = tf.constant(3.0)
        square = x * x

        def turn(i, total):
            part = tf.constant([1.0, 2.0]) * square
            return i + 1, total + tf.gradients(part, x)[0]

        _, total = tf.while_loop(lambda i, _: i < 4, turn, [0, 0.0])
        assert value(total) == 4 * (1 + 2) * 2 * 3
        choice = v1.placeholder_with_default(True, [])
        slope = tf.cond(choice, lambda: tf.gradients(square * x, x)[0], lambda: x)
        assert value(slope) == 3 * 3 * 3


def test_through_two_functions_to_variables():
    with tf.Graph().as_default():
        v = v1.get_variable("v", initializer=2.0, use_resource=True)
        y = v * v
        other = tf.constant(5.0)

        @tf.function
        def outer():
            z = y * y

            @tf.function
            def inner():
                return tf.gradients([z * v, other], [v, y, other])

            return inner()

        dv, dy, dother = outer()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            # z * v = v^5, and 2 * y * v with respect to y
            assert session.run([dv, dy, dother]) == [80.0, 16.0, 1.0]


def test_what_does_not_depend_has_none():
    with tf.Graph().as_default():
        x, y = tf.constant(1.0), tf.constant(2.0)

        @tf.function
        def f():
            a, b = tf.gradients(y * 2.0, [x, y])
            assert a is None
            return b

        assert value(f()) == 2.0
    assert tf.Graph() is not None


def test_slices_as_given_gradients():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32)
        dy = tf.IndexedSlices(tf.constant([2.0]), tf.constant([0]))
        (dx,) = tf.gradients(tf.identity(x), x, grad_ys=dy)
        assert isinstance(dx, tf.IndexedSlices)
        found = session.run(dx, {x: [1.0]})
        np.testing.assert_array_equal(found.values, [2.0])


def test_prevented_gradients_are_lookup_errors():
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.raw_ops.PreventGradient(input=x, message="here")
    with pytest.raises(LookupError, match="explicitly disabled. Reason: here"):
        tape.gradient(y, x)
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        y = tf.raw_ops.PreventGradient(input=x, message="there")
        with pytest.raises(LookupError, match="explicitly disabled"):
            tf.gradients(y, x)


def test_tensors_keep_their_graph():
    def make():
        with tf.Graph().as_default() as graph:
            x = tf.constant([[1.0, 2.0]], name="x")
            v = v1.get_variable("v", initializer=[[1.0], [3.0]], use_resource=True)
            (dx,) = tf.gradients(tf.matmul(x, v), x)
            return dx, weakref.ref(graph)

    dx, graph = make()
    gc.collect()
    assert dx.op.type == "MatMul" and dx.graph is graph()
    with v1.Session(graph=dx.graph) as session:
        with dx.graph.as_default():
            session.run(v1.global_variables_initializer())
        assert session.run(dx).tolist() == [[1.0, 3.0]]
    del dx, session
    gc.collect()
    assert graph() is None


def test_custom_gradients_and_variables():
    @tf.custom_gradient
    def hands_on(x):
        return x, lambda dy: 3.0 * dy

    @tf.custom_gradient
    def says_nothing(x):
        return x, lambda dy: []

    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y, z = hands_on(v), says_nothing(v)
    assert float(tape.gradient(y, v)) == 3.0
    with pytest.raises(ValueError, match="expected to return 1 gradients"):
        tape.gradient(z, v)

    @tf.recompute_grad
    def of_its_own(x):
        return x * v1.get_variable("w", initializer=5.0)

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = of_its_own(x)
    assert float(tape.gradient(y, x)) == 5.0


def test_recomputing_finds_the_same_variables():
    def f(x):
        with v1.variable_scope("inner"):
            return x * v1.get_variable("w", initializer=4.0)

    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.constant(3.0)
        with v1.variable_scope("outer", reuse=v1.AUTO_REUSE, use_resource=True):
            y = tf.recompute_grad(f)(x)
        (w,) = v1.trainable_variables()
        dw = tf.gradients(y, w)[0]
        assert len(v1.trainable_variables()) == 1
        session.run(v1.global_variables_initializer())
        assert session.run(dw) == 3.0


def test_what_custom_gradients_return_is_tensors():
    @tf.custom_gradient
    def f(x):
        return np.float32(2.0) * x.numpy(), lambda dy: dy

    assert isinstance(f(tf.constant(1.0)), tf.Tensor)


def test_batch_jacobians_in_parts_want_persistent_tapes():
    x = tf.constant([[3.0]])
    for persistent in (True, False):
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y = tf.tile(x * x, [1, 4])
        if persistent:
            found = tape.batch_jacobian(y, x, parallel_iterations=2)
            assert found.numpy().tolist() == [[[6.0]] * 4]
        else:
            with pytest.raises(RuntimeError, match="persistent=True"):
                tape.batch_jacobian(y, x, parallel_iterations=2)


def test_watched_variables_are_in_the_order_of_making():
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        _ = b * a
    assert [v is a for v in tape.watched_variables()] == [True, False]


def test_a_primal_is_given_once():
    x = tf.constant(1.0)
    with pytest.raises(ValueError, match="multiple times"):
        tf.autodiff.ForwardAccumulator([x, x], [x, x])
