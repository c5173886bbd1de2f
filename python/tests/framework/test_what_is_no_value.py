"""What TensorFlow refuses to take for a value or for a tensor's static shape."""

import pytest

import headrace as tf

v1 = tf.compat.v1

MAKERS = [
    tf.constant,
    tf.convert_to_tensor,
    tf.Variable,
    lambda dtype: tf.constant(dtype, shape=[2]),
    lambda dtype: tf.add(dtype, 1),
    lambda dtype: tf.fill([2], dtype),
]


@pytest.mark.parametrize("make", MAKERS)
def test_dtypes_are_no_values(make):
    text = r"Attempt to convert a value \(tf.float32\) with an unsupported type"
    with pytest.raises(ValueError, match=text):
        make(tf.float32)
    text = (
        "Failed to convert elements of <dtype: 'float32'> to Tensor. Consider casting"
    )
    with tf.Graph().as_default(), pytest.raises(TypeError, match=text):
        make(tf.float32)


SHAPES = [
    ([2, 2], [3, 3], "Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2,2] and [3,3]."),
    ([2, 2], [2, 3], "Dimension 1 in both shapes must be equal, but are 2 and 3. Shapes are [2,2] and [2,3]."),
    ([None, 2], [2, 3], "Dimension 1 in both shapes must be equal, but are 2 and 3. Shapes are [?,2] and [2,3]."),
    ([2, 2], [2], "Shapes must be equal rank, but are 2 and 1"),
    ([2, 2], [2, None, 1], "Shapes must be equal rank, but are 2 and 3"),
]  # fmt: skip


@pytest.mark.parametrize("have, shape, text", SHAPES)
def test_shapes_that_a_tensor_of_a_graph_cannot_have(have, shape, text):
    with tf.Graph().as_default():
        tensor = v1.placeholder(tf.float32, have)
        with pytest.raises(ValueError) as error:
            tensor.set_shape(shape)
    assert str(error.value) == text
    assert tensor.shape.as_list() == have
