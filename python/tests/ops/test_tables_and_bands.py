"""Vocabularies, matrices with few diagonals and scattered updates, as recorded."""

import headrace as tf
import numpy as np
import pytest
import recorded
import tables_and_bands_cases as cases


@pytest.mark.parametrize("name", recorded.names(cases))
def test_as_recorded(name):
    recorded.check(cases, name, tf, rtol=1e-5, atol=1e-6)


def test_errors():
    words = tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([0], tf.int64))
    with pytest.raises(ValueError, match="must be > 0; use StaticHashTable"):
        tf.lookup.StaticVocabularyTable(words, 0)
    narrow = tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([0]))
    with pytest.raises(TypeError, match="Invalid `value_dtype`"):
        tf.lookup.StaticVocabularyTable(narrow, 1)
    with pytest.raises(TypeError, match="Invalid `key_dtype`"):
        tf.lookup.StaticVocabularyTable(words, 1, tf.int64)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.linalg.tridiagonal_solve(tf.zeros([2, 3, 4]), tf.zeros([2, 4, 1]))
    with pytest.raises(ValueError, match="partial_pivoting must be True"):
        tf.linalg.tridiagonal_solve(
            tf.ones([3, 3]),
            tf.ones([3]),
            partial_pivoting=False,
            perturb_singular=True,
        )
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.compat.v1.scatter_nd_update(tf.Variable([0.0]), [[5]], [1.0])


def test_in_a_dataset_and_a_function():
    words = tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([0], tf.int64))
    table = tf.lookup.StaticVocabularyTable(words, 2)
    data = tf.data.Dataset.from_tensor_slices(["a", "zz"]).map(table.lookup)
    want = table.lookup(tf.constant(["a", "zz"])).numpy().tolist()
    assert [int(v) for v in data] == want
    assert tf.function(table.lookup)(tf.constant(["a", "zz"])).numpy().tolist() == want


def test_gradients_of_tridiagonal_products():
    a, b = (tf.constant(v[0]) for v in (cases.BANDS, cases.RIGHT))
    with tf.GradientTape() as tape:
        tape.watch((a, b))
        y = tf.reduce_sum(tf.linalg.tridiagonal_solve(a, b) ** 2)
    assert all(g is not None for g in tape.gradient(y, (a, b)))


def test_keys_have_the_dtype_of_any_tensor():
    make = tf.lookup.KeyValueTensorInitializer
    assert make([3, 1], [1, 2]).key_dtype == tf.int32
    assert make(np.array([3, 1]), ["a", "b"]).key_dtype == tf.int64
    table = tf.lookup.StaticHashTable(make([3, 1], [1, 2]), -1)
    assert table.lookup(tf.constant([3, 5])).numpy().tolist() == [1, -1]


def test_columns_of_a_file_of_words():
    line, number = (
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.lookup.TextFileIndex.LINE_NUMBER,
    )
    for key, value, size, text in (
        ((tf.string, -3), (tf.int64, 0), None, "`key_index` should be >= -2"),
        ((tf.string, 0), (tf.int64, -3), None, "`value_index` should be >= -2"),
        ((tf.string, number), (tf.int64, 0), None, "int64 if `key_index` is -1, rec"),
        ((tf.string, line), (tf.int32, number), None, "int64 for `value_index` -1, r"),
        ((tf.float32, line), (tf.int64, number), None, "integer or string for `key_i"),
        ((tf.string, line), (tf.int64, number), 0, "`vocab_size` should be > 0"),
    ):
        with pytest.raises(ValueError, match=text):
            tf.lookup.TextFileInitializer("words", *key, *value, vocab_size=size)
