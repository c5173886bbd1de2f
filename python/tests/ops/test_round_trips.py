"""tf.quantization's older round trip and the joining of quantized tensors."""

import headrace as tf
import numpy as np

X = np.sin(np.arange(6) * 0.7 + 1).astype("f4")


def _slope(function):
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x, -0.5, 0.5, range_given=True)
    return y, tape.gradient(y, x)


def test_the_older_round_trip_passes_gradients_through():
    # Values of TensorFlow 2.21.
    older, slopes = _slope(tf.quantization.quantize_and_dequantize)
    expected = [0.5, 0.5, 0.5, 0.04330709, -0.503937, -0.503937]
    np.testing.assert_allclose(older, expected, rtol=1e-5)
    np.testing.assert_array_equal(slopes, np.ones(6))
    newer, slopes = _slope(tf.quantization.quantize_and_dequantize_v2)
    np.testing.assert_allclose(newer, expected, rtol=1e-5)
    np.testing.assert_array_equal(slopes, [0, 0, 0, 1, 0, 0])


def test_quantized_tensors_are_joined_over_one_range():
    parts = [tf.cast([1, 2], tf.quint8), tf.cast([3], tf.quint8)]
    for concat in (
        tf.quantization.quantized_concat,
        tf.compat.v1.quantization.quantized_concat,
    ):
        found = concat(0, parts, [0.0, 0.0], [1.0, 2.0])
        assert tf.cast(found.output, tf.int32).numpy().tolist() == [1, 1, 3]
        assert [float(found[1]), float(found[2])] == [0.0, 2.0]
