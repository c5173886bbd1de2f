"""Ops on quantized tensors: what TensorFlow gave, shapes of traces, refusals."""

import headrace as tf
import numpy as np
import pytest
import quantized_cases
import recorded
from quantized_cases import levels

R = tf.raw_ops


@pytest.mark.parametrize("name", recorded.names(quantized_cases))
def test_as_recorded(name):
    recorded.check(quantized_cases, name, tf, rtol=2e-7, atol=0)


def q(*shape, dtype="quint8"):
    return levels(tf, 1, shape, dtype)


def ranges(*names, low=-1.0, high=2.0):
    return {f"{b}_{n}": v for n in names for b, v in (("min", low), ("max", high))}


def matmul(a, b, **more):
    return R.QuantizedMatMul(a=a, b=b, **{**ranges("a", "b"), **more})


def conv(x, f, **more):
    attrs = {"strides": [1] * 4, "padding": "VALID", **ranges("input", "filter")}
    return R.QuantizedConv2D(input=x, filter=f, **{**attrs, **more})


def add(x, y, **more):
    return R.QuantizedAdd(x=x, y=y, **{**ranges("x", "y"), **more})


def bias(x, b, **more):
    attrs = {"out_type": tf.qint32, **ranges("input", "bias"), **more}
    return R.QuantizedBiasAdd(input=x, bias=b, **attrs)


def relu_x(x, bound, **more):
    attrs = {**ranges("features"), **more}
    return R.QuantizedReluX(features=x, max_value=bound, **attrs)


def pool(x, **more):
    attrs = {"ksize": [1, 2, 2, 1], "strides": [1] * 4, "padding": "VALID"}
    return R.QuantizedAvgPool(input=x, **{**attrs, **ranges("input"), **more})


def concat(axis, parts, low=-1.0):
    n = len(parts)
    mins, maxes = [low] * n, [2.0] * n
    return R.QuantizedConcat(
        concat_dim=axis, values=parts, input_mins=mins, input_maxes=maxes
    )


def instance_norm(x, low=-1.0, **more):
    return R.QuantizedInstanceNorm(x=x, x_min=low, x_max=2.0, **more)


def resize(x, size, low=-1.0):
    return R.QuantizedResizeBilinear(images=x, size=size, min=low, max=2.0)


def batch_norm(x, n, low=-1.0):
    inputs = {"t": x, **{k: q(n) for k in ("m", "v", "beta", "gamma")}}
    for name in list(inputs):
        inputs[name + "_min"], inputs[name + "_max"] = -1.0, 2.0
    inputs["t_min"] = low
    return R.QuantizedBatchNormWithGlobalNormalization(
        **inputs,
        out_type=tf.qint32,
        variance_epsilon=0.1,
        scale_after_normalization=True,
    )


