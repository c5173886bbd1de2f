"""PNG, JPEG and BMP files (GIF: test_gif.py)."""

import struct
import zlib

import headrace as tf
import numpy as np
import pytest

_random = np.random.RandomState(5)


def _chunk(name, data):
    check = struct.pack(">I", zlib.crc32(name + data))
    return struct.pack(">I", len(data)) + name + data + check


def png(width, height, depth, color, rows, *more):
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(r) for r in rows))
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", head)
        + b"".join(more)
        + _chunk(b"IDAT", pixels)
        + _chunk(b"IEND", b"")
    )


PALETTE = _chunk(b"PLTE", bytes(range(12)))
COLOR = png(2, 1, 8, 2, [[10, 100, 200, 250, 3, 7]])
BITS = png(9, 1, 1, 0, [[0b10101010, 128]])
INDEXED = png(3, 1, 2, 3, [[0b00011011]], PALETTE)
SEE_THROUGH = png(3, 1, 2, 3, [[0b00011011]], PALETTE, _chunk(b"tRNS", b"\5\6"))


@pytest.mark.parametrize("kind", ["uint8", "uint16"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_gives_back_what_was_written(kind, channels):
    image = _random.randint(0, np.iinfo(kind).max + 1, (2, 5, 7, channels)).astype(kind)
    files = tf.image.encode_png(image)
    assert files.shape == [2]
    for file, pixels in zip(files, image):
        np.testing.assert_array_equal(tf.image.decode_png(file, dtype=kind), pixels)
        np.testing.assert_array_equal(tf.image.decode_image(file, dtype=kind), pixels)


@pytest.mark.parametrize(
    "file, channels, want",
    [
        (COLOR, 1, [84, 77]),
        (COLOR, 4, [10, 100, 200, 255, 250, 3, 7, 255]),
        (BITS, 0, [255, 0] * 4 + [255]),
        (INDEXED, 0, list(range(9))),
        (INDEXED, 1, [0, 3, 6]),
        (SEE_THROUGH, 0, [0, 1, 2, 5, 3, 4, 5, 6, 6, 7, 8, 255]),
        (SEE_THROUGH, 3, list(range(9))),
    ],
)
def test_png_of_other_channels(file, channels, want):
    made = tf.image.decode_png(file, channels).numpy()
    assert made.ravel().tolist() == want
    wide = tf.image.decode_png(file, channels, tf.uint16).numpy()
    assert (wide.ravel() // 257).tolist() == want


def smooth(height, width, channels):
    y, x = np.mgrid[:height, :width]
    planes = [(y * 5 + x * 3 + 40 * c) % 256 // 2 + 60 for c in range(channels)]
    return np.stack(planes, -1).astype("u1")


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("more", [{}, {"progressive": True}, {"optimize_size": True}])
def test_jpeg_is_near_what_was_written(channels, more):
    image = smooth(24, 17, channels)
    file = tf.image.encode_jpeg(image, quality=100, chroma_downsampling=False, **more)
    assert bool(tf.image.is_jpeg(file))
    assert tf.image.extract_jpeg_shape(file).numpy().tolist() == [24, 17, channels]
    made = tf.image.decode_jpeg(file, dct_method="INTEGER_ACCURATE").numpy()
    assert np.abs(made.astype(int) - image).mean() < 3
    part = tf.image.decode_and_crop_jpeg(file, [2, 3, 5, 6])
    np.testing.assert_array_equal(part, tf.image.decode_jpeg(file)[2:7, 3:9])
    assert tf.image.decode_jpeg(file, ratio=4).shape == [6, 5, channels]
    assert tf.image.decode_jpeg(file, channels=1).shape == [24, 17, 1]
    scaled = tf.image.decode_image(file, dtype=tf.float32).numpy()
    np.testing.assert_allclose(scaled, tf.image.decode_jpeg(file) / 255, atol=1e-6)
    lossy = tf.image.adjust_jpeg_quality(image, 20)
    assert lossy.dtype == tf.uint8 and lossy.shape == image.shape


def bmp(width, height, depth, rows):
    head = struct.pack("<2sIIIIiiHH", b"BM", 0, 0, 54, 40, width, height, 1, depth)
    return head.ljust(54, b"\0") + b"".join(rows)


def test_bmp():
    rows = [bytes([1, 2, 3, 4, 5, 6, 0, 0]), bytes([7, 8, 9, 10, 11, 12, 0, 0])]
    upwards = [[[9, 8, 7], [12, 11, 10]], [[3, 2, 1], [6, 5, 4]]]
    assert tf.image.decode_bmp(bmp(2, 2, 24, rows)).numpy().tolist() == upwards
    downwards = tf.image.decode_image(bmp(2, -2, 24, rows)).numpy().tolist()
    assert downwards == upwards[::-1]
    for bad in (bmp(2, 3, 24, rows), bmp(2**31 - 1, 2**31 - 1, 24, rows), b"BM"):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.image.decode_bmp(bad)


@pytest.mark.parametrize("file", [COLOR, SEE_THROUGH, BITS, None])
def test_damaged_files_are_refused_or_read(file):
    file = file or tf.image.encode_jpeg(smooth(9, 9, 3)).numpy()
    for _ in range(300):
        damaged = bytearray(file)
        for _ in range(_random.randint(1, 4)):
            damaged[_random.randint(len(damaged))] = _random.randint(256)
        damaged = bytes(damaged[: _random.randint(1, len(damaged) + 1)])
        for recover in (False, True):
            try:
                tf.image.decode_image(damaged)
                tf.image.decode_jpeg(
                    damaged, try_recover_truncated=recover, acceptable_fraction=0.1
                )
            except tf.errors.OpError:
                pass


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: tf.image.decode_png(b"junk"), "Unknown image file format"),
        (lambda: tf.image.decode_png(COLOR[:40]), "Failed to initialize decoder"),
        (lambda: tf.image.decode_png(COLOR[:-20]), "Invalid PNG data, size 52"),
        (lambda: tf.image.decode_png(COLOR, 2), "must be 0, 1, 3 or 4 but got 2"),
        (lambda: tf.image.decode_jpeg(b"\xff\xd8\xffjunk"), "Invalid JPEG data"),
        (lambda: tf.image.decode_image(b""), "Input is empty"),
        (lambda: tf.image.encode_png(np.zeros((2, 2, 5), "u1")), "got 5"),
        (
            lambda: tf.image.encode_jpeg(np.zeros((2, 2, 3), "u1"), quality=101),
            r"quality must be in \[0,100\]",
        ),
    ],
)
def test_errors(call, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        call()
