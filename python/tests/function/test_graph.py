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


def _unknown(function):
    return tf.function(input_signature=[tf.TensorSpec(None)])(function)


def test_set_shape_is_seen_by_what_follows():
    shapes = []

    @_unknown
    def f(x):
        x.set_shape([2, None])
        x.set_shape([None, 3])
        y = tf.transpose(x)
        shapes.extend([y.shape, tf.matmul(x, tf.ones([3, 4])).shape])
        shapes.append(tf.reshape(x, [-1]).shape)
        shapes.append(tf.get_static_value(tf.shape(x)).tolist())
        shapes.append(tf.cond(x[0, 0] > 0, lambda: x, lambda: -x).shape)
        return x + 1

    assert f.get_concrete_function().output_shapes == [2, 3]
    assert shapes == [[3, 2], [2, 4], [6], [2, 3], [2, 3]]
    assert f(tf.ones([2, 3])).shape == [2, 3]

    @tf.function
    def refuses(x):
        x.set_shape([2, 4])

    with pytest.raises(ValueError, match="must be equal"):
        refuses(tf.ones([2, 3]))


def test_set_shape_with_wrong_shapes_is_safe():
    @_unknown
    def after_the_rule(x):
        y = tf.nn.relu(x) * 2
        y.set_shape([7, 3])
        x.set_shape([2, 3])
        return tf.matmul(y + 1, tf.ones([3, 4]))

    @_unknown
    def inner(x):
        y = x + 1
        y.set_shape([20, 30])
        return tf.nn.relu(y * y) + y

    @tf.function
    def outer(x):
        return inner(tf.reshape(x, [2, 3]))

    x = tf.reshape(tf.range(6.0), [2, 3])
    for _ in range(3):
        product = after_the_rule(x)
        assert product.shape == [2, 4] and product.numpy()[1, 0] == 27
        assert outer(x).numpy().tolist() == [[2, 6, 12], [20, 30, 42]]
        try:
            assert inner(x).shape == [2, 3]
        except tf.errors.InvalidArgumentError:
            pass
