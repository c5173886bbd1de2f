"""WebP files: pixels are those that TensorFlow 2.21 reads from them, but for animations,
with which it ends the process; their frames are what the encoder was given."""

import base64

import headrace as tf
import numpy as np
import pytest

raw = tf.raw_ops

# Of 5 by 3 pixels.
_FILES = {
    "alpha": (
        "UklGRmQAAABXRUJQVlA4TFgAAAAvBIAAEHegpI0kaOl3x4+ef5drgkwYwrsIXv2LaUEmDJnz"
        "LoJXBQSBILMsN0K2s5ANUBRWfyDJ/iV+O3Htuj0goCqyDeo+/AqriQ4yqCCLSBH9j67c0V8A"
    ),
    "lossless": (
        "UklGRlYAAABXRUJQVlA4TEoAAAAvBIAAAHdAFmByD2FvBPnrFQSRtm0MN1NweiJt2xiuhNF7"
        "+vyTDVAUNo+0B8DlNp/9AFRDtkLN3N+XYQ4pxJBCLDFG9D+6uJM/AA=="
    ),
    "lossy": (
        "UklGRnAAAABXRUJQVlA4IGQAAABwAgCdASoFAAMAAUAmJagCdH8GcATbcDCelKcAAOJ6h9vf"
        "/KtRx+HGP/fF/5N7sHKy84rLqhP1//N+PTpX7Q/VPGBb/k3ke9i+//yb2NVk6vjQ+eHnsWlr"
        "6RwRW/4N/sFn1nAA"
    ),
    "anim": (
        "UklGRmABAABXRUJQVlA4WAoAAAACAAAABAAAAgAAQU5JTQYAAAD/////AABBTk1GZAAAAAAA"
        "AAAAAAQAAAIAAGQAAAJWUDhMSwAAAC8EgAAAd6CYkSToUwpjtJc/00IoaCQ1zvGMNKBV1LYN"
        "HPsYTXF0x/xXIZE1BQDw7v4DAKiKbIO61+tLA6VkUUFKFSSK6H/0221OBQBBTk1GVgAAAAAA"
        "AAAAAAQAAAIAAGQAAABWUDhMPgAAAC8EgAAAd6CQbQRI4QBef83LOQgEUjxCCAsE0pBCCGM8"
        "/8kOXA8wqIZshZq5vy/DHFKIIYVYYozof3RxJ38AQU5NRmoAAAAAAAAAAAAEAAACAABkAAAA"
        "VlA4TFEAAAAvBIAAAHegqG0jpuMgzP/xZ3kgFLRtw4b6IHRHQds2bKoPwh6izX8bDj8S2RKJ"
        "bNk/+2f/ZMsD+wdqIklhntClFi14wQIe0ILqiP7Hvc5mtQEA"
    ),
}
_FILES = {name: base64.b64decode(text) for name, text in _FILES.items()}
# As they were encoded.
_COLORS = (np.arange(45) * 37 + 11).astype(np.uint8).reshape(3, 5, 3)
_FRAMES = [np.arange(60) * (k + 3) * 7 for k in range(3)]
_FRAMES = np.array(_FRAMES).astype(np.uint8).reshape(3, 3, 5, 4)
_FRAMES[..., 3] = 255
_ALPHA = [0, 17, 34, 51, 68, 85, 102, 119, 136, 153, 170, 187, 204, 221, 238]


def test_exact_files():
    image = tf.io.decode_webp(_FILES["lossless"])
    assert image.dtype == tf.uint8
    np.testing.assert_array_equal(image, [_COLORS])
    for channels in (0, 4):
        image = tf.image.decode_webp(_FILES["alpha"], channels).numpy()
        assert image.shape == (1, 3, 5, 4)
        assert image[..., 3].ravel().tolist() == _ALPHA
        # What cannot be seen at all is black.
        np.testing.assert_array_equal(image[0, 1:, :, :3], _COLORS[1:])
        assert image[0, 0, 0].tolist() == [0, 0, 0, 0]


