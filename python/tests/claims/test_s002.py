"""The claims of the guide to tf.function, one test each; those about AutoGraph are in
test_s002_autograph.py."""

import collections
import gc
import re
import subprocess
import sys
import textwrap
import timeit

import headrace as tf
import numpy as np
import pytest


PRINTED = """\
ConcreteFunction double(a)
  Args:
    a: string Tensor, shape=()
  Returns:
    string Tensor, shape=()"""


def counting(function, **options):
    """(a Function, the list of its traces' first arguments)"""
    traces = []

    @tf.function(**options)
    def counted(*args, **kwargs):
        traces.append(args[0] if args else None)
        return function(*args, **kwargs)

    return counted, traces


def program_output(text, folder, given=""):
    """What a program prints that is kept in a file."""
    path = folder / "program.py"
    path.write_text("import headrace as tf\n" + textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, str(path)],
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return done.stdout


def test_c01_eager_execution_is_the_default():
    assert tf.executing_eagerly()
    assert (tf.constant([1, 2]) * 3).numpy().tolist() == [3, 6]


def test_c02_a_function_is_a_graph_without_python(tmp_path):
    class Doubler(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None])])
        def f(self, x):
            for _ in tf.range(3):
                x = x * 2.0
            return x

    # The graph itself says nothing of Python, and keeps the loop a loop.
    doubler = Doubler()
    graph = doubler.f.get_concrete_function().graph.as_graph_def()
    every = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    kinds = {n.op for n in every}
    assert "StatelessWhile" in kinds and not any("Py" in kind for kind in kinds)
    tf.saved_model.save(doubler, str(tmp_path / "m"))
    del Doubler, doubler
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    assert loaded.f(tf.constant([1.0])).numpy().tolist() == [8]


def test_c03_numpy_and_python_become_constants():
    f = tf.function(lambda: (tf.constant(np.random.rand(3)), tf.random.uniform([3])))
    (numpy_1, tf_1), (numpy_2, tf_2) = f(), f()
    assert np.array_equal(numpy_1, numpy_2) and not np.array_equal(tf_1, tf_2)


def test_c04_a_function_is_like_an_op():
    add = tf.function(lambda a, b: a + b)
    np.testing.assert_array_equal(add(tf.ones([2, 2]), tf.ones([2, 2])), [[2, 2]] * 2)
    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        result = add(v, 1.0)
    assert float(tape.gradient(result, v)) == 1.0

    cube, x = tf.function(lambda x: x**3), tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = cube(x)
        first = inner.gradient(y, x)
    assert [float(first), float(outer.gradient(first, x))] == [12, 12]
    with tf.autodiff.ForwardAccumulator(x, tf.constant(0.5)) as forward:
        y = cube(x)
    assert float(forward.jvp(y)) == 6
    assert tf.vectorized_map(cube, tf.constant([1.0, 3.0])).numpy().tolist() == [1, 27]


def test_c05_functions_are_used_in_functions():
    add, traces = counting(lambda a, b: a + b)
    dense = tf.function(lambda x, w, b: add(tf.matmul(x, w), b))
    for _ in range(2):
        y = dense(tf.ones([3, 2]), tf.ones([2, 2]), tf.ones([2]))
        assert y.numpy().tolist() == [[3, 3]] * 3
    assert len(traces) == 1 and add.experimental_get_tracing_count() == 1


def test_c06_functions_are_faster_for_many_small_ops():
    def many(x):
        for _ in range(100):
            x = x + 1.0
        return x

    traced, x = tf.function(many), tf.constant(0.0)
    traced(x)
    fastest = [min(timeit.repeat(lambda: f(x), number=3)) for f in (many, traced)]
    assert fastest[1] < fastest[0]


def test_c07_c08_arguments_of_any_type_choose_the_graph():
    double, traces = counting(lambda a: a + a)
    given = [tf.constant(1), tf.constant(1.1), tf.constant("a"), 3, 0.5, [1, 2]]
    wanted = [2, np.float32(2.2), b"aa", 6, 1.0, [1, 2, 1, 2]]
    for value, want in zip(given, wanted):
        got = tf.nest.map_structure(lambda t: t.numpy(), double(value))
        assert got == want
    assert [str(getattr(t, "shape", t)) for t in traces[:4]] == ["()", "()", "()", "3"]
    assert [t.dtype for t in traces[:3]] == [tf.int32, tf.float32, tf.string]


def test_c09_a_type_seen_before_is_not_traced():
    double, traces = counting(lambda a: a + a)
    double(tf.constant("a"))
    assert double(tf.constant("b")).numpy() == b"bb" and len(traces) == 1


