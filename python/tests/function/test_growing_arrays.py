"""Gradients of tensor lists that grow where they are written. Expected: TensorFlow 2.21."""

import headrace as tf
import pytest


def squares(x):
    """Written behind the end; an earlier element is read in a branch."""
    array = tf.TensorArray(
        tf.float32, size=0, dynamic_size=True, clear_after_read=False
    )
    h = 0.0
    for i in tf.range(3):
        h = h * 0.5 + x[i]
        array = array.write(i, h * h)
        if i > 1:
            h = h + array.read(i - 1)
    return array.stack()


@pytest.mark.parametrize("wrap", [tf.function, lambda f: tf.function(tf.function(f))])
def test_an_element_read_in_a_branch_of_a_loop(wrap):
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(wrap(squares)(x) * x)
    assert y.numpy() == 67.6875
    assert tape.gradient(y, x).numpy().tolist() == [14.375, 29.0, 43.5625]


def grown(x):
    scalar = tf.constant([], tf.int32)
    lists = tf.raw_ops
    a = lists.TensorListReserve(
        element_shape=scalar, num_elements=1, element_dtype=tf.float32
    )
    a = lists.TensorListSetItem(
        input_handle=a, index=0, item=x[0] * 2.0, resize_if_index_out_of_bounds=True
    )
    first = lists.TensorListGetItem(
        input_handle=a, index=0, element_shape=scalar, element_dtype=tf.float32
    )
    b = lists.TensorListSetItem(
        input_handle=a, index=2, item=x[1] * first, resize_if_index_out_of_bounds=True
    )
    stack = lists.TensorListStack(
        input_handle=b, element_shape=scalar, element_dtype=tf.float32
    )
    return tf.reduce_sum(stack * stack) + first


@pytest.mark.parametrize("wrap", [tf.function, lambda f: f])
def test_a_list_read_before_it_grows(wrap):
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = wrap(grown)(x)
    assert tape.gradient(y, x).numpy().tolist() == [42.0, 16.0, 0.0]
