"""tf.sparse.sampled_addmm."""

import headrace as tf
import numpy as np
import pytest

PLACES = [[0, 1], [2, 0]]


def wave(*shape):
    n = int(np.prod(shape))
    return np.sin(np.arange(n) * 0.7 + 1).reshape(shape).astype("f4")


def _add(values=(1.0, 2.0), shape=(3, 2), left=None, places=PLACES, **more):
    left = wave(3, 4) if left is None else left
    return tf.sparse.sampled_addmm(
        places, list(values), list(shape), left, wave(4, 2), **more
    )


def test_values():
    # Values of TensorFlow 2.21.
    places, values, shape = _add()
    assert places.dtype == tf.int32 and shape.numpy().tolist() == [3, 2]
    np.testing.assert_allclose(values, [1.1998595, 1.6455417], rtol=1e-5)
    np.testing.assert_allclose(
        _add(beta=0.5, alpha=2.0)[1], [0.8997191, 0.29108334], rtol=1e-5
    )
    assert _add(values=[1, 2], output_type=tf.float64)[1].dtype == tf.float64
    batch = tf.sparse.sampled_addmm(
        [[[0, 1], [2, 0]], [[1, 1], [0, 0]]],
        [[1.0, 2.0], [3.0, 4.0]],
        [3, 2],
        wave(2, 3, 4),
        wave(2, 4, 2),
    )[1]
    np.testing.assert_allclose(
        batch, [[1.1998595, 1.6455417], [1.5115458, 4.223759]], rtol=1e-5
    )


def test_gradients_and_traced_calls():
    left, right = tf.constant(wave(3, 4)), tf.constant(wave(4, 2))
    call = tf.function(
        lambda a, b: tf.sparse.sampled_addmm(PLACES, [1.0, 2.0], [3, 2], a, b)[1]
    )
    with tf.GradientTape() as tape:
        tape.watch([left, right])
        values = call(left, right)
    slopes = tape.gradient(values, [left, right])
    by_left, by_right = map(tf.convert_to_tensor, slopes)
    expected = np.zeros([3, 4], "f4")
    expected[0], expected[2] = right[:, 1], right[:, 0]
    np.testing.assert_allclose(by_left, expected, rtol=1e-6)
    np.testing.assert_allclose(by_right[:, 0], left[2], rtol=1e-6)


def test_what_it_refuses():
    with pytest.raises(ValueError, match=r"Dense shape: \[3 3\] does not match output"):
        _add(shape=(3, 3))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
        _add(left=wave(3, 5))
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not index into"):
        _add(places=[[5, 0], [0, 0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
        _add(values=[1.0, 2.0, 3.0])
