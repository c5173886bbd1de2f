"""Graphs and checkpoints cut at every byte: a clear error at every cut."""

import headrace as tf
import pytest

protos = pytest.importorskip("google.protobuf.message")
v1 = tf.compat.v1


def graph_bytes():
    @tf.function
    def twice(x):
        return x * 2.0

    with tf.Graph().as_default() as g:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        y = twice(tf.matmul(x, tf.constant([[1.0], [2.0]])))
        tf.identity(y, name="y")
    return g.as_graph_def().SerializeToString()


def import_bytes(data):
    """True when the bytes hold a graph from which y can be run."""
    graph_def = v1.GraphDef()
    graph_def.ParseFromString(data)
    with tf.Graph().as_default() as g:
        tf.import_graph_def(graph_def, name="")
        names = {op.name for op in g.get_operations()}
        if not {"x", "y"} <= names:
            return False
        with v1.Session() as session:
            return session.run("y:0", {"x:0": [[1.0, 1.0]]}).tolist() == [[6.0]]


def test_a_graph_cut_at_every_byte():
    data = graph_bytes()
    assert import_bytes(data)
    whole = refused = 0
    for n in range(len(data)):
        try:
            whole += import_bytes(data[:n])
        except (protos.DecodeError, ValueError, tf.errors.OpError) as e:
            assert str(e)
            refused += 1
    # Cuts between fields are graphs of their own; few of them can run y.
    assert refused > 0.9 * len(data)
    assert whole <= 3


def checkpoint_files(folder):
    prefix = str(folder / "c")
    path = tf.train.Checkpoint(
        v=tf.Variable([1.0, 2.0, 3.0]), n=tf.Variable(7, dtype=tf.int64)
    ).save(prefix)
    return path, sorted(folder.glob("c-1.*"))


def restore(path):
    v, n = tf.Variable([0.0, 0.0, 0.0]), tf.Variable(0, dtype=tf.int64)
    tf.train.Checkpoint(v=v, n=n).restore(path).assert_consumed()
    return v, n


def test_a_checkpoint_cut_at_every_byte(tmp_path):
    path, files = checkpoint_files(tmp_path)
    assert len(files) == 2
    assert restore(path)[0].numpy().tolist() == [1, 2, 3]
    for file in files:
        data = file.read_bytes()
        for n in range(len(data)):
            file.write_bytes(data[:n])
            with pytest.raises(tf.errors.OpError) as e:
                restore(path)
            assert e.value.message
            with pytest.raises(tf.errors.OpError):
                reader = tf.train.load_checkpoint(path)
                for key in reader.get_variable_to_shape_map():
                    reader.get_tensor(key)
        file.write_bytes(data)
    assert int(restore(path)[1]) == 7
