"""Softmax, convolutions, pools, normalisations: values and gradients."""

import headrace as tf
import numpy as np
import pytest
from driver import RECORDED, Row, cases, check

BOTH = ("float32", "float64")
_random = np.random.RandomState(11)


def some(*shape):
    return _random.randn(*shape).round(3)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def conv(x, f, stride=1):
    """VALID, NHWC."""
    kh, kw = f.shape[:2]
    h = (x.shape[1] - kh) // stride + 1
    w = (x.shape[2] - kw) // stride + 1
    out = np.zeros((x.shape[0], h, w, f.shape[3]))
    for i in range(h):
        for j in range(w):
            part = x[:, i * stride : i * stride + kh, j * stride : j * stride + kw]
            out[:, i, j] = np.tensordot(part, f, 3)
    return out


def channels_first_conv(x, f):
    """NCHW, a row of zeros above and two columns at the right."""
    x = np.pad(x.transpose(0, 2, 3, 1), ((0, 0), (1, 0), (0, 2), (0, 0)))
    return conv(x, f).transpose(0, 3, 1, 2)


def means_of_volumes(x):
    """Windows of 2 x 2 x 2 of [1, 2, 4, 3, 1], every second in height; what lies
    outside does not count."""
    x = np.pad(x[0, ..., 0], ((0, 1), (0, 0), (0, 1)), constant_values=np.nan)
    out = [
        np.nanmean(x[d : d + 2, h : h + 2, w : w + 2])
        for d in range(2)
        for h in (0, 2)
        for w in range(3)
    ]
    return np.reshape(out, [1, 2, 2, 3, 1])


