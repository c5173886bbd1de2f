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


def _devices(graph):
    return {op.name: op.device for op in graph.get_operations()}


def test_functions_place_operations():
    with tf.Graph().as_default() as graph:
        seen = []

        def place(op):
            seen.append((op.name, op.type, [t.name for t in op.inputs], op.device))
            return "/cpu:0"

        with graph.device(place):
            a = tf.constant(1, name="a")
            assert a.device == "/cpu:0"
            with graph.device("/job:worker"):
                b = tf.constant(2, name="b")
            with tf.compat.v1.device(lambda op: "/task:3"):
                tf.add(a, b, name="c")
        with graph.device("/job:ps/task:1"):
            with tf.compat.v1.device(lambda op: "/cpu:1"):
                tf.constant(1, name="d")
            with tf.compat.v1.device(None):
                tf.constant(1, name="e")
            with tf.compat.v1.device(lambda op: ""):
                tf.constant(1, name="f")
        with graph.device(lambda op: tf.DeviceSpec(job="ps", task=2)):
            tf.constant(1, name="g")
        tf.constant(1, name="h")
    assert seen == [
        ("a", "Const", [], ""),
        ("b", "Const", [], "/job:worker"),
        ("c", "AddV2", ["a:0", "b:0"], "/task:3"),
    ]
    assert _devices(graph) == {
        "a": "/cpu:0",
        "b": "/cpu:0",
        "c": "/cpu:0",
        "d": "/job:ps/task:1/device:CPU:1",
        "e": "",
        "f": "/job:ps/task:1",
        "g": "/job:ps/task:2",
        "h": "",
    }


def test_functions_that_fail():
    with tf.Graph().as_default() as graph:
        for result in (3, None):
            with pytest.raises(TypeError, match="Expected binary or unicode string"):
                with graph.device(lambda op, result=result: result):
                    tf.constant(1)
        with pytest.raises(ZeroDivisionError):
            with graph.device(lambda op: 1 // 0):
                tf.constant(1)
        assert tf.constant(1).device == ""
        with pytest.raises(RuntimeError, match="tf.device does not support functions"):
            tf.device(lambda op: "/cpu:0")
    with pytest.raises(RuntimeError, match="when eager execution is enabled"):
        tf.compat.v1.device(lambda op: "/cpu:0")


def test_names_are_merged():
    with tf.Graph().as_default() as graph:
        with tf.device("/job:a/cpu:1"):
            with tf.device("/job:b/task:2"):
                tf.constant(1, name="inner")
            tf.constant(1, name="outer")
            with tf.device(None):
                tf.constant(1, name="none")
    assert _devices(graph) == {
        "inner": "/job:b/task:2/device:CPU:1",
        "outer": "/job:a/device:CPU:1",
        "none": "",
    }


def test_containers():
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        with v1.container("c1") as name:
            assert name == "c1"
            v1.FIFOQueue(1, tf.float32, name="queue")
            v1.get_variable("v", initializer=1.0, use_resource=False)
            v1.get_variable("r", initializer=1.0, use_resource=True)
            with graph.container("c2"):
                tf.raw_ops.StageSize(dtypes=[tf.float32], name="size")
                tf.raw_ops.StageSize(dtypes=[tf.float32], container="c3", name="own")
        v1.get_variable("n", initializer=1.0, use_resource=False)
    names = {"queue": b"c1", "v": b"c1", "r": b"c1", "size": b"c2", "own": b"c3"}
    for op, container in {**names, "n": b""}.items():
        assert graph.get_operation_by_name(op).get_attr("container") == container
