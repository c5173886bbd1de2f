"""SavedModels in graphs that sessions run: loaded into them and saved from them. All
values are TensorFlow 2.21's."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1


class Tables(tf.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        file = tf.lookup.TextFileInitializer(
            vocabulary,
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        )
        self.words = tf.lookup.StaticVocabularyTable(file, 1)
        self.w = [tf.Variable(2.0, name="a"), tf.Variable([3, 4], name="b")]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def look_up(self, words):
        return self.counts.lookup(words), self.words.lookup(words)

    @tf.function
    def cubed(self, x):
        for _ in tf.range(3):
            x = x * self.w[0]
        return x


@pytest.fixture
def folder(tmp_path):
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_text("x\ny\n")
    model = Tables(str(vocabulary))
    model.counts.insert(["q", "r"], [5, 6])
    model.cubed(tf.constant(1.0))
    model.cubed(tf.constant([1.0, 2.0]))
    tf.saved_model.save(model, str(tmp_path / "model"))
    vocabulary.unlink()
    return str(tmp_path / "model")


def test_variables_and_tables_are_the_graphs(folder):
    with tf.Graph().as_default() as graph, v1.Session() as session:
        model = tf.saved_model.load(folder)
        assert model.w[0].initializer.type == "AssignVariableOp"
        assert [v.name for v in v1.global_variables()] == ["a:0", "b:0"]
        assert v1.trainable_variables() == []
        assert len(graph.get_collection(v1.GraphKeys.ASSET_FILEPATHS)) == 1
        found = model.look_up(["q", "x", "y", "zz"])
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(model.cubed(3.0))
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(found)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        counts, words = session.run(found)
        assert counts.tolist() == [5, -1, -1, -1] and words.tolist() == [2, 0, 1, 2]
        assert session.run(model.cubed(3.0)) == 24
        assert session.run(model.cubed([3.0, 4.0])).tolist() == [24, 32]
        assert session.run(tf.gradients(model.cubed(3.0), model.w[0])) == [36]
        session.run(model.w[0].assign(7.0))
        assert session.run(model.cubed(3.0)) == 1029
    # Another graph has variables of its own.
    with tf.Graph().as_default(), v1.Session() as session:
        again = tf.saved_model.load(folder)
        session.run(again.w[0].initializer)
        assert session.run(again.cubed(3.0)) == 24


def test_a_skipped_checkpoint_gives_no_initializers(folder):
    options = tf.saved_model.LoadOptions(experimental_skip_checkpoint=True)
    with tf.Graph().as_default(), v1.Session() as session:
        model = tf.saved_model.load(folder, options=options)
        assert model.w[0].initializer is None
        session.run(model.w[0].assign(1.0))
        assert session.run(model.cubed(3.0)) == 3


class Scaled(tf.Module):
    def __init__(self, first):
        super().__init__()
        self.v = tf.Variable(first, shape=first.shape)
        self.names = tf.Variable([b"a", b"bc"])
        self.counts = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, -1)
        self.factor = tf.constant(2.0)

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def scaled(self, x):
        return self.v * x * self.factor

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
    def count(self, key):
        return self.counts.lookup(key)


def test_values_are_those_of_the_session(tmp_path):
    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), v1.Session() as session:
        model = Scaled(tf.constant([1.0, 2.0]))
        with pytest.raises(tf.errors.FailedPreconditionError):
            tf.saved_model.save(model, folder)
        session.run([v.initializer for v in model.variables])
        session.run(model.v.assign_add([10.0, 10.0]))
        session.run(model.counts.insert(tf.constant([3], tf.int64), [0.5]))
        tf.saved_model.save(model, folder)
        assert session.run(model.v).tolist() == [11, 12]
        loaded = tf.saved_model.load(folder)
        session.run(loaded.v.initializer)
        assert session.run(loaded.scaled([1.0, 2.0])).tolist() == [22, 48]
    loaded = tf.saved_model.load(folder)
    np.testing.assert_array_equal(loaded.v, [11, 12])
    np.testing.assert_array_equal(loaded.names, [b"a", b"bc"])
    assert loaded.count(tf.constant(3, tf.int64)) == 0.5
    assert loaded.signatures == {} or "serving_default" not in loaded.signatures


def test_a_graphs_variables_take_a_session(tmp_path):
    with tf.Graph().as_default():
        model = Scaled(tf.constant([1.0, 2.0]))
        with pytest.raises(RuntimeError, match="without a default session"):
            tf.saved_model.save(model, str(tmp_path / "model"))


def test_reference_variables_are_refused(tmp_path):
    with tf.Graph().as_default(), v1.Session():
        model = tf.Module()
        model.v = v1.get_variable("v", initializer=[1.0], use_resource=False)
        with pytest.raises(TypeError, match="use_resource=True"):
            tf.saved_model.save(model, str(tmp_path / "model"))
