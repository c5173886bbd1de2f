"""The claims of the introduction to graphs and sessions, one test each."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import headrace as tf
import numpy as np
import pytest
from google.protobuf import text_format

v1 = tf.compat.v1
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))


@pytest.fixture(autouse=True)
def graph(request):
    """The graph that a test builds, unless its name says that it is eager."""
    if "eager" in request.node.name:
        yield None
        return
    with tf.Graph().as_default() as made:
        yield made


def program(text):
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def run(fetches, feed_dict=None, **options):
    """What a session gives whose variables have their first values."""
    with v1.Session(**options) as session:
        session.run(v1.global_variables_initializer())
        return session.run(fetches, feed_dict)


def test_c01_a_program_is_a_graph(graph):
    a = tf.constant([[1.0, 2.0]], name="a")
    y = tf.matmul(a, tf.constant([[3.0], [4.0]], name="b"))
    definition = graph.as_graph_def()
    assert [n.op for n in definition.node] == ["Const", "Const", "MatMul"]
    assert list(definition.node[-1].input) == ["a", "b"]
    with tf.Graph().as_default():
        (again,) = tf.import_graph_def(definition, return_elements=[y.name])
        assert run(again).tolist() == [[11.0]]


def test_c02_a_library_the_program_has_main():
    printed = program(
        """
        import threading
        import headrace as tf
        def threads():
            with open("/proc/self/status") as file:
                return [l.split()[1] for l in file if l.startswith("Threads")][0]
        before = threads()  # importing starts none
        x = tf.add(1, 2)
        print(before, threading.active_count(), int(x))
        """
    )
    assert printed.split() == ["1", "1", "3"]
    # Programs in C++ have main() themselves, with one line of CMake.
    with open(os.path.join(ROOT, "examples", "outside", "CMakeLists.txt")) as file:
        assert "headrace::headrace" in file.read()


def test_c03_the_core_needs_no_python():
    core = os.path.join(ROOT, "src")
    for room in ("base", "tensor", "op", "ops", "graph", "runtime", "cc", "c"):
        for folder, _, names in os.walk(os.path.join(core, room)):
            for name in names:
                with open(os.path.join(folder, name), errors="replace") as file:
                    assert "#include <Python.h>" not in file.read(), (room, name)


def test_c04_runtime_kernels_and_what_is_distributed_are_apart():
    check = os.path.join(ROOT, "tools", "check_layers.py")
    subprocess.run([sys.executable, check], check=True, cwd=ROOT)
    with open(os.path.join(ROOT, "tools", "layers.txt")) as file:
        rooms = file.read()
    assert "runtime" in rooms and "ops" in rooms


def test_c05_the_installed_package_trains():
    printed = program(
        """
        import headrace as tf
        v = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            loss = v * v
        tf.keras.optimizers.SGD(0.5).apply_gradients([(tape.gradient(loss, v), v)])
        print(float(v))
        """
    )
    assert printed.split() == ["0.0"]


def test_c07_building_computes_nothing():
    y = tf.constant(1) // tf.constant(0)
    with pytest.raises((NotImplementedError, AttributeError)):
        y.numpy()
    with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
        run(y)


@pytest.mark.parametrize(
    "nodes, count",
    [
        ({"a": "b", "b": "a"}, 2),
        ({"a": "b", "b": "c", "c": "a", "d": "a"}, 4),
        ({"a": "a"}, 1),
        ({"a": "^b", "b": "^a"}, 2),
    ],
)
def test_c08_a_cycle_is_refused(nodes, count):
    definition = v1.GraphDef()
    for name, reads in nodes.items():
        if reads.startswith("^"):
            definition.node.add(name=name, op="NoOp", input=[reads])
        else:
            node = definition.node.add(name=name, op="Identity", input=[reads])
            node.attr["T"].type = tf.float32.as_datatype_enum
    with pytest.raises(ValueError, match=f"^{count} nodes in a cycle$"):
        tf.import_graph_def(definition, name="")


def test_c08_loops_of_tensorflow_1_are_no_cycles():
    text = """
      node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
        attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {}
          int_val: 0 } } } }
      node { name: "enter" op: "Enter" input: "c"
        attr { key: "T" value { type: DT_INT32 } }
        attr { key: "frame_name" value { s: "f" } } }
      node { name: "merge" op: "Merge" input: "enter" input: "next"
        attr { key: "T" value { type: DT_INT32 } }
        attr { key: "N" value { i: 2 } } }
      node { name: "next" op: "NextIteration" input: "merge"
        attr { key: "T" value { type: DT_INT32 } } }
    """
    definition = text_format.Parse(text, v1.GraphDef())
    tf.import_graph_def(definition, name="")
    assert len(v1.get_default_graph().get_operations()) == 4


def test_c09_every_node_has_a_device(graph):
    with tf.device("/device:CPU:0"):
        x = tf.constant(1.0)
    assert x.op.device == "/device:CPU:0"
    metadata = v1.RunMetadata()
    with tf.device("/device:CPU:1"):
        y = v1.placeholder(tf.float32) * 3.0
    with v1.Session(config=v1.ConfigProto(device_count={"CPU": 2})) as session:
        session.run(
            [y, y[0] + tf.sqrt(y)],
            {y.op.inputs[0]: [2.0]},
            options=v1.RunOptions(trace_level=3),
            run_metadata=metadata,
        )
    devices = {d.device for d in metadata.step_stats.dev_stats}
    host = "/job:localhost/replica:0/task:0/device:CPU:"
    assert devices == {host + "0", host + "1"}
    with tf.device("/device:GPU:99"):
        z = tf.constant(1.0)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"was explicitly assigned to /device:GPU:99 but available devices are "
        rf"\[ {host}0 \]",
    ):
        run(z, config=v1.ConfigProto(allow_soft_placement=False))


def test_c10_edges_carry_tensors(graph):
    first, second = tf.split(tf.constant([1, 2, 3, 4]), 2, name="s")
    tf.add(first, second, name="sum")
    nodes = {n.name: list(n.input) for n in graph.as_graph_def().node}
    assert nodes["sum"] == ["s", "s:1"]


def test_c11_the_optimizer_makes_the_backward_graph(graph):
    w = v1.get_variable("w", initializer=3.0)
    before = len(graph.get_operations())
    step = v1.train.GradientDescentOptimizer(0.5).minimize(w * w)
    assert len(graph.get_operations()) > before
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(step)
        assert session.run(w) == 0.0


def test_c12_functions_make_nodes_without_state(graph):
    x = tf.matmul([[1.0, 2.0]], [[3.0], [4.0]])
    y = tf.nn.softmax(tf.nn.bias_add(x, [1.0]))
    assert [t.op.type for t in (x, y, tf.multiply(x, 2.0))] == [
        "MatMul",
        "Softmax",
        "Mul",
    ]
    assert not any(op._is_stateful for op in graph.get_operations())


@pytest.mark.parametrize("use_resource", [False, True])
def test_c13_values_stay_between_runs_of_one_session(use_resource):
    w = v1.get_variable("w", initializer=1.0, use_resource=use_resource)
    with v1.Session() as one, v1.Session() as other:
        for session in (one, other):
            session.run(w.initializer)
        one.run(w.assign_add(2.0))
        one.run(w.assign_add(2.0))
        assert one.run(w) == 5.0 and other.run(w) == 1.0


def test_c14_a_variable_is_four_nodes(graph):
    v1.get_variable("w", initializer=1.0, use_resource=False)
    types = {op.name: op.type for op in graph.get_operations()}
    assert types == {
        "w/initial_value": "Const",
        "w": "VariableV2",
        "w/Assign": "Assign",
        "w/read": "Identity",
    }
    stateful = [op.name for op in graph.get_operations() if op._is_stateful]
    assert stateful == ["w"]


def test_c15_placeholders_must_be_fed():
    x = v1.placeholder(tf.float32, [None, 2], name="x")
    y = x * 2
    assert run(y, {x: [[1, 2]]}).tolist() == [[2, 4]]
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match="You must feed a value for placeholder tensor 'x'",
    ):
        run(y)
    with pytest.raises(ValueError, match="Cannot feed value of shape"):
        run(y, {x: [1.0, 2.0, 3.0]})


def test_c16_run_takes_what_to_fetch_in_any_structure():
    a, b = tf.constant(1.0), tf.constant([2.0])
    found = run({"p": (a, [b]), "q": b.name, "op": a.op})
    assert found["p"][0] == 1 and found["p"][1][0] == 2 and found["q"] == 2
    assert found["op"] is None


def test_c17_a_gradient_and_an_update_for_each_parameter():
    w = [v1.get_variable(n, initializer=v) for n, v in (("a", 1.0), ("b", 2.0))]
    optimizer = v1.train.GradientDescentOptimizer(0.1)
    pairs = optimizer.compute_gradients(w[0] * w[1])
    step = optimizer.apply_gradients(pairs)
    assert [v.name for _, v in pairs] == ["a:0", "b:0"]
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run([g for g, _ in pairs]) == [2.0, 1.0]
        session.run(step)
        np.testing.assert_allclose(session.run(w), [0.8, 1.9])


def test_c18_without_updates_the_forward_graph_gives_the_same(graph):
    w = v1.get_variable("w", initializer=3.0, use_resource=False)
    loss = tf.identity(w * w, name="loss")
    forward = graph.as_graph_def()
    v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    assert list(graph.as_graph_def().node)[: len(forward.node)] == list(forward.node)
    with tf.Graph().as_default():
        loss, start = tf.import_graph_def(
            forward, name="", return_elements=["loss:0", "w/Assign"]
        )
        with v1.Session() as session:
            session.run(start)
            assert session.run(loss) == 9.0


def test_c19_edges_of_data_and_of_control(graph):
    a = tf.constant(1.0, name="a")
    with tf.control_dependencies([a]):
        b = tf.constant(2.0, name="b")
    tf.add(a, b, name="c")
    inputs = {n.name: list(n.input) for n in graph.as_graph_def().node}
    assert inputs == {"a": [], "b": ["^a"], "c": ["a", "b"]}


def test_c20_a_node_runs_behind_those_that_it_waits_for():
    ran = []

    def mark(name):
        return tf.py_function(lambda: ran.append(name), [], [])

    first = mark("first")
    with tf.control_dependencies([first]):
        second = mark("second")
    with tf.control_dependencies([second]):
        third = mark("third")
    run(third)
    assert ran == ["first", "second", "third"]


def test_c21_what_nobody_asks_for_does_not_run():
    ran = []
    tf.py_function(lambda: ran.append("unused"), [], [])
    y = tf.py_function(lambda: ran.append("used") or 1.0, [], tf.float32)
    run(y)
    assert ran == ["used"]


def test_c21_slow_nodes_overlap():
    meet = threading.Barrier(2)

    def slow():
        meet.wait(20)  # for the other: one after another they would never meet
        return np.float32(1)

    both = [tf.py_function(slow, [], tf.float32) for _ in range(2)]
    config = v1.ConfigProto(inter_op_parallelism_threads=2)
    assert run(both[0] + both[1], config=config) == 2.0


def test_c22_each_node_runs_once_behind_its_inputs():
    count = v1.get_variable("count", initializer=0)
    more = count.assign_add(1)
    x = tf.cast(more, tf.float32)
    for _ in range(3):
        x = tf.sqrt(x) + x  # both read one node
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(x)
        assert session.run(count) == 1


def test_c22_a_long_chain_neither_recurses_nor_squares():
    def seconds(n):
        with tf.Graph().as_default() as graph:
            x = v1.placeholder(tf.float32, [2])
            y = x
            with graph.name_scope("chain"):
                for _ in range(n):
                    y = tf.raw_ops.Relu(features=y)
            began = time.perf_counter()
            assert run(y, {x: [-1.0, 2.0]}).tolist() == [0.0, 2.0]
            return time.perf_counter() - began

    short, long = seconds(10_000), seconds(100_000)
    assert long < 40 * short + 1, (short, long)


def test_c23_sparse_tensors_take_the_room_of_their_values():
    s = tf.SparseTensor([[0, 1], [10**9, 2]], [1.0, 2.0], [2 * 10**9, 3])
    found = run(s)
    assert found.indices.dtype == np.int64 and found.indices.shape == (2, 2)
    assert found.dense_shape.tolist() == [2 * 10**9, 3]
    small = tf.SparseTensor([[0, 1], [1, 0]], [5, 6], [2, 2])
    assert run(tf.sparse.to_dense(small)).tolist() == [[0, 5], [6, 0]]
    bad = tf.SparseTensor([[5, 0]], [1], [2, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
        run(tf.sparse.to_dense(bad))


@pytest.mark.parametrize(
    "rank, value", [(0, 1.0), (1, [1.0]), (2, [[1.0]]), (3, [[[1.0]]])]
)
def test_c24_rank_is_the_number_of_dimensions(rank, value):
    t = tf.constant(value)
    assert t.shape.rank == rank == run(tf.rank(t))
    assert t.shape.as_list() == [1] * rank


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_c25_eager_values_are_shared_and_freed_with_the_last():
    x = tf.ones([64, 1 << 20 >> 2])  # 64 MiB
    before = _resident()
    views = [tf.identity(x) for _ in range(8)] + [tf.reshape(x, [-1])]
    assert _resident() - before < 16 << 20
    del views, x
    for _ in range(20):
        tf.ones([64, 1 << 20 >> 2])
    assert _resident() - before < 128 << 20


def test_c26_what_a_tensor_knows(graph):
    a, b = tf.split(tf.zeros([4, 2]), 2, name="s")
    known = b.dtype, b.shape.as_list(), b.graph, b.name, b.op.type, b.value_index
    assert known == (tf.float32, [2, 2], graph, "s:1", "Split", 1)
    assert a.op is b.op and a.value_index == 0


def test_c27_tensors_are_made_by_functions():
    a = tf.constant(1.0)
    assert run(tf.add(a, a)) == 2.0
    for arguments in ((1,), (tf.float32, [2], None)):
        with pytest.raises(TypeError):
            tf.Tensor(*arguments)


def test_c28_a_session_is_made_run_and_closed():
    x = tf.constant(1.0)
    session = v1.Session()
    assert session.run(x) == 1.0
    session.close()
    with pytest.raises(RuntimeError, match="Attempted to use a closed Session."):
        session.run(x)
    with v1.Session() as entered:
        pass
    with pytest.raises(RuntimeError, match="Attempted to use a closed Session."):
        entered.run(x)


def test_c28_closing_cancels_a_run_that_waits():
    take = v1.FIFOQueue(1, tf.float32).dequeue()
    session, raised = v1.Session(), []

    def wait():
        try:
            session.run(take)
        except tf.errors.CancelledError as e:
            raised.append(e)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.2)
    session.close()
    thread.join(20)
    assert len(raised) == 1


def test_c29_only_compat_v1_has_sessions():
    assert not hasattr(tf, "Session") and hasattr(v1, "Session")


OLD_PROGRAM = """
import headrace.compat.v1 as tf
tf.{switch}()
x = tf.placeholder(tf.float32, [None])
w = tf.get_variable("w", initializer=[2.0])
y = tf.reduce_sum(x * w)
step = tf.train.GradientDescentOptimizer(0.1).minimize(y)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(step, {{x: [1.0, 2.0]}})
    print(session.run([w, y], {{x: [1.0]}}), type(w).__name__)
