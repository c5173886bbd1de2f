"""tf.compat.v1.summary: images, sounds, tensors and texts."""

import glob

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


def _events(folder):
    (path,) = glob.glob(f"{folder}/*")
    return list(v1.train.summary_iterator(path))[1:]


def test_eager_calls_write_by_the_default_writer(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))

    @tf.function
    def traced():
        with tf.name_scope("in"):
            return v1.summary.scalar("a", 1.0, family="fam")

    with writer.as_default(step=7):
        with tf.name_scope("o"):
            assert v1.summary.scalar("a", 1.0, family="fam").numpy() == b""
            v1.summary.text("t", tf.constant("x"))
            v1.summary.histogram("h", [1.0, 2.0], family="f")
            v1.summary.image("i", tf.zeros([1, 2, 2, 1]), family="f")
            v1.summary.audio("au", tf.zeros([1, 2]), 1, family="f")
        assert traced().numpy() == b""
    found = [(e.step, v.tag) for e in _events(tmp_path) for v in e.summary.value]
    tags = ["fam/o/fam/a", "o/t", "f/o/f/h", "f/o/f/i", "f/o/f/au", "fam/in/fam/a"]
    assert found == [(7, tag) for tag in tags]


def test_eager_calls_without_a_writer_or_step(tmp_path):
    with pytest.warns(UserWarning, match="default summary writer not found"):
        found = v1.summary.scalar("a", 1.0).numpy()
    assert v1.Summary.FromString(found).value[0].simple_value == 1.0
    graph = tf.Graph()  # its step is not an eager one
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        with pytest.warns(UserWarning, match="global step not set"):
            v1.summary.scalar("a", 1.0)
        step = v1.train.create_global_step()
        assert v1.train.get_global_step() is step
        step.assign(1024)
        v1.summary.scalar("a", 1.0)
        with pytest.raises(RuntimeError, match="Use tf.contrib.summary instead"):
            v1.summary.merge_all()
    v1.get_default_graph().get_collection_ref(v1.GraphKeys.GLOBAL_STEP).clear()
    assert [e.step for e in _events(tmp_path)] == [1024]
    assert v1.train.get_global_step(graph) is None


def test_descriptions_of_nodes():
    node = v1.NodeDef(op="TensorSummary")
    node.attr["description"].s = b'{"typeHint": "abc"}'
    found = v1.summary.get_summary_description(node)
    assert isinstance(found, v1.summary.SummaryDescription) and found.type_hint == "abc"
    with pytest.raises(ValueError, match="Can't get_summary_description on x"):
        v1.summary.get_summary_description(v1.NodeDef(op="x"))
    node.attr["description"].s = b'{"zz": 1}'
    with pytest.raises(Exception, match='no field named "zz"'):
        v1.summary.get_summary_description(node)
