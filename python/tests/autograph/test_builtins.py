"""Python's builtins in converted code, and print, assert and == with their features."""

import numpy as np
import pytest

import headrace as tf

_Feature = tf.autograph.experimental.Feature


def run(function, x=5, features=None):
    """What tf.function of a program of one int32 scalar gives."""
    return tf.function(function, experimental_autograph_options=features)(
        tf.constant(x)
    )


def numbers(function, x=5):
    """The values in the list that a program gives."""
    return [t.numpy().tolist() for t in run(function, x)]


def refused(function, error, text, features=None):
    """The program cannot be traced, and the error says so."""
    with pytest.raises(error) as caught:
        run(function, features=features)
    assert text in str(caught.value)


def unknown(value):
    """A tensor of no known shape."""
    return tf.raw_ops.PlaceholderWithDefault(input=value, shape=None)


def test_numbers():
    def f(x):
        return [
            abs(-x),
            int(tf.cast(x, tf.float32) + 0.7),
            int(tf.as_string(x)),
            int(tf.as_string(x), 10),
            int("ff", 16),
            float(x),
            float(tf.as_string(x)),
            abs(-2),
        ]

    assert numbers(f) == [5, 5, 5, 5, 255, 5.0, 5.0, 2]
    assert run(f)[5].dtype == tf.float32
    refused(
        lambda x: int(tf.as_string(x), 16),
        NotImplementedError,
        "base 16 not supported for int",
    )


def test_lengths():
    def f(x):
        return [
            len(tf.stack([x, x])),
            len(tf.range(x)),
            len(unknown([1, 2, 3])),
            len(tf.ragged.constant([[1], [2, 3]])),
            len(tf.TensorArray(tf.int32, 4)),
            len(
                tf.raw_ops.EmptyTensorList(
                    element_shape=-1, max_num_elements=-1, element_dtype=tf.int32
                )
            ),
            len([1]),
        ]

    assert numbers(f) == [2, 5, 3, 2, 4, 0, 1]
    refused(
        lambda x: len(x),
        ValueError,
        "len requires a non-scalar tensor, got one of shape Tensor(",
    )
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="len requires non-zero rank, got"
    ):
        run(lambda x: len(unknown(x)))


def test_ranges():
    def f(x):
        return [
            range(x),
            range(1, x),
            range(0, x, 2),
            range(x, 0, -2),
            range(x - 6),
            range(7, x),
            range(x, 0, x - 7),
            range(x, 0, x),
        ]

    assert numbers(f) == [
        [0, 1, 2, 3, 4],
        [1, 2, 3, 4],
        [0, 2, 4],
        [5, 3, 1],
        [],
        [],
        [5, 3, 1],
        [],
    ]


def test_quantifiers():
    def f(x):
        return [
            all(tf.stack([True, x > 0])),
            any(tf.stack([False, x > 10])),
            any(tf.stack([x - 5, x - 4])),
            all(unknown([True])),
            all([x > 1, True, x > 9]),
            any(x > i for i in (7, 3)),
            all([]),
            any([0, []]),
        ]

    assert numbers(f) == [True, False, True, True, False, True, True, False]


def test_quantifiers_stop_where_python_does():
    seen = []

    def f(x):
        return any(seen.append(i) or i > 1 for i in range(5))

    assert bool(run(f))
    assert seen == [0, 1, 2]


def test_extremes_and_sums():
    def f(x):
        rows = tf.stack([x, 9, 1])
        return [
            max(rows),
            min(rows),
            max(x, 3),
            min(3, x, 1),
            max([x, 7]),
            sum(rows),
            sum(rows, 100),
            sum([x, x]),
            sum(tf.stack([rows, rows])),
            max(1, 2),
            min([3, 2], key=lambda i: -i),
        ]

    want = [9, 1, 5, 1, 7, 15, 115, 10, [10, 18, 2], 2, 3]
    assert numbers(f) == want
    refused(lambda x: max(tf.stack([[x]])), ValueError, "max of a tensor needs one of")
    refused(lambda x: min(x, tf.stack([x])), ValueError, "min of several tensors needs")


