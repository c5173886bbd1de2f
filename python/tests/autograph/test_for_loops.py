"""for statements over tensors, ranges, ragged tensors and arrays."""

import numpy as np
import pytest
from scalar_programs import refused, run, types

import headrace as tf
from headrace.autograph import python_loops


def _rows(x):
    total = 0
    for row in tf.stack([[x, 1], [x + 1, 2]]):
        if row[0] == x:
            continue
        total += tf.reduce_sum(row)
    return total


def _known(x):
    total = 0
    for i in tf.constant([1, 2]):
        total += i * x
    return total


_NUMBERS = tf.Variable([3, 4])


def _variable(x):
    total = 0
    for i in _NUMBERS:
        total += i
    return total


def _unknown_rank(x):
    total = 0
    for i in tf.raw_ops.PlaceholderWithDefault(input=[1, 2, 3], shape=None):
        total += tf.reshape(i, [])
    return total


def _texts(x):
    total = 0
    for c in tf.strings.bytes_split(tf.constant("abc")):
        total += tf.strings.length(c)
    return total


def _ragged(x):
    total = 0
    for row in tf.ragged.constant([[[1, 2], [3]], [[4]]]):
        for part in row:
            if tf.size(part) > 1:
                continue
            total += tf.reduce_sum(part)
    return total


def _array(x):
    total = 0
    for i in tf.TensorArray(tf.int32, 3).unstack([1, 2, 30]):
        if i > x:
            break
        total += i
    return total


def _counted(x):
    total = 0
    for i in tf.range(x):
        if i > 3:
            break
        total = total * 10 + i
    return total


def _down(x):
    total = 0
    for i in tf.range(x, 0, -2):
        total = total * 10 + i
    return total


def _step_unknown(x):
    total = 0
    for i in tf.range(x, 0, x - 7):
        total = total * 10 + i
    return total


def _builtin(x):
    total = 0
    for i in range(1, x, 2):
        total = total * 10 + i
    return total


def _nested(x):
    total = 0
    for i in tf.range(x):
        for j in [1, 2]:
            if i > j:
                total += i * j
    return total


@pytest.mark.parametrize(
    ("function", "want"),
    [
        (_rows, 8),
        (_known, 15),
        (_variable, 7),
        (_unknown_rank, 6),
        (_texts, 3),
        (_ragged, 7),
        (_array, 3),
        (_counted, 123),
        (_down, 531),
        (_step_unknown, 531),
        (_builtin, 13),
        (_nested, 23),
    ],
)
def test_for(function, want):
    assert int(run(function)) == want
    assert int(tf.autograph.to_graph(function)(tf.constant(5))) == want


def test_ranges_are_counted():
    def f(x):
        total = tf.constant(0, tf.int64)
        for i in tf.range(tf.cast(x, tf.int64)):
            total += i
        return total

    assert "TensorListFromTensor" not in types(f)
    assert int(run(f, 100)) == 4950


def test_ranges_of_floating_point_numbers():
    def f(x):
        total = 0.0
        for i in tf.range(1.0, 0.0, -0.25):
            total = total * 10 + i
        return total

    assert float(run(f)) == 1080.25


def test_python_iterables_are_unrolled():
    def f(x):
        total = 0
        for i in np.arange(3):
            total += int(i) * x
        for k, v in {"a": x}.items():
            total += v * len(k)
        return total, i

    assert [int(t) for t in run(f)] == [20, 2]
    assert types(f).count("Mul") == 4


def test_scalars_have_no_rows():
    def f(x):
        for i in x:
            x = i
        return x

    refused(f, ValueError, "len requires a non-scalar tensor, got one of shape Tensor(")


def test_sparse_tensors_have_none_either():
    def f(x):
        for _ in tf.sparse.from_dense([1, 2]):
            x += 1
        return x

    refused(f, TypeError, "'SparseTensor' object is not iterable")
    with pytest.raises(TypeError, match="not iterable"):
        iter(tf.sparse.from_dense([1, 2]))


def test_gradients_go_through_loops():
    def f(x):
        y = tf.constant([1.0, 2.0, 3.0])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            power = x
            for _ in tf.range(3):
                power = power * x
            total = 0.0
            for row in y:
                if row > 1.5:
                    total = total + row * row
            n = 0.0
            while n < 2.0:
                n += 1.0
                total = total * x
        return tape.gradient(power, x), tape.gradient(total, [x, y])

    power, (total, rows) = tf.function(f)(tf.constant(5.0))
    assert float(power) == 500.0
    assert float(total) == 130.0
    assert rows.numpy().tolist() == [0.0, 100.0, 150.0]


# --- unrolled loops that are too long ---


def test_long_unrolled_loops_are_warned_of(monkeypatch, caplog):
    monkeypatch.setattr(python_loops, "MANY_TURNS", 5)

    def f(x):
        for _ in range(8):
            x = tf.identity(x)
        return x

    run(f)
    (record,) = caplog.records
    text = record.getMessage()
    start = (
        "Large unrolled loop detected. Did you mean to use a TF loop? The following "
    )
    made = "ops were created after iteration 7: (<tf.Operation 'Identity_5' type=Identity>,)"
    assert text.startswith(start + made)
    assert "test_for_loops.py" in text.partition("Location:")[2]


def test_python_loops_without_operations_may_be_long(monkeypatch, caplog):
    monkeypatch.setattr(python_loops, "MANY_TURNS", 5)

    def f(x):
        n = 0
        while n < 7:
            n += 1
        return x + n

    run(f)
    assert not caplog.records


def test_endless_unrolled_loops_stop(monkeypatch):
    monkeypatch.setattr(python_loops, "MOST_TURNS", 10)

    def f(x):
        n = 0
        while True:
            n += 1
        return x

    refused(f, ValueError, "iteration limit exceeded")
