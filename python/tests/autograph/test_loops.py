"""while statements, and the variables of loops."""

import numpy as np
import pytest
from scalar_programs import refused, run

import headrace as tf


class Thing:
    pass


# --- while ---


def test_while_becomes_one_operation():
    def f(x):
        while tf.reduce_sum(x) > 1:
            x = tf.tanh(x)
        return x

    graph = tf.function(f).get_concrete_function(tf.zeros([5])).graph
    assert sum("While" in op.type for op in graph.get_operations()) == 1
    got = tf.function(f)(tf.ones([5])).numpy()
    want = np.ones([5], np.float32)
    while want.sum() > 1:
        want = np.tanh(want)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_while_carries_structures_text_and_objects():
    def f(x):
        pair, words, thing = (x, {"k": [1, 2]}), "a", Thing()
        thing.total = 0
        while x > 0:
            pair = (pair[0] + 1, {"k": [pair[1]["k"][0] + x, 7]})
            words = words + "b"
            thing.total += x
            x -= 1
        return pair, words, thing.total

    pair, words, total = run(f)
    assert int(pair[0]) == 10
    assert [int(t) for t in pair[1]["k"]] == [16, 7]
    assert words.numpy() == b"abbbbb"
    assert int(total) == 15


def test_while_on_python_values_is_unrolled():
    def f(x):
        i = 0
        while i < 3:
            x = tf.sin(x)
            i += 1
        return x

    graph = tf.function(f).get_concrete_function(tf.constant(1.0)).graph
    assert [op.type for op in graph.get_operations()].count("Sin") == 3


def test_tests_of_python_values_run_once_a_turn():
    def f(x):
        waiting = [1, 2, 3]
        while waiting.pop() > 1:
            x += 1
        return x, len(waiting)

    result, left = run(f)
    assert int(result) == 7
    assert int(left) == 0


def test_break_continue_and_nesting():
    def f(x):
        total = 0
        i = 0
        while i < x:
            i += 1
            if i == 2:
                continue
            j = 0
            while j < i:
                if j > 2:
                    break
                total += j * i
                j += 1
        return total

    def plain(x):
        return sum(j * i for i in range(1, x + 1) if i != 2 for j in range(i) if j <= 2)

    assert [int(run(f, x)) for x in range(7)] == [plain(x) for x in range(7)]


def test_variables_and_known_tensors_are_conditions():
    more, known = tf.Variable(True), tf.constant(True)

    def f(x):
        i = 0
        while more:
            i += 1
            more.assign(i < 4)
        while known:
            i += 1
            if i > x:
                break
        return i

    assert int(run(f)) == 6


def test_variables_are_not_copied_by_loops():
    v = tf.Variable([1.0, 2.0])

    def f(x):
        while x > 0:
            v.assign_add([1.0, 1.0])
            x -= 1
        return x

    run(f)
    assert v.numpy().tolist() == [6.0, 7.0]


def test_elements_at_names_are_variables_of_loops():
    def f(x):
        d, counts, key, thing = {}, [0, 0], "a", Thing()
        thing.key = "z"
        for j in range(2):
            for i in tf.range(x):
                counts[j] += i
        while x > 0:
            d[key] = x
            d[thing.key] = -x
            x -= 1
        return d, counts

    d, counts = run(f)
    assert {k: int(v) for k, v in d.items()} == {"a": 1, "z": -1}
    assert [int(n) for n in counts] == [10, 10]

    def reads_itself(x):
        d, key = {}, "a"
        while x > 0:
            d[key] = d[key] + x
            x -= 1
        return d

    refused(reads_itself, ValueError, "'d[key]' must be defined before the loop")

    def moves(x):  # no variable: another element in every turn of Python's loop
        counts = [0, 0]
        for i in range(2):
            if x > i:
                counts[i] = x
        return counts

    assert [int(n) for n in run(moves, 1)] == [1, 0]


# --- variables that come in the loop ---


def test_defined_in_the_loop():
    def f(x):
        while x > 0:
            x -= 1
            pair = (x, 2.0)
            rows = tf.zeros([x])
            nothing = x
            if x > 3:
                branch = x
            else:
                branch = 3
        return pair, rows, nothing, branch

    pair, rows, nothing, branch = run(f)
    assert [float(t) for t in pair] == [0.0, 2.0]
    assert rows.shape == (0,)
    assert [int(nothing), int(branch)] == [0, 3]