def test_sorted():
    def f(x):
        rows = tf.stack([x, 9, 1])
        return [
            sorted(rows),
            sorted(rows, reverse=True),
            sorted(rows, key=lambda i: -i),
            sorted(tf.stack([rows, rows * 0]), key=tf.reduce_sum),
            sorted(unknown([3, 2])),
        ]

    assert numbers(f) == [
        [1, 5, 9],
        [9, 5, 1],
        [9, 5, 1],
        [[0, 0, 0], [5, 9, 1]],
        [2, 3],
    ]
    refused(
        lambda x: sorted(tf.stack([[x]])),
        ValueError,
        "sort only supports only 1D tensors",
    )


def test_python_iterables_stay_so():
    def f(x):
        pairs = list(zip([1, 2], [x, x]))
        return [
            *(a * b for a, b in pairs),
            *map(lambda i: i + x, [1, 2]),
            *filter(lambda i: i > 1, [1, 2]),
            *(i * v for i, v in enumerate([x, x], 3)),
            next(iter([x])),
        ]

    assert numbers(f) == [5, 10, 6, 7, 2, 15, 20, 5]


def test_rows_enumerated_zipped_and_mapped():
    def f(x):
        rows = tf.stack([x, 2, 3, 4])
        a = b = c = d = 0
        for i, v in enumerate(rows, 1):
            a += i * v
        for v, w in zip(rows, tf.range(3)):
            if w == 2:
                break
            b += v * w
        for v in map(lambda v, w: v * w, rows, rows):
            c += v
        for i, (v, w) in enumerate(zip(rows, map(abs, -rows))):
            d += i * v * w
        return [a, b, c, d]

    assert numbers(f) == [5 + 4 + 9 + 16, 2, 25 + 4 + 9 + 16, 4 + 18 + 48]

    def g(x):
        return list(enumerate(tf.range(x)))

    refused(g, TypeError, "Iterating over a symbolic `tf.Tensor` is not allowed")


def test_eager_values_are_pythons():
    def f(x):
        return abs(-x), int(x), len(tf.stack([x])), list(range(x)), sum([x, x])

    absolute, whole, length, numbers, total = tf.autograph.to_graph(f)(tf.constant(2))
    assert [int(absolute), whole, length, numbers, int(total)] == [2, 2, 1, [0, 1], 4]


# --- features ---


def test_print_prints_values(capsys):
    def f(x):
        print("x is", x, [x, 1], {"k": tf.as_string(x)}, sep="-", end="!")
        return x

    run(f, features=_Feature.BUILTIN_FUNCTIONS)
    five = np.int32(5)
    assert capsys.readouterr().out == f"x is-5-[{five!r}, 1]-{{'k': '5'}}!"
    run(f)
    assert "x is-Tensor(" in capsys.readouterr().out

    def g(x):
        print(x, colour="red")

    refused(g, ValueError, "invalid keyword arguments", _Feature.BUILTIN_FUNCTIONS)


def test_print_runs_at_every_call(capsys):
    def f(x):
        if x > 0:
            print("positive", x)
        return x

    g = tf.function(f, experimental_autograph_options=_Feature.BUILTIN_FUNCTIONS)
    for i in (1, -1, 2):
        g(tf.constant(i))
    assert capsys.readouterr().out == "positive 1\npositive 2\n"


def test_assertions():
    def f(x):
        assert x > 3, "too small"
        assert x < 9
        assert [1], "never"
        return x

    assert int(run(f, features=_Feature.ASSERT_STATEMENTS)) == 5
    error = tf.errors.InvalidArgumentError
    with pytest.raises(error, match=r"assertion failed: \[too small\]"):
        run(f, 1, features=_Feature.ASSERT_STATEMENTS)
    with pytest.raises(error, match=r"assertion failed: \[Assertion error\]"):
        run(f, 10, features=_Feature.ASSERT_STATEMENTS)
    refused(f, TypeError, "Using a symbolic `tf.Tensor` as a Python `bool`")

    def g(x):
        assert not x.shape.rank == 0, "a scalar"
        return x

    refused(g, AssertionError, "a scalar", _Feature.ASSERT_STATEMENTS)


def test_equality():
    def f(x):
        return [x == 3, x != 3, tf.stack([x, x]) == x, 3 == 3, [1] != [1]]

    want = [False, True, [True, True], True, False]
    for features in (None, _Feature.EQUALITY_OPERATORS):
        found = run(f, features=features)
        assert [t.numpy().tolist() for t in found] == want
