"""Labels of steps, and what graphs know of values that may be fed.

The literals are TensorFlow 2.21's.
"""

import headrace as tf
import pytest

v1 = tf.compat.v1


def test_labels_have_the_inputs():
    with tf.Graph().as_default(), v1.Session() as sess:
        x = v1.placeholder(tf.float32, [2, None], name="x")
        v = v1.get_variable("v", [2], use_resource=True)
        parts = tf.split(x, 2, 1)
        y = tf.matmul(parts[1], parts[0], transpose_a=True)
        with tf.control_dependencies([y]):
            read = v.read_value()
        with tf.control_dependencies([y]):
            done = v1.no_op("n")
        sess.run(v.initializer)
        metadata = v1.RunMetadata()
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
        feed = {x: [[1.0, 2.0], [3.0, 4.0]]}
        sess.run([y, read, done], feed, options, metadata)
    (device,) = metadata.step_stats.dev_stats
    labels = {node.node_name: node.timeline_label for node in device.node_stats}
    assert labels["MatMul"] == "MatMul = MatMul(split:1, split)"
    assert labels["n"] == "n = NoOp(^MatMul)"
    assert labels["v"] == "v = VarHandleOp()"


def test_defaults_of_placeholders_are_no_constants():
    with tf.Graph().as_default(), v1.Session() as sess:
        sizes = v1.placeholder_with_default([3], [1])
        filled = tf.fill(sizes, 0.0)
        assert str(filled.shape) == "(None,)"
        assert sess.run(filled).shape == (3,)
        assert sess.run(filled, {sizes: [5]}).shape == (5,)
        turned = tf.reshape(tf.zeros([4]), sizes)  # no error: 4 may be fed
        assert sess.run(turned, {sizes: [4]}).shape == (4,)


def test_consumers_come_once_an_input():
    with tf.Graph().as_default():
        a = tf.constant([1, 2])
        b = tf.add(a, a, name="b")
        assert a.consumers() == [b.op, b.op]


def test_tensors_of_other_graphs():
    with tf.Graph().as_default():
        foreign = tf.constant(1)
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match="from the same graph"),
    ):
        foreign + tf.constant(2)


@pytest.mark.parametrize("of_cluster", [False, True])
def test_steps_are_told_by_their_devices(of_cluster):
    config = v1.ConfigProto(device_count={"CPU": 3})
    target = ""
    if of_cluster:
        target = tf.distribute.Server.create_local_server(config=config).target

    @tf.function
    def body(x):
        with tf.device("/device:CPU:1"):
            y = tf.linalg.matmul(x, x, name="inner")
        return tf.linalg.inv(y, name="outer")

    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [2, 2])
        with tf.device("/device:CPU:2"):
            first = tf.linalg.inv(x, name="first")
        y = body(first)
        metadata = v1.RunMetadata()
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
        with v1.Session(target, config=config) as sess:
            sess.run(y, {x: [[1.0, 0.0], [0.0, 1.0]]}, options, metadata)
    found = {
        node.node_name: device.device
        for device in metadata.step_stats.dev_stats
        for node in device.node_stats
    }
    for name, number in {"first": 2, "inner": 1, "outer": 0}.items():
        assert found[name] == f"/job:localhost/replica:0/task:0/device:CPU:{number}"
