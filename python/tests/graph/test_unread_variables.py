"""What assignments of a plain graph's variables return.

The literals are what TensorFlow 2.21 printed for the same lines, with
`import tensorflow.compat.v1 as tf; tf.disable_v2_behavior()`.
"""

import headrace as tf
import pytest

v1 = tf.compat.v1


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def variable(shape=(2,)):
    return v1.get_variable(
        "v", shape, initializer=v1.ones_initializer(), use_resource=True
    )


def names(operations):
    return [op.name for op in operations]


def test_what_it_is(graph):
    v = variable()
    a = v.assign([3.0, 4.0])
    assert repr(a) == "<tf.Variable 'AssignVariableOp' shape=(2,) dtype=float32>"
    assert not isinstance(a, tf.Variable)
    assert tf.is_tensor(a)
    assert (type(a).__name__, a.name) == ("_UnreadVariable", "AssignVariableOp")
    assert (a.op.name, a.op.type) == ("AssignVariableOp", "AssignVariableOp")
    assert a.op.get_attr("validate_shape")
    assert (a.dtype, a.shape, a.handle.name) == (tf.float32, (2,), "v:0")
    assert a.graph is graph
    assert a.trainable
    assert a.initializer is None
    assert v1.global_variables() == [v]
    assert isinstance(v.assign([1.0, 2.0], read_value=False), tf.Operation)


def test_each_use_reads_behind_it(graph):
    a = variable().assign([3.0, 4.0])
    assert a.value().name == "ReadVariableOp_1:0"
    assert a.read_value().name == "ReadVariableOp_2:0"
    assert (1.0 + a).op.inputs[1].name == "ReadVariableOp_3:0"
    assert tf.identity(a).op.inputs[0].name == "Identity/ReadVariableOp:0"
    assert tf.convert_to_tensor(a).name == "ReadVariableOp_4:0"
    assert tf.add(a, a, name="q").op.inputs[1].name == "q/ReadVariableOp_1:0"
    for op in graph.get_operations():
        if op.type == "ReadVariableOp" and not op.name.startswith("v/"):
            assert names(op.control_inputs) == ["AssignVariableOp"]
    with pytest.raises(ValueError, match="Incompatible type conversion requested to"):
        tf.convert_to_tensor(a, tf.float64)


def test_what_waits_for_it(graph):
    v = variable()
    a = v.assign([3.0, 4.0])
    with tf.control_dependencies([a]):
        waits, read = tf.no_op(), tf.identity(v)
        with tf.control_dependencies([a, v.initializer]):
            twice = tf.no_op()
    assert names(waits.control_inputs) == ["AssignVariableOp"]
    assert names(twice.control_inputs) == ["AssignVariableOp", "v/Assign"]
    assert names(read.op.inputs[0].op.control_inputs) == ["AssignVariableOp"]
    b = a.assign_add([1.0, 1.0])
    assert names(b.op.inputs[1].op.control_inputs) == ["AssignVariableOp"]
    assert names(b.value().op.control_inputs) == ["AssignAddVariableOp"]
    group = tf.group(b, a)
    assert names(group.control_inputs) == ["AssignAddVariableOp", "AssignVariableOp"]
    scattered = a.scatter_add(tf.IndexedSlices([1.0], [0]))
    assert (type(scattered), scattered.op.type) == (type(a), "ResourceScatterAdd")


def test_functions_of_old(graph):
    v = variable()
    made = [
        v1.assign(v, [1.0, 2.0], name="a"),
        v1.assign_add(v, [1.0, 2.0], name="b"),
        v1.assign_sub(v, [1.0, 2.0], name="c"),
        v1.scatter_sub(v, [0], [1.0], name="d"),
        v1.scatter_nd_update(v, [[0]], [1.0], name="e"),
        v1.scatter_update(v1.assign(v, [1.0, 2.0]), [0], [2.0]),
    ]
    assert names(x.op for x in made) == [
        "a",
        "AssignAddVariableOp",
        "AssignSubVariableOp",
        "d",
        "e",
        "ResourceScatterUpdate",
    ]
    assert {type(x).__name__ for x in made} == {"_UnreadVariable"}
    with pytest.raises(
        ValueError, match="Cannot assign value to variable ' v:0': Shape"
    ):
        v1.assign(v, [1.0, 2.0, 3.0])


def test_runs():
    with tf.Graph().as_default(), v1.Session() as sess:
        v = variable()
        sess.run(v.initializer)
        a = v.assign([3.0, 4.0])
        assert sess.run(a).tolist() == [3, 4]
        b = v.assign_add([1.0, 1.0])
        assert sess.run({"k": [b]})["k"][0].tolist() == [4, 5]
        assert sess.run(b * 10.0).tolist() == [50, 60]
        assert b.eval(session=sess).tolist() == [6, 7]
        assert sess.run(b.op) is None
        assert sess.run(v).tolist() == [7, 8]
        assert sess.run([tf.stack([a, a]), tf.concat([a, [9.0]], 0)])[1].tolist() == [
            3,
            4,
            9,
        ]
        chosen = tf.cond(tf.constant(True), lambda: v.assign([1.0, 2.0]), lambda: a)
        assert sess.run(chosen).tolist() == [1, 2]
        last = a.assign_sub([1.0, 1.0])
        assert sess.run(last).tolist() == [2, 3]
        assert sess.run(a[1]) == 4
        (slope,) = tf.gradients(a * 2.0, v)
        assert sess.run(slope).tolist() == [2, 2]
        assert sess.run(tf.gather(a, [1])).tolist() == [4]


def test_references_give_tensors(graph):
    v = v1.get_variable("v", [2], use_resource=False)
    a = v.assign([3.0, 4.0])
    assert (a.name, a.dtype, a.op.type) == ("Assign:0", tf.float32._as_ref, "Assign")
    assert v1.assign_add(v, [1.0, 1.0], name="n").op.name == "n"
