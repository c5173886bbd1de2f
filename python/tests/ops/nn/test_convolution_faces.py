"""tf.nn's convolutions: ranks, batch dimensions, transposes, erosion."""

import headrace as tf
import numpy as np
import pytest


def numbers(*shape):
    return tf.constant(np.random.RandomState(sum(shape)).rand(*shape), tf.float32)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("traced", [False, True])
def test_dimensions_before_the_batch(n, traced):
    x, w = numbers(2, 3, *[6, 5, 4][:n], 2), numbers(*[3] * n, 2, 4)

    def f(x):
        return tf.nn.convolution(x, w, padding="SAME")

    run = tf.function(f) if traced else f
    out = run(x)
    one = f(tf.reshape(x, [6, *x.shape[2:]]))
    assert out.shape == [2, 3, *[6, 5, 4][:n], 4]
    assert np.array_equal(np.reshape(out, one.shape), one)


def test_convolution_chooses_by_rank():
    x, w = numbers(2, 7, 3), numbers(3, 3, 4)
    got = tf.nn.convolution(x, w, strides=2, padding="SAME")
    assert np.array_equal(got, tf.nn.conv1d(x, w, 2, "SAME"))
    first = tf.nn.convolution(
        tf.transpose(x, [0, 2, 1]), w, strides=2, padding="SAME", data_format="NCW"
    )
    np.testing.assert_allclose(tf.transpose(first, [0, 2, 1]), got, rtol=1e-5)
    with pytest.raises(ValueError, match="not supported in conjunction"):
        tf.nn.convolution(x, w, strides=2, dilations=2)
    with pytest.raises(ValueError, match="1, 2 or 3 spatial"):
        tf.nn.convolution(x, tf.zeros([2, 2]))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_transpose_is_the_gradient(n):
    x, w = numbers(2, *[6] * n, 2), numbers(*[3] * n, 2, 4)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.convolution(x, w, strides=2, padding="SAME")
    dy = tf.ones_like(y)
    dx = tape.gradient(y, x, dy)
    got = tf.nn.conv_transpose(dy, w, x.shape, 2)
    np.testing.assert_allclose(got, dx, rtol=1e-5)


def test_atrous_and_erosion():
    x, w = numbers(1, 8, 8, 2), numbers(3, 3, 2)
    wide = tf.nn.atrous_conv2d(x, w[..., tf.newaxis], 2, "VALID")
    assert wide.shape == [1, 4, 4, 1]
    flat = [1, 1, 1, 1]
    eroded = tf.nn.erosion2d(x, w, flat, "VALID", "NHWC", flat)
    window = x[0, :3, :3] - w[::-1, ::-1]  # as upstream: the filter is reflected
    np.testing.assert_allclose(
        eroded[0, 0, 0], tf.reduce_min(window, [0, 1]), rtol=1e-6
    )


def test_pool():
    x = numbers(1, 6, 6, 2)
    got = tf.nn.pool(x, [2, 2], "AVG", strides=[2, 2])
    assert np.array_equal(got, tf.nn.avg_pool2d(x, 2, 2, "VALID"))
    assert tf.nn.pool(x, [2, 2], "MAX").shape == [1, 5, 5, 2]
    with pytest.raises(ValueError, match="pooling_type"):
        tf.nn.pool(x, [2, 2], "MIN")


@pytest.mark.parametrize("kind", ["Conv1D", "Conv2D", "Conv3D"])
@pytest.mark.parametrize("padding", ["valid", "same"])
def test_layers_over_batches(kind, padding):
    n = int(kind[4])
    layer = getattr(tf.keras.layers, kind)(4, 3, padding=padding)
    x = numbers(2, 3, *[5] * n, 2)
    out = layer(x)
    assert out.shape == layer.compute_output_shape(x.shape)
    np.testing.assert_allclose(out[1], layer(x[1]), rtol=1e-5)


def test_causal_over_batches():
    layer = tf.keras.layers.Conv1D(4, 3, padding="causal")
    x = numbers(2, 3, 5, 2)
    np.testing.assert_allclose(layer(x)[1], layer(x[1]), rtol=1e-5)


def test_a_bias_behind_a_convolution_whose_filter_has_a_gradient():
    # Both passes of one geometry, each of one task: their primitives are two. The first
    # run, without plans for the shape, makes the gradient's.
    images, targets = np.random.RandomState(0).rand(2, 8, 2, 2, 3).astype("f4")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None, 2, 2, 3])
        w = tf.compat.v1.get_variable(
            "w", [1, 1, 3, 3], initializer=tf.ones_initializer
        )
        b = tf.compat.v1.get_variable("b", [3], initializer=tf.zeros_initializer)
        y = tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b)
        off = tf.reduce_mean(y, [1, 2]) - targets.mean((1, 2))
        loss = tf.reduce_mean(off * off)
        slope = tf.compat.v1.gradients(loss, w)[0]
        change = tf.compat.v1.assign_sub(w, 0.5 * slope)
        session.run(tf.compat.v1.global_variables_initializer())
        kernel, rows = np.ones([3, 3]), images.mean((1, 2))
        for _ in range(3):
            found = session.run([loss, change], {x: images})[0]
            off = rows @ kernel - targets.mean((1, 2))
            np.testing.assert_allclose(found, np.mean(off**2), rtol=1e-4)
            kernel -= 0.5 * 2 * rows.T @ off / off.size
