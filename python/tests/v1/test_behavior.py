"""Whole programs of TensorFlow 1: the switches are process-wide, so each program has a
process of its own."""

import subprocess
import sys
import textwrap

import pytest


def run(program):
    """What a program prints; its imports stand before it."""
    text = "import headrace as tf\ntf1 = tf.compat.v1\n" + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_a_ported_program_runs_without_a_graph_of_its_own():
    lines = run(
        """
        tf1.disable_v2_behavior()
        import numpy as np

        x = tf1.placeholder(tf.float32, [None, 1], name="x")
        y = tf1.placeholder(tf.float32, [None, 1], name="y")
        w = tf1.get_variable("w", initializer=[[0.0]])
        b = tf1.Variable([0.0], name="b")
        print(type(w).__name__, int(x.shape[1]) + 1, x.shape[0].value)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
        step = tf1.train.get_or_create_global_step()
        train = tf1.train.GradientDescentOptimizer(0.3).minimize(loss, step)
        chosen = tf.cond(loss > 1.0, lambda: 1, lambda: 2)
        turns = tf1.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
        xs = np.linspace(0, 1, 8, dtype=np.float32)[:, None]
        feed = {x: xs, y: 2 * xs + 1}
        with tf1.Session() as sess:
            sess.run(tf1.global_variables_initializer())
            for _ in range(300):
                sess.run(train, feed)
            print(np.round(sess.run([w, b], feed)[0][0, 0], 2), np.round(b.eval(), 2))
            print(*sess.run([chosen, turns, step], feed))
        """
    )
    assert lines == ["RefVariable 2 None", "2.0 [1.]", "2 3 300"]


def test_operations_go_to_a_default_graph_of_each_thread():
    lines = run(
        """
        import threading

        tf1.disable_eager_execution()
        x = tf.constant(1)
        graph = tf1.get_default_graph()
        print(tf.executing_eagerly(), tf1.executing_eagerly_outside_functions())
        print(x.graph is graph, x.name, x == x, {x: 1}[x])

        def other():
            y = tf.constant(2)
            print(tf.executing_eagerly(), y.graph is tf1.get_default_graph())
            print(y.graph is graph, y.name)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with tf.Graph().as_default() as inner:
            print(tf.constant(3).graph is inner)
        tf1.reset_default_graph()
        print(tf.constant(4).graph is graph, tf.constant(5).name)
        with tf1.Session():
            try:
                tf1.reset_default_graph()
            except AssertionError as error:
                print(str(error)[:38])
        """
    )
    assert lines == [
        "False False",
        "True Const:0 True 1",
        "False True",
        "False Const:0",
        "True",
        "False Const_1:0",
        "Do not use tf.reset_default_graph() to",
    ]


def test_functions_and_variables_join_the_default_graph():
    lines = run(
        """
        tf1.disable_eager_execution()

        @tf.function
        def f(x):
            with tf.init_scope():
                print(tf.executing_eagerly(), tf1.get_default_graph() is graph)
            return x + v

        graph = tf1.get_default_graph()
        v = tf.Variable(3.0)
        y = f(tf.constant(1.0))
        shown = tf.py_function(
            lambda a: a + float(tf.executing_eagerly()), [y], tf.float32
        )
        numbers = tf1.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next()
        with tf.GradientTape() as tape:
            squared = v * v
        slope = tape.gradient(squared, v)
        with tf1.Session() as sess:
            sess.run(tf1.global_variables_initializer())
            print(*sess.run([y, shown, slope, numbers]), sess.run(numbers))
        try:
            iter(tf.data.Dataset.range(3))
        except RuntimeError as error:
            print(str(error)[-45:])
        """
    )
    assert lines == [
        "False True",
        "4.0 5.0 6.0 0 1",
        "teration in eager mode or within tf.function.",
    ]


def test_eager_execution_comes_back_only_before_the_first_operation():
    lines = run(
        """
        def told(call, *args, **kwargs):
            try:
                print(call(*args, **kwargs))
            except (TypeError, ValueError) as error:
                print(type(error).__name__, error)

        tf1.enable_eager_execution(config="is not looked at")
        tf1.disable_eager_execution()
        told(tf1.enable_eager_execution, config=3)
        told(tf1.enable_eager_execution, execution_mode=7)
        told(tf1.enable_eager_execution, device_policy="loud")
        config = tf1.ConfigProto(inter_op_parallelism_threads=3)
        told(tf1.enable_eager_execution, config=config)
        print(tf.executing_eagerly())
        print(tf.config.threading.get_inter_op_parallelism_threads())
        tf1.disable_v2_behavior()
        tf.constant(1)
        told(tf1.enable_v2_behavior)
        print(tf.executing_eagerly())
        """
    )
    assert lines == [
        "TypeError config must be a tf.ConfigProto, but got <class 'int'>",
        "ValueError execution_mode must be one of None, SYNC, ASYNC",
        "ValueError device_policy must be one of None, DEVICE_PLACEMENT_*",
        "None",
        "True",
        "3",
        "ValueError tf.enable_eager_execution must be called at program startup.",
        "False",
    ]