IMAGES = (1, 4, 4, 2)
REFUSED = {
    "matmul sizes": lambda: matmul(q(2, 3), q(2, 3)),
    "matmul rank": lambda: matmul(q(2, 3, 1), q(3, 2)),
    "matmul range": lambda: matmul(q(2, 3), q(3, 2), min_a=2.0),
    "matmul range not a number": lambda: matmul(q(2, 3), q(3, 2), max_b=np.nan),
    "matmul range of one": lambda: matmul(q(2, 3), q(3, 2), min_a=[-1.0]),
    "conv depth": lambda: conv(q(*IMAGES), q(2, 2, 1, 3)),
    "conv dilated": lambda: conv(q(*IMAGES), q(2, 2, 2, 3), dilations=[1, 2, 2, 1]),
    "conv strides": lambda: conv(q(*IMAGES), q(2, 2, 2, 3), strides=[1, 1, 2, 1]),
    "conv filter": lambda: conv(q(*IMAGES), q(0, 2, 2, 3)),
    "conv too large": lambda: conv(q(*IMAGES), q(9, 2, 2, 3)),
    "add shapes": lambda: add(q(2, 3), q(2)),
    "add range": lambda: add(q(2), q(2), min_x=2.0),
    "add ranges": lambda: add(q(2), q(2), min_x=[-1.0, 0.0]),
    "bias size": lambda: bias(q(2, 3), q(2)),
    "bias rank": lambda: bias(q(2, 3), q(1, 3)),
    "bias of a vector": lambda: bias(q(3), q(3)),
    "relu range": lambda: relu_x(q(3), 1.0, min_features=[-1.0]),
    "pool rank": lambda: pool(q(4, 4, 1)),
    "pool window": lambda: pool(q(*IMAGES), ksize=[1, 0, 1, 1]),
    "pool stride": lambda: pool(q(*IMAGES), strides=[1, 0, 1, 1]),
    "pool three": lambda: pool(q(*IMAGES), ksize=[1, 1, 1]),
    "concat axis": lambda: concat(2, [q(2, 2), q(2, 2)]),
    "concat from the end": lambda: concat(-1, [q(2, 2), q(2, 2)]),
    "concat shapes": lambda: concat(0, [q(2, 2), q(2, 3)]),
    "concat ranges": lambda: concat(0, [q(2), q(2)], low=[1.0, 2.0]),
    "norm range": lambda: instance_norm(q(*IMAGES), low=2.0),
    "norm rank": lambda: instance_norm(q(2, 2, 1)),
    "norm given": lambda: instance_norm(q(*IMAGES), output_range_given=True),
    "resize size": lambda: resize(q(*IMAGES), [0, 2]),
    "resize range": lambda: resize(q(*IMAGES), [2, 2], low=[-1.0]),
    "batch norm depth": lambda: batch_norm(q(*IMAGES), 3),
    "batch norm rank": lambda: batch_norm(q(4, 4, 2), 2),
    "batch norm range": lambda: batch_norm(q(*IMAGES), 2, low=[1.0, 2.0]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    with pytest.raises(tf.errors.InvalidArgumentError):
        REFUSED[name]()


MADE = {
    "matmul": lambda: matmul(q(2, 3), q(3, 4)),
    "conv": lambda: conv(q(*IMAGES), q(2, 3, 2, 3)),
    "add": lambda: add(q(2, 1), q(1, 3)),
    "bias": lambda: bias(q(2, 3), q(3)),
    "pool": lambda: pool(q(*IMAGES)),
    "concat": lambda: concat(1, [q(2, 2), q(2, 3)]),
    "norm": lambda: instance_norm(q(*IMAGES)),
    "resize": lambda: resize(q(*IMAGES), [3, 5]),
    "batch norm": lambda: batch_norm(q(*IMAGES), 2),
    "empty matmul": lambda: matmul(q(2, 0), q(0, 3)),
    "empty images": lambda: pool(q(0, 4, 4, 2)),
    "empty norm": lambda: instance_norm(q(0, 4, 4, 2)),
    "far from zero": lambda: matmul(q(2, 3), q(3, 2), min_a=1e30, max_a=1.1e30),
    "endless range": lambda: add(q(3), q(3), min_x=-np.inf, max_x=np.inf),
}


@pytest.mark.parametrize("name", MADE)
def test_traced_as_eager(name):
    concrete = tf.function(MADE[name]).get_concrete_function()
    for static, got, want in zip(
        concrete.outputs, concrete(), MADE[name](), strict=True
    ):
        assert static.shape == got.shape == want.shape
        assert static.dtype == got.dtype == want.dtype
        for a, b in zip(*(quantized_cases.numbers(tf, [t]) for t in (got, want))):
            np.testing.assert_array_equal(a, b)


def test_relu_x_is_cut_at_its_bound():
    x = tf.bitcast(np.arange(256, dtype=np.uint8), tf.quint8)
    got = relu_x(x, 1.0).activations
    floats = np.arange(256) * (3 / 255) - 1
    want = np.where(floats > 1, 170, np.where(floats < 0, 85, np.arange(256)))
    np.testing.assert_array_equal(tf.bitcast(got, tf.uint8), want)


def test_all_shapes_are_broadcast():
    x, y = q(2, 1, 4), q(3, 1)
    got = add(x, y).z
    want = add(tf.bitcast(np.tile(tf.bitcast(x, tf.uint8), (1, 3, 1)), tf.quint8), y).z
    np.testing.assert_array_equal(tf.bitcast(got, tf.int32), tf.bitcast(want, tf.int32))
