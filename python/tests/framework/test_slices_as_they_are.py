"""Functions that leave tf.IndexedSlices what they are. Expected: TensorFlow 2.21."""

import headrace as tf
import numpy as np
import pytest


def _slices(dtype="float32", dense_shape=(5, 2)):
    shape = None if dense_shape is None else tf.constant(dense_shape)
    return tf.IndexedSlices(
        tf.constant([[1, 2], [3, 4], [5, 6]], dtype), tf.constant([0, 2, 4]), shape
    )


@pytest.mark.parametrize("cast", [tf.cast, tf.compat.v1.cast])
def test_cast_is_of_the_rows(cast):
    for slices in (_slices(), _slices("complex64")):
        cast_ones = cast(slices, tf.float64)
        assert isinstance(cast_ones, tf.IndexedSlices)
        assert cast_ones.values.dtype is tf.float64
        np.testing.assert_array_equal(cast_ones.values, [[1, 2], [3, 4], [5, 6]])
        np.testing.assert_array_equal(cast_ones.indices, [0, 2, 4])
        np.testing.assert_array_equal(cast_ones.dense_shape, [5, 2])
    assert tf.cast(_slices(dense_shape=None), tf.int64).dense_shape is None
    assert tf.cast(x=_slices(), dtype=tf.int8).dtype is tf.int8


@pytest.mark.parametrize("function", [tf.identity, tf.stop_gradient])
def test_identities_keep_them(function):
    same = function(_slices())
    assert isinstance(same, tf.IndexedSlices)
    np.testing.assert_array_equal(same.values, _slices().values)


def test_a_gradient_of_rows_is_cast_in_a_function():
    table = tf.Variable(tf.ones([4, 2]))

    @tf.function
    def gradient():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, [1, 3]))
        slices = tf.cast(tape.gradient(loss, table), tf.float16)
        assert isinstance(slices, tf.IndexedSlices)
        return slices

    assert gradient().values.dtype is tf.float16
    np.testing.assert_array_equal(gradient().indices, [1, 3])


def test_others_take_the_whole_tensor():
    whole = tf.abs(_slices())
    np.testing.assert_array_equal(whole, [[1, 2], [0, 0], [3, 4], [0, 0], [5, 6]])
