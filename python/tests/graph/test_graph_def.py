"""GraphDefs: written, read back, cut short and damaged."""

import numpy as np
import pytest

import headrace as tf

pytest.importorskip("google.protobuf")
v1 = tf.compat.v1


def small_graph():
    with tf.Graph().as_default() as g:
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        y = tf.nn.relu(tf.matmul(x, tf.ones([3, 2])) + [1.0, -2.0])
        tf.identity(y, name="y")
    return g.as_graph_def()


def run(graph_def, fetch, feeds):
    with tf.Graph().as_default():
        tf.import_graph_def(graph_def, name="")
        with v1.Session() as session:
            return session.run(fetch, feeds)


def test_round_trip():
    graph_def = small_graph()
    again = tf.Graph()
    with again.as_default():
        tf.import_graph_def(graph_def, name="")
    assert again.as_graph_def() == graph_def
    x = np.float32([[1, 2, 3]])
    np.testing.assert_array_equal(run(graph_def, "y:0", {"x:0": x}), [[7, 4]])


def test_prefix_input_map_and_returned_elements():
    graph_def = small_graph()
    with tf.Graph().as_default():
        x = tf.constant([[1.0, 1.0, 1.0]])
        y, op = tf.import_graph_def(
            graph_def, input_map={"x": x}, return_elements=["y:0", "y"], name="p"
        )
        assert (y.name, op.name) == ("p/y:0", "p/y")
        with v1.Session() as session:
            np.testing.assert_array_equal(session.run(y), [[4, 1]])
        with pytest.raises(ValueError, match="Attempted to map inputs"):
            tf.import_graph_def(graph_def, input_map={"nobody:0": x})
        with pytest.raises(ValueError, match="not found in graph"):
            tf.import_graph_def(graph_def, return_elements=["nobody:0"])


def test_names_in_use_become_others():
    graph_def = small_graph()
    with tf.Graph().as_default() as g:
        tf.import_graph_def(graph_def, name="")
        tf.import_graph_def(graph_def, name="")
        names = {op.name for op in g.get_operations()}
    assert {"y", "y_1"} <= names


def test_functions_go_along():
    f = tf.function(
        lambda x: tf.while_loop(lambda v: v < 50.0, lambda v: v * x, [x])[0]
    )
    concrete = f.get_concrete_function(tf.TensorSpec([], tf.float32, "x"))
    graph_def = concrete.graph.as_graph_def()
    fetch = concrete.outputs[0].name
    assert run(graph_def, fetch, {"x:0": np.float32(3)}) == 81
    assert concrete.function_def.signature.input_arg[0].name == "x"


def bytes_of_small_graph():
    g = v1.GraphDef()
    g.versions.producer = 1000
    node = g.node.add(name="c", op="Const")
    node.attr["dtype"].type = 1
    t = node.attr["value"].tensor
    t.dtype = 1
    t.tensor_shape.dim.add().size = 2
    t.float_val.append(2.0)
    node = g.node.add(name="y", op="Add", input=["c", "c:0"])
    node.attr["T"].type = 1
    return g.SerializeToString(deterministic=True)


class Raw:
    """What import_graph_def asks of a proto, with any bytes."""

    def __init__(self, data):
        self.data = data

    def SerializeToString(self):  # noqa: N802  (protobuf's name)
        return self.data


def attempt(data):
    with tf.Graph().as_default() as g:
        try:
            tf.import_graph_def(Raw(data), name="")
        except (ValueError, tf.errors.OpError) as e:
            assert str(e)
            return
        ops = g.get_operations()
        with v1.Session() as session:
            for op in ops:
                try:
                    session.run(op.outputs or op)
                except (ValueError, tf.errors.OpError) as e:
                    assert str(e)


def test_cut_at_every_byte():
    data = bytes_of_small_graph()
    for n in range(len(data)):
        attempt(data[:n])


def test_every_byte_changed():
    data = bytes_of_small_graph()
    for i in range(len(data)):
        for flip in (0x01, 0x08, 0x80, 0xFF):
            attempt(data[:i] + bytes([data[i] ^ flip]) + data[i + 1 :])


def v1_loop(limit):
    """x doubled `limit` times, by hand with Enter, Merge, Switch and the rest."""
    g = v1.GraphDef()
    g.versions.producer = 1000

    def node(name, op, *inputs, **attrs):
        n = g.node.add(name=name, op=op, input=inputs)
        for key, (kind, value) in attrs.items():
            setattr(n.attr[key], kind, value)

    def const(name, value, *inputs):
        n = g.node.add(name=name, op="Const", input=inputs)
        n.attr["dtype"].type = 3
        n.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.int32))

    t = ("type", 3)
    const("zero", 0)
    const("one", 1)
    for name, start in (("i", "zero"), ("x", "one")):
        node(name + "/enter", "Enter", start, T=t, frame_name=("s", b"f"))
        node(
            name + "/merge",
            "Merge",
            name + "/enter",
            name + "/next",
            T=t,
            N=("i", 2),
        )
        node(name + "/switch", "Switch", name + "/merge", "cond", T=t)
        node(name + "/exit", "Exit", name + "/switch", T=t)
        node(name + "/body", "Identity", name + "/switch:1", T=t)
    const("limit", limit, "^i/merge")
    node("less", "Less", "i/merge", "limit", T=t)
    node("cond", "LoopCond", "less")
    const("step", 1, "^i/body")
    node("i/add", "Add", "i/body", "step", T=t)
    node("x/add", "Add", "x/body", "x/body", T=t)
    for name in "ix":
        node(name + "/next", "NextIteration", name + "/add", T=t)
    return g


