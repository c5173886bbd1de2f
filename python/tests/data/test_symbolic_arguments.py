"""Datasets in datasets: counts, sizes and seeds that are tensors of an element; windows
of structures; elements by their places. Values are those of TensorFlow 2.21."""

import headrace as tf
import numpy as np
import pytest

D = tf.data.Dataset
errors = tf.errors


def windows(n):
    parts = D.range(4).window(n, shift=n, stride=n, drop_remainder=True)
    return parts.flat_map(lambda w: w.batch(9))


@pytest.mark.parametrize(
    ("made", "want"),
    [
        (lambda n: D.range(n), [0, 0, 1]),
        (lambda n: D.range(0, n * 3, n), [0, 1, 2, 0, 2, 4]),
        (lambda n: D.range(3).batch(n), [[0], [1], [2], [0, 1], [2]]),
        (lambda n: D.range(3).padded_batch(n, []), [[0], [1], [2], [0, 1], [2]]),
        (lambda n: D.range(3).ragged_batch(n), [[0], [1], [2], [0, 1], [2]]),
        (lambda n: D.range(2).repeat(n), [0, 1, 0, 1, 0, 1]),
        (lambda n: D.range(5).take(n), [0, 0, 1]),
        (lambda n: D.range(3).skip(n), [1, 2, 2]),
        (lambda n: D.range(6).shard(3, n), [1, 4, 2, 5]),
        (windows, [[0], [1], [2], [3], [0, 2]]),
        (lambda n: D.range(3).prefetch(n), [0, 1, 2, 0, 1, 2]),
        (lambda n: D.range(2).enumerate(n).map(lambda i, _: i), [1, 2, 2, 3]),
        (lambda n: D.range(2).map(lambda x: x + n, n), [1, 2, 2, 3]),
        (lambda n: D.range(2).interleave(lambda i: D.range(1), n), [0, 0, 0, 0]),
    ],
)
def test_arguments_that_are_elements(made, want):
    nested = D.range(1, 3).flat_map(made)
    assert [x.numpy().tolist() for x in nested] == want


@pytest.mark.parametrize(
    ("dataset", "place", "want"),
    [
        (D.range(3).repeat(2), 5, 2),
        (D.range(6).batch(2), 1, [2, 3]),
        (D.range(3).concatenate(D.range(4)), 6, 3),
        (D.range(5).skip(2).take(2).prefetch(1).cache(), 1, 3),
        (D.range(5).shard(2, 1), 1, 3),
        (D.range(3).map(lambda x: x * 2, num_parallel_calls=2), 1, 2),
        (D.range(3).repeat(), 4, errors.FailedPreconditionError),
        (D.range(6).batch(2).unbatch(), 1, errors.FailedPreconditionError),
        (D.range(3).flat_map(D.range), 1, errors.UnimplementedError),
        (D.range(3).filter(lambda x: True), 0, errors.UnimplementedError),
        (D.range(3), 3, errors.OutOfRangeError),
        (D.range(3), -1, errors.OutOfRangeError),
        (D.range(3).repeat(0), 0, errors.OutOfRangeError),
        (D.range(5).batch(2, drop_remainder=True), 2, errors.OutOfRangeError),
    ],
)
def test_elements_by_their_places(dataset, place, want):
    if isinstance(want, type):
        with pytest.raises(want):
            tf.data.experimental.at(dataset, place)
    else:
        found = tf.data.experimental.at(dataset, place)
        assert found.numpy().tolist() == want


def test_windows_of_structures():
    named = D.from_tensor_slices({"a": [1, 2, 3]}).window(2)
    batches = named.flat_map(lambda d: d["a"].batch(2, drop_remainder=True))
    assert [b.numpy().tolist() for b in batches] == [[1, 2]]
    assert [int(n) for n in named.map(lambda d: d["a"].cardinality())] == [2, 1]
    ragged = D.from_tensor_slices(tf.ragged.constant([[1, 2], [], [3]])).window(2)
    batches = ragged.flat_map(lambda w: w.batch(2))
    assert [b.to_list() for b in batches] == [[[1, 2], []], [[3]]]
    sums = D.range(5).window(2, 1, 2, True)
    sums = [int(w.reduce(np.int64(0), lambda s, x: s + x)) for w in sums]
    assert sums == [2, 4, 6]


@pytest.mark.parametrize(
    "weights",
    [
        np.array([0.5, 0.5]),
        [0.5, 0.5],
        tf.constant([0.5, 0.5], tf.float64),
        D.from_tensors(tf.constant([0.5, 0.5])).repeat(),
        D.from_tensors(np.array([0.5, 0.5])).repeat(),
    ],
)
def test_weights_of_both_kinds_of_numbers(weights):
    made = D.sample_from_datasets([D.range(2)] * 2, weights=weights, seed=1)
    assert sorted(int(x) for x in made) == [0, 0, 1, 1]
    with pytest.raises(TypeError, match="must be either `tf.float32` or `tf.float64`"):
        D.sample_from_datasets([D.range(2)] * 2, weights=[1, 1])


def test_what_datasets_are_made_from():
    a = D.range(3).flat_map(D.range)
    b = a.map(lambda x: x)
    choice = D.choose_from_datasets([D.range(1), D.range(1)], D.range(2))
    made = [D.range(3), a, b, b.repeat(), D.zip((a, b)), a.concatenate(b), choice]
    assert [len(d._inputs()) for d in made] == [0, 1, 1, 1, 2, 2, 3]
