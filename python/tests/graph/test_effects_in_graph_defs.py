"""A traced function's GraphDef says in which order its effects happen, and its results
wait for them: what runs the graph in a session does what a call does."""

import headrace as tf


def graph_def(function, *specs):
    return tf.function(function).get_concrete_function(*specs).graph.as_graph_def()


def controls(proto):
    """{node: what it waits for}, of those that wait."""
    found = {n.name: [i[1:] for i in n.input if i[0] == "^"] for n in proto.node}
    return {name: names for name, names in found.items() if names}


def test_without_effects():
    proto = graph_def(lambda x: x + tf.random.uniform([]), tf.TensorSpec([]))
    assert not controls(proto)
    assert "NoOp" not in [n.name for n in proto.node]


def test_reads_and_writes_of_a_variable():
    v = tf.Variable(1.0)

    def f(x):
        before = v + x
        v.assign_add(x, read_value=False)
        return before, v.read_value()

    found = controls(graph_def(f, tf.TensorSpec([])))
    reads = ["ReadVariableOp", "ReadVariableOp_1"]
    assert found.pop("NoOp") == sorted(["AssignAddVariableOp", *reads])
    assert found == {
        "AssignAddVariableOp": [reads[0]],
        reads[1]: ["AssignAddVariableOp"],
        "Identity_1": ["NoOp"],
        "Identity_2": ["NoOp"],
    }


def test_loops_with_effects():
    v, w = tf.Variable(1.0), tf.Variable(1.0)

    def f(x):
        for _ in tf.range(2):
            v.assign_add(x)
        for _ in tf.range(2):
            w.assign_add(v)
        return x

    proto = graph_def(f, tf.TensorSpec([]))
    loops = [n.name for n in proto.node if n.op == "While"]
    found = controls(proto)
    assert len(loops) == 2 and found[loops[1]] == [loops[0]]
    assert found["NoOp"] == sorted(loops) and found["Identity"] == ["NoOp"]


def test_names_that_are_taken_and_functions_without_results():
    v = tf.Variable(1.0)

    def f(x):
        tf.no_op()
        return v + x

    assert controls(graph_def(f, tf.TensorSpec([])))["Identity"] == ["NoOp_1"]

    def g(x):
        v.assign(x)

    proto = graph_def(g, tf.TensorSpec([]))
    assert not [n for n in proto.node if n.op == "NoOp"]


def test_sessions_run_the_effects():
    outer = tf.Variable(1.0)

    def f(x):
        outer.assign_add(x)
        outer.assign(outer * 2.0)
        return x * 1.0

    proto = graph_def(f, tf.TensorSpec([]))
    (handle,) = [
        n.name
        for n in proto.node
        if n.op == "Placeholder"
        and n.attr["dtype"].type == tf.resource.as_datatype_enum
    ]
    with tf.Graph().as_default():
        v = tf.Variable(3.0)
        given = {f"{handle}:0": v.handle, "x:0": tf.constant(2.0)}
        (result,) = tf.import_graph_def(proto, given, ["Identity:0"])
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            assert session.run(result) == 2.0
            assert session.run(v) == 10.0


def test_parts_of_graphs_are_written_as_they_are():
    v = tf.Variable(1.0)
    concrete = tf.function(lambda x: v + x).get_concrete_function(1.0)
    assert [op.name for op in concrete.graph.get_operations()][-1] == "Identity"
    assert not concrete.graph.get_operation_by_name("Identity").control_inputs


def test_functions_that_are_called_say_the_order_too():
    v = tf.Variable(1.0)

    @tf.function
    def inner(x):
        v.assign_add(x, read_value=False)
        return v.read_value()

    (function,) = graph_def(lambda x: inner(x), tf.TensorSpec([])).library.function
    names = {n.op: n.name for n in function.node_def}
    (read,) = (n for n in function.node_def if n.op == "ReadVariableOp")
    assert f"^{names['AssignAddVariableOp']}" in read.input
