"""tf.test.compute_gradient, and compute_gradient and compute_gradient_error of v1."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
# d(z z) at 1+2j and 3-1j, of real and imaginary parts side by side.
SQUARES = [[2, -4, 0, 0], [4, 2, 0, 0], [0, 0, 6, 2], [0, 0, -2, 6]]


def close(pair, want):
    for jacobian in pair:
        np.testing.assert_allclose(jacobian, want, atol=1e-3)


def both(told, measured, want):
    assert type(told) is tuple and type(measured) is tuple
    for k, jacobian in enumerate(want):
        close((told[k], measured[k]), jacobian)


def test_at_once():
    x = np.array([1.0, 2.0])
    both(
        *tf.test.compute_gradient(lambda a, b: a * b, [x, 2 * x]),
        [2 * np.diag(x), np.diag(x)],
    )
    both(
        *tf.test.compute_gradient(lambda a, b: a, [x, x]), [np.eye(2), np.zeros([2, 2])]
    )
    told, measured = tf.test.compute_gradient(
        lambda a: a**3, [np.ones(2, "f")], delta=0.5
    )
    close(told, 3 * np.eye(2))
    close(measured, 3.25 * np.eye(2))


def test_complex_values_take_two_places():
    z = np.array([1 + 2j, 3 - 1j])
    told, measured = tf.test.compute_gradient(lambda z: z * z, [z])
    assert told[0].dtype == measured[0].dtype == np.float64
    both(told, measured, [SQUARES])
    told, measured = tf.test.compute_gradient(tf.abs, [z.astype(np.complex64)])
    assert told[0].shape == (2, 4) and told[0].dtype == np.float32
    close((told[0], measured[0]), [[0.44721, 0.89443, 0, 0], [0, 0, 0.94868, -0.31623]])
    real = lambda x: tf.complex(x, 2 * x)  # noqa: E731
    both(*tf.test.compute_gradient(real, [np.array([1.0])]), [[[1], [2]]])


def test_in_a_graph():
    z = np.array([1 + 2j, 3 - 1j])
    with tf.Graph().as_default():
        with pytest.raises(RuntimeError, match="default session"):
            tf.test.compute_gradient(lambda z: z * z, [z])
        with v1.Session():
            both(*tf.test.compute_gradient(lambda z: z * z, [z]), [SQUARES])
            at = tf.constant([1.0, 2.0])
            both(*tf.test.compute_gradient(lambda x: x * x, [at]), [np.diag([2, 4])])


def test_empty_and_wrong():
    told, measured = tf.test.compute_gradient(lambda a: a[:0], [np.ones(3)])
    assert told[0].shape == measured[0].shape == (0, 3)

    @tf.custom_gradient
    def lies(x):
        return x[:0], lambda dy: tf.ones_like(x)

    with pytest.raises(ValueError, match="Empty tensor with nonzero gradients"):
        tf.test.compute_gradient(lies, [np.ones(2, "f")])
    with pytest.raises(ValueError, match="must be a list or tuple"):
        tf.test.compute_gradient(lambda a: a, np.ones(2))
    with pytest.raises(AssertionError, match="unsupported type int32 of argument 1"):
        tf.test.compute_gradient(lambda a, i: tf.gather(a, i), [np.ones(2), [1]])


def test_of_tensors_of_a_graph():
    at = np.array([1, 2, 3], "f")
    with tf.Graph().as_default(), v1.Session():
        x = tf.constant([0.0, 0.0, 0.0])
        y = tf.concat([x * x, 2 * x], 0)
        want = np.concatenate([np.diag(2 * at), 2 * np.eye(3)], 1)
        close(v1.test.compute_gradient(x, [3], y, [6], at), want)
        assert v1.test.compute_gradient_error(x, [3], y, [6], at) < 1e-2
        # Of a list, the others stay what the graph says.
        w = v1.placeholder_with_default([1.0, 1.0, 1.0], [3])
        pairs = v1.test.compute_gradient([x, w], [[3], [3]], x * w, [3], [at, at])
        close(pairs[0], np.eye(3))
        close(pairs[1], np.zeros([3, 3]))
        z = tf.constant([1 + 2j, 3 - 1j])
        close(
            v1.test.compute_gradient(z, [2], z * z, [2], [1 + 2j, 3 - 1j]),
            np.transpose(SQUARES),
        )
        # At an array that is a view of fewer numbers.
        across = np.broadcast_to(at, (2, 3))
        m = tf.zeros([2, 3])
        found = v1.test.compute_gradient(m, [2, 3], 3 * m, [2, 3], across)
        close(found, 3 * np.eye(6))
        p, v = v1.placeholder(tf.float32, [3]), v1.Variable([2.0])
        found = v1.test.compute_gradient(
            x,
            [3],
            x * p * v,
            [3],
            init_targets=[v.initializer],
            extra_feed_dict={p: at},
        )
        close(found, 2 * np.diag(at))
        with pytest.raises(AssertionError, match="dx = None"):
            v1.test.compute_gradient(x, [3], p, [3])
        with pytest.raises(AssertionError, match="init_data shape = .2"):
            v1.test.compute_gradient(x, [3], y, [6], [1.0, 2.0])


def test_values_of_several_placeholders_are_fed_beside_the_one_that_is_moved():
    """What is fed for the tensor that is moved does not hold it back."""
    with tf.Graph().as_default(), tf.compat.v1.Session():
        a, b = (tf.compat.v1.placeholder(tf.float64) for _ in range(2))
        joined = tf.gather(tf.concat([a, b], 1), [2, 0])
        feeds = {a: np.ones([3, 1]), b: np.ones([3, 2])}
        error = tf.compat.v1.test.compute_gradient_error(
            [a, b], [[3, 1], [3, 2]], joined * joined, [2, 3], extra_feed_dict=feeds
        )
    assert error < 1e-8


def test_gradients_of_nothing_and_nan():
    v1 = tf.compat.v1

    @tf.RegisterGradient("TestTurned")
    def turned(op, grad):
        return tf.transpose(grad)

    @tf.RegisterGradient("TestNaN")
    def nan(op, grad):
        return grad * np.nan

    with tf.Graph().as_default() as graph, v1.Session():
        x = v1.placeholder(tf.float32)
        with graph.gradient_override_map({"Identity": "TestTurned"}):
            y = tf.identity(x)
        text = r"Empty gradient has wrong shape: expected \(0, 3\), got \(3, 0\)"
        for function in (v1.test.compute_gradient, v1.test.compute_gradient_error):
            with pytest.raises(ValueError, match=text):
                function(x, (0, 3), y, (0, 3))
        with graph.gradient_override_map({"Identity": "TestNaN"}):
            y = tf.identity(x)
        assert np.isnan(v1.test.compute_gradient_error(x, (), y, ()))
