"""Branches and loops of TensorFlow 1's nodes, built and differentiated."""

import functools
import json

import frame_programs
import headrace as tf
import numpy as np
import pytest

tf1 = tf.compat.v1
C = tf.constant


pytestmark = pytest.mark.usefixtures("frames")


def run(fetches, feed=None):
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        return session.run(fetches, feed)


def ops():
    nodes = tf1.get_default_graph().as_graph_def().node
    return {n.name: (n.op, *n.input) for n in nodes}


def slope(y, x, at, step=1e-3):
    with tf1.Session() as s:
        return (s.run(y, {x: at + step}) - s.run(y, {x: at - step})) / (2 * step)


with open(frame_programs.GOLDEN, encoding="utf8") as file:
    GOLDEN = dict(zip(frame_programs.SEEDS, json.load(file)))


@pytest.mark.parametrize("seed", GOLDEN)
def test_random_programs_are_tensorflows(seed):
    nodes, value, gx, gw = frame_programs.run(tf, seed)
    known = GOLDEN[seed]
    assert nodes == known[0]
    np.testing.assert_allclose([value, gx, *gw], [*known[1:3], *known[3]], 1e-4, 1e-5)


def test_a_branch_takes_what_it_reads_through_switches():
    x, y = tf1.placeholder(tf.float32, [], "x"), C(2.0, name="y")
    tf1.cond(x > 1.0, lambda: x * y, lambda: y + 3.0)
    made = ops()
    assert made["cond/pred_id"] == ("Identity", "Greater")
    assert made["cond/switch_t"] == ("Identity", "cond/Switch:1")
    assert made["cond/mul"] == ("Mul", "cond/mul/Switch:1", "cond/mul/Switch_1:1")
    assert made["cond/add/y"] == ("Const", "^cond/switch_f")
    assert made["cond/Merge"] == ("Merge", "cond/add", "cond/mul")


def test_a_loop_takes_what_stays_the_same_as_constant_enters():
    x = tf1.placeholder(tf.float32, [], "x")
    tf1.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * x), [C(0), C(1.0)])
    made = ops()
    assert made["while/mul"] == ("Mul", "while/Identity_1", "while/mul/Enter")
    assert made["while/Merge"] == ("Merge", "while/Enter", "while/NextIteration")
    assert made["while/add/y"] == ("Const", "^while/Identity")
    assert made["while/Less/y"] == ("Const", "^while/Merge")
    node = tf1.get_default_graph().get_operation_by_name("while/mul/Enter")
    assert node.get_attr("is_constant")
    assert node.get_attr("frame_name") == b"while/while_context"


def test_functions_within_such_graphs_keep_theirs():
    @tf.function
    def f(x):
        return tf.cond(x > 1.0, lambda: x, lambda: -x)

    assert run(f(C(3.0))) == 3.0
    assert "Switch" not in {kind for kind, *_ in ops().values()}


