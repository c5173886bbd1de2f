"""Composite tensors, datasets and iterators as arguments of traced functions."""

import headrace as tf
import numpy as np
import pytest

RAGGED = tf.RaggedTensorSpec([None, None], tf.int32)


def test_ragged_signature():
    @tf.function(input_signature=[RAGGED])
    def rows(r):
        return tf.reduce_sum(r, 1)

    for value in ([[1, 2], [3]], [[1], [], [4, 5]]):
        got = rows(tf.ragged.constant(value, tf.int32))
        assert got.numpy().tolist() == [sum(row) for row in value]
    assert rows.experimental_get_tracing_count() == 1
    for wrong in (tf.ragged.constant([[1.0]]), tf.constant([[1, 2]])):
        with pytest.raises(TypeError, match="Binding inputs to tf.function failed"):
            rows(wrong)


def test_structure_with_a_ragged_part():
    spec = {"a": tf.RaggedTensorSpec([2, None], tf.float32), "b": tf.TensorSpec([])}
    f = tf.function(lambda d: d["a"] * d["b"], input_signature=[spec])
    two = tf.ragged.constant([[1.0], [2.0, 3.0]])
    assert f({"a": two, "b": 2.0}).to_list() == [[2.0], [4.0, 6.0]]
    with pytest.raises(TypeError, match="Binding inputs to tf.function failed"):
        f({"a": tf.ragged.constant([[1.0], [2.0], [3.0]]), "b": 2.0})


def test_concrete_function_of_specs():
    concrete = tf.function(lambda r: r * 2).get_concrete_function(RAGGED)
    assert concrete(tf.ragged.constant([[1, 2], [3]])).to_list() == [[2, 4], [6]]
    assert concrete.structured_input_signature[0] == (RAGGED,)


def test_sparse_and_slices():
    spec = tf.SparseTensorSpec([None, 3], tf.float32)
    f = tf.function(lambda s: tf.sparse.reduce_sum(s, 1), input_signature=[spec])
    assert f(tf.sparse.from_dense([[1.0, 0.0, 2.0]])).numpy().tolist() == [3.0]
    spec = tf.IndexedSlicesSpec([3, 2], tf.float32, tf.int32, tf.int32)
    f = tf.function(tf.convert_to_tensor, input_signature=[spec])
    slices = tf.IndexedSlices(
        tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([3, 2])
    )
    assert f(slices).numpy().tolist() == [[0, 0], [1, 2], [0, 0]]


def test_datasets_iterators_and_optionals():
    number = tf.TensorSpec([], tf.int64)

    @tf.function(input_signature=[tf.data.DatasetSpec(number)])
    def total(d):
        return d.reduce(np.int64(0), lambda a, b: a + b)

    assert total(tf.data.Dataset.range(5)).numpy() == 10

    @tf.function(input_signature=[tf.data.IteratorSpec(number)])
    def square(iterator):
        return iterator.get_next() ** 2

    iterator = iter(tf.data.Dataset.range(3, 9))
    assert [square(iterator).numpy() for _ in range(2)] == [9, 16]
    assert next(iterator).numpy() == 5

    @tf.function(input_signature=[tf.OptionalSpec(number)])
    def value(o):
        return tf.cond(o.has_value(), lambda: o.get_value(), lambda: np.int64(-1))

    kind = tf.experimental.Optional
    assert value(kind.from_value(tf.constant(7, tf.int64))).numpy() == 7
    assert value(kind.empty(number)).numpy() == -1
