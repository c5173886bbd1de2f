"""Functions of tf that are an op by its name, and those like them; expected values are
those of TensorFlow 2.21 (of NumPy where TensorFlow has kernels for accelerators only)."""

import numpy as np
import pytest

import headrace as tf

X = np.arange(8, dtype=np.float32).reshape(2, 4)


def _lists(values):
    return [v.numpy().tolist() for v in values]


def test_transforms_over_axes():
    c = tf.constant(X, tf.complex64)
    whole = np.fft.fft2(X)
    np.testing.assert_allclose(tf.fftnd(c, [2, 4], [0, 1]), whole, atol=1e-5)
    np.testing.assert_allclose(tf.ifftnd(c, [2, 4], [0, 1]), np.fft.ifft2(X), atol=1e-5)
    half = tf.rfftnd(X, [2, 4], [0, 1])
    np.testing.assert_allclose(half, whole[:, :3], atol=1e-5)
    np.testing.assert_allclose(tf.irfftnd(half, [2, 4], [0, 1]), X, atol=1e-5)


def test_approx_top_k():
    values, indices = tf.approx_top_k(X, 2)
    assert values.numpy().tolist() == [[3, 2], [7, 6]]
    assert indices.numpy().tolist() == [[3, 2], [3, 2]]
    least = tf.function(lambda x: tf.approx_top_k(x, 1, is_max_k=False))(X)
    assert _lists(least) == [[[0], [4]], [[0], [0]]]


def test_convolutions():
    image = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
    kernel, out = tf.ones([2, 2, 1, 1]), tf.ones([1, 2, 2, 1])
    made = tf.conv(image, kernel, [1, 1, 1, 1], "VALID")
    assert made[0, ..., 0].numpy().tolist() == [[8, 12], [20, 24]]
    back = tf.conv2d_backprop_input_v2(image, kernel, out, [1, 1, 1, 1], "VALID")
    assert back[0, ..., 0].numpy().tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    back = tf.conv2d_backprop_filter_v2(image, kernel, out, [1, 1, 1, 1], "VALID")
    assert back[..., 0, 0].numpy().tolist() == [[8, 12], [20, 24]]


def test_ragged_rows_are_filled():
    ids, nrows = tf.constant([0, 0, 2], tf.int64), tf.constant(4, tf.int64)
    assert _lists(tf.ragged_fill_empty_rows(ids, [1, 2, 3], nrows, -1)) == [
        [0, 0, 1, 2, 3],
        [1, 2, -1, 3, -1],
        [False, True, False, True],
        [0, 1, 3],
    ]
    places = tf.constant([0, 1, 3], tf.int64)
    made = tf.ragged_fill_empty_rows_grad(places, [1.0, 2.0, 3.0, 4.0, 5.0])
    assert _lists(made) == [[1, 2, 4], 8]


def test_shuffled_places():
    assert tf.random_index_shuffle(2, [1, 2, 3], 10) == 6
    assert tf.random_index_shuffle(2, [1, 2, 3], 10, rounds=6) == 3
    made = tf.random_index_shuffle(tf.range(5), [1, 2, 3], 4)
    assert made.numpy().tolist() == [2, 0, 3, 4, 1]


def test_quantized_there_and_back():
    q = tf.constant([0.1, 0.7, 3.0])
    grads = []
    for name in ("quantize_and_dequantize", "quantize_and_dequantize_v2"):
        with tf.GradientTape() as tape:
            tape.watch(q)
            y = getattr(tf.quantization, name)(q, -1.0, 1.0, range_given=True)
        np.testing.assert_allclose(y, [0.1023622, 0.7007874, 1.0], rtol=1e-6)
        grads.append(tape.gradient(y, q).numpy().tolist())
    assert grads == [[1, 1, 1], [1, 1, 0]]
    rows = [[0.1, 0.7], [-0.3, 2]]
    made = tf.quantization.quantize_and_dequantize(rows, [-1.0, -1], [1.0, 1], axis=0)
    wanted = [[0.0992126, 0.7], [-0.2992126, 2.0]]
    np.testing.assert_allclose(made, wanted, rtol=1e-5)


def test_quantized_concat():
    parts = [
        tf.bitcast(tf.constant(x, tf.uint8), tf.quint8) for x in ([1, 2], [3, 200])
    ]
    out, low, high = tf.quantization.quantized_concat(0, parts, [0.0, 0.0], [1.0, 2.0])
    assert tf.bitcast(out, tf.uint8).numpy().tolist() == [1, 1, 3, 200]
    assert (low.numpy(), high.numpy()) == (0, 2)


def test_products_at_places():
    m = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    v = tf.constant([1.0, 2.0])

    def made(v, m):
        with tf.GradientTape() as tape:
            tape.watch([v, m])
            places, values, shape = tf.sparse.sampled_addmm(
                [[0, 1], [1, 0]], v, [2, 2], m, m, beta=3.0
            )
            total = tf.reduce_sum(values * [1.0, 10.0])
        return values, *tape.gradient(total, [v, m])

    for run in (made, tf.function(made)):
        assert _lists(run(v, m)) == [[13, 21], [3, 30], [[32, 5], [50, 32]]]
    places, values, shape = tf.sparse.sampled_addmm(
        [[0, 0], [1, 1]],
        [1, 2],
        [2, 2],
        m,
        [[5.0, 6.0], [7.0, 8.0]],
        output_type=tf.float64,
    )
    assert values.dtype == tf.float64 and values.numpy().tolist() == [20, 52]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
        tf.sparse.sampled_addmm([[0, 0]], [1.0], [2, 2], [[1.0, 2.0, 3.0]] * 2, m)
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not index into"):
        tf.sparse.sampled_addmm([[0, 5]], [1.0], [2, 2], m, m)


def test_parameters_as_upstream():
    tf.debugging.assert_none_equal([1, 2], [3, 4], 3, "m")
    with pytest.raises(tf.errors.InvalidArgumentError, match="^m\nCondition x != y"):
        tf.debugging.assert_none_equal([1, 2], [3, 2], message="m")
    with pytest.raises(TypeError):
        tf.debugging.assert_rank([1], 1, None, None, None)
    with pytest.raises(TypeError):
        tf.debugging.assert_near(1.0, 1.0, data=[1])
    tf.compat.v1.assert_rank([1], 1, data=[1], summarize=2)
    assert tf.nest.is_nested(seq=[1])
    with pytest.raises(ValueError, match="Only valid keyword arguments are"):
        tf.nest.map_structure(lambda x: x, [1], foo=1)
    assert tf.NoneTensorSpec().is_compatible_with(None)
    assert not tf.NoneTensorSpec().is_compatible_with(1)
    window = tf.signal.hann_window(3, name=None)
    np.testing.assert_allclose(window, [0, 1, 0], atol=1e-6)