def test_none_before_and_a_value_in_the_loop():
    def f(x):
        last = None
        for i in tf.range(x):
            last = i * 2
        return last

    assert int(run(f)) == 8


def test_defined_in_a_loop_that_does_not_turn():
    def f(x):
        for i in tf.range(x):
            y = z = i
        return y, z

    assert [int(t) for t in run(f)] == [4, 4]
    text = r"loop must iterate at least once to initialize y, z"
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        run(f, 0)


def test_dtypes_of_what_comes_in_the_loop_are_those_there():
    def f(x):
        i = 0
        while i < x:
            half = i / 2
            i += 1
        return half

    half = run(f)
    assert half.dtype == tf.float64
    assert float(half) == 2.0


def test_the_iterate_after_the_loop():
    def f(x):
        for i in tf.range(x):
            pass
        j = 7
        for j in tf.range(0):
            pass
        return i, j

    assert [int(t) for t in run(f)] == [4, 7]


def _reads_itself(x):
    while x > 0:
        x -= 1
        y = y + x  # noqa: F821
    return y


def _text_from_the_loop(x):
    while x > 0:
        x -= 1
        y = "abc"
    return y


def _object_from_the_loop(x):
    while x > 0:
        x -= 1
        y = Thing()
    return y.a


def _none_from_the_loop(x):
    while x > 0:
        x -= 1
        y = None
    return y


def _none_all_along(x):
    y = None
    while x > 0:
        x -= 1
        y = None
    return y


def _none_at_the_end(x):
    y = x
    while x > 0:
        x -= 1
        y = None
    return y


def _none_inside(x):
    y = (1, None)
    while x > 0:
        y = (2, None)
        x -= 1
    return y


_MUST = "'y' must be defined before the loop"
_TRIED = "\n    Note: AutoGraph tried to define it automatically, but ran into a "
_TYPES = "Supported types include Tensor, int, float, bool, list, tuple or dict."


@pytest.mark.parametrize(
    ("function", "texts"),
    [
        (
            _reads_itself,
            [_MUST + _TRIED + "UnboundLocalError: 'y' is used before assignment"],
        ),
        (
            _text_from_the_loop,
            [
                _MUST + _TRIED + "TypeError: Found an unsupported type 'str' while ",
                _TYPES,
            ],
        ),
        (_object_from_the_loop, [_MUST, "unsupported type 'Thing'"]),
        (_none_from_the_loop, [_MUST]),
        (_none_all_along, ["'y' is not allowed to be None before the loop"]),
        (_none_at_the_end, ["'y' is None at the end of the iteration."]),
        (_none_inside, ["None values not supported."]),
    ],
)
def test_loop_variables_have_values(function, texts):
    refused(function, ValueError, *texts)


def test_tests_read_what_is_defined():
    def f(x):
        while x > limit:  # noqa: F821
            limit = 1
            x -= 1
        return x

    refused(f, UnboundLocalError, "'limit' is used before assignment")


# --- dtypes, structures, shapes ---


def _dtype(x):
    s = 0
    for _ in tf.range(x):
        s = 1.0
    return s


def _structure(x):
    s = (1, 2)
    while x > 0:
        s = (1, 2, 3)
        x -= 1
    return s


def _kind(x):
    s = [1, 2]
    while x > 0:
        s = {"a": 1}
        x -= 1
    return s


def _no_tensor(x):
    s = int
    while x > 0:
        s = int
        x -= 1
    return s(x)


_ONE = "after one iteration"


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (_dtype, "'s' has dtype int32 before the loop, but dtype float32 " + _ONE),
        (_structure, "'s' does not have the same nested structure " + _ONE + ".\n"),
        (_kind, "'s' does not have the same nested structure " + _ONE + ".\n"),
        (_no_tensor, "Failed to convert elements of <class 'int'> to Tensor."),
    ],
)
def test_loop_variables_keep_their_kind(function, text):
    refused(function, TypeError, text)


def _grown(x):
    a = tf.constant([1.0])
    while x > 0:
        a = tf.concat([a, a], 0)
        x -= 1
    return a


def _lost(x):
    a = tf.zeros([2, 2])
    while x > 0:
        a = tf.reshape(a, tf.stack([x, x]))
        x -= 1
    return a


