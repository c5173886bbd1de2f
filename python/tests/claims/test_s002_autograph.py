"""The claims of the guide to tf.function about AutoGraph, one test each."""

import headrace as tf
import numpy as np
import pytest

PAGE = """\
def tf__f(x):
    with ag__.FunctionScope('f', 'fscope', ag__.ConversionOptions(recursive=True, \
user_requested=True, optional_features=(), internal_convert_user_code=True)) as fscope:
        do_return = False
        retval_ = ag__.UndefinedReturnValue()

        def get_state():
            return (x,)

        def set_state(vars_):
            nonlocal x
            x, = vars_

        def loop_body():
            nonlocal x
            ag__.converted_call(ag__.ld(tf).print, (ag__.ld(x),), None, fscope)
            x = ag__.converted_call(ag__.ld(tf).tanh, (ag__.ld(x),), None, fscope)

        def loop_test():
            return ag__.converted_call(ag__.ld(tf).reduce_sum, (ag__.ld(x),), None, \
fscope) > 1
        ag__.while_stmt(loop_test, loop_body, get_state, set_state, ('x',), {})
        try:
            do_return = True
            retval_ = ag__.ld(x)
        except:
            do_return = False
            raise
        return fscope.ret(retval_, do_return)
"""


def nodes(concrete, *ops):
    """The nodes of these ops in a trace and the functions in its library; all of them
    where no op is named."""
    graph = concrete.graph.as_graph_def()
    every = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    return [n for n in every if not ops or n.op in ops]


def test_c45_autograph_is_on_by_default():
    def f(x):
        total = tf.zeros([])
        for row in x:
            while row > 1.0:
                row = row / 2.0
            if row > 0.6:
                total += row
        return total

    x = tf.constant([3.0, 5.0, 8.0])
    assert float(tf.function(f)(x)) == float(f(x)) == 2.375
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(f, autograph=False)(x)


def test_c46_cond_and_while_loop_go_on_working():
    @tf.function
    def f(n):
        n = tf.cond(n > 3, lambda: n, lambda: n + 10)
        return tf.while_loop(lambda i: i > 0, lambda i: [i - 4], [n])[0]

    assert [int(f(tf.constant(n))) for n in (5, 2)] == [-3, 0]


def test_c47_the_generated_code_can_be_read():
    @tf.function
    def f(x):
        while tf.reduce_sum(x) > 1:
            tf.print(x)
            x = tf.tanh(x)
        return x

    assert tf.autograph.to_code(f.python_function) == PAGE


def test_c48_while_on_a_tensor_runs_in_the_graph(capfd):
    @tf.function
    def f(x):
        while tf.reduce_sum(x) > 1:
            tf.print(x)
            x = tf.tanh(x)
        return x

    x, turns = np.array([0.9, 0.7, 0.1], np.float32), 0
    got = f(tf.constant(x))
    while x.sum() > 1:
        x, turns = np.tanh(x), turns + 1
    np.testing.assert_allclose(got, x, rtol=1e-5)
    assert capfd.readouterr().err.count("[") == turns > 1
    assert len(nodes(f.get_concrete_function(tf.TensorSpec([3])), "Tanh")) == 1


def test_c49_if_on_a_tensor_becomes_cond():
    @tf.function
    def f(x, flag):
        if flag:
            x += 1
        if x > 0:
            return x
        return -x

    concrete = f.get_concrete_function(tf.TensorSpec([], tf.int32), True)
    assert len(nodes(concrete, "If", "StatelessIf")) == 1
    assert [int(f(tf.constant(x), True)) for x in (-5, 5)] == [4, 6]


def test_c50_a_python_conditional_adds_one_branch():
    @tf.function
    def f(x, flag):
        if flag:
            return tf.sin(x)
        return tf.cos(x)

    concrete = f.get_concrete_function(tf.constant(1.0), True)
    assert len(nodes(concrete, "Sin")) == 1 and not nodes(concrete, "Cos")


def test_c51_cond_traces_both_branches_and_runs_one():
    traced, ran = [], []

    @tf.function
    def f(x):
        if x > 0:
            traced.append("then")
            tf.py_function(lambda: ran.append("then"), [], [])
        else:
            traced.append("else")
            tf.py_function(lambda: ran.append("else"), [], [])

    f(tf.constant(1))
    assert sorted(traced) == ["else", "then"] and ran == ["then"]


def test_c51_the_guides_example(capfd):
    @tf.function
    def fizzbuzz(n):
        for i in tf.range(1, n + 1):
            print("loop")
            if i % 15 == 0:
                print("fizzbuzz branch")
                tf.print("fizzbuzz")
            elif i % 3 == 0:
                print("fizz branch")
                tf.print("fizz")
            elif i % 5 == 0:
                print("buzz branch")
                tf.print("buzz")
            else:
                print("default branch")
                tf.print(i)

    fizzbuzz(tf.constant(5))
    fizzbuzz(tf.constant(20))
    out, err = capfd.readouterr()
    branches = ["fizzbuzz", "fizz", "buzz", "default"]
    assert out.split("\n") == ["loop", *(f"{b} branch" for b in branches), ""]
    words = ["fizz" * (i % 3 == 0) + "buzz" * (i % 5 == 0) or str(i) for i in range(21)]
    assert err.split() == words[1:6] + words[1:]


def loop_over(data):
    def loop(turns):
        for _ in data():
            turns.append(1)

    return loop


def loop_while(test):
    def loop(turns):
        n = 0
        while test(n, turns):
            turns.append(1)
            n += 1

    return loop


