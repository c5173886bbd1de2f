"""tf.compat.v1.graph_util: expected values are TensorFlow 2.21's."""

import numpy as np
import pytest

import headrace as tf

v1 = tf.compat.v1
util = v1.graph_util


def names(graph_def, *ops):
    return [n.name for n in graph_def.node if not ops or n.op in ops]


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.mark.parametrize("resource", [True, False])
def test_variables_become_constants(graph, resource):
    x = v1.placeholder(tf.float32, [2], name="x")
    start = {"use_resource": resource}
    v = v1.get_variable("v", initializer=[3.0, 4.0], **start)
    w = v1.get_variable("w", initializer=[1.0, 2.0], **start)
    rows = v1.get_variable("rows", initializer=[[1.0], [2.0], [3.0]], **start)
    row = tf.gather(rows, [2, 0], name="row")
    y = tf.add(tf.identity(x, name="same") * v + w, row[:, 0], name="y")
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        wanted = session.run(y, {x: [1.0, 1.0]})
        graph_def = graph.as_graph_def()
        all_of_it = util.convert_variables_to_constants(session, graph_def, ["y"])
        some = [
            util.convert_variables_to_constants(session, graph_def, ["y"], **chosen)
            for chosen in (
                {"variable_names_whitelist": ["v"]},
                {"variable_names_blacklist": ["w", "rows"]},
            )
        ]
        with pytest.raises(AssertionError, match="zz is not in graph"):
            util.convert_variables_to_constants(session, graph_def, ["zz"])
    kinds = ("VarHandleOp", "VariableV2", "ReadVariableOp", "AssignVariableOp")
    assert not names(all_of_it, *kinds)
    for part in some:
        assert "v" in names(part, "Const") and "w" in names(part, *kinds)
    with tf.Graph().as_default(), v1.Session() as session:
        (found,) = tf.import_graph_def(all_of_it, return_elements=["y:0"], name="")
        np.testing.assert_array_equal(session.run(found, {"x:0": [1, 1]}), wanted)


def test_variables_of_functions_and_loops_become_constants(graph):
    v = v1.get_variable("v", initializer=2.0, use_resource=True)

    @tf.function
    def f(x):
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * v), [0, x])[1]

    x = v1.placeholder(tf.float32, [], name="x")
    y = tf.cond(x > 1.0, lambda: f(x), lambda: x - v)
    y = tf.identity(y, name="y")
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        frozen = util.convert_variables_to_constants(
            session, graph.as_graph_def(), ["y"]
        )
    assert not names(frozen, "VarHandleOp")
    with tf.Graph().as_default(), v1.Session() as session:
        (found,) = tf.import_graph_def(frozen, return_elements=["y:0"], name="")
        assert session.run(found, {"x:0": 3.0}) == 24
        assert session.run(found, {"x:0": 1.0}) == -1


def test_changes_of_variables_cannot_be_kept(graph):
    v = v1.get_variable("v", initializer=2.0, use_resource=True)
    tf.identity(v.assign_add(1.0), name="y")
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        with pytest.raises(ValueError, match="cannot take a variable that becomes"):
            util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])


def test_training_nodes_go(graph):
    a = tf.constant([1.0, 2.0], name="a")
    b = tf.identity(a, name="b")
    c = tf.identity(tf.identity(b, name="bb"), name="c")
    with tf.control_dependencies([b]):
        d = tf.add(tf.debugging.check_numerics(c, "no", name="n"), 1.0, name="d")
    tf.identity(d, name="out")
    found = util.remove_training_nodes(graph.as_graph_def(), ["out"])
    inputs = {n.name: list(n.input) for n in found.node}
    assert "bb" not in inputs and "c" not in inputs and "n" not in inputs
    assert inputs["d"] == ["b", "d/y"] and inputs["out"] == ["d"]
    assert inputs["b"] == ["a"]


def test_what_runs_on_cpus(graph):
    for tensor, wanted in (
        (tf.constant(1), True),
        (tf.constant("s"), True),
        (tf.constant(1, tf.int64), False),
        (v1.placeholder(tf.int32), False),
        (tf.dynamic_stitch([[0]], [[1]]), True),
        (tf.dynamic_stitch([[0]], [[1.0]]), False),
    ):
        assert util.must_run_on_cpu(tensor.op) is wanted
        assert util.must_run_on_cpu(tensor.op.node_def) is wanted
    op = v1.get_variable("w", [1], use_resource=False).op
    assert not util.must_run_on_cpu(op) and util.must_run_on_cpu(op, True)
    with pytest.raises(AssertionError):
        util.must_run_on_cpu(3)


def test_shapes_by_names(graph):
    tf.split([[1.0, 2.0]], 2, axis=1, name="s")
    for name in ("s", "s:1"):
        assert util.tensor_shape_from_node_def_name(graph, name) == [1, 1]
    with pytest.raises(KeyError, match="'zz', does not exist in the graph"):
        util.tensor_shape_from_node_def_name(graph, "zz")
