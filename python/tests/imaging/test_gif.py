"""GIF files; what is expected is what TensorFlow 2.21 gives."""

import struct

import headrace as tf
import numpy as np
import pytest

PALETTE = bytes([10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41, 42])
_random = np.random.RandomState(7)


def blocks(data):
    parts = [data[i : i + 255] for i in range(0, len(data), 255)]
    return b"".join(bytes([len(p)]) + p for p in parts) + b"\0"


def packed(pixels, bits=2):
    """Every string written in full, with codes that grow as a reader's do."""
    clear, end = 1 << bits, (1 << bits) + 1
    window = count = 0
    out = bytearray()

    def put(code, size):
        nonlocal window, count
        window |= code << count
        count += size
        while count >= 8:
            out.append(window & 255)
            window >>= 8
            count -= 8

    put(clear, bits + 1)
    table = {(p,): p for p in range(clear)}
    following, size, string = end + 1, bits + 1, ()
    for p in pixels:
        if (*string, p) in table:
            string = (*string, p)
            continue
        put(table[string], size)
        if following < 4096:
            table[(*string, p)] = following
            following += 1
            size += following > 1 << size
            size = min(size, 12)
        else:
            put(clear, size)
            table = {(q,): q for q in range(clear)}
            following, size = end + 1, bits + 1
        string = (p,)
    put(table[string], size)
    put(end, min(size + (following + 1 > 1 << size), 12))
    out.append(window & 255)
    return bytes([bits]) + blocks(bytes(out))


def frame(left, top, width, height, pixels, local=b"", clear=None, woven=False):
    control = b""
    if clear is not None:
        control = b"\x21\xf9\x04\1\0\0" + bytes([clear]) + b"\0"
    flags = (0x81 if local else 0) | (0x40 if woven else 0)
    place = struct.pack("<HHHHB", left, top, width, height, flags)
    return control + b"," + place + local + packed(pixels)


def gif(*frames, colors=PALETTE, end=b";"):
    flags = 0x80 | (len(colors) // 6).bit_length() - 1 if colors else 0
    head = b"GIF89a" + struct.pack("<HHBBB", 1, 1, flags, 0, 0)
    return head + colors + b"".join(frames) + end


FOUR = frame(0, 0, 2, 2, [0, 1, 2, 3])
ONES = frame(0, 0, 3, 3, [1] * 9)
PART = frame(1, 1, 2, 2, [0, 1, 2, 3])
F0 = [[0, 0, 0], [0, 10, 20], [0, 30, 40]]


@pytest.mark.parametrize(
    "file, want",
    [
        (gif(FOUR), [[[10, 20], [30, 40]]]),
        (gif(PART, ONES), [F0, [[20] * 3] * 3]),
        (gif(ONES, PART), [[[20] * 3] * 3, [[20] * 3, [20, 10, 20], [20, 30, 40]]]),
        (gif(FOUR, ONES), [[[10, 20, 0], [30, 40, 0], [0] * 3], [[20] * 3] * 3]),
        (gif(frame(0, 0, 2, 2, [0, 1, 2, 3], clear=2)), [[[10, 20], [0, 40]]]),
        (
            gif(FOUR, frame(0, 0, 2, 2, [3, 2, 1, 0], clear=2)),
            [[[10, 20], [30, 40]], [[40, 20], [20, 10]]],
        ),
        (
            gif(frame(0, 0, 2, 2, [0, 1, 2, 3], PALETTE[::-1])),
            [[[42, 32], [22, 12]]],
        ),
        (
            gif(frame(0, 0, 1, 9, [0, 1, 2, 3, 0, 1, 2, 3, 0], woven=True)),
            [[[10], [20], [40], [30], [30], [40], [10], [10], [20]]],
        ),
        (gif(frame(5, 0, 2, 2, [0, 1, 2, 3])), [[[0, 0], [0, 0]]]),
        (gif(FOUR, FOUR[:-3], end=b""), [[[10, 20], [30, 40]]]),
        (gif(FOUR, b"junk"), [[[10, 20], [30, 40]]]),
    ],
)
def test_frames(file, want):
    frames = tf.image.decode_gif(file).numpy()
    assert frames[..., 0].tolist() == want
    np.testing.assert_array_equal(tf.image.decode_image(file), frames)
    still = tf.image.decode_image(file, expand_animations=False)
    np.testing.assert_array_equal(still, frames[0])
    wide = tf.image.decode_image(file, dtype=tf.uint16).numpy()
    np.testing.assert_array_equal(wide, frames.astype("u2") * 256)


@pytest.mark.parametrize("height, width, kinds", [(40, 50, 4), (200, 150, 2)])
def test_long_strings_of_codes(height, width, kinds):
    pixels = _random.randint(0, kinds, (height, width))
    file = gif(frame(0, 0, width, height, pixels.ravel().tolist()))
    made = tf.image.decode_png(file).numpy()
    colors = np.frombuffer(PALETTE, "u1").reshape(4, 3)
    np.testing.assert_array_equal(made, colors[pixels])


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: tf.image.decode_gif(b"GIF89a"), "No screen descriptor"),
        (lambda: tf.image.decode_gif(b"GIF8"), "Failed to read from given file"),
        (lambda: tf.image.decode_gif(gif()), "No Image Descriptor detected"),
        (lambda: tf.image.decode_gif(gif(FOUR, colors=b"")), "missing color map"),
        (
            lambda: tf.image.decode_gif(gif(FOUR, colors=PALETTE[:6])),
            "found color index 2 outside of color map range 2",
        ),
        (lambda: tf.image.decode_gif(gif(FOUR[:-4], end=b"")), "Failed to read"),
        (
            lambda: tf.image.decode_gif(gif(frame(0, 0, 2, 2, [0, 1, 2]))),
            "Image EOF detected before image complete",
        ),
        (
            lambda: tf.image.decode_gif(gif(FOUR[:10] + b"\2\3\xff\xff\xff\0")),
            "Image is defective, decoding aborted",
        ),
        (lambda: tf.image.decode_png(gif(FOUR, FOUR)), "Got 2 frames"),
        (lambda: tf.image.decode_image(gif(FOUR), channels=1), "0 or 3 for GIF"),
        (lambda: tf.image.decode_bmp(gif(FOUR)), "using DecodeBmp op"),
        (
            lambda: tf.image.decode_and_crop_jpeg(gif(FOUR), [0, 0, 1, 1]),
            "but detected GIF",
        ),
    ],
)
def test_errors(call, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        call()


def test_damaged_files_are_refused_or_read():
    file = gif(ONES, frame(1, 1, 2, 2, [0, 1, 2, 3], PALETTE[::-1], 1, True))
    for _ in range(1000):
        damaged = bytearray(file)
        for _ in range(_random.randint(1, 4)):
            damaged[_random.randint(6, len(damaged))] = _random.randint(256)
        try:
            tf.image.decode_gif(bytes(damaged[: _random.randint(6, len(file) + 1)]))
        except tf.errors.InvalidArgumentError:
            pass
