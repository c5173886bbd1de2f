"""Parts of graphs below a name scope are exported and imported as TensorFlow does it."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1


def variable(name, resource):
    zeros = v1.zeros_initializer()
    return v1.get_variable(name, [2], initializer=zeros, use_resource=resource)


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        a = v1.placeholder(tf.float32, [2], name="a")
        nothing = tf.no_op(name="c0")
        with v1.variable_scope("h"):
            with tf.control_dependencies([nothing]):
                w, r = variable("w", False), variable("r", True)
            y = tf.add(a * w, r, name="y")
            v1.add_to_collection("outs", y)
            v1.add_to_collection("nums", 3)
            v1.add_to_collection("names", "h/y")
        other = variable("o", False)
        v1.add_to_collection("outs", other + y)
        v1.add_to_collection("ops", y.op)
        v1.add_to_collection("ops", nothing)
    return graph


def values(meta, key, kind):
    return list(getattr(meta.collection_def[key], kind).value)


def test_a_part_has_the_names_within_it(graph):
    meta = v1.train.export_meta_graph(graph=graph, export_scope="h")
    nodes = {node.name: node for node in meta.graph_def.node}
    assert list(nodes["y"].input) == ["mul", "y/ReadVariableOp"]
    assert list(nodes["mul"].input) == ["$unbound_inputs_a", "w/read"]
    # What a node waits for outside is left out.
    assert list(nodes["w/Assign"].input) == ["w", "w/Initializer/zeros"]
    assert nodes["w/read"].attr["_class"].list.s == [b"loc:@w"]
    assert "a" not in nodes and "o" not in nodes
    assert values(meta, "outs", "node_list") == ["y:0"]
    assert values(meta, "ops", "node_list") == ["y"]
    assert values(meta, "nums", "int64_list") == [3]
    assert values(meta, "names", "bytes_list") == [b"h/y"]
    assert values(meta, "unbound_inputs", "bytes_list") == [b"$unbound_inputs_a"]
    said = values(meta, "variables", "bytes_list")
    assert (
        said[0]
        == b"\n\x03w:0\x12\x08w/Assign\x1a\x08w/read:02\x15w/Initializer/zeros:08\x01"
    )
    assert len(said) == 2
    slash = v1.train.export_meta_graph(graph=graph, export_scope="h/")
    assert slash.graph_def == meta.graph_def
    nothing = v1.train.export_meta_graph(graph=graph, export_scope="nosuch")
    assert not nothing.graph_def.node


def test_a_scope_that_is_a_node(graph):
    meta = v1.train.export_meta_graph(graph=graph, export_scope="h/w")
    names = [node.name for node in meta.graph_def.node]
    assert names == ["Initializer/zeros", "h/w", "Assign", "read"]
    assert "names" not in meta.collection_def
    with tf.Graph().as_default():
        v1.train.import_meta_graph(meta, import_scope="k")
        assert [v.name for v in v1.global_variables()] == ["k/h/w:0"]


def test_a_part_runs_elsewhere(graph):
    meta = v1.train.export_meta_graph(graph=graph, export_scope="h")
    unbound = "Graph contains unbound inputs: \\$unbound_inputs_a. Must provide"
    with tf.Graph().as_default() as other:
        with pytest.raises(ValueError, match=unbound):
            v1.train.import_meta_graph(meta)
        b = tf.constant([2.0, 3.0], name="b")
        saver = v1.train.import_meta_graph(
            meta, import_scope="there", input_map={"$unbound_inputs_a": b}
        )
        assert saver is not None and not v1.get_collection("unbound_inputs")
        (y,) = v1.get_collection("outs")
        assert y.name == "there/y:0"
        with v1.Session(graph=other) as sess:
            sess.run(v1.global_variables_initializer())
            w, r = v1.global_variables()
            w.load([5.0, 7.0], sess)
            r.load([1.0, 1.0], sess)
            np.testing.assert_array_equal(sess.run(y), [11, 22])


def test_savers_in_scopes():
    with tf.Graph().as_default():
        with tf.name_scope("s"):
            variable("v", False)
            saver = v1.train.Saver()
        whole = saver.to_proto()
        assert whole.filename_tensor_name.startswith("s/save/")
        part = saver.to_proto(export_scope="s")
        assert part.filename_tensor_name == whole.filename_tensor_name[2:]
        assert part.restore_op_name == whole.restore_op_name[2:]
        assert saver.to_proto(export_scope="other") is None


def test_what_a_meta_graph_lists(graph):
    meta = v1.train.export_meta_graph(graph=graph)
    ops = [op.name for op in meta.meta_info_def.stripped_op_list.op]
    assert ops == sorted({node.op for node in graph.as_graph_def().node})
    add = next(
        op for op in meta.meta_info_def.stripped_op_list.op if op.name == "AddV2"
    )
    assert [arg.name for arg in add.input_arg] == ["x", "y"] and not add.summary


def test_savers_in_collections(tmp_path):
    with tf.Graph().as_default():
        v = variable("v", False)
        savers = [v1.train.Saver({"a": v}, name=name) for name in ("one", "two")]
        for saver in savers:
            v1.add_to_collection("savers", saver)
        with v1.Session() as sess:
            sess.run(v.initializer)
            v.load([4.0, 5.0], sess)
            path = savers[0].save(sess, str(tmp_path / "m"))
        whole = v1.train.export_meta_graph()
        only = savers[1].export_meta_graph(clear_extraneous_savers=True)
    assert len(values(whole, "savers", "bytes_list")) == 2
    (left,) = values(only, "savers", "bytes_list")
    assert left == savers[1].to_proto().SerializeToString()
    with tf.Graph().as_default(), v1.Session() as sess:
        v1.train.import_meta_graph(whole, import_scope="i")
        first, second = v1.get_collection("savers")
        assert second.to_proto().restore_op_name == "i/two/restore_all"
        first.restore(sess, path)
        np.testing.assert_array_equal(sess.run("i/v:0"), [4, 5])


def test_scopes_of_eager_code_name_variables():
    with tf.compat.v1.variable_scope("Table") as scope:
        assert tf.Variable(0.0, name="a").name == "Table/a:0"
        assert tf.compat.v1.Variable(0.0, name="a").name == "Table/a:0"
        with tf.name_scope("q"):
            assert tf.Variable(0.0, name="a").name == "Table/q/a:0"
        with tf.compat.v1.variable_scope("in"):
            assert tf.Variable(0.0, name="a").name == "Table/in/a:0"
            assert tf.compat.v1.get_variable("g", (2,)).name == "Table/in/g:0"
    with tf.compat.v1.variable_scope(scope):
        assert tf.Variable(0.0, name="a").name == "Table/a:0"
    with tf.compat.v1.variable_scope(None, "Def"):
        assert tf.Variable(0.0, name="b").name == "Def/b:0"
    with tf.compat.v1.variable_scope("x", auxiliary_name_scope=False):
        assert tf.Variable(0.0, name="b").name == "b:0"