def test_c10_all_traces_can_be_printed():
    @tf.function
    def double(a):
        return a + a

    double(tf.constant(1))
    double(tf.constant("a"))
    ints, texts = double.pretty_printed_concrete_signatures().split("\n\n")
    assert texts == PRINTED.removeprefix("ConcreteFunction ")
    assert ints == texts.replace("string", "int32")


def test_c11_graph_concrete_function_and_function():
    f = tf.function(lambda x: x + 1.0)
    concrete = f.get_concrete_function(tf.TensorSpec([]))
    assert isinstance(f, tf.types.experimental.PolymorphicFunction)
    assert isinstance(concrete, tf.types.experimental.ConcreteFunction)
    assert isinstance(concrete.graph, tf.Graph)
    assert f.get_concrete_function(tf.TensorSpec([])) is concrete  # the cache


def test_c12_every_trace_is_a_concrete_function():
    f = tf.function(lambda x: x + x)
    ints = f.get_concrete_function(tf.constant(1))
    assert f.get_concrete_function(tf.constant(5)) is ints
    assert f.get_concrete_function(tf.constant(1.0)) is not ints


def test_c13_specs_stand_for_arguments():
    f = tf.function(lambda d, n: d["x"] * n)
    spec = {"x": tf.TensorSpec([None], tf.int32)}
    concrete = f.get_concrete_function(spec, 3)
    assert concrete({"x": tf.constant([1, 2])}).numpy().tolist() == [3, 6]
    assert (
        f.get_concrete_function({"x": tf.TensorSpec([None], tf.int32)}, 3) is concrete
    )


def test_c14_a_concrete_function_prints_its_types():
    @tf.function
    def double(a):
        return a + a

    assert str(double.get_concrete_function(tf.constant("a"))) == PRINTED


def test_c15_its_signature_can_be_read():
    @tf.function
    def f(x, n):
        return {"y": x * n}

    concrete = f.get_concrete_function(tf.TensorSpec([2], name="x"), n=3.0)
    args, kwargs = concrete.structured_input_signature
    assert args[0] == tf.TensorSpec([2], name="x")
    assert list(concrete.structured_outputs) == ["y"]
    assert concrete.structured_outputs["y"].shape == [2]


