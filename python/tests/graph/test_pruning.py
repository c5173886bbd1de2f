"""Which operations a run of a graph makes."""

import headrace as tf
import pytest

v1 = tf.compat.v1


def test_effects_of_bodies_that_nothing_waits_for():
    with tf.Graph().as_default(), v1.Session() as session:
        a, b = (v1.get_variable(n, initializer=0, use_resource=True) for n in "ab")
        session.run(v1.global_variables_initializer())

        def body(i):
            a.assign_add(1)
            with tf.control_dependencies([b.assign_add(1)]):
                return i + 1

        yes = v1.placeholder_with_default(True, [])
        assert session.run(tf.cond(yes, lambda: body(tf.constant(1)), lambda: 0)) == 2
        assert session.run([a, b]) == [0, 1]
        assert session.run(tf.while_loop(lambda i: i < 3, body, [0])) == [3]
        assert session.run([a, b]) == [0, 4]

        @tf.function
        def all_of_them():
            return tf.cond(yes, lambda: body(tf.constant(1)), lambda: 0)

        assert session.run(all_of_them()) == 2
        assert session.run([a, b]) == [1, 5]


def test_gradients_do_not_bring_effects_back():
    with tf.Graph().as_default(), v1.Session() as session:
        a = v1.get_variable("a", initializer=0, use_resource=True)
        session.run(v1.global_variables_initializer())
        x = v1.placeholder_with_default(3.0, [])

        def branch():
            a.assign_add(1)
            return x * x

        y = tf.cond(x > 0.0, branch, lambda: x)
        (dx,) = tf.gradients(y, x)
        assert session.run([y, dx]) == [9.0, 6.0]
        assert session.run(a) == 0


def test_targets_run_though_nobody_reads_them():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.int32, [])
        y = 6 // x
        session.run(y.op, {x: 2})
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(y.op, {x: 0})
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(tf.group(y), {x: 0})
        assert session.run(x + 1, {x: 0}) == 1
