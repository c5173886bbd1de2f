"""Indices and slices of ragged tensors: by numbers and by tensors, eagerly, in
functions and in sessions."""

import headrace as tf
import numpy as np
import pytest

_R = [[1, 2, 3], [], [4], [5, 6, 7, 8]]
_U = [[[1, 2], [3]], [[], [4, 5, 6]]]  # rows of two


def _values():
    ragged = tf.ragged.constant(_R)
    inner = tf.ragged.constant([[1, 2], [3], [], [4, 5, 6]])
    dense = tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1)
    return ragged, tf.RaggedTensor.from_uniform_row_length(inner, 2), dense


def _listed(x):
    if isinstance(x, (tf.RaggedTensor, tf.compat.v1.ragged.RaggedTensorValue)):
        return x.to_list()
    return np.asarray(x).tolist()


def _number(x):
    return x


def _int32(x):
    return tf.constant(x, tf.int32)


def _int64(x):
    return tf.constant(x, tf.int64)


# Of R (ragged), U (rows of two) and D (a dimension of two inside); n makes an index.
_ROWS = [
    (lambda R, U, D, n: R[n(-1)], _R[-1]),
    (lambda R, U, D, n: R[n(1) : n(3)], _R[1:3]),
    (lambda R, U, D, n: R[: n(-1)], _R[:-1]),
    (lambda R, U, D, n: R[:: n(2)], _R[::2]),
    (lambda R, U, D, n: R[n(3) : n(0) : n(-1)], _R[3:0:-1]),
    (lambda R, U, D, n: R[n(3), n(-2)], 7),
    (lambda R, U, D, n: R[n(3), n(1) :], [6, 7, 8]),
    (lambda R, U, D, n: R[:, n(1) :], [r[1:] for r in _R]),
    (lambda R, U, D, n: R[:, : n(-1)], [r[:-1] for r in _R]),
    (lambda R, U, D, n: R[:, :: n(2)], [r[::2] for r in _R]),
    (lambda R, U, D, n: R[:, :: n(-1)], [r[::-1] for r in _R]),
    (lambda R, U, D, n: R[:, n(2) : n(0) : n(-1)], [r[2:0:-1] for r in _R]),
    (lambda R, U, D, n: R[..., n(1) :], [r[1:] for r in _R]),
    (lambda R, U, D, n: R[n(0), ...], _R[0]),
    (lambda R, U, D, n: R[..., ...], _R),
    (lambda R, U, D, n: R[..., n(0), ...], _R[0]),
    (lambda R, U, D, n: R[tf.newaxis, :, n(1) :], [[r[1:] for r in _R]]),
    (lambda R, U, D, n: R[:, tf.newaxis, n(1) :], [[r[1:]] for r in _R]),
    (lambda R, U, D, n: R[..., tf.newaxis], [[[v] for v in r] for r in _R]),
    (lambda R, U, D, n: R[n(1), tf.newaxis], [[]]),
    (lambda R, U, D, n: U[:, n(0)], [u[0] for u in _U]),
    (lambda R, U, D, n: U[:, n(-1)], [u[-1] for u in _U]),
    (lambda R, U, D, n: U[:, n(1), n(0) : n(2)], [u[1][:2] for u in _U]),
    (lambda R, U, D, n: U[n(0), n(1)], [3]),
    (lambda R, U, D, n: U[..., n(-1) :], [[v[-1:] for v in u] for u in _U]),
    (lambda R, U, D, n: D[:, :, n(0)], [[1, 3], [5]]),
    (lambda R, U, D, n: D[..., n(1)], [[2, 4], [6]]),
    (lambda R, U, D, n: D[:, n(1) :, n(0)], [[3], []]),
    (lambda R, U, D, n: D[:, :, tf.newaxis, n(0)], [[[1], [3]], [[5]]]),
]


@pytest.mark.parametrize("kind", [_number, _int32, _int64])
def test_values(kind):
    def all_rows():
        return [row(*_values(), kind) for row, _ in _ROWS]

    eager = [_listed(x) for x in all_rows()]
    traced = [_listed(x) for x in tf.function(all_rows)()]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        run = [_listed(x) for x in session.run(all_rows())]
    for got in (eager, traced, run):
        assert got == [want for _, want in _ROWS]


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_indices_that_only_the_run_knows(dtype):
    @tf.function(
        input_signature=[
            tf.RaggedTensorSpec([None, None], tf.int32),
            *[tf.TensorSpec([], dtype)] * 3,
        ]
    )
    def cut(rows, first, last, step):
        return rows[first], rows[first:last], rows[:, first:last:step]

    for first, last, step in [
        (0, 3, 2),
        (1, -1, 1),
        (-1, 0, -1),
        (-2, 9, 1),
        (3, 0, -2),
    ]:
        row, rows, parts = cut(tf.ragged.constant(_R), first, last, step)
        assert row.numpy().tolist() == _R[first]
        assert rows.to_list() == _R[first:last]
        assert parts.to_list() == [r[first:last:step] for r in _R]


@pytest.mark.parametrize(
    "key",
    [
        1.5,
        "a",
        slice(0.0, 1),
        slice("a", None),
        (slice(None), slice(None, None, 2.0)),
        np.array([1]),
        True,
        tf.constant([0, 1]),
        tf.constant(1.0),
        tf.constant([True, False, True, False]),
        (0, tf.constant(1.0)),
    ],
    ids=str,
)
def test_keys_of_other_kinds_are_refused(key):
    with pytest.raises(TypeError, match="Only integers, slices .* are valid indices"):
        _values()[0][key]


def test_what_is_not_there():
    ragged, uniform, dense = _values()
    wrong = tf.errors.InvalidArgumentError
    for key in (4, -5, _int64(9)):
        with pytest.raises(IndexError, match="out of bounds"):
            ragged[key]
    for key in (0, _int32(0), (slice(None), 0, 0)):
        with pytest.raises(ValueError, match="Cannot index into an inner ragged"):
            ragged[(slice(None), key) if not isinstance(key, tuple) else key]
    for key in (2, -3, _int32(2)):
        with pytest.raises(wrong, match="Index out of bounds when indexing into"):
            uniform[:, key]
    with pytest.raises(wrong, match="slice index 5 of dimension 1 out of bounds"):
        dense[:, :, 5]
    for step in (0, _int32(0)):
        with pytest.raises(wrong, match="must be non-zero"):
            ragged[::step]
        with pytest.raises(wrong, match="Requires delta != 0"):
            ragged[:, ::step]
    with pytest.raises(IndexError, match="Too many indices"):
        ragged[..., 0, 0, 0]
