"""tf.compat.v1.summary: images, sounds, tensors and texts."""

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1


def _values(build):
    with tf.Graph().as_default(), v1.Session() as session:
        made = build()
        assert made in v1.get_collection(v1.GraphKeys.SUMMARIES)
        return list(v1.Summary.FromString(session.run(made)).value)


def test_images():
    pixels = np.uint8([[[[7], [200]]], [[[1], [2]]]])
    values = _values(lambda: v1.summary.image("a b", pixels, family="f"))
    assert [v.tag for v in values] == ["f/f/a_b/image/0", "f/f/a_b/image/1"]
    for value, wanted in zip(values, pixels, strict=True):
        found = tf.io.decode_png(value.image.encoded_image_string)
        assert found.numpy().tolist() == wanted.tolist()
    (value,) = _values(lambda: v1.summary.image("one", pixels, max_outputs=1))
    assert value.tag == "one/image" and value.image.width == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be 4-D"):
        _values(lambda: v1.summary.image("flat", pixels[0]))


def test_sounds():
    waves = np.float32([[[0.5], [-0.25]]])
    (value,) = _values(lambda: v1.summary.audio("a", waves, 8000.0))
    assert value.tag == "a/audio/0" and value.audio.sample_rate == 8000
    decoded, rate = tf.audio.decode_wav(value.audio.encoded_audio_string)
    np.testing.assert_allclose(decoded, waves[0], atol=1e-4)
    assert rate.numpy() == 8000
    for rate in (0.0, -1.0, float("nan"), 1e12):
        with pytest.raises(tf.errors.InvalidArgumentError, match="sample_rate"):
            _values(lambda rate=rate: v1.summary.audio("a", waves, rate))


def test_tensors_and_texts():
    (value,) = _values(
        lambda: v1.summary.tensor_summary(
            "t", [1, 2], summary_description="said", display_name="shown"
        )
    )
    assert tf.make_ndarray(value.tensor).tolist() == [1, 2] and value.tag == "t"
    assert value.metadata.summary_description == "said"
    assert value.metadata.display_name == "shown"
    (value,) = _values(lambda: v1.summary.text("words", tf.constant(["a"])))
    assert value.metadata.plugin_data.plugin_name == "text"
    with tf.Graph().as_default(), pytest.raises(ValueError, match="dtype string"):
        v1.summary.text("words", tf.constant([1]))
