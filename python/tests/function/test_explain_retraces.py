"""Why functions were traced again, and when that is warned of."""

import collections
import logging

import headrace as tf
import pytest


@pytest.fixture
def warnings():
    found = []

    class Handler(logging.Handler):
        def emit(self, record):
            found.append(record.getMessage())

    handler = Handler()
    tf.get_logger().addHandler(handler)
    yield found
    tf.get_logger().removeHandler(handler)


def test_first_traces_need_no_reason():
    f = tf.function(lambda x: x)
    f(1)
    f(1)
    assert f.explain_retraces() == []


def test_which_argument_changed():
    f = tf.function(lambda x, n=1, *rest, **named: x)
    x = tf.zeros([2])
    f(x)
    f(x, 2)
    f(tf.zeros([3]), 2)
    f(x, "two", tf.constant(1), k=3)
    f(x, "two", tf.constant(1), k=4)
    told = f.explain_retraces()
    assert told[0] == "trace 2: n changed from 1 to 2"
    assert told[1] == (
        "trace 3: x changed from TensorSpec(shape=(2,), dtype=tf.float32, name=None) to "
        "TensorSpec(shape=(3,), dtype=tf.float32, name=None)"
    )
    assert "n changed from 2 to 'two'; rest changed from Tuple[] to" in told[2]
    assert told[3] == "trace 5: named['k'] changed from 3 to 4"


def test_texts_without_utf8():
    class Odd(str):
        def __repr__(self):
            return "\ud800"

    f = tf.function(lambda s: s[Odd("a")])
    f({Odd("a"): 1})
    f({Odd("a"): 2})
    assert f.explain_retraces() == ["trace 2: s[\\ud800] changed from 1 to 2"]


def test_parts_of_structures():
    Pair = collections.namedtuple("Pair", "left right")
    f = tf.function(lambda s: s["a"][1].left)
    f({"a": [0, Pair(1, 2)]})
    f({"a": [0, Pair(1, 3)]})
    f({"a": (0, Pair(1, 3))})
    told = f.explain_retraces()
    assert told[0] == "trace 2: s['a'][1].right changed from 2 to 3"
    assert told[1].startswith("trace 3: s['a'] changed from List[")


def test_objects_and_the_most_similar_trace():
    class Scale:
        pass

    a, b = Scale(), Scale()
    f = tf.function(lambda x, s: x)
    f(1, a)
    f(2, b)
    f(1, b)
    told = f.explain_retraces()
    assert "s changed from a Scale object at" in told[0]
    assert told[1] == "trace 3: x changed from 2 to 1"


def test_same_arguments_in_another_graph():
    f = tf.function(lambda x: x)
    f(1)
    with tf.Graph().as_default():
        f(1)
    assert "no argument changed, but the graph" in f.explain_retraces()[0]


def test_the_list_is_bounded():
    f = tf.function(lambda n: tf.constant(n))
    for n in range(100):
        f(n)
    assert len(f.explain_retraces()) == 64
    assert f.explain_retraces()[-1] == "trace 100: n changed from 98 to 99"


def test_the_warning_names_the_argument(warnings):
    f = tf.function(lambda x, n: x)
    for n in range(9):
        f(1.0, n)
    assert len(warnings) == 2
    assert warnings[0].startswith("5 out of the last 5 calls to <function")
    assert warnings[0].endswith(" Here n changed from 3 to 4.")


def test_failed_calls_are_no_retraces(warnings):
    @tf.function
    def f(n):
        return tf.gather([1, 2], tf.constant(5) + n)

    for n in range(9):
        with pytest.raises(tf.errors.InvalidArgumentError):
            f(n)
    assert warnings == []


def test_traces_inside_other_functions_are_not_counted(warnings):
    inner = tf.function(lambda x: x + 1)
    outer = tf.function(lambda x: inner(x) * 2)
    for n in range(4):
        inner(n)
        outer(n + 10)
    assert warnings == []


def test_functions_of_the_same_code_count_together(warnings):
    for n in range(4):
        f = tf.function(lambda x: x)
        f(n)
        for _ in range(3):
            f(n)
    assert warnings == []  # four calls of five trace nothing
    for n in range(5):
        tf.function(lambda x: x)(n)
    assert len(warnings) == 1
