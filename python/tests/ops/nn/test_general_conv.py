"""Conv, and convolutions of images that are resized and padded before."""

import general_conv_cases
import headrace as tf
import numpy as np
import pytest
import recorded
from driver import Row, cases, check
from general_conv_cases import PADS, some

R = tf.raw_ops


@pytest.mark.parametrize("name", recorded.names(general_conv_cases))
def test_as_recorded(name):
    recorded.check(general_conv_cases, name, tf)


def conv(x, f, **more):
    attrs = {"strides": [1] * f.shape.rank, "padding": "SAME", **more}
    return R.Conv(input=x, filter=f, **attrs)


@pytest.mark.parametrize("batch", [(), (2,), (2, 1, 2)])
@pytest.mark.parametrize("sizes", [(4, 5), (3, 4, 3)])
def test_channels_first(batch, sizes):
    x = some(tf, 1, (*batch, *sizes, 4))
    f = some(tf, 2, (2,) * len(sizes) + (4, 6))
    n = len(batch)
    first = [*range(n), n + len(sizes), *range(n, n + len(sizes))]
    last = [*range(n), *range(n + 1, n + 1 + len(sizes)), n]
    got = conv(tf.transpose(x, first), f, data_format="CHANNELS_FIRST", batch_dims=n)
    want = conv(x, f, batch_dims=n)
    np.testing.assert_allclose(tf.transpose(got, last), want, rtol=1e-5, atol=1e-5)


def test_groups():
    x, f = some(tf, 3, (2, 5, 4, 4)), some(tf, 4, (3, 2, 2, 6))
    parts = [
        conv(x[..., :2], f[..., :3]),
        conv(x[..., 2:], f[..., 3:]),
    ]
    got = conv(x, f, groups=2)
    np.testing.assert_allclose(got, tf.concat(parts, -1), rtol=1e-5, atol=1e-5)


def test_every_image_is_padded_itself():
    x, f = some(tf, 5, (3, 4, 5, 2)), some(tf, 6, (2, 2, 2, 3))
    attrs = {"paddings": PADS, "filter": f, "mode": "REFLECT", "padding": "VALID"}
    got = R.FusedPadConv2D(input=x, strides=[1] * 4, **attrs)
    want = tf.nn.conv2d(tf.pad(x, PADS, "REFLECT"), f, 1, "VALID")
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


X, F = np.ones((2, 4, 5, 3)), np.ones((2, 2, 3, 2))
ONES, SAME = [1, 1, 1, 1], {"strides": [1, 1, 1, 1], "padding": "SAME"}
PADDED = {"strides": ONES, "padding": "VALID", "mode": "REFLECT"}


def refused(error, x=X, f=F, **more):
    attrs = {**SAME, **more}
    inputs = {"input": x, "filter": f}
    return Row("Conv", inputs, None, attrs, ("float32",), error=error)


def pad_refused(error, pads, size=None):
    inputs = {"input": X, "paddings": np.array(pads, np.int32), "filter": F}
    op = "FusedPadConv2D"
    if size is not None:
        op = "FusedResizeAndPadConv2D"
        inputs["size"] = np.array(size, np.int32)
    fixed = ("paddings", "size")
    return Row(op, inputs, None, PADDED, ("float32",), error=error, fixed=fixed)


ROWS = [
    refused("2 or 3 spatial dimensions but got 1", np.ones((2, 4, 3))),
    refused("2 or 3 spatial dimensions but got 4", np.ones((2, 4, 3, 4, 5, 6))),
    refused("must specify 5 dimensions", np.ones((2, 4, 3, 4, 5))),
    refused("filter depth: 3 vs 2", f=np.ones((2, 2, 2, 2))),
    refused("zero elements", f=np.ones((2, 0, 3, 2))),
    refused("groups must be positive", groups=0),
    refused("3 vs 3 times 2", groups=2),
    refused("3 vs 3 times 4611686018427387904", groups=2**62),
    refused("batch_dims must be non-negative", batch_dims=-1),
    refused("batch_dims is above all ranks", batch_dims=2**62 + 1),
    refused("in the batch and depth dimensions", strides=[2, 1, 1, 1]),
    refused("larger than 0", strides=[1, 0, 1, 1]),
    refused("larger than 0", dilations=[1, 0, 1, 1]),
    refused("must specify 4 dimensions", dilations=[1, 1]),
    refused("must contain 8 values", padding="EXPLICIT", explicit_paddings=[1]),
    pad_refused("not batches", [[1, 0], [0, 0], [0, 0], [0, 0]]),
    pad_refused("not channels", [[0, 0], [0, 0], [0, 0], [0, 1]]),
    pad_refused("non-negative", [[0, 0], [-1, 0], [0, 0], [0, 0]]),
    pad_refused("less than the dimension size", [[0, 0], [4, 0], [0, 0], [0, 0]]),
    pad_refused("must be a matrix with 2 columns", [[0, 0, 0]] * 4),
    pad_refused("must be positive", PADS, [0, 3]),
    pad_refused("less than the dimension size", PADS, [2, 9]),
]


@pytest.mark.parametrize("row,dtype", cases(ROWS))
def test_refused(row, dtype):
    check(row, dtype)