@pytest.mark.parametrize("limit", [0, 1, 10])
def test_frames(limit):
    assert run(v1_loop(limit), "x/exit:0", {}) == 2**limit


def test_dead_value_fetched():
    g = v1.GraphDef()
    g.versions.producer = 1000
    n = g.node.add(name="d", op="Placeholder")
    n.attr["dtype"].type = 1
    n = g.node.add(name="p", op="Placeholder")
    n.attr["dtype"].type = 10
    n = g.node.add(name="s", op="Switch", input=["d", "p"])
    n.attr["T"].type = 1
    feeds = {"d:0": np.float32(4), "p:0": np.bool_(True)}
    assert run(g, "s:1", feeds) == 4
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not have value"):
        run(g, "s:0", feeds)


def test_composites_are_named_as_upstream():
    def last(function):
        with tf.Graph().as_default():
            x = tf.compat.v1.placeholder(tf.float32, [3, 4], name="x")
            out = tf.nest.flatten(function(x))[0]
            names = [n.name for n in out.graph.as_graph_def().node]
            assert len(set(names)) == len(names)
            return out.name

    rows = {
        "clip_by_value:0": lambda x: tf.clip_by_value(x, 0, 1),
        "n/Squeeze:0": lambda x: tf.norm(x, name="n"),
        "l2_normalize:0": lambda x: tf.math.l2_normalize(x, 1),
        "mine:0": lambda x: tf.clip_by_norm(x, 1.0, None, "mine"),
        "ReduceLogSumExp:0": lambda x: tf.reduce_logsumexp(x),
        "one_hot:0": lambda x: tf.one_hot([1], 3),
        "ones_like:0": lambda x: tf.ones_like(x),
        "truediv:0": lambda x: tf.constant(1) / 2,
        "einsum/Einsum:0": lambda x: tf.einsum("ij,kj->ik", x, x),
        "Tensordot/MatMul:0": lambda x: tf.tensordot(x, x, [[1], [1]]),
        "Tensordot:0": lambda x: tf.tensordot(tf.ones([2, 2, 3]), x, 1),
        "clip_by_global_norm/mul_1:0": lambda x: tf.clip_by_global_norm([x], 1.0),
        "s/batchnorm/add:0": lambda x: _inside_s(x),
        "cond/Identity:0": lambda x: tf.cond(x[0, 0] > 0, lambda: x, lambda: x + 1),
        "case/cond/Identity:0": lambda x: tf.case(
            [(x[0, 0] > 0, lambda: x)], default=lambda: x + 1
        ),
        "switch_case/indexed_case/Identity:0": lambda x: tf.switch_case(
            tf.cast(x[0, 0], tf.int32), [lambda: x, lambda: x + 1]
        ),
        "tuple/control_dependency:0": lambda x: tf.tuple([x, x]),
    }
    for name, function in rows.items():
        assert last(function) == name


def _inside_s(x):
    with tf.name_scope("s"):
        return tf.nn.batch_normalization(x, 0.0, 1.0, 0.0, 1.0, 1e-3)


def test_control_flow_operations_are_named_like_their_scopes():
    with tf.Graph().as_default() as g:
        x = tf.compat.v1.placeholder(tf.int32, [], name="x")
        tf.cond(x > 0, lambda: x, lambda: x + 1)
        tf.while_loop(lambda i: i < x, lambda i: [i + 1], [0])
        kinds = {n.name: n.op for n in g.as_graph_def().node}
    assert kinds["cond"] == "StatelessIf" and kinds["while"] == "StatelessWhile"


def _library_function(library, name, op, result):
    """Adds name(x: float) -> y: what `op` of x gives, named `result`."""
    f = library.function.add()
    f.signature.name = name
    f.signature.input_arg.add(name="x", type=1)
    f.signature.output_arg.add(name="y", type=1)
    node = f.node_def.add(name="c", op=op, input=["x"])
    if op == "Neg":
        node.attr["T"].type = 1
    f.ret["y"] = f"c:{result}:0"


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("result", ["y", "output"])
def test_results_of_calls_by_the_signatures_names(reverse, result):
    """A node whose op is a function: its outputs bear the function's names."""
    functions = [("A", "B", result), ("B", "Neg", "y")]
    d = tf.compat.v1.GraphDef()
    for name, op, given in functions[::-1] if reverse else functions:
        _library_function(d.library, name, op, given)
    d.node.add(name="k", op="Placeholder").attr["dtype"].type = 1
    d.node.add(name="call", op="A", input=["k"])
    with tf.Graph().as_default():
        tf.import_graph_def(d, name="")
        with tf.compat.v1.Session() as session:
            assert session.run("call:0", {"k:0": 2.0}) == -2
    d.library.function[-1 if reverse else 0].ret["y"] = "c:z:0"
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="names an output that c does not have"):
            tf.import_graph_def(d, name="")
