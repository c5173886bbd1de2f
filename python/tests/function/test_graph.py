"""tf.Graph and tf.compat.v1.Session."""

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1


def test_runs_fetches_of_all_kinds():
    g = tf.Graph()
    with g.as_default():
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        y = tf.identity(x * 2.0, name="y")
    with v1.Session(graph=g) as s:
        a = np.ones((1, 2), np.float32)
        np.testing.assert_array_equal(s.run(y, {x: a}), 2 * a)
        out = s.run({"a": y, "b": ["y:0", (x, "y")]}, {"x:0": [[1, 2], [3, 4]]})
        assert out["a"].shape == (2, 2) and out["b"][1][1] is None
        assert s.run([y, y], {x: a})[1].shape == (1, 2)
        np.testing.assert_array_equal(y.eval({x: a}), 2 * a)
    with pytest.raises(RuntimeError, match="closed"):
        s.run(y, {x: a})


def test_names_scopes_and_lookup():
    g = tf.Graph()
    with g.as_default():
        with tf.name_scope("a"):
            c = tf.constant(1, name="c")
        with tf.name_scope("a"):
            d = tf.constant(1, name="c")
        assert (c.name, d.name) == ("a/c:0", "a_1/c:0")
    assert g.get_tensor_by_name("a/c:0").op is c.op
    assert g.get_operation_by_name("a_1/c").type == "Const"
    assert [o.name for o in g.get_operations()] == ["a/c", "a_1/c"]
    with pytest.raises(KeyError):
        g.get_operation_by_name("b")


def test_control_dependencies_and_group():
    g = tf.Graph()
    with g.as_default():
        a = tf.constant(1, name="a")
        with g.control_dependencies([a]):
            b = tf.constant(2, name="b")
        n = tf.group(a, b)
    assert b.op.control_inputs == [a.op]
    assert n.control_inputs == [a.op, b.op]


def test_finalized():
    g = tf.Graph()
    g.finalize()
    with g.as_default(), pytest.raises(RuntimeError, match="finalized"):
        tf.constant(1)


def test_init_scope_lifts():
    @tf.function
    def f(x):
        with tf.init_scope():
            c = tf.constant(5)
            assert tf.executing_eagerly()
        assert tf.inside_function()
        return x + c

    assert f(tf.constant(1)).numpy() == 6