@pytest.mark.parametrize(
    "loop, in_graph",
    [
        (loop_over(lambda: tf.range(3)), True),
        (loop_over(lambda: tf.constant([1, 2, 3])), True),
        (loop_over(lambda: tf.data.Dataset.range(3)), True),
        (loop_while(lambda n, turns: tf.less(n, 3)), True),
        (loop_over(lambda: range(3)), False),
        (loop_over(lambda: [1, 2, 3]), False),
        (loop_over(lambda: np.arange(3)), False),
        (loop_while(lambda n, turns: len(turns) < 3), False),
    ],
)
def test_c52_some_loops_become_while_loop(loop, in_graph):
    turns = []
    tf.function(lambda: loop(turns))()
    assert len(turns) == (1 if in_graph else 3)


def test_c53_a_python_loop_adds_operations_for_each_turn():
    @tf.function
    def f(x, n):
        for _ in range(n):
            x = tf.sin(x)
        return x

    for n in (2, 7):
        concrete = f.get_concrete_function(tf.constant(1.0), n)
        assert len(nodes(concrete, "Sin")) == n


def test_c54_a_graphs_loop_is_traced_once():
    @tf.function
    def f(x, n):
        for _ in tf.range(n):
            x = tf.sin(x)
        while n > 0:
            n -= 1
        return x

    concrete = f.get_concrete_function(tf.TensorSpec([]), tf.TensorSpec([], tf.int32))
    assert len(nodes(concrete, "Sin")) == 1
    assert len(nodes(concrete, "While", "StatelessWhile")) == 2
    got = [float(concrete(tf.constant(1.0), tf.constant(n))) for n in (0, 1, 2)]
    np.testing.assert_allclose(got, [1, np.sin(1), np.sin(np.sin(1))], rtol=1e-6)


def test_c55_data_of_python_is_copied_a_dataset_is_not():
    @tf.function
    def train(dataset):
        loss = tf.constant(0)
        for x, y in dataset:
            loss += tf.abs(y - x)
        return loss

    def size(data):
        return len(nodes(train.get_concrete_function(data)))

    small, large = [(1, 3)] * 3, [(1, 3)] * 10
    assert size(large) > size(small) + 7
    assert size(np.array(large).tolist()) == size(large)

    def dataset(data):
        spec = tf.TensorSpec([], tf.int32)
        return tf.data.Dataset.from_generator(
            lambda: data, output_signature=(spec, spec)
        )

    assert size(dataset(large)) == size(dataset(small))
    assert [int(train(data)) for data in (small, dataset(large))] == [6, 20]


def test_c56_generators_keep_data_in_python_tensors_put_it_into_the_graph():
    data, made = np.arange(1000), []

    def generate():
        made.append(1)
        yield data

    spec = tf.TensorSpec([None], tf.int64)
    lazy = tf.data.Dataset.from_generator(generate, output_signature=spec)
    assert not made
    assert int(tf.reduce_sum(next(iter(lazy)))) == 499500 and made == [1]

    @tf.function
    def total():
        s = tf.constant(0, tf.int64)
        for x in tf.data.Dataset.from_tensors(data):
            s += tf.reduce_sum(x)
        return s

    graph = total.get_concrete_function().graph.as_graph_def()
    assert int(total()) == 499500 and len(graph.SerializeToString()) > 8 * 1000


def test_c57_files_are_read_without_python(tmp_path):
    records, table = str(tmp_path / "r"), str(tmp_path / "c.csv")
    with tf.io.TFRecordWriter(records) as writer:
        for text in (b"ab", b"", b"c" * 1000):
            writer.write(text)
    (tmp_path / "c.csv").write_text("a,b\n1,2.5\n3,\n")
    kinds = [tf.int32, tf.constant([7.0])]

    @tf.function
    def read():
        sizes = tf.TensorArray(tf.int32, 0, dynamic_size=True)
        for record in tf.data.TFRecordDataset(records).prefetch(2):
            sizes = sizes.write(sizes.size(), tf.strings.length(record))
        total = 0.0
        for a, b in tf.data.experimental.CsvDataset(table, kinds, header=True):
            total += tf.cast(a, tf.float32) * b
        return sizes.stack(), total

    sizes, total = read()
    assert sizes.numpy().tolist() == [2, 0, 1000] and float(total) == 23.5
    graph = read.get_concrete_function()
    assert not [n for n in nodes(graph) if "Py" in n.op]


def test_c58_an_array_gathers_the_values_of_a_loop():
    @tf.function
    def f(n):
        array = tf.TensorArray(tf.int32, 0, dynamic_size=True)
        for i in tf.range(n):
            array = array.write(i, i * i)
        return array.stack()

    assert f(tf.constant(5)).numpy().tolist() == [0, 1, 4, 9, 16]


def test_c59_lists_and_dicts_of_python_do_not():
    found, by_name = [], {}

    @tf.function
    def f(n):
        for i in tf.range(n):
            found.append(i)
            by_name[len(by_name)] = i
        return n

    f(tf.constant(4))
    assert len(found) == len(by_name) == 1
    for leaked in (found[0], by_name[0]):
        with pytest.raises(TypeError, match="is out of scope and cannot be used here"):
            tf.function(lambda: leaked + 1)()

    @tf.function
    def inside(n):
        values = []
        for i in tf.range(n):
            values.append(i)
        return values[0]

    with pytest.raises(ValueError, match="is out of scope and cannot be used here"):
        inside(tf.constant(4))
