"""DTypes are no values of tensors, within lists neither; errors are TensorFlow 2.21's."""

import numpy as np
import pytest

import headrace as tf

D = tf.float32
UNSUPPORTED = r"Attempt to convert a value \(tf.float32\) with an unsupported type"
FAILED = r"Failed to convert elements of \[{}\] to Tensor. Consider casting elements"


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.constant([D]),
        lambda: tf.constant(D),
        lambda: tf.constant([[D, D]]),
        lambda: tf.convert_to_tensor([D]),
        lambda: tf.constant([D], tf.int32),
        lambda: tf.constant([D], tf.string),
        lambda: tf.constant([D, tf.string], tf.int64),
        lambda: tf.add([D], 1),
        lambda: tf.stack([D, D]),
    ],
)
def test_eager(call):
    with pytest.raises(ValueError, match=UNSUPPORTED):
        call()


@pytest.mark.parametrize("value", [[1, D], (1.0, D)])
def test_behind_numbers(value):
    with pytest.raises(ValueError, match="Python sequence with mixed types to Tensor"):
        tf.constant(value)


def test_graphs():
    traced = tf.function(lambda: tf.constant([D]))
    with pytest.raises(TypeError, match=FAILED.format("tf.float32")):
        traced()
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match=FAILED.format("1, tf.float32")):
            tf.convert_to_tensor([1, D])
        expected = "Expected int32, but got <dtype: 'float32'> of type 'DType'."
        with pytest.raises(TypeError, match=expected):
            tf.constant([D], tf.int32)


def test_what_stays():
    assert tf.constant([D.as_datatype_enum]).numpy().tolist() == [1]
    assert tf.constant([np.float32(2), 1]).numpy().tolist() == [2, 1]
