"""SavedModels in chunks: saved_model.cpb."""

import os

import numpy as np
import pytest

import headrace as tf
from headrace import _command

IN_CHUNKS = tf.saved_model.SaveOptions(experimental_image_format=True)


class Model(tf.Module):
    def __init__(self):
        self.v = tf.Variable([1.0, 2.0])
        self.table = tf.constant(np.arange(100_000, dtype=np.float32))

    @tf.function(input_signature=[tf.TensorSpec([2])])
    def add(self, x):
        return x + self.v + self.table[:2]


@pytest.fixture
def folder(tmp_path):
    model = Model()
    path = str(tmp_path / "m")
    tf.saved_model.save(model, path, signatures=model.add, options=IN_CHUNKS)
    return path


def test_a_model_in_chunks_is_loaded(folder):
    assert sorted(os.listdir(folder))[-2:] == ["saved_model.cpb", "variables"]
    assert tf.saved_model.contains_saved_model(folder)
    loaded = tf.saved_model.load(folder)
    assert loaded.add([1.0, 1.0]).numpy().tolist() == [2.0, 4.0]
    called = loaded.signatures["serving_default"](x=tf.constant([1.0, 1.0]))
    assert called["output_0"].numpy().tolist() == [2.0, 4.0]


def test_another_form_of_another_model_is_not_read(folder):
    model = tf.Module()
    model.v = tf.Variable(7.0)
    tf.saved_model.save(model, folder)
    assert "saved_model.cpb" not in os.listdir(folder)
    assert float(tf.saved_model.load(folder).v) == 7.0
    model.v.assign(8.0)
    tf.saved_model.save(model, folder, options=IN_CHUNKS)
    assert "saved_model.pb" not in os.listdir(folder)
    assert float(tf.saved_model.load(folder).v) == 8.0


def test_sessions_load_it(folder):
    with tf.Graph().as_default(), tf.compat.v1.Session() as sess:
        meta = tf.compat.v1.saved_model.load(sess, ["serve"], folder)
        signature = meta.signature_def["serving_default"]
        out = sess.run(
            signature.outputs["output_0"].name,
            {signature.inputs["x"].name: [1.0, 1.0]},
        )
    assert out.tolist() == [2.0, 4.0]


def test_the_builder_of_1_writes_it(tmp_path):
    path = str(tmp_path / "m")
    with tf.Graph().as_default(), tf.compat.v1.Session() as sess:
        x = tf.compat.v1.placeholder(tf.float32, [], name="x")
        tf.multiply(x, 2.0, name="y")
        builder = tf.compat.v1.saved_model.Builder(path)
        builder.add_meta_graph_and_variables(sess, ["serve"])
        assert builder.save(experimental_image_format=True).endswith(b".cpb")
    with tf.Graph().as_default(), tf.compat.v1.Session() as sess:
        tf.compat.v1.saved_model.load(sess, ["serve"], path)
        assert sess.run("y:0", {"x:0": 3.0}) == 6.0


def test_damaged_chunks_are_an_error_that_names_the_file(folder):
    path = os.path.join(folder, "saved_model.cpb")
    with open(path, "rb") as f:
        whole = f.read()
    for damaged in (b"", whole[:100], whole[: len(whole) // 2], whole[:-1]):
        with open(path, "wb") as f:
            f.write(damaged)
        with pytest.raises(OSError, match=r"saved_model\.cpb"):
            tf.saved_model.load(folder)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 4
    with open(path, "wb") as f:
        f.write(flipped)
    with pytest.raises(OSError, match="hash"):
        tf.saved_model.load(folder)


def test_the_command_shows_and_upgrades_it(folder, tmp_path, capfd):
    def run(*words):
        return _command.run(list(words))

    assert run("show", folder) == 0
    assert run("show", os.path.join(folder, "saved_model.cpb")) == 0
    assert "serving_default" in capfd.readouterr().out
    new = str(tmp_path / "new")
    assert run("upgrade", folder, "-o", new) == 0
    assert "saved_model.cpb" in os.listdir(new)
    assert tf.saved_model.load(new).add([0.0, 0.0]).numpy().tolist() == [1.0, 3.0]


def test_graphs_in_chunks(folder, tmp_path, capfd):
    graph = str(tmp_path / "g.cpb")
    for words in (
        ("freeze", folder, "-o", graph),
        ("show", graph),
        ("run", graph, "-i", "x=[1, 1]"),
    ):
        assert _command.run(list(words)) == 0
    assert "[2. 4.]" in capfd.readouterr().out.replace("  ", " ")