def pool(how, x):
    """2 x 2, stride 2."""
    n, h, w, c = x.shape
    return how(x.reshape(n, h // 2, 2, w // 2, 2, c), axis=(2, 4))


ONE = [1, 1, 1, 1]
POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
SAME_POOL = {"ksize": [1, 2, 3, 1], "strides": [1, 1, 2, 1], "padding": "SAME"}
PROBABILITIES = softmax(some(3, 4))

ROWS = [
    Row("Softmax", {"logits": some(3, 4)}, softmax),
    Row("LogSoftmax", {"logits": some(3, 4)}, lambda x: np.log(softmax(x))),
    Row(
        "SoftmaxCrossEntropyWithLogits",
        {"features": some(3, 4), "labels": PROBABILITIES},
        lambda x, p: (-(p * np.log(softmax(x))).sum(-1), softmax(x) - p),
        dtypes=BOTH,
        gradient=("features",),
    ),
    Row(
        "SparseSoftmaxCrossEntropyWithLogits",
        {"features": some(2, 4), "labels": np.array([1, 3], np.int32)},
        lambda x, _: (
            -np.log(softmax(x))[[0, 1], [1, 3]],
            softmax(x) - np.eye(4)[[1, 3]],
        ),
        dtypes=BOTH,
        fixed=("labels",),
        gradient=("features",),
    ),
    Row("BiasAdd", {"value": some(2, 3, 4), "bias": some(4)}, np.add),
    Row(
        "BiasAdd",
        {"value": some(2, 3, 2, 2), "bias": some(3)},
        lambda x, b: x + b[:, None, None],
        {"data_format": "NCHW"},
    ),
    Row(
        "Conv2D",
        {"input": some(2, 5, 5, 2), "filter": some(3, 2, 2, 3)},
        lambda x, f: conv(x, f, 2),
        {"strides": [1, 2, 2, 1], "padding": "VALID"},
        dtypes=("float64",),
    ),
    Row(
        "Conv2D",
        {"input": some(1, 4, 5, 4), "filter": some(2, 3, 2, 2)},
        RECORDED,
        {"strides": ONE, "padding": "SAME", "dilations": [1, 2, 1, 1]},
        dtypes=BOTH,
    ),
    Row(
        "Conv2D",
        {"input": some(1, 2, 4, 3), "filter": some(2, 2, 2, 2)},
        channels_first_conv,
        {
            "strides": ONE,
            "padding": "EXPLICIT",
            "explicit_paddings": [0, 0, 0, 0, 1, 0, 0, 2],
            "data_format": "NCHW",
        },
        dtypes=BOTH,
    ),
    Row(
        "Conv2D",
        {"input": some(1, 4, 4, 3), "filter": some(2, 2, 2, 4)},
        error="input depth must be evenly divisible by filter depth: 3 vs 2",
        attrs={"strides": ONE, "padding": "SAME"},
        dtypes=("float32",),
    ),
    Row(
        "Conv3D",
        {"input": some(1, 3, 2, 3, 2), "filter": some(2, 2, 2, 2, 1)},
        RECORDED,
        {"strides": [1, 1, 1, 1, 1], "padding": "SAME"},
        dtypes=BOTH,
    ),
    Row(
        "DepthwiseConv2dNative",
        {"input": some(1, 4, 4, 2), "filter": some(3, 3, 2, 2)},
        RECORDED,
        {"strides": ONE, "padding": "SAME"},
        dtypes=BOTH,
    ),
    Row("MaxPool", {"input": some(2, 4, 4, 2)}, lambda x: pool(np.max, x), POOL),
    Row("MaxPool", {"input": some(1, 4, 5, 2)}, RECORDED, SAME_POOL, dtypes=BOTH),
    Row(
        "AvgPool",
        {"value": some(2, 4, 4, 2)},
        lambda x: pool(np.mean, x),
        POOL,
        dtypes=BOTH,
    ),
    Row("AvgPool", {"value": some(1, 4, 5, 2)}, RECORDED, SAME_POOL, dtypes=BOTH),
    Row(
        "AvgPool3D",
        {"input": some(1, 2, 4, 3, 1)},
        means_of_volumes,
        {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 2, 1, 1], "padding": "SAME"},
        dtypes=BOTH,
    ),
    Row(
        "FusedBatchNormV3",
        {
            "x": some(2, 3, 3, 2),
            "scale": some(2),
            "offset": some(2),
            "mean": np.zeros(0, np.float32),
            "variance": np.zeros(0, np.float32),
        },
        RECORDED,
        dtypes=("float32",),
    ),
    Row("LRN", {"input": some(1, 1, 2, 5)}, RECORDED, dtypes=("float32",)),
]


@pytest.mark.parametrize("row, dtype", cases(ROWS))
def test_row(row, dtype):
    check(row, dtype)


@pytest.mark.parametrize("size", [7, 13])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("traced", [False, True])
def test_large_filters_are_cut_by_channels(size, stride, traced):
    x = tf.constant(some(2, size, size, 200).astype("f4"))
    f = tf.constant(some(3, 3, 200, 330).astype("f4"))

    def step(x, f):
        return tf.nn.relu(tf.nn.conv2d(x, f, stride, "SAME") + 0.5)

    made = (tf.function(step) if traced else step)(x, f)
    exact = step(tf.cast(x, tf.float64), tf.cast(f, tf.float64))
    np.testing.assert_allclose(made, exact, rtol=1e-4, atol=2e-3)


def test_dropout_scales_by_the_rate_in_double():
    kept = tf.nn.dropout(tf.ones([100]), 0.8, seed=1).numpy()
    assert set(kept.tolist()) == {0.0, 5.0}


def test_dropout_keeps_the_shape_for_noise_of_any_shape():
    @tf.function(
        input_signature=[tf.TensorSpec([4, None]), tf.TensorSpec(None, tf.int32)]
    )
    def drop(x, noise_shape):
        made = tf.nn.dropout(x, 0.5, noise_shape=noise_shape)
        assert made.shape.as_list() == [4, None]
        return made

    rows = drop(tf.ones([4, 50]), [4, 1]).numpy()
    assert (rows == rows[:, :1]).all()
    with tf.Graph().as_default(), pytest.raises(ValueError, match="are 3 and 2"):
        tf.nn.dropout(tf.ones([4, 3]), 0.5, noise_shape=[5, 4, 3])


@pytest.mark.parametrize(
    "n", [1, 2, 15, 16, 17, 31, 33, 63, 65, 1000, 1023, 1025, 5000]
)
def test_softmax_of_every_length(n):
    x = (some(7, n) * 4).astype("float32")
    found = tf.nn.softmax(tf.constant(x)).numpy().astype("float64")
    np.testing.assert_allclose(found, softmax(x.astype("float64")), rtol=3e-6)
    for bad in (np.nan, np.inf):
        x[3, n - 1] = bad
        found = tf.nn.softmax(tf.constant(x)).numpy()
        assert np.isnan(found[3]).all() and not np.isnan(found[2]).any()
    x[3] = -np.inf
    assert np.isnan(tf.nn.softmax(tf.constant(x)).numpy()[3]).all()
