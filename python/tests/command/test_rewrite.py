"""headrace freeze, optimize, upgrade, svg and ops."""

import xml.etree.ElementTree

import numpy as np
import pytest
from command_line import golden

import headrace as tf

X = np.float32([[1, 2], [3, 4], [5, 6]])


class Looped(tf.Module):
    """Variables in a plain call, a loop and a branch."""

    def __init__(self):
        self.w = tf.Variable([[1.0, 0.5], [0.25, 2.0]])
        self.b = tf.Variable([0.5, -0.5])
        self.rows = tf.Variable(np.float32(np.arange(6).reshape(3, 2)))

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def f(self, x):
        i = tf.constant(0)
        while i < 2:
            x = tf.matmul(x, self.w)
            i += 1
        if tf.reduce_sum(x) > 1.0:
            x += self.b
        else:
            x -= self.b
        return {"y": x, "row": tf.gather(self.rows, 1)}


def graph_of(path):
    graph_def = tf.compat.v1.GraphDef()
    with open(path, "rb") as f:
        graph_def.ParseFromString(f.read())
    return graph_def


def run_graph(path, feeds, fetches):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.import_graph_def(graph_of(path), name="")
        return session.run(fetches, feeds)


def test_freeze_a_model(line, tmp_path):
    model = Looped()
    folder, frozen = str(tmp_path / "model"), str(tmp_path / "frozen.pb")
    tf.saved_model.save(model, folder)
    out = line("freeze", folder, "-o", frozen)
    assert "inputs: x\noutputs: row, y\n" in out
    ops = {n.op for n in graph_of(frozen).node}
    assert not ops & {"VarHandleOp", "ReadVariableOp", "StatefulPartitionedCall"}
    wanted = model.f(tf.constant(X))
    y, row = run_graph(frozen, {"x:0": X}, ["y:0", "row:0"])
    np.testing.assert_array_equal(y, wanted["y"])
    np.testing.assert_array_equal(row, wanted["row"])
    # What is frozen runs without the model, and the same.
    text = str(X.tolist())
    ran = line.json("run", frozen, "--input", f"x={text}", "--outputs", "y")
    assert ran == {"y": wanted["y"].numpy().tolist()}
    # And is drawn.
    for source in (folder, frozen):
        svg = xml.etree.ElementTree.fromstring(line("svg", source))
        texts = {e.text for e in svg.iter() if e.tag.endswith("text")}
        assert {"Placeholder", "x", "Identity", "y"} <= texts


def test_outputs_have_their_names_where_nodes_have_them_too(line, tmp_path):
    folder, frozen = str(tmp_path / "model"), str(tmp_path / "frozen.pb")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None], name="x")
        y = tf.multiply(x, 3.0, name="y")
        with tf.compat.v1.colocate_with(y):
            z = tf.add(y, 1.0, name="near")
        tf.compat.v1.saved_model.simple_save(session, folder, {"x": x}, {"y": z})
    out = line("freeze", folder, "-o", frozen)
    assert "inputs: x\noutputs: y\n" in out
    np.testing.assert_array_equal(run_graph(frozen, {"x:0": [5.0]}, "y:0"), [16.0])
    names = {n.name for n in graph_of(frozen).node}
    for node in graph_of(frozen).node:
        for place in node.attr["_class"].list.s:
            assert place.decode().removeprefix("loc:@") in names


@pytest.mark.parametrize("use_resource", [False, True])
def test_freeze_a_graph_with_its_checkpoint(line, tmp_path, use_resource):
    graph, prefix = str(tmp_path / "g.pb"), str(tmp_path / "ckpt")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None, 2], name="x")
        w = tf.compat.v1.get_variable(
            "w",
            initializer=tf.constant([[1.0], [2.0]]),
            use_resource=use_resource,
        )
        tf.matmul(x, w, name="y")
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver()
        prefix = saver.save(session, prefix)
        tf.io.write_graph(session.graph_def, str(tmp_path), "g.pb", as_text=False)
    frozen = tmp_path / "frozen.pb"
    line("freeze", graph, "-c", prefix, "--outputs", "y", "-o", frozen)
    (y,) = run_graph(frozen, {"x:0": X}, ["y:0"])
    np.testing.assert_array_equal(y, X @ [[1.0], [2.0]])
    assert not any("Variable" in n.op for n in graph_of(frozen).node)
    err = line.fails("freeze", graph, "--outputs", "y", "-o", frozen)
    assert "reads the variable w: give its values with --checkpoint" in err
    other = tf.train.Checkpoint(v=tf.Variable(1.0)).write(str(tmp_path / "other"))
    err = line.fails("freeze", graph, "-c", other, "--outputs=y", "-o", frozen)
    assert "has no tensor w, which" in err
    assert "no node z" in line.fails("freeze", graph, "--outputs", "z", "-o", frozen)


def test_tables_are_not_frozen(line, tmp_path):
    folder = golden("saved_models/tables")
    err = line.fails("freeze", folder, "-o", tmp_path / "f.pb")
    assert "that no constant stands for" in err or "signature" in err
    assert not (tmp_path / "f.pb").exists()


