"""Uniformly quantized tensors, as TensorFlow treats them."""

import headrace as tf
import numpy as np
import pytest
import recorded
import uniform_cases
from uniform_cases import BYTES, WORDS, bounds, plain, stored

R = tf.raw_ops


@pytest.mark.parametrize("name", recorded.names(uniform_cases))
def test_as_recorded(name):
    recorded.check(uniform_cases, name, tf, rtol=0, atol=0)


def pair(*shape):
    return np.ones(shape, np.float32), np.zeros(shape, np.int32)


def requantize(from_, to, axis=-1, to_axis=-1):
    return R.UniformRequantize(
        input=stored(tf, np.zeros((2, 3)), "qint8"),
        input_scales=from_[0],
        input_zero_points=from_[1],
        output_scales=to[0],
        output_zero_points=to[1],
        Tout=tf.qint8,
        **bounds("input_", axis, *BYTES),
        **bounds("output_", to_axis, *BYTES),
    )


def both(op, a, b, dtype, axes=(-1, -1, -1), pairs=None, **more):
    pairs = pairs or [pair()] * 3
    inputs, limits = {}, {}
    for name, (scales, zeros), axis in zip(
        ("lhs", "rhs", "output"), pairs, axes, strict=True
    ):
        inputs[name + "_scales"], inputs[name + "_zero_points"] = scales, zeros
        limits |= bounds(name + "_", axis, *WORDS)
    a, b = stored(tf, np.ones(a), dtype), stored(tf, np.ones(b), dtype)
    return op(lhs=a, rhs=b, **inputs, **limits, **more)


def add(a, b, *args):
    return both(R.UniformQuantizedAdd, a, b, "qint32", *args)


def dot(a, b, *args):
    return both(R.UniformQuantizedDot, a, b, "qint8", *args, Tout=tf.qint32)


def clip(low, high, axis=-1):
    scales, zeros = pair(*([] if axis < 0 else [3]))
    return R.UniformQuantizedClipByValue(
        operand=stored(tf, np.zeros((2, 3)), "qint32"),
        min=stored(tf, np.zeros(low), "qint32"),
        max=stored(tf, np.zeros(high), "qint32"),
        scales=scales,
        zero_points=zeros,
        **bounds("", axis, *WORDS),
    )


ZERO = (np.zeros((), np.float32), np.zeros((), np.int32))
REFUSED = {
    "other axes": lambda: requantize(pair(2), pair(3), 0, 1),
    "scale 0": lambda: requantize(pair(), ZERO),
    "shapes": lambda: add((2, 3), (2,)),
    "one by channel": lambda: add(
        (2, 3), (2, 3), (1, -1, -1), [pair(3), pair(), pair()]
    ),
    "channels": lambda: add((2, 3), (2, 1), (1, 1, 1), [pair(3), pair(1), pair(3)]),
    "sizes": lambda: dot((2, 3), (2, 3)),
    "rank": lambda: dot((2, 3, 1), (3, 2)),
    "lhs by channel": lambda: dot(
        (2, 3), (3, 2), (0, -1, -1), [pair(2), pair(), pair()]
    ),
    "rows": lambda: dot((2, 3), (3, 2), (-1, 0, -1), [pair(), pair(3), pair()]),
    "output alone": lambda: dot((2, 3), (3, 2), (-1, -1, 1), [pair(), pair(), pair(2)]),
    "bounds": lambda: clip((3,), ()),
    "bounds by channel": lambda: clip((), (), 1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    with pytest.raises(tf.errors.InvalidArgumentError):
        REFUSED[name]()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_what_is_no_level_is_cut(value):
    made = R.UniformQuantize(
        input=np.float32([value]),
        scales=np.float32(0.5),
        zero_points=np.int32(7),
        Tout=tf.qint8,
        **bounds("", -1, -100, 100),
    )
    assert plain(tf, made).numpy()[0] in (-100, 100)


def test_empty():
    assert dot((2, 0), (0, 3)).shape == [2, 3]
    assert add((0, 3), (3,)).shape == [0, 3]
