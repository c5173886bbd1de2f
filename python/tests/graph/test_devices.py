"""Processors that nodes of a graph name."""

import headrace as tf
import pytest

v1 = tf.compat.v1


def test_processors_of_a_session():
    with tf.Graph().as_default():
        with tf.device("CPU:1"):
            two = tf.constant(1) + 1
        with pytest.raises(tf.errors.InvalidArgumentError, match="device:CPU:0 ]"):
            v1.Session().run(two)
        config = v1.ConfigProto(device_count={"CPU": 2})
        assert v1.Session(config=config).run(two) == 2
        with tf.device("/device:CPU:2"):
            other = tf.constant(3)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="device:CPU:0, .*device:CPU:1 ]"
        ):
            v1.Session(config=config).run(other)