def test_c16_a_trace_refuses_other_types():
    concrete = tf.function(lambda a: a + a).get_concrete_function(tf.constant("a"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"string.* int32"):
        concrete(tf.constant(1))


def test_c17_python_arguments_keep_their_value():
    square = tf.function(lambda a, b: a**b).get_concrete_function(
        a=tf.TensorSpec(None), b=2
    )
    assert square(tf.constant(10.0)) == 100
    assert square(tf.constant(10.0), b=2) == 100
    with pytest.raises(TypeError, match=r"2.*3"):
        square(tf.constant(10.0), b=3)


def test_c18_arguments_by_place_and_by_name():
    @tf.function
    def minus(a, b):
        return a - b

    concrete = minus.get_concrete_function(tf.TensorSpec([]), tf.TensorSpec([]))
    five, two = tf.constant(5.0), tf.constant(2.0)
    assert concrete(five, two) == concrete(b=two, a=five) == concrete(five, b=two) == 3


def test_c19_the_graph_can_be_had():
    @tf.function
    def double(a):
        return a + a

    graph = double.get_concrete_function(tf.constant("a")).graph
    nodes = [(list(n.input), n.name) for n in graph.as_graph_def().node]
    assert nodes == [([], "a"), (["a", "a"], "add"), (["add"], "Identity")]


def test_c20_functions_can_be_run_eagerly():
    kinds = []
    f = tf.function(lambda x: kinds.append(type(x).__name__) or x)
    tf.config.run_functions_eagerly(True)
    try:
        f(tf.constant(1))
        f(tf.constant(1))
    finally:
        tf.config.run_functions_eagerly(False)
    f(tf.constant(1))
    f(tf.constant(1))
    assert kinds == ["EagerTensor", "EagerTensor", "SymbolicTensor"]


def test_c21_c22_print_while_tracing_and_tf_print_at_every_call(capfd):
    @tf.function
    def f(x):
        print("traced")
        tf.print("called", x)

    for i in range(3):
        f(tf.constant(i))
        sys.stdout.flush()
    out, err = capfd.readouterr()
    assert out == "traced\n" and err == "called 0\ncalled 1\ncalled 2\n"


def test_c23_check_numerics_finds_where_a_nan_arose():
    f = tf.function(lambda x: tf.math.log(x) + 1.0)
    tf.debugging.enable_check_numerics()
    try:
        f(tf.constant(1.0))
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            f(tf.constant(-1.0))
    finally:
        tf.debugging.disable_check_numerics()
    assert "Log" in str(caught.value) and "test_s002.py" in str(caught.value)


def test_c24_pdb_stops_in_the_converted_function(tmp_path):
    text = """
    @tf.function
    def f(x):
        y = x + 1
        breakpoint()
        if y > 0:
            y = -y
        return y

    print("result", int(f(tf.constant(1))))
    """
    out = program_output(text, tmp_path, "where\np y\nnext\ncontinue\n")
    assert re.search(r"program\.py\(\d+\)tf__f\(\)", out)
    assert "-> if y > 0:" in out and "tf.Tensor" in out and "result -2" in out


def test_c25_a_tensors_key_is_its_shape_and_dtype():
    f, traces = counting(lambda x: x)
    for value in (1, 2, [1], [2], 1.0, [1, 2]):
        f(tf.constant(value))
    assert len(traces) == 4


def test_c26_a_variables_key_is_its_identity():
    count = []

    @tf.function
    def f(a, b):
        count.append(1)
        a.assign_add(1.0)
        return a + b

    v, w = tf.Variable(1.0), tf.Variable(10.0)
    assert f(v, w).numpy() == 12
    assert f(v, v).numpy() == 6
    assert f(w, v).numpy() == 14
    assert len(count) == 2  # which are the same counts, not which they are


def test_c27_a_primitives_key_is_its_value():
    f, traces = counting(lambda x: 0)
    for value in (1, 1, 2, "a", "a", None, 2, None):
        f(value)
    assert traces == [1, 2, "a", None]
    f = tf.function(tf.constant)
    kinds = [f(x).dtype for x in (1, True, 1.0, 1)]
    assert kinds == [tf.int32, tf.bool, tf.float32, tf.int32]
    assert f.experimental_get_tracing_count() == 3


def test_c28_a_structures_key_is_its_elements():
    pair, c = collections.namedtuple("Pair", "a b"), tf.constant
    f, traces = counting(lambda x: 0)

    def traced(*values):
        before = len(traces)
        for value in values:
            f(value)
        return len(traces) - before

    assert traced([c(1), c(2)], [c(3), c(4)]) == 1
    assert traced({"a": c(1), "b": c(2.0)}, {"b": c(4.0), "a": c(3)}) == 1
    assert traced(pair(c(1), 2), pair(c(3), 2), pair(c(3), 4)) == 2
    assert traced(([c(1)], c(2)), ([c(1)], c(3)), (c(1), [c(2)])) == 2


def test_c29_a_trace_refuses_another_nesting():
    first = tf.function(lambda x: x[0])
    concrete = first.get_concrete_function([tf.constant(1), tf.constant(2)])
    with pytest.raises(TypeError):
        concrete([tf.constant(1), [tf.constant(2)]])


def test_c30_other_objects_count_by_identity():
    class Scale:
        def __init__(self, by):
            self.by, self.traces = by, 0

        @tf.function
        def __call__(self, x):
            self.traces += 1
            return x * self.by

    a, b = Scale(2), Scale(3)
    assert [int(s(tf.constant(n))) for s in (a, b) for n in (1, 2)] == [2, 4, 3, 6]
    assert (a.traces, b.traces) == (1, 1)
    f, traces = counting(lambda scale: scale.by)
    assert [int(f(s)) for s in (a, b, a)] == [2, 3, 2] and traces == [a, b]


def test_c31_an_input_signature_limits_traces():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def f(x):
        return x * 2

    np.testing.assert_array_equal(f([1, 2]), [2, 4])
    np.testing.assert_array_equal(f(tf.constant([1, 2, 3])), [2, 4, 6])
    assert f.experimental_get_tracing_count() == 1
    # The guide's error, and the one of today: it is both.
    refusal = "Can not cast TensorSpec.shape=.1, 1., .* to TensorSpec.shape=.None,."
    for kind in (ValueError, TypeError):
        with pytest.raises(kind, match=refusal):
            f(tf.constant([[1]]))
        with pytest.raises(kind):
            f(tf.constant([1.0]))


def test_c32_open_dimensions_share_a_trace():
    f, traces = counting(tf.shape, input_signature=[tf.TensorSpec([None, 2])])
    sizes = [f(tf.zeros([n, 2])).numpy()[0] for n in (1, 5, 0)]
    assert sizes == [1, 5, 0] and len(traces) == 1


def test_c33_c34_python_arguments_trace_again_and_tensors_do_not():
    def train(num_steps):
        total = 0
        for _ in tf.range(num_steps):
            total += 1
        return total

    f, traces = counting(train)
    assert [int(f(n)) for n in (10, 20)] == [10, 20] and traces == [10, 20]
    assert [int(f(tf.constant(n))) for n in (10, 20)] == [10, 20]
    assert len(traces) == 3


def test_c34_many_traces_are_warned_of(caplog):
    f = tf.function(lambda n: n)
    for n in range(8):
        f(n)
    assert "triggered tf.function retracing" in caplog.text


def test_c35_separate_functions_share_no_traces():
    traces = []

    def f():
        traces.append(1)

    tf.function(f)()
    tf.function(f)()
    assert len(traces) == 2


def test_c36_side_effects_happen_once_a_set_of_inputs():
    seen = []
    f = tf.function(seen.append)
    for n in (1, 1, 2, 1):
        f(n)
    assert seen == [1, 2]


def test_c37_ops_with_effects_run_at_every_call(tmp_path):
    v, writer = tf.Variable(0), tf.summary.create_file_writer(str(tmp_path))

    @tf.function
    def f(step):
        with writer.as_default():
            tf.summary.write("loss", v.assign_add(1), step=step)

    for i in range(3):
        f(tf.constant(i, tf.int64))
    writer.close()
    (file,) = tmp_path.iterdir()
    records = list(tf.data.TFRecordDataset(str(file)))
    assert int(v) == 3 and len(records) == 1 + 3  # one says the version


def test_c38_a_python_iterator_goes_on_while_tracing_only():
    v = tf.Variable(0)
    consume = tf.function(lambda iterator: v.assign_add(next(iterator)))
    iterator = iter([5, 1, 2, 3])
    assert [int(consume(iterator)) for _ in range(3)] == [5, 10, 15]
    assert next(iterator) == 1


def test_c39_a_datasets_iterator_goes_on_at_every_call():
    consume = tf.function(lambda iterator: next(iterator))
    iterator = iter(tf.data.Dataset.range(5))
    assert [int(consume(iterator)) for _ in range(3)] == [0, 1, 2]
    assert int(next(iterator)) == 3
    assert consume.experimental_get_tracing_count() == 1


def test_c40_py_function_runs_python_at_every_call():
    seen = []

    def side(x):
        seen.append(x)
        return x * 2

    f = tf.function(lambda x: tf.py_function(side, [x], tf.int32))
    assert [int(f(1)) for _ in range(3)] == [2, 2, 2]
    assert [type(x).__name__ for x in seen] == ["EagerTensor"] * 3
    assert [int(x) for x in seen] == [1, 1, 1]


def test_c41_gather_stack_and_arrays_stand_for_loops():
    @tf.function
    def f(rows, order):
        parts = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for i in order:
            parts = parts.write(parts.size(), rows[i])
        return parts.stack(), tf.gather(rows, order)

    rows = tf.constant([[1.0], [2.0], [3.0]])
    looped, gathered = f(rows, tf.constant([2, 0, 2]))
    assert looped.numpy().tolist() == gathered.numpy().tolist() == [[3], [1], [3]]
    assert tf.stack([rows[2], rows[0]]).numpy().tolist() == [[3], [1]]


def test_c42_a_variable_at_every_call_is_refused():
    @tf.function
    def f():
        return tf.Variable(1.0)

    with pytest.raises(ValueError, match="singleton tf.Variables"):
        f()


def test_c43_variables_are_made_at_the_first_call():
    class Layer(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = None

        @tf.function
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.ones([2]) * 3.0)
            return x * self.w

    a, b = Layer(), Layer()
    np.testing.assert_array_equal(a(tf.constant(2.0)), [6, 6])
    a.w.assign([1.0, 1.0])
    np.testing.assert_array_equal(a(tf.constant(2.0)), [2, 2])
    np.testing.assert_array_equal(b(tf.constant(2.0)), [6, 6])


def test_c44_concrete_functions_hold_variables_weakly():
    v = tf.Variable(3, name="scale")
    f = tf.function(lambda x: x * v).get_concrete_function(4)
    assert int(f(4)) == 12 and f.variables == (v,)
    del v
    gc.collect()
    gone = r"Error while reading resource variable \S+ from Container: localhost"
    with pytest.raises(tf.errors.FailedPreconditionError, match=gone):
        f(4)
    assert f.variables == ()