def test_optimize(line, tmp_path):
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
        two = tf.add(tf.constant(1.0), tf.constant(1.0), name="two")
        a = tf.multiply(x, two, name="a")
        b = tf.multiply(x, two, name="b")
        tf.add(a, b, name="y")
        tf.exp(x, name="unused")
    tf.io.write_graph(graph, str(tmp_path), "g.pb", as_text=False)
    small = tmp_path / "small.pb"
    out = line("optimize", tmp_path / "g.pb", "--outputs", "y", "-o", small)
    assert out.startswith("8 nodes before, 4 now\n")
    assert sorted(n.op for n in graph_of(small).node) == [
        "AddV2",
        "Const",
        "Mul",
        "Placeholder",
    ]
    (y,) = run_graph(small, {"x:0": X[0]}, ["y:0"])
    np.testing.assert_array_equal(y, 4 * X[0])


def old_graph(producer=8):
    graph = tf.compat.v1.GraphDef()
    graph.versions.producer = producer
    x = graph.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = tf.float32.as_datatype_enum
    x.attr["shape"].shape.SetInParent()
    return graph, x


def test_upgrade_a_graph(line, tmp_path):
    graph, _ = old_graph()
    norm = graph.node.add(
        name="norm",
        op="BatchNormWithGlobalNormalization",
        input=["x", "m", "v", "beta", "gamma"],
    )
    norm.attr["T"].type = 1
    norm.attr["variance_epsilon"].f = 0.001
    norm.attr["scale_after_normalization"].b = True
    for i, name in enumerate(["m", "v", "beta", "gamma"]):
        c = graph.node.add(name=name, op="Const")
        c.attr["dtype"].type = 1
        c.attr["value"].tensor.CopyFrom(
            tf.make_tensor_proto(np.float32([i + 1, i + 2]))
        )
    with tf.io.gfile.GFile(str(tmp_path / "old.pb"), "wb") as f:
        f.write(graph.SerializeToString())
    image = np.float32(np.random.RandomState(1).randn(1, 2, 2, 2))
    (before,) = run_graph(tmp_path / "old.pb", {"x:0": image}, ["norm:0"])
    out = line("upgrade", tmp_path / "old.pb", "-o", tmp_path / "new.pb")
    assert "1 ops replaced" in out
    new = graph_of(tmp_path / "new.pb")
    assert new.versions.producer == 2474
    assert "BatchNormWithGlobalNormalization" not in {n.op for n in new.node}
    x = next(n for n in new.node if n.name == "x")
    # In graphs of those days an empty shape meant any.
    assert x.attr["shape"].shape.unknown_rank
    (after,) = run_graph(tmp_path / "new.pb", {"x:0": image}, ["norm:0"])
    np.testing.assert_allclose(after, before, rtol=1e-6)


def test_upgrade_refuses_all_that_it_cannot(line, tmp_path):
    graph, _ = old_graph(1)
    graph.node.add(name="a", op="AdjustContrast", input=["x", "x", "x", "x"])
    graph.node.add(name="b", op="NoSuchOp")
    (tmp_path / "old.pb").write_bytes(graph.SerializeToString())
    err = line.fails("upgrade", tmp_path / "old.pb", "-o", tmp_path / "new.pb")
    assert "ops without a replacement: AdjustContrast (Use" in err
    assert "NoSuchOp (unknown)" in err
    assert not (tmp_path / "new.pb").exists()


def test_upgrade_a_model(line, tmp_path):
    model, old, new = Looped(), str(tmp_path / "old"), str(tmp_path / "new")
    tf.saved_model.save(model, old)
    line("upgrade", old, "-o", new)
    loaded = tf.saved_model.load(new)
    y = loaded.signatures["serving_default"](x=tf.constant(X))
    np.testing.assert_array_equal(y["y"], model.f(tf.constant(X))["y"])
    assert "exists" in line.fails("upgrade", old, "-o", new)
    assert "lies in the model" in line.fails("upgrade", old, "-o", old + "/new")


def test_ops(line, tmp_path):
    shown = line.json("ops", golden("saved_models/session"))
    assert shown["Mul"]["here"] and shown["Const"]["count"] > 0
    graph, _ = old_graph()
    graph.node.add(name="b", op="NoSuchOp")
    (tmp_path / "g.pb").write_bytes(graph.SerializeToString())
    assert line("ops", tmp_path / "g.pb", "--missing", code=1) == (
        "NoSuchOp     1  no\n2 ops, 1 missing\n"
    )


def test_picture_of_a_circle_and_of_a_large_graph(line, tmp_path):
    graph, _ = old_graph()
    for i in range(3000):
        graph.node.add(
            name=f"layer{i // 100}/part{i}",
            op="Identity",
            input=[f"layer{(i - 1) // 100}/part{i - 1}" if i else "x"],
        )
    graph.node[1].input[0] = graph.node[-1].name  # closes a circle
    (tmp_path / "g.pb").write_bytes(graph.SerializeToString())
    svg = line("svg", tmp_path / "g.pb")
    assert svg.count("<rect") == 1 + 31 and "100 nodes" in svg
    out = line("svg", tmp_path / "g.pb", "--depth", 2, "-o", tmp_path / "g.svg")
    assert out == f"Wrote {tmp_path}/g.svg: 3001 boxes\n"
