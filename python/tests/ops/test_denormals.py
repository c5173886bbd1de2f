"""Numbers too small to be normal count as zero in arithmetic, as TensorFlow's do."""

import headrace as tf
import numpy as np
import pytest

SMALL = np.full([300, 70], 1e-40, np.float32)
TINY = np.full([300, 70], 1e-30, np.float32)
BY_ITSELF = {
    "operand": lambda: tf.constant(SMALL) * 3.0,
    "result": lambda: tf.constant(TINY) * 1e-9,
    "product": lambda: tf.matmul(tf.constant(SMALL), tf.eye(70)),
    "double": lambda: tf.constant(1e-310, tf.float64) * [3.0, 4.0],
    "in a chain": lambda: tf.constant(TINY) * 1e-9 * 1e9 + tf.constant(SMALL),
    "activation's slope": lambda: tf.raw_ops.TanhGrad(
        y=tf.constant(TINY), dy=tf.constant(SMALL)
    ),
}


def way_of(function, way):
    if way == "eager":
        return function().numpy()
    if way == "traced":
        return tf.function(function)().numpy()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(function())


@pytest.mark.parametrize("way", ["eager", "traced", "session"])
@pytest.mark.parametrize("name", BY_ITSELF)
def test_are_zero(name, way):
    assert not np.any(way_of(BY_ITSELF[name], way))


def test_of_values_that_a_run_is_given():
    f = tf.function(lambda x: tf.nn.relu(x * 0.5 + x))
    assert not np.any(f(tf.constant(SMALL)))


def test_what_only_moves_numbers_leaves_them():
    x = tf.constant(SMALL)
    for moved in (tf.identity(x), tf.transpose(x), tf.concat([x, x], 0), x[1:]):
        assert np.all(moved.numpy() == np.float32(1e-40))


def test_python_has_its_own_arithmetic():
    def halved(x):
        return np.asarray(x) * np.float32(0.5)

    for call in (tf.py_function, tf.numpy_function):
        f = tf.function(lambda x, call=call: call(halved, [x], tf.float32))
        assert np.all(f(tf.constant(SMALL)).numpy() == np.float32(5e-41))
    assert np.float32(1e-40) * np.float32(0.5) > 0


def test_gradients_that_fade_cost_no_more():
    """A product of fading factors ends at zero and not at the smallest number."""
    x = tf.fill([64], 1e-30)
    faded = tf.while_loop(
        lambda i, _: i < 200, lambda i, x: (i + 1, x * 0.6), [tf.constant(0), x]
    )[1]
    assert not np.any(faded)