def _ragged_grown(x):
    a = tf.ragged.constant([[1]])
    for _ in tf.range(x):
        a = tf.concat([a, a], 0)
    return a


def _unlike_before(x):
    a = tf.zeros([1])
    while x > 0:
        tf.autograph.experimental.set_loop_options(
            shape_invariants=[(a, tf.TensorShape([2]))]
        )
        x -= 1
        a = a + 1
    return a


def _unlike_after(x):
    a = tf.zeros([1, 1])
    while x > 0:
        tf.autograph.experimental.set_loop_options(
            shape_invariants=[(a, tf.TensorShape([None, 1]))]
        )
        x -= 1
        a = tf.concat([a, a], 1)
    return a


_OPTIONS = " Use tf.autograph.experimental.set_loop_options to set shape invariants."


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (_grown, "'a' has shape (1,) before the loop, but shape (2,) " + _ONE + "."),
        (_grown, _OPTIONS),
        (
            _lost,
            "(2, 2) before the loop, but shape (None, None) " + _ONE + "." + _OPTIONS,
        ),
        (_ragged_grown, "(1, None) before the loop, but shape (2, None) " + _ONE),
        (
            _unlike_before,
            "'a' has shape (1,) before the loop, which does not conform with the shape "
            "invariant (2,).",
        ),
        (
            _unlike_after,
            "'a' has shape (None, 2) after one iteration, which does not conform with "
            "the shape invariant (None, 1).",
        ),
    ],
)
def test_loop_variables_keep_their_shape(function, text):
    refused(function, ValueError, text)


def test_shape_invariants():
    def f(x):
        a, pair, ragged = tf.zeros([1]), (tf.zeros([1]), x), tf.ragged.constant([[1]])
        while x > 3:
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[
                    (a, tf.TensorShape(None)),
                    (pair, (tf.TensorShape([None]), tf.TensorShape([]))),
                    (ragged, tf.TensorShape([None, None])),
                ]
            )
            a = tf.concat([a, a], 0)
            pair = (tf.concat([pair[0], a], 0), pair[1])
            ragged = tf.concat([ragged, ragged], 0)
            x -= 1
        return a, pair[0], ragged

    a, first, ragged = run(f)
    assert [a.shape, first.shape] == [(4,), (7,)]
    assert ragged.to_list() == [[1]] * 4


def test_maximum_iterations():
    def f(x):
        i = j = k = 0
        while x > 0:
            tf.autograph.experimental.set_loop_options(maximum_iterations=3)
            i += 1
        for _ in tf.range(x):
            tf.autograph.experimental.set_loop_options(maximum_iterations=x - 3)
            j += 1
        for _ in tf.zeros([4]):
            tf.autograph.experimental.set_loop_options(
                maximum_iterations=1, parallel_iterations=2, swap_memory=True
            )
            k += 1
        return i, j, k

    assert [int(t) for t in run(f)] == [3, 2, 1]
    eager = tf.autograph.to_graph(f)
    assert [int(t) for t in eager(tf.constant(5))] == [3, 2, 1]


# --- conditions ---


def test_conditions_are_bool_scalars():
    def f(x):
        while x:
            x -= 1
        return x

    text = "condition of while loop expected to be `tf.bool` scalar, got Tensor("
    refused(f, ValueError, text, "; to use as boolean Tensor, use `tf.cast`; to check")


def test_python_loops_do_not_become_those_of_graphs():
    def f(x):
        i = 0
        while i < 3:
            i = i + x
        return i

    def g(x):
        while True:
            x += 1
            if x > 9:
                break
        return x

    def h(x):
        for i in range(5):
            if i > x:
                break
        return x

    started = (
        "The condition of while loop started as non-Tensor, then changed to Tensor."
    )
    more = "limitations.md#consistency-of-control-flow-types for more info."
    refused(f, NotImplementedError, started, more)
    refused(g, NotImplementedError, started)
    depends = "break and return statements which depend on a TF condition are not "
    refused(h, NotImplementedError, depends, more)


def test_returns_inside_loops():
    def f(x):
        for i in tf.range(x):
            if i > 2:
                return i
            else:
                return -1

    assert int(run(f)) == -1

    def g(x):
        for i in tf.range(x):
            if i > 2:
                return i
        return -1

    text = "a return statement cannot be placed inside this TensorFlow loop;"
    refused(g, NotImplementedError, text)
