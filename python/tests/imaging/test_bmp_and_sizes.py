"""Channels of BMP files, and sizes and offsets of all the types that they come in."""

import struct

import headrace as tf
import numpy as np
import pytest


def _bmp(depth):
    """A file of 3 by 2 pixels; those of three channels or more are stored as BGR."""
    row = (3 * depth + 3) // 4 * 4
    values = np.arange(2 * 3 * depth, dtype=np.uint8).reshape(2, 3 * depth)
    pixels = b"".join(line.tobytes().ljust(row, b"\0") for line in values[::-1])
    head = struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54)
    info = struct.pack("<IiiHHIIiiII", 40, 3, 2, 1, 8 * depth, 0, 0, 0, 0, 0, 0)
    stored = values.reshape(2, 3, depth)
    if depth >= 3:
        stored = stored[..., [2, 1, 0, 3][:depth]]
    return b"BM" + head + info + pixels, stored


@pytest.mark.parametrize("decode", [tf.io.decode_bmp, tf.io.decode_image])
@pytest.mark.parametrize("depth", [1, 3, 4])
@pytest.mark.parametrize("channels", [0, 3, 4])
def test_channels_of_bmp(decode, depth, channels):
    """Grey is repeated, alpha dropped, and full where the file has none."""
    data, stored = _bmp(depth)
    expected = np.repeat(stored, 3, -1) if depth == 1 and channels else stored
    if channels == 3:
        expected = expected[..., :3]
    elif channels == 4 and depth < 4:
        alpha = np.full([2, 3, 1], 255)
        expected = np.concatenate([expected, alpha], -1)
    np.testing.assert_array_equal(decode(data, channels=channels), expected)


def test_bmp_of_one_channel_is_not_made():
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be 0, 3 or 4"):
        tf.io.decode_bmp(_bmp(3)[0], channels=1)


def test_offsets_of_int64():
    offsets = [tf.constant(n, tf.int64) for n in (1, 0, 4, 3)]
    padded = tf.image.pad_to_bounding_box(np.ones([3, 2, 1], np.float32), *offsets)
    assert padded[..., 0].numpy().tolist() == [[0, 0, 0]] + [[1, 1, 0]] * 3


@pytest.mark.parametrize("resize", [tf.image.resize, tf.compat.v1.image.resize_images])
@pytest.mark.parametrize("size", [[6, 4.0], "a", tf.constant([6, 4], tf.int64)])
def test_sizes_are_int32(resize, size):
    with pytest.raises(ValueError, match="must be a 1-D int32 Tensor"):
        resize(np.ones([3, 2, 1], np.float32), size)
