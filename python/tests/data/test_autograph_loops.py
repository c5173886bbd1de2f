"""Loops of converted code over datasets and iterators, and builtins of them."""

import pytest
from scalar_programs import refused, run

import headrace as tf


def zero():
    return tf.constant(0, tf.int64)


def numbers(n=5):
    return tf.data.Dataset.range(n)


def _sum(x):
    total = zero()
    for i in numbers():
        total += i
    return total


def _break(x):
    total = zero()
    for i in numbers():
        if i > 2:
            break
        total += i
    return total


def _continue(x):
    total = zero()
    for i in numbers():
        if i == 2:
            continue
        total += i
    return total


def _tuples(x):
    total = zero()
    for i, (a, b) in numbers().map(lambda i: (i, (i, i + 1))):
        total += i + a * b
    return total


def _dicts(x):
    total = 0
    for element in tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": [3, 4]}):
        total += element["a"] * element["b"]
    return total


def _ragged(x):
    total = 0
    rows = tf.ragged.constant([[1, 2], [3]])
    for row in tf.data.Dataset.from_tensor_slices(rows):
        total += tf.reduce_sum(row)
    return total


def _windows(x):
    total = zero()
    for window in numbers().window(2):
        for i in window:
            total += i
    return total


def _empty(x):
    total = 7
    for _ in numbers(0):
        total = 4
    return total


def _iterate_afterwards(x):
    i = tf.constant(9, tf.int64)
    for i in numbers():
        if i > 2:
            break
    return i


def _inside_a_loop(x):
    total = 0
    for _ in tf.range(3):
        for i in numbers(3):
            total += 1
            if i > 0:
                break
    return total


def _most(x):
    total = 0
    for _ in numbers():
        tf.autograph.experimental.set_loop_options(maximum_iterations=2)
        total += 1
    return total


@pytest.mark.parametrize(
    ("function", "want"),
    [
        (_sum, 10),
        (_break, 3),
        (_continue, 8),
        (_tuples, 50),
        (_dicts, 11),
        (_ragged, 6),
        (_windows, 10),
        (_empty, 7),
        (_iterate_afterwards, 3),
        (_inside_a_loop, 6),
        (_most, 2),
    ],
)
def test_for_over_datasets(function, want):
    assert int(run(function)) == want
    assert int(tf.autograph.to_graph(function)(tf.constant(5))) == want


def test_graphs_do_not_grow_with_the_data():
    traces = []

    def f(data):
        total = zero()
        for i in data:
            traces.append(i)
            total += i
        return total

    g = tf.function(f)
    sizes = set()
    for n in (3, 30):
        graph = g.get_concrete_function(numbers(n)).graph
        sizes.add(len(graph.as_graph_def().node))
        assert int(g(numbers(n))) == n * (n - 1) // 2
    assert len(sizes) == 1
    assert len(traces) == 1


def test_variables_may_change_shape_in_loops_over_datasets():
    def f(x):
        joined, pair = tf.zeros([0], tf.int64), (x, tf.constant([1]))
        for batch in numbers(6).batch(4):
            joined = tf.concat([joined, batch], 0)
            pair = (pair[0], tf.concat([pair[1], pair[1]], 0))
        return joined, pair[1]

    joined, ones = run(f)
    assert joined.numpy().tolist() == [0, 1, 2, 3, 4, 5]
    assert ones.shape == (4,)


def test_effects_run_in_every_turn():
    v = tf.Variable(tf.constant(1, tf.int64))

    def f(x):
        for i in numbers(4):
            v.assign(v * 2 + i)
            if i == 2:
                break
        return x

    run(f)
    assert int(v) == 8 + 1 * 2 + 2


def test_gradients_go_through_loops_over_datasets():
    def f(y):
        with tf.GradientTape() as tape:
            tape.watch(y)
            total = 0.0
            for i in tf.data.Dataset.from_tensor_slices([1.0, 2.0]):
                total = total + i * y
        return tape.gradient(total, y)

    assert float(tf.function(f)(tf.constant(2.0))) == 3.0


def test_iterators_go_on_where_a_loop_ended():
    def f(x):
        total = zero()
        iterator = iter(numbers(10))
        for i in iterator:
            if i > 1:
                break
            total += i
        for i in iterator:
            tf.autograph.experimental.set_loop_options(maximum_iterations=2)
            total += 100 * i
        return total, next(iterator)

    assert [int(t) for t in run(f)] == [701, 5]


