"""Constants of given shapes, and shapes as tensors."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1


def _value(tensor):
    return tf.get_static_value(tensor).tolist()


def test_shapes_that_do_not_fit():
    with pytest.raises(TypeError, match="unsupported shape"):
        tf.constant([1, 2, 3], shape=[4])
    with tf.Graph().as_default():
        with pytest.raises(
            TypeError, match=r"Expected Tensor's shape: \(4,\), but got"
        ):
            tf.constant([1, 2, 3], shape=[4])
        with pytest.raises(ValueError, match="Takes at most 2, but got 3"):
            v1.constant([1, 2, 3], shape=[2])
        with pytest.raises(TypeError, match=r"Expected Tensor's shape: \(3, 1\)"):
            v1.constant([1, 2, 3], shape=[3, 1], verify_shape=True)
    with pytest.raises(TypeError, match=r"with shape \(2,\), but got shape \(\)"):
        v1.constant(1, shape=[2], verify_shape=True)


def test_old_constants_are_filled_up_in_graphs():
    with tf.Graph().as_default():
        assert _value(v1.constant([1, 2], shape=[2, 2])) == [[1, 2], [2, 2]]
        assert _value(v1.constant(["a", "b"], shape=[3])) == [b"a", b"b", b"b"]
        assert _value(v1.constant([], shape=[2])) == [0.0, 0.0]
        whole = v1.constant(np.arange(2), shape=[3])
        assert whole.dtype == tf.int64
        assert _value(whole) == [0, 1, 1]


def test_shapes_as_tensors():
    big = tf.TensorShape([2**31, 2])
    assert tf.convert_to_tensor(big).dtype == tf.int64
    assert tf.constant(big).dtype == tf.int64
    with pytest.raises(ValueError, match="a dimension is too large"):
        tf.convert_to_tensor(big, tf.int32)
    with pytest.raises(TypeError, match="Allowed dtypes are tf.int32 and tf.int64"):
        tf.convert_to_tensor(tf.TensorShape([1]), tf.float32)
    assert tf.constant(tf.TensorShape([3]), tf.float32).numpy().tolist() == [3.0]


def test_lists_of_unlike_tensors():
    rows = [tf.constant([1.0]), tf.constant([2.0], tf.float64)]
    with pytest.raises(TypeError, match="Cannot convert a list containing a tensor"):
        tf.convert_to_tensor(rows)
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot compute Pack"):
        tf.convert_to_tensor([tf.constant(1.0), tf.constant(2)])


@pytest.mark.parametrize("value", [None, {1: 2}, tf.constant(1), {1}, object()])
def test_what_old_initializers_do_not_take(value):
    with pytest.raises(TypeError, match="Invalid type for initial value="):
        v1.constant_initializer(value)


@pytest.mark.parametrize(
    ("made", "config"),
    [
        (v1.zeros_initializer(tf.int32), {"dtype": "int32"}),
        (v1.constant_initializer(3), {"value": 3, "dtype": "float32"}),
        (
            v1.random_uniform_initializer(1, 2, seed=3),
            {"minval": 1, "maxval": 2, "seed": 3, "dtype": "float32"},
        ),
        (
            v1.truncated_normal_initializer(1.0, 2.0, dtype=tf.float64),
            {"mean": 1.0, "stddev": 2.0, "seed": None, "dtype": "float64"},
        ),
        (
            v1.variance_scaling_initializer(2.0, "fan_out", seed=1),
            {
                **{"scale": 2.0, "mode": "fan_out"},
                "distribution": "truncated_normal",
                **{"seed": 1, "dtype": "float32"},
            },
        ),
        (v1.glorot_uniform_initializer(7), {"seed": 7, "dtype": "float32"}),
        (
            v1.orthogonal_initializer(2.0),
            {"gain": 2.0, "seed": None, "dtype": "float32"},
        ),
        (tf.random_normal_initializer(1, 2), {"mean": 1, "stddev": 2, "seed": None}),
    ],
)
def test_configurations_of_initializers(made, config):
    assert made.get_config() == config
    again = type(made).from_config(dict(config))
    assert {**again.get_config(), "dtype": 0} == {**config, "dtype": 0}
