"""What tensors are made of: lists with tensors in them, sizes, arrays' lookalikes."""

import numpy as np
import pytest

import headrace as tf


class Interface:
    """Has an array, and says so by `__array_interface__` alone."""

    def __init__(self):
        self._array = np.array([1, 2])
        self.__array_interface__ = self._array.__array_interface__


@pytest.fixture(params=["eager", "graph"])
def mode(request):
    if request.param == "eager":
        yield request.param
        return
    with tf.Graph().as_default():
        yield request.param


def test_lists_of_tensors_take_the_dtype_that_is_wanted(mode):
    i, wide = tf.constant(1), tf.constant([3], tf.int64)
    assert tf.convert_to_tensor([i], tf.int64).dtype == tf.int64
    assert tf.convert_to_tensor([[i, 2]], tf.float32).dtype == tf.float32
    assert tf.concat([wide, [i]], 0).dtype == tf.int64
    assert tf.concat([[i], wide], 0).dtype == tf.int64
    assert (wide + [i]).dtype == ([i] + wide).dtype == tf.int64
    assert tf.maximum(wide, [i]).dtype == tf.int64
    assert tf.where([True], wide, [i]).dtype == tf.int64


def test_lists_of_tensors_that_disagree(mode):
    mixed = [tf.constant(1), tf.constant(1, tf.int64)]
    kind = tf.errors.InvalidArgumentError if mode == "eager" else TypeError
    with pytest.raises(kind):
        tf.convert_to_tensor(mixed)
    with pytest.raises(kind):
        tf.stack(mixed)


def test_sizes_of_tensorflow_1(mode):
    size = tf.compat.v1.Dimension
    assert tf.reshape(tf.ones([6]), [size(2), size(3)]).shape == (2, 3)
    assert tf.constant([size(2), 3], tf.int64).dtype == tf.int64
    assert tf.zeros([2]) + tf.cast(size(2), tf.float32) is not None
    with pytest.raises(ValueError, match="unknown Dimension"):
        tf.convert_to_tensor([size(None)])


def test_array_interfaces(mode):
    assert tf.convert_to_tensor(Interface()).shape == (2,)


def test_quantized_numbers():
    tensor = tf.constant([[1, -4]], tf.qint16)
    assert tf.bitcast(tensor, tf.int16).numpy().tolist() == [[1, -4]]