def test_inside_of_a_graph_the_switch_waits_for_its_end():
    lines = run(
        """
        with tf.Graph().as_default() as graph:
            tf1.disable_eager_execution()
            print(tf.constant(1).graph is graph)
        print(tf.constant(1).graph is tf1.get_default_graph())
        """
    )
    assert lines == ["True", "True"]


@pytest.fixture
def tf1_equality():
    import headrace as tf

    tf.compat.v1.disable_tensor_equality()
    yield tf
    tf.compat.v1.enable_tensor_equality()


def test_without_equality_tensors_equal_themselves_only(tf1_equality):
    tf = tf1_equality
    a, b, v = tf.constant([1, 2]), tf.constant([1, 2]), tf.Variable([1, 2])
    assert not tf.Tensor._USE_EQUALITY
    assert (a == b, a == a, a != b, a == 1, a is None) == (
        False,
        True,
        True,
        False,
        False,
    )
    assert (v == a, v == v, v != v) == (False, True, False)
    assert {v: 3}[v] == 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)
    assert tf.function(lambda x: {x: x + 1}[x])(a).numpy().tolist() == [2, 3]
    assert a in [b, a] and a not in [b]
    inside = tf.function(lambda x: tf.constant([x == x, x == 1]))
    assert inside(a).numpy().tolist() == [True, False]
    assert tf.equal(a, b).numpy().all()
    rows = tf.ragged.constant([[1], [2, 3]])
    assert (rows == rows, rows != rows, rows == 1) == (True, False, False)


def test_with_equality_tensors_compare_elements():
    import headrace as tf

    a, v = tf.constant([1, 2]), tf.Variable([1, 3])
    assert tf.Tensor._USE_EQUALITY
    assert (a == v).numpy().tolist() == [True, False]
    for value in (a, v):
        with pytest.raises(TypeError, match="unhashable"):
            hash(value)


@pytest.fixture
def tf1_shapes():
    import headrace as tf

    tf.compat.v1.disable_v2_tensorshape()
    yield tf
    tf.compat.v1.enable_v2_tensorshape()


def test_without_v2_shapes_programs_meet_dimensions(tf1_shapes):
    tf = tf1_shapes
    shape = tf.TensorShape([1, None, 3])
    kind = tf.compat.v1.Dimension
    assert isinstance(shape[0], kind) and [type(d) for d in shape] == [kind] * 3
    assert shape[1].value is None and shape.as_list() == [1, None, 3]
    assert str(shape) == "(1, ?, 3)" and shape[1:] == [None, 3]
    assert repr(shape) == "TensorShape([Dimension(1), Dimension(None), Dimension(3)])"
    assert tf.zeros([shape[0] + 1, shape[2]]).shape == (2, 3)
    assert tf.TensorShape(None)[0].value is None


def test_without_v2_shapes_the_library_reads_sizes(tf1_shapes):
    tf = tf1_shapes
    assert tf.keras.layers.Dense(3)(tf.ones([2, 4])).shape == (2, 3)
    assert tf.image.resize(tf.ones([1, 4, 4, 3]), [2, 2]).shape == (1, 2, 2, 3)
    data = tf.data.Dataset.from_tensor_slices(tf.ones([4, 2])).batch(3)
    assert data.element_spec.shape.as_list() == [None, 2]
    assert tf.unstack(tf.ones([2, 3]))[1].shape.as_list() == [3]


def test_items_of_shapes_are_integers():
    import headrace as tf

    assert [type(d) for d in tf.TensorShape([1, 2])] == [int, int]


def test_control_flow_switch_is_seen_by_programs():
    import headrace as tf

    tf1 = tf.compat.v1
    tf1.disable_control_flow_v2()
    try:
        seen = [tf1.control_flow_v2_enabled()]
        tf.function(lambda: seen.append(tf1.control_flow_v2_enabled()))()
    finally:
        tf1.enable_control_flow_v2()
    assert seen == [False, True] and tf1.control_flow_v2_enabled()