def test_lossy_files():
    image = tf.io.decode_webp(_FILES["lossy"], channels=3).numpy()
    assert image[0, 0].tolist() == [
        [16, 46, 100],
        [134, 146, 194],
        [90, 70, 107],
        [154, 103, 107],
        [255, 179, 133],
    ]
    assert image.sum() == 5680


def test_animations():
    frames = tf.io.decode_webp(_FILES["anim"])
    np.testing.assert_array_equal(frames, _FRAMES)
    np.testing.assert_array_equal(tf.io.decode_image(_FILES["anim"]), _FRAMES)
    first = tf.io.decode_image(_FILES["anim"], expand_animations=False)
    np.testing.assert_array_equal(first, _FRAMES[0, ..., :3])


def test_images_of_any_format():
    image = tf.io.decode_image(_FILES["lossless"])
    np.testing.assert_array_equal(image, [_COLORS])
    image = tf.io.decode_image(_FILES["lossless"], expand_animations=False)
    np.testing.assert_array_equal(image, _COLORS)
    read = tf.function(lambda x: tf.io.decode_webp(x))
    np.testing.assert_array_equal(read(_FILES["lossless"]), [_COLORS])


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda f: raw.DecodeWebP(contents=f["lossless"], channels=1),
            "3 or 4 channels",
        ),
        (
            lambda f: raw.DecodeWebP(contents=f["lossless"], channels=2),
            "`channels` must be 0, 1, 3 or 4 but got 2",
        ),
        (
            lambda f: raw.DecodeWebP(contents=f["lossless"], channels=4),
            "Number of channels requested does not match input",
        ),
        (
            lambda f: raw.DecodeWebP(contents=f["alpha"], channels=3),
            "Number of channels requested does not match input",
        ),
        (
            lambda f: raw.DecodeWebP(contents=f["anim"], channels=3),
            "WebP Animation must be 4 channel RGBA",
        ),
        (lambda f: raw.DecodeWebP(contents=f["lossy"][:60]), "decode WebP image"),
        (lambda f: raw.DecodeWebP(contents=f["lossy"][:14]), "decode WebP header"),
        (lambda f: raw.DecodeWebP(contents=f["anim"][:200]), "decode WebP Animation"),
        (lambda f: raw.DecodeWebP(contents=b""), "Input is empty"),
        (lambda f: raw.DecodeWebP(contents=b"RIFFxxxxWEBP"), "decode WebP header"),
        (lambda f: raw.DecodeWebP(contents=[f["lossy"]]), "contents"),
        (
            lambda f: raw.DecodeImage(contents=f["lossy"], dtype=tf.float32),
            "WebP only supports uint8 for dtype",
        ),
        (lambda f: raw.DecodePng(contents=f["lossy"]), "Use `decode_webp` or"),
    ],
)
def test_bad_arguments(call, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        call(_FILES)


def test_damaged_files():
    """Whatever a byte becomes, there are pixels or an error."""
    random = np.random.RandomState(1)
    for data in _FILES.values():
        for _ in range(60):
            bad = bytearray(data)
            for at in random.randint(12, len(data), 3):
                bad[at] = random.randint(256)
            try:
                image = raw.DecodeWebP(contents=bytes(bad))
            except tf.errors.OpError:
                continue
            assert image.shape.rank == 4


def test_shapes():
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.string, [])
        shapes = [raw.DecodeWebP(contents=x, channels=c).shape for c in (0, 3, 4)]
        assert [s.as_list() for s in shapes] == [[None] * 3 + [c] for c in (None, 3, 4)]


@pytest.mark.parametrize("kind", sorted(_FILES))
def test_files_that_are_cut_at_every_byte(kind):
    file = _FILES[kind]
    for n in range(1, len(file)):
        for read in (tf.io.decode_webp, tf.io.decode_image):
            try:
                read(file[:n])
            except tf.errors.InvalidArgumentError as e:
                assert "WebP" in str(e)
