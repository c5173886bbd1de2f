"""Ragged, sparse, extension types and structures that first get their value in a loop."""

import headrace as tf
import pytest

RAGGED = tf.ragged.constant([[1, 2], [3], []])


class Pair(tf.experimental.ExtensionType):
    """Of two tensors."""

    a: tf.Tensor
    b: tf.RaggedTensor
    name: str


def _ragged(i):
    return RAGGED + i


def _of_other_rows_each_turn(i):
    return tf.ragged.range(tf.range(i + 1))


def _sparse(i):
    return tf.sparse.from_dense([i, 0, 5])


def _slices(i):
    return tf.IndexedSlices(
        tf.ones([1, 2]) * 2.0, tf.reshape(i, [1]), tf.constant([3, 2])
    )


def _extension(i):
    return Pair(i * 2, RAGGED * i, "pair")


def _in_structures(i):
    return {"x": (RAGGED + i, i), "y": [tf.sparse.from_dense([i])]}


def _in_one_place(i):
    return {"x": [i * 2]}


def over_a_range(make, n):
    for i in tf.range(n):
        made = make(i)
    return made


def while_there_is_more(make, n):
    i = 0
    while i < n:
        made = make(i)
        i += 1
    return made


@pytest.mark.parametrize("loop", [over_a_range, while_there_is_more])
@pytest.mark.parametrize(
    "make",
    [
        _ragged,
        _of_other_rows_each_turn,
        _sparse,
        _slices,
        _extension,
        _in_structures,
        _in_one_place,
    ],
)
def test_the_last_turns_value(loop, make):
    f = tf.function(lambda n: loop(make, n))
    for n in (1, 4):
        got, want = f(tf.constant(n)), make(tf.constant(n - 1))
        tf.nest.assert_same_structure(got, want, expand_composites=True)
        for x, y in zip(*(tf.nest.flatten(v, True) for v in (got, want))):
            assert x.dtype == y.dtype and x.numpy().tolist() == y.numpy().tolist()
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="must iterate at least once to initialize"
    ):
        f(tf.constant(0))


def test_gradients_go_through():
    @tf.function
    def f(x, n):
        for i in tf.range(n):
            rows = tf.RaggedTensor.from_row_lengths(x * tf.cast(i, tf.float32), [2, 1])
        return tf.reduce_sum(rows * rows)

    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, tf.constant(3))
    assert float(y) == 56.0
    assert tape.gradient(y, x).numpy().tolist() == [8.0, 16.0, 24.0]
