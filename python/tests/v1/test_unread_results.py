"""What runs of a branch or a loop of which only some results are fetched."""

import headrace as tf
import pytest

v1 = tf.compat.v1


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as session:
        yield session


def variables(session, *names):
    made = [v1.get_variable(n, initializer=7.0, use_resource=True) for n in names]
    session.run(v1.global_variables_initializer())
    return made


def test_branches_do_what_is_read(session):
    v, w = variables(session, "v", "w")
    p = v1.placeholder(tf.bool, [])
    r = tf.cond(p, lambda: [v.assign(1.0) + 0, w.assign(2.0) + 0], lambda: [v * 2, w])
    assert session.run(r[1], {p: True}) == 2.0
    assert session.run([v, w]) == [7.0, 2.0]
    assert session.run(r, {p: False}) == [14.0, 2.0]
    assert session.run(r[0], {p: True}) == 1.0
    assert session.run([v, w]) == [1.0, 2.0]


def test_loops_carry_what_is_read(session):
    (v,) = variables(session, "v")

    def body(i, a):
        with tf.control_dependencies([v.assign_add(1.0)]):
            a = a * 2.0
        return i + 1, a

    i, a = tf.while_loop(lambda i, a: i < 3, body, [tf.constant(0), tf.constant(1.0)])
    assert [session.run(i), session.run(v)] == [3, 7.0]
    assert [session.run(a), session.run(v)] == [8.0, 10.0]


def test_functions_do_all(session):
    (v,) = variables(session, "v")

    @tf.function
    def f(p):
        return tf.cond(p, lambda: (v.assign(1.0), 2.0), lambda: (v.read_value(), 3.0))[
            1
        ]

    assert session.run(f(tf.constant(True))) == 2.0
    assert session.run(v) == 1.0
