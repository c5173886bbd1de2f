"""Embeddings in one part and in several, looked up one by one and combined."""

import headrace as tf
import numpy as np
import pytest

E = np.random.RandomState(0).randn(7, 3).astype("f")
DIV = [E[:3], E[3:5], E[5:]]
MOD = [E[0::3], E[1::3], E[2::3]]
PLACES = [[0, 0], [0, 2], [2, 1], [3, 0]]
WEIGHTS = [1.0, 0.5, 2.0, -1.0]


def _sparse(values, dtype, rows=4):
    return tf.SparseTensor(PLACES, tf.constant(values, dtype), [rows, 3])


IDS = [1, 3, 0, 6]


@pytest.mark.parametrize("ids", [[], [2], [[6, 0], [3, 2]]])
def test_parts_are_one(ids):
    ids = np.array(ids, "i8")
    np.testing.assert_array_equal(tf.nn.embedding_lookup(E, ids), E[ids])
    np.testing.assert_array_equal(tf.nn.embedding_lookup(DIV, ids), E[ids])
    by_rest = tf.compat.v1.nn.embedding_lookup(MOD, ids)
    np.testing.assert_array_equal(by_rest, E[ids])
    variables = [tf.Variable(p) for p in DIV]
    np.testing.assert_array_equal(tf.nn.embedding_lookup(variables, ids), E[ids])


def test_norm_is_bounded():
    made = tf.nn.embedding_lookup(DIV, [0, 4], max_norm=1.0).numpy()
    length = np.linalg.norm(E[[0, 4]], axis=1, keepdims=True)
    np.testing.assert_allclose(made, E[[0, 4]] / np.maximum(length, 1), rtol=1e-5)


@pytest.mark.parametrize("parts", [E, DIV])
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("weighted", [False, True])
def test_combined(parts, combiner, weighted):
    weights = np.array(WEIGHTS, "f") if weighted else np.ones(4, "f")
    made = tf.nn.embedding_lookup_sparse(
        parts,
        _sparse(IDS, tf.int64),
        _sparse(WEIGHTS, tf.float32) if weighted else None,
        combiner=combiner,
    )
    want = np.zeros((4, 3), "f")
    for row in (0, 2, 3):
        at = [i for i, (r, _) in enumerate(PLACES) if r == row]
        total = sum(weights[i] * E[IDS[i]] for i in at)
        by = {
            "sum": 1,
            "mean": weights[at].sum(),
            "sqrtn": np.sqrt((weights[at] ** 2).sum()),
        }
        want[row] = total / by[combiner]
    np.testing.assert_allclose(made, want, rtol=1e-5, atol=1e-6)


def test_safe():
    ids = _sparse([1, -3, 0, 6], tf.int64, 5)
    weights = _sparse(WEIGHTS, tf.float32, 5)
    zeros = np.zeros(3)
    made = tf.nn.safe_embedding_lookup_sparse(E, ids, weights)
    np.testing.assert_allclose(made, [E[1], zeros, E[0], zeros, zeros])
    made = tf.nn.safe_embedding_lookup_sparse(DIV, ids, default_id=2)
    np.testing.assert_allclose(made, [E[1], E[2], E[0], E[6], E[2]])


def test_gradients_are_rows():
    table = tf.Variable(E)
    with tf.GradientTape() as tape:
        rows = tf.nn.embedding_lookup_sparse(table, _sparse(IDS, tf.int64), None)
    slope = tf.convert_to_tensor(tape.gradient(rows, table)).numpy()
    assert slope[:, 0].tolist() == [1, 0.5, 0, 0.5, 0, 0, 1]


@pytest.mark.parametrize("strategy, parts", [("mod", MOD), ("div", DIV)])
def test_ragged_ids_of_version_1(strategy, parts):
    v1 = tf.compat.v1.nn
    ids = tf.ragged.constant([[1, 3], [], [6]])
    made = v1.embedding_lookup(parts, ids, strategy)
    assert made.row_lengths().numpy().tolist() == [2, 0, 1]
    np.testing.assert_array_equal(made.flat_values, E[[1, 3, 6]])
    bounded = v1.embedding_lookup(parts, ids, strategy, max_norm=1.0).flat_values
    length = np.linalg.norm(E[[1, 3, 6]], axis=1, keepdims=True)
    np.testing.assert_allclose(bounded, E[[1, 3, 6]] / np.maximum(length, 1), rtol=1e-5)
    sums = [E[1] + E[3], 0 * E[0], E[6]]
    for combined in (v1.safe_embedding_lookup_sparse, v1.embedding_lookup_sparse):
        kept = ids if combined is v1.safe_embedding_lookup_sparse else ids[::2]
        want = sums if kept is ids else sums[::2]
        made = combined(parts, kept, None, combiner="sum", partition_strategy=strategy)
        np.testing.assert_allclose(made, want, rtol=1e-6)


def test_no_parts_or_no_indices():
    ragged, v1 = tf.ragged.constant([[1], [0]]), tf.compat.v1
    for lookup in (tf.nn.embedding_lookup, v1.nn.embedding_lookup):
        for ids in (ragged, [1]):
            with pytest.raises(ValueError, match="params must be specified"):
                lookup(None, ids)
        with pytest.raises(ValueError, match="params should not be empty"):
            lookup([], ragged)
        with pytest.raises(ValueError, match="currently 0. Need at least one"):
            lookup([], [1])
        with pytest.raises(
            ValueError, match="values contained by the inputs have type"
        ):
            lookup(E, tf.ragged.constant([[1.0]]))