def test_iterators_are_advanced_in_loops():
    def f(x):
        iterator = iter(numbers(10))
        total = zero()
        for i in iterator:
            total += i * next(iterator)
        return total

    def g(x):
        iterator = iter(numbers(10))
        i = zero()
        while i < 3:
            i = next(iterator)
        return i

    assert int(run(f)) == 2 * 3 + 4 * 5 + 6 * 7 + 8 * 9
    assert int(run(g)) == 3


def test_iterators_from_outside_advance_at_every_call():
    iterator = iter(numbers(5))

    def f(x):
        total = zero()
        for i in iterator:
            total += i
            if i == 1:
                break
        return total

    g = tf.function(f)
    assert [int(g(1)), int(g(1))] == [1, 9]


def _undefined(x):
    for i in numbers():
        y = i
    return y


def _undefined_iterate(x):
    for i in iter(numbers()):
        pass
    return i


def _none(x):
    y = None
    for i in numbers():
        y = i
    return y


def _none_after(x):
    y = 1
    for _ in numbers():
        y = None
    return y


def _shape(x):
    y = tf.constant([1])
    for _ in iter(numbers()):
        y = tf.concat([y, y], 0)
    return y


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (_undefined, "'y' must be defined before the loop"),
        (_undefined_iterate, "'i' must be defined before the loop"),
        (_none, "'y' is not allowed to be None before the loop"),
        (_none_after, "'y' is None at the end of the iteration."),
        (_shape, "'y' has shape (1,) before the loop, but shape (2,) after one"),
    ],
)
def test_loop_variables(function, text):
    refused(function, ValueError, text)


def test_loop_variables_keep_their_dtype_and_structure():
    def f(x):
        y = 1.0
        for i in numbers():
            y = i
        return y

    def g(x):
        y = 1.0
        for _ in iter(numbers()):
            y = (y, y)
        return y

    text = "'y' has dtype float32 before the loop, but dtype int64 after one iteration"
    refused(f, TypeError, text)
    refused(g, TypeError, "'y' does not have the same nested structure after one")


def test_returns_in_loops_over_datasets():
    def f(x):
        for i in numbers():
            return i
        return zero()

    refused(f, NotImplementedError, "a return statement cannot be placed inside this ")


# --- builtins ---


def _total(data):
    total = zero()
    for element in data:
        total += element
    return total


def test_builtins_of_datasets():
    def f(x):
        pairs = zero()
        for a, b in zip(numbers(3), numbers(3)):
            pairs += a * b
        counted = zero()
        for i, element in enumerate(numbers(3), tf.constant(10, tf.int64)):
            counted += i * element
        return (
            pairs,
            counted,
            _total(map(lambda i: i + 1, numbers(3))),
            _total(map(lambda a, b: a * b, numbers(3), numbers(3))),
            _total(filter(lambda i: i > 1, numbers(4))),
            _total(abs(numbers(3).map(lambda i: -i))),
            len(numbers(3)),
        )

    assert [int(t) for t in run(f)] == [5, 35, 6, 5, 5, 3, 3]


def test_quantifiers_of_datasets():
    def f(x):
        data = tf.data.Dataset.from_tensor_slices([True, False])
        return all(data), any(data), all(data.take(1)), any(data.skip(1))

    assert [bool(t) for t in run(f)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("data", "count"),
    [(numbers(3).repeat(), -1), (numbers(3).filter(lambda i: i > 0), -2)],
)
def test_lengths_that_are_not_known(data, count):
    text = rf"len requires dataset with definitive cardinality, got[^\d]*{count}"
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        tf.function(lambda: len(data))()


def test_next_with_a_default():
    def f(x):
        iterator = iter(numbers(1))
        default = tf.constant(7, tf.int64)
        return next(iterator, default), next(iterator, default), next(iter([]), x)

    assert [int(t) for t in run(f)] == [0, 7, 5]

    def dtype(x):
        return next(iter(numbers(1)), 1.5)

    refused(dtype, TypeError, "the default of next() has dtype float32")

    def structure(x):
        return next(iter(numbers(1)), {"a": zero()})

    refused(
        structure, TypeError, "must have the same element structure as the iterator"
    )
