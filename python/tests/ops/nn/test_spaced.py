"""with_space_to_batch, and the gradients of depthwise convolutions by name."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1


def wave(*shape, k=1):
    n = int(np.prod(shape))
    return np.sin(np.arange(n) * 0.7 * k + k).reshape(shape).astype("f4")


X, FILTER = wave(1, 5, 6, 2), wave(2, 2, 2, 3)


def _spaced(**changes):
    given = dict(
        input=X,
        dilation_rate=[2, 1],
        padding="SAME",
        op=lambda x, n, padding: tf.nn.conv2d(x, FILTER, 1, padding),
        filter_shape=FILTER.shape,
    )
    return tf.nn.with_space_to_batch(**{**given, **changes})


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("rates", [[2, 1], [2, 2], [1, 1], [3, 1]])
def test_it_is_a_convolution_with_holes(padding, rates):
    plain = tf.nn.conv2d(X, FILTER, 1, padding, dilations=rates)
    found = _spaced(padding=padding, dilation_rate=rates)
    np.testing.assert_allclose(found, plain, atol=1e-5)
    traced = tf.function(
        lambda x, r: _spaced(input=x, dilation_rate=r, padding=padding),
        input_signature=[
            tf.TensorSpec([None, None, None, 2]),
            tf.TensorSpec([2], tf.int32),
        ],
    )
    np.testing.assert_allclose(traced(X, rates), plain, atol=1e-5)


def test_channels_first_and_what_the_function_sees():
    seen = []

    def op(x, n, padding):
        seen.append((x.shape, n, padding))
        return x + 1.0

    x = tf.constant(wave(1, 2, 5, 6))
    out = tf.nn.with_space_to_batch(x, [2, 1], "VALID", op, data_format="NCHW")
    np.testing.assert_allclose(out, x + 1.0)
    assert seen == [((2, 2, 3, 6), 2, "VALID")]
    _spaced(dilation_rate=[1, 1], op=op)
    assert seen[1] == ((1, 5, 6, 2), 2, "SAME")


@pytest.mark.parametrize(
    "changes, text",
    [
        (
            {"filter_shape": None},
            "`filter_shape` must be specified for `padding='SAME'`",
        ),
        ({"padding": "FOO"}, "`padding` must be one of 'SAME' or 'VALID'."),
        ({"dilation_rate": [0, 1]}, "`dilation_rate` must be positive."),
        ({"dilation_rate": [[2]]}, "`dilation_rate.shape.rank` must be 1."),
        ({"spatial_dims": [2, 1]}, "must be a monotonically increasing sequence"),
        ({"spatial_dims": [0, 1]}, "must be a monotonically increasing sequence"),
        ({"spatial_dims": [1, 2, 3]}, "incompatible"),
        ({"input": wave(2, 3)}, "`input.shape.rank` must be at least 3."),
    ],
)
def test_what_it_refuses(changes, text):
    with pytest.raises(ValueError, match=text):
        _spaced(**changes)


@pytest.mark.parametrize("space", [tf.nn, v1.nn])
def test_gradients_of_depthwise_convolutions(space):
    # Values of TensorFlow 2.21.
    found = space.depthwise_conv2d_backprop_filter(
        wave(1, 4, 4, 2), [2, 2, 2, 1], wave(1, 4, 4, 2), [1, 1, 1, 1], "SAME"
    )
    expected = [7.892521, 8.149941, 0.8714087, 1.2268243]
    expected += [4.4134417, 4.9881496, 3.0612614, 3.854748]
    np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-4)
    padded = space.depthwise_conv2d_backprop_filter(
        wave(1, 4, 4, 2),
        [2, 2, 2, 1],
        wave(1, 5, 4, 2),
        [1, 1, 1, 1],
        [[0, 0], [1, 1], [0, 1], [0, 0]],
    )
    np.testing.assert_allclose(np.ravel(padded)[:2], [6.0134172, 6.2356415], rtol=1e-4)
    back = space.depthwise_conv2d_backprop_input(
        [1, 4, 4, 2], wave(2, 2, 2, 1), wave(1, 3, 3, 2), [1, 1, 1, 1], "VALID"
    )
    np.testing.assert_allclose(
        back[0, 0, :, 0], [0.7080734, 1.1367654, -0.0586101, -0.4132875], atol=1e-4
    )
    with pytest.raises(ValueError, match="Explicit padding must be a list of 4 pairs"):
        space.depthwise_conv2d_backprop_input(
            [1, 4, 4, 2], wave(2, 2, 2, 1), wave(1, 3, 3, 2), [1, 1, 1, 1], [[0, 0]]
        )


def test_fractional_pools_of_tensorflow_1():
    for pool in (v1.nn.fractional_avg_pool, v1.nn.fractional_max_pool):
        x = wave(1, 6, 6, 2)
        ratio = [1.0, 1.5, 1.5, 1.0]
        one = pool(x, ratio, deterministic=True, seed=3, seed2=2)
        two = pool(x, ratio, deterministic=True, seed=3, seed2=2)
        assert [t.shape for t in one] == [(1, 4, 4, 2), (5,), (5,)]
        np.testing.assert_array_equal(one[0], two[0])
