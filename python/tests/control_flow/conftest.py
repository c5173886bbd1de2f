import headrace as tf
import pytest


@pytest.fixture
def frames():
    """A plain graph in which branches and loops are TensorFlow 1's nodes."""
    tf.compat.v1.disable_control_flow_v2()
    with tf.Graph().as_default():
        yield
    tf.compat.v1.enable_control_flow_v2()
