"""Arrays that strings name: handles of nothing, and what gradients of several refuse."""

import headrace as tf
import numpy as np
import pytest
import rows

Invalid = tf.errors.InvalidArgumentError
FLOAT = {"dtype": tf.float32}


class _Raw:
    called = set()


def _read(handle, producer=20):
    nodes = [("r", "TensorArrayReadV2", [handle, np.int32(0), np.float32(0)], FLOAT)]
    return rows.old_graph(tf, _Raw, producer, nodes, [["r:0"]])


def test_handles_of_nothing():
    with pytest.raises(tf.errors.NotFoundError, match="Could not find TensorArray: a/"):
        _read(np.array([b"a", b"nope"], object))
    with pytest.raises(tf.errors.NotFoundError, match="_tensor_arrays/nope"):
        _read(np.array([b"_tensor_arrays", b"nope"], object))
    for handle in ([b"a", b"b", b"c"], [[b"a", b"b"]], b"a"):
        with pytest.raises((Invalid, ValueError)):
            _read(np.array(handle, object))


def test_a_handle_names_nothing_after_its_run():
    nodes = [
        ("array", "TensorArrayV2", [np.int32(1)], FLOAT),
        ("again", "Identity", ["array"], {"T": tf.string}),
    ]
    handle = rows.old_graph(tf, _Raw, 20, nodes, [["again:0"]])[0]
    assert handle[0] == b"_tensor_arrays"
    with pytest.raises(tf.errors.NotFoundError):
        _read(np.array(handle, object))


def test_todays_graphs_are_refused():
    with pytest.raises(tf.errors.UnimplementedError, match="removed in version 26"):
        tf.raw_ops.TensorArrayV2(size=1, dtype=tf.float32)


@pytest.mark.parametrize("sizes", [[-1], [1 << 30, 1 << 30, 1 << 30]])
def test_gradients_of_several_refuse(sizes):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        raw = tf.raw_ops
        handle, flow = raw.TensorArrayV3(size=2, dtype=tf.float32, element_shape=[2])
        grad, flow = raw.TensorArrayGradWithShape(
            handle=handle, flow_in=flow, shape_to_prepend=sizes, source="g"
        )
        read = raw.TensorArrayReadV3(
            handle=grad, index=0, flow_in=flow, dtype=tf.float32
        )
        with pytest.raises((Invalid, tf.errors.ResourceExhaustedError)):
            session.run(read)
        with pytest.raises(ValueError, match="rank 1"):
            raw.TensorArrayGradWithShape(
                handle=handle, flow_in=flow, shape_to_prepend=4, source="g"
            )
