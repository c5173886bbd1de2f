"""The nodes that tf.gradients and optimizers make have TensorFlow's names and ops (see
gradient_graph_cases.py), but for those that a list excuses."""

import json
import pathlib
import re

import gradient_graph_cases as cases
import headrace as tf
import numpy as np
import pytest

GOLDEN = pathlib.Path(__file__).parents[3] / "tests" / "golden" / "v1"
FOUND = json.loads((GOLDEN / "gradient_graphs.json").read_text())
# What TensorFlow has, what stands there instead, and why.
EXCUSED = (
    (
        "Tile Tile",
        "Tile (Tile|BroadcastTo)",
        "broadcasting needs no memory, tiling does",
    ),
    (
        "conv_grad/ShapeN ShapeN",
        "conv_grad/Shape(_1)? (Shape|Const)",
        "sizes stay known",
    ),
    ("M..imum_grad/zeros_like ZerosLike", "M..imum_grad/zeros_like Const", "a 0 does"),
)
v1 = tf.compat.v1


def without(nodes, patterns):
    patterns = [re.compile(f"(.*/)?{p}") for p in patterns if p is not None]
    return [n for n in nodes if not any(p.fullmatch(n) for p in patterns)]


@pytest.mark.parametrize("name", cases.NAMES)
def test_names_and_ops(name):
    theirs = without(FOUND[name], [row[0] for row in EXCUSED])
    ours = without(cases.nodes(tf, name), [row[1] for row in EXCUSED])
    assert ours == theirs
    assert len(theirs) > 0.7 * len(FOUND[name])


# The same for nodes with their inputs: patterns that are made alike in both.
SAME = (
    (r"(\S+imum_grad|clip\S*_grad)/zeros_like \w+.*", "a scalar 0 does"),
    (r"(\S+)/Tile (Tile|BroadcastTo) ", "broadcasting needs no memory, tiling does"),
)


@pytest.mark.parametrize("name", cases.WIRED)
def test_nodes_and_inputs(name):
    ours, theirs = cases.wiring(tf, name), FOUND[name]
    for pattern, _ in SAME:
        ours, theirs = (
            [re.sub(pattern, r"\1", node) for node in nodes] for nodes in (ours, theirs)
        )
    assert ours == theirs


def test_excuses_are_needed():
    everything = [node for name in cases.NAMES for node in FOUND[name]]
    for theirs, _, reason in EXCUSED:
        assert len(without(everything, [theirs])) < len(everything), reason


def test_names_lead_to_gradients():
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2, 3], name="x")
        w = v1.get_variable(
            "w", initializer=np.ones([3, 2], np.float32), use_resource=False
        )
        loss = tf.reduce_sum(tf.matmul(x, w))
        step = v1.train.GradientDescentOptimizer(0.5).minimize(loss)
        gradient = graph.get_tensor_by_name(
            "gradients/MatMul_grad/tuple/control_dependency_1:0"
        )
        again = tf.gradients(loss, w)[0]
    assert again.op.name == "gradients_1/MatMul_grad/MatMul_1"
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    with v1.Session(graph=graph) as sess:
        sess.run(w.initializer)
        wanted = np.repeat(data.sum(0)[:, None], 2, 1)
        np.testing.assert_array_equal(sess.run(gradient, {x: data}), wanted)
        np.testing.assert_array_equal(sess.run(again, {x: data}), wanted)
        sess.run(step, {x: data})
        np.testing.assert_array_equal(sess.run(w), 1 - 0.5 * wanted)


def test_gradients_of_references():
    with tf.Graph().as_default():
        v = v1.Variable(3.0, use_resource=False)
        (given,) = tf.gradients(v._ref(), v)
        with v1.Session() as sess:
            assert sess.run(given) == 1


def test_gates():
    def control_inputs(gate):
        with tf.Graph().as_default():
            x = tf.constant([1.0, 2.0])
            a = v1.get_variable("a", [2], use_resource=False)
            optimizer = v1.train.GradientDescentOptimizer(0.1)
            pairs = optimizer.compute_gradients(a * x, [a], gate_gradients=gate)
            return [op.name for op in pairs[0][0].op.control_inputs]

    optimizer = v1.train.Optimizer
    assert control_inputs(optimizer.GATE_NONE) == []
    assert control_inputs(optimizer.GATE_OP) == ["gradients/mul_grad/tuple/group_deps"]
    assert control_inputs(optimizer.GATE_GRAPH) == ["tuple/group_deps"]


def test_loops_and_branches_of_nodes():
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            x = v1.placeholder(tf.float32, [])
            y = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * x), [0, x])[
                1
            ]
            z = tf.cond(x > 0, lambda: y * 2.0, lambda: y)
            given = v1.gradients(z, x, gate_gradients=True)[0]
        with v1.Session(graph=graph) as sess:
            assert sess.run([z, given], {x: 2.0}) == [32.0, 64.0]
            assert sess.run([z, given], {x: -2.0}) == [16.0, -32.0]
    finally:
        v1.enable_control_flow_v2()


@pytest.mark.parametrize(
    "op", [tf.add, tf.subtract, tf.multiply, tf.divide, tf.maximum]
)
@pytest.mark.parametrize(
    "a, b",
    [([1, 1], [0, 0]), ([1, 3], [0, 3]), ([1], [2, 0]), ([0, 1], [0, 0]), ([], [0])],
)
def test_gradients_of_what_is_repeated_to_nothing_are_zeros(op, a, b):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x, y = tf.ones(a), tf.ones(b)
        dx, dy = session.run(tf.gradients(op(x, y), [x, y]))
        np.testing.assert_array_equal(dx, np.zeros(a))
        np.testing.assert_array_equal(dy, np.zeros(b))