def test_all_arguments_of_loops():
    x = C([[1.0, 2.0]])
    i, rows = tf1.while_loop(
        lambda i, r: i < 9,
        lambda i, r: [i + 1, tf.concat([r, r], 0)],
        [C(0), x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
        parallel_iterations=3,
        swap_memory=True,
        maximum_iterations=2,
        return_same_structure=True,
    )
    assert rows.shape.as_list() == [None, 2]
    turns, found, g = run([i, rows, tf.gradients(rows, x)[0]])
    assert turns == 2 and found.shape == (4, 2) and (g == 4).all()
    node = tf1.get_default_graph().get_operation_by_name("while/Enter")
    assert node.get_attr("parallel_iterations") == 3


def test_no_gradient_without_back_prop():
    x = C(1.0)
    y = tf1.while_loop(lambda i: i < 9.0, lambda i: i * i + 1.0, [x], back_prop=False)
    assert tf.gradients(y, x) == [None]


def leak():
    inside = []

    def body(i):
        inside.append(i + 1)
        return inside[0]

    tf1.while_loop(lambda i: i < 3, body, [C(0)])
    return inside[0]


@pytest.mark.parametrize(
    "program, kind, text",
    [
        (lambda: leak() + 1, ValueError, "as input to 'add' because 'while/add' is in"),
        (
            lambda: tf1.while_loop(
                lambda i: i < 3, functools.partial(tf.add, leak()), [C(0)]
            ),
            ValueError,
            "because they are in different while loops",
        ),
        (lambda: run(leak()), ValueError, "while/add has been marked as not fetchable"),
        (
            lambda: tf.gradients(tf.cast(leak(), tf.float32), C(1.0)),
            ValueError,
            "is in a while loop",
        ),
        (
            lambda: tf1.cond(C(1) > 0, lambda: C(1), lambda: C(2.0)),
            ValueError,
            "Received int32 from 'true_fn' and float32 from 'false_fn'",
        ),
        (
            lambda: tf1.cond(C(1) > 0, lambda: None, lambda: C(2)),
            ValueError,
            "'true_fn' must have a return value",
        ),
        (
            lambda: tf1.cond(True, lambda: C(1), lambda: C(2)),
            TypeError,
            "must not be a Python bool",
        ),
        (
            lambda: tf1.while_loop(lambda i: C([True, True]), lambda i: i, [C(0)]),
            ValueError,
            "rank 0 but is rank 1",
        ),
        (
            lambda: tf1.while_loop(
                lambda i: i[0] < 3, lambda i: tf.concat([i, i], 0), [C([0])]
            ),
            ValueError,
            "shape (1,), but has shape (2,) after one iteration",
        ),
        (
            lambda: tf1.while_loop(
                lambda i: i < 3, lambda i: i, [C(0)], maximum_iterations=C([1])
            ),
            ValueError,
            "must be a scalar. Received shape: (1,)",
        ),
    ],
)
def test_what_is_refused(program, kind, text):
    with pytest.raises(kind) as e:
        program()
    assert text in str(e.value)


def test_waiting_for_what_is_outside():
    v = tf1.get_variable("v", initializer=1.0, use_resource=True)

    def body(i, s):
        with tf.control_dependencies([assign]):
            return i + 1, s + tf.identity(v)

    assign = v.assign(5.0).op
    _, s = tf1.while_loop(lambda i, s: i < 2, body, [C(0), C(0.0)])
    with tf.control_dependencies([assign]):
        chosen = tf1.cond(s > 0.0, lambda: v.read_value(), lambda: C(0.0))
    assert run(chosen) == 5.0


def test_effects_in_branches_run_where_they_are_taken():
    v = tf1.get_variable("v", initializer=1.0, use_resource=True)
    p = tf1.placeholder(tf.bool, [])
    done = tf1.cond(p, lambda: v.assign_add(10.0).op, lambda: tf.no_op())
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        session.run(done, {p: False})
        assert session.run(v) == 1.0
        session.run(done, {p: True})
        assert session.run(v) == 11.0


@pytest.mark.parametrize("use_resource", [True, False])
def test_gradients_of_variables_in_branches_stay_slices(use_resource):
    w = tf1.get_variable(
        "w", initializer=np.float32([[1, 2], [3, 4]]), use_resource=use_resource
    )
    p = tf1.placeholder(tf.bool, [])
    y = tf1.cond(p, lambda: tf.reduce_sum(tf.gather(w, [1, 1])), lambda: C(1.0))
    z = tf1.cond(p, lambda: tf.gather(w, 1)[0], lambda: tf.reduce_sum(w * w))
    (gy,), (gz,) = tf.gradients(y, w), tf.gradients(z, w)
    assert isinstance(gy, tf.IndexedSlices)
    gy, gz = tf.convert_to_tensor(gy), tf.convert_to_tensor(gz)
    assert run(gy, {p: True}).tolist() == [[0, 0], [2, 2]]
    assert run(gy, {p: False}).tolist() == [[0, 0], [0, 0]]
    assert run(gz, {p: True}).tolist() == [[0, 0], [1, 0]]
    assert run(gz, {p: False}).tolist() == [[2, 4], [6, 8]]


def nested(x):
    def body(i, s):
        long = lambda: tf1.while_loop(lambda k: k < 3.0, lambda k: k * x + s, [s])
        return i + 1, tf1.cond(s > 3.0, lambda: s * x, long)

    _, y = tf1.while_loop(lambda i, s: i < 4, body, [C(0), x * 1.0])
    return tf1.cond(y > 2.0, lambda: y * x, lambda: y)


def test_second_derivatives_through_loops_and_branches():
    x = tf1.placeholder(tf.float32, [])
    (g,) = tf.gradients(nested(x), x)
    (h,) = tf.gradients(g, x)
    assert run(h, {x: 1.3}) == pytest.approx(slope(g, x, 1.3), rel=1e-3)


def test_second_derivatives_through_arrays():
    x = C([3.0, 4.0])
    y = tf.reduce_sum(tf.map_fn(lambda e: e * e * e, x))
    assert run(tf.hessians(y, x)[0]).tolist() == [[18, 0], [0, 24]]
    a = tf.TensorArray(tf.float32, 2, clear_after_read=False).write(0, x).write(1, x)
    (g,) = tf.gradients(a.read(0) * a.read(1) * a.read(0), x)
    (h,) = tf.gradients(g, x)
    assert run([g, h])[0].tolist() == [27, 48]
    assert run(h).tolist() == [18, 24]


def test_gradients_asked_for_in_a_body():
    x = C(2.0)
    y = tf1.while_loop(lambda i: i < 30.0, lambda i: i + tf.gradients(i * i, i)[0], [x])
    z = tf1.while_loop(lambda i: i < 9.0, lambda i: i + tf.gradients(x * x, x)[0], [x])
    b = tf1.cond(x > 1.0, lambda: tf.gradients(x * x * x, x)[0], lambda: x)
    assert run([y, z, b]) == [54.0, 10.0, 12.0]


def test_gradients_of_imported_graphs_and_their_contexts():
    x = tf1.placeholder(tf.float32, [], "x")
    y = tf.identity(nested(x), "y")
    meta = tf1.train.export_meta_graph()
    expected = run(tf.gradients(y, x)[0], {x: 1.3})
    loops = tf1.get_collection(tf1.GraphKeys.WHILE_CONTEXT)
    assert len(loops[0].to_proto().nested_contexts) == 2
    with tf.Graph().as_default() as graph:
        x, y = tf.import_graph_def(meta.graph_def, return_elements=["x:0", "y:0"])
        assert run(tf.gradients(y, x)[0], {x: 1.3}) == pytest.approx(expected)
    with tf.Graph().as_default() as graph:
        tf1.train.import_meta_graph(meta, import_scope="there")
        again = tf1.train.export_meta_graph()
        for key, count in (("while_context", 1), ("cond_context", 2)):
            assert len(again.collection_def[key].bytes_list.value) == count
            for context in graph.get_collection(key):
                proto = context.to_proto(export_scope="there")
                data = proto.SerializeToString(deterministic=True)
                known = [
                    type(proto).FromString(b).SerializeToString(deterministic=True)
                    for b in meta.collection_def[key].bytes_list.value
                ]
                assert data in known
        x, y = map(graph.get_tensor_by_name, ("there/x:0", "there/y:0"))
        assert run(tf.gradients(y, x)[0], {x: 1.3}) == pytest.approx(expected)
        with pytest.raises(ValueError, match="is in a while loop"):
            graph.get_tensor_by_name("there/while/add:0") + 1


def test_arrays_are_resources_whose_flow_goes_round():
    x = tf1.placeholder(tf.float32, [None], "x")
    y = tf.map_fn(lambda e: e * e, x)
    made = ops()
    assert made["map/while/TensorArrayReadV3"][1:] == (
        "map/while/TensorArrayReadV3/Enter",
        "map/while/Identity_1",
        "map/while/TensorArrayReadV3/Enter_1",
    )
    assert made["map/while/Enter_2"] == ("Enter", "map/TensorArray_1:1")
    found = run([y, tf.gradients(y, x)[0]], {x: [1, 2, 3]})
    assert [f.tolist() for f in found] == [[1, 4, 9], [2, 4, 6]]


def test_arrays_in_parts():
    x = C([1.0, 2.0, 3.0])
    a = tf.TensorArray(tf.float32, 2, infer_shape=False).split(x, [1, 2])
    whole, first = a.concat(), a.gather([1])
    b = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False)
    b = b.unstack([[1.0, 2.0], [3.0, 4.0]]).scatter([3, 2], [[5.0, 6.0], [7.0, 8.0]])
    g = tf.gradients(a.concat() * C([1.0, 10.0, 100.0]), x)[0]
    assert run(first).tolist() == [[2, 3]]
    assert run(whole).tolist() == [1, 2, 3] and run(g).tolist() == [1, 10, 100]
    assert run([b.stack(), b.size()])[1] == 4
    assert run(b.concat()).tolist() == [1, 2, 3, 4, 7, 8, 5, 6]
    assert b.handle.dtype == tf.resource and b.flow.dtype == tf.float32
