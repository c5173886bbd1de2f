"""headrace diff."""

import numpy as np
from command_line import golden

import headrace as tf


def write(path, **values):
    return tf.train.Checkpoint(**values).write(str(path))


def test_checkpoints(line, tmp_path):
    def key(name):
        return name + "/.ATTRIBUTES/VARIABLE_VALUE"

    same = {"a": tf.Variable([1.0, np.nan]), "s": tf.Variable("text")}
    a = write(tmp_path / "a", **same, v=tf.Variable([1, 2]), w=tf.Variable(1.0))
    b = write(tmp_path / "b", **same, v=tf.Variable([1, 5]), u=tf.Variable(1.0))
    assert line("diff", a, a) == "No differences\n"
    out = line("diff", a, b, code=1)
    assert f"tensor {key('v')}: differs by 3 at most\n" in out
    assert f"tensor {key('w')}: only in A\n" in out
    assert f"tensor {key('u')}: only in B\n" in out
    assert key("a") not in out and key("s") not in out
    found = line.json("diff", a, b, code=1)
    assert [d["max_abs_difference"] for d in found if d["name"] == key("v")] == [3]
    c = write(tmp_path / "c", **same, v=tf.Variable([[1, 2]]), w=tf.Variable(1.25))
    out = line("diff", a, c, "--tolerance", 0.25, code=1)
    assert f"tensor {key('v')}: int32[2] and int32[1,2]\n" in out
    assert key("w") not in out


def graph_file(folder, name, make):
    with tf.Graph().as_default() as graph:
        make()
    return tf.io.write_graph(graph, str(folder), name, as_text=False)


def test_graphs(line, tmp_path):
    def first():
        x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
        tf.nn.relu(x, name="y")

    def second():
        x = tf.compat.v1.placeholder(tf.float32, [3], name="x")
        tf.exp(x, name="y")
        tf.no_op("z")

    a, b = graph_file(tmp_path, "a.pb", first), graph_file(tmp_path, "b.pb", second)
    assert line("diff", a, a) == "No differences\n"
    out = line("diff", a, b, code=1)
    assert "node x: " in out and "shape [2] and [3]" in out
    assert "node y: op Relu and Exp\n" in out
    assert "node z: only in B\n" in out


def test_models(line, tmp_path):
    class Model(tf.Module):
        def __init__(self, size):
            self.v = tf.Variable(tf.ones([2]) * size)

        @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
        def f(self, x):
            return x * self.v

    for name, size in (("a", 1.0), ("b", 3.0)):
        model = Model(size)
        tf.saved_model.save(model, str(tmp_path / name), signatures=model.f)
    a, b = tmp_path / "a", tmp_path / "b"
    assert line("diff", a, a) == "No differences\n"
    out = line("diff", a, b, code=1)
    assert "v/.ATTRIBUTES/VARIABLE_VALUE: differs by 2 at most\n" in out
    out = line("diff", a, golden("saved_models/plain"), code=1)
    assert "signature looped: only in B\n" in out


def test_two_kinds(line, tmp_path):
    a = write(tmp_path / "a", v=tf.Variable(1.0))
    err = line.fails("diff", a, golden("saved_models/plain"))
    assert "expected two of one kind" in err