"""


@pytest.mark.parametrize(
    "switch, kind",
    [
        ("disable_eager_execution", "GraphVariable"),
        ("disable_v2_behavior", "RefVariable"),
    ],
)
def test_c30_a_switch_turns_a_whole_program(switch, kind):
    printed = program(OLD_PROGRAM.format(switch=switch))
    assert printed.split() == [
        "[array([1.7],",
        "dtype=float32),",
        "np.float32(1.7)]",
        kind,
    ]


def test_c31_eager_code_keeps_pythons_order():
    v = tf.Variable(1.0)

    @tf.function
    def f():
        v.assign(10.0)
        v.assign_add(1.0)
        v.assign(v * 2.0)
        return v.read_value()

    assert float(f()) == 22.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: v1.train.GradientDescentOptimizer(0.1),
        lambda: v1.train.MomentumOptimizer(0.1, 0.9),
        lambda: v1.train.AdamOptimizer(0.1),
        lambda: v1.train.AdagradOptimizer(0.1),
        lambda: v1.train.RMSPropOptimizer(0.1),
        lambda: v1.train.FtrlOptimizer(0.1),
    ],
)
def test_c32_one_step_updates_every_parameter(make):
    w = [v1.get_variable(f"w{i}", initializer=[1.0, 2.0]) for i in range(3)]
    loss = tf.add_n([tf.reduce_sum(tf.sin(v) * v) for v in w])
    step = make().minimize(loss)
    x = np.array([1.0, 2.0])
    chain = np.cos(x) * x + np.sin(x)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for gradient in session.run(tf.gradients(loss, w)):
            np.testing.assert_allclose(gradient, chain, rtol=1e-5)
        before = session.run(loss)
        session.run(step)
        for value in session.run(w):
            assert (np.sign(np.array([1.0, 2.0]) - value) == np.sign(chain)).all()
        assert session.run(loss) < before


def test_c33_gradients_are_a_graph_of_their_own(graph):
    w = v1.get_variable("w", initializer=3.0)
    known = {op.name for op in graph.get_operations()}
    v1.train.GradientDescentOptimizer(0.1).minimize(w * w)
    made = [op.name for op in graph.get_operations() if op.name not in known]
    assert any(name.startswith("gradients/") for name in made)


def test_c37_inference_changes_no_variable():
    w = v1.get_variable("w", initializer=3.0)
    loss = w * w
    v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(loss) == 9.0 and session.run(w) == 3.0
