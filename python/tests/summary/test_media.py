"""tf.summary.image and tf.summary.audio."""

import numpy as np
import pytest

import headrace as tf


def _written(folder, write):
    with tf.summary.create_file_writer(str(folder)).as_default(step=3):
        assert write()
    (path,) = folder.iterdir()
    events = list(tf.compat.v1.train.summary_iterator(str(path)))[1:]
    return [v for event in events for v in event.summary.value]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_images(tmp_path, dtype):
    pixels = np.uint8([[[[7], [255]]], [[[1], [2]]], [[[0], [9]]], [[[3], [4]]]])
    given = pixels if dtype == np.uint8 else np.float32(pixels / 255)
    (value,) = _written(
        tmp_path, lambda: tf.summary.image("i", given, description="said")
    )
    assert value.tag == "i" and value.metadata.plugin_data.plugin_name == "images"
    assert value.metadata.summary_description == "said"
    width, height, *files = tf.make_ndarray(value.tensor).tolist()
    assert (width, height) == (b"2", b"1") and len(files) == 3
    for file, wanted in zip(files, pixels, strict=False):
        assert tf.io.decode_png(file).numpy().tolist() == wanted.tolist()


def test_sounds(tmp_path):
    waves = np.float32([[[0.5], [-0.25]], [[0.1], [0.2]]])
    (value,) = _written(tmp_path, lambda: tf.summary.audio("a", waves, 44100))
    plugin = value.metadata.plugin_data
    assert plugin.plugin_name == "audio" and plugin.content == b"\x10\x0b"
    rows = tf.make_ndarray(value.tensor)
    assert rows.shape == (2, 2) and rows[:, 1].tolist() == [b"", b""]
    for (file, _), wanted in zip(rows, waves, strict=True):
        decoded, rate = tf.audio.decode_wav(file)
        np.testing.assert_allclose(decoded, wanted, atol=1e-4)
        assert rate.numpy() == 44100


def test_refusals(tmp_path):
    with tf.summary.create_file_writer(str(tmp_path)).as_default(step=0):
        with pytest.raises(ValueError, match="must have rank 4"):
            tf.summary.image("i", np.zeros([2, 2, 1]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="Condition x >= 0"):
            tf.summary.image("i", np.zeros([1, 2, 2, 1]), max_outputs=-1)
        with pytest.raises(ValueError, match="Unknown encoding: 'mp3'"):
            tf.summary.audio("a", np.zeros([1, 2, 1], "f"), 8, encoding="mp3")
    # Nothing is encoded where nothing is written.
    assert not tf.summary.image("i", np.zeros([2, 2, 1]), step=0)
