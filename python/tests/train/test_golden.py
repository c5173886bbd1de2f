"""Checkpoints that TensorFlow wrote; recipes: tests/golden/README.md."""

import os

import headrace as tf
import numpy as np

GOLDEN = os.path.join(os.path.dirname(__file__), "../../../tests/golden/checkpoints")


def golden(name):
    return os.path.join(GOLDEN, name)


def test_escaped_names():
    names = ["a.b", "a/b", "a b", "x.S", "é", ".OPTIMIZER_SLOT", "", "0"]
    root = tf.train.Checkpoint(d={n: tf.Variable(0.0) for n in names})
    root.restore(golden("escaped_names/ckpt-1")).assert_consumed()
    assert [float(root.d[n]) for n in names] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_many_keys():
    root = tf.train.Checkpoint(block=[tf.Module() for _ in range(60)])
    status = root.restore(golden("many_keys/ckpt-1"))
    for module in root.block:  # all of them after the restore
        module.attention_output_projection = {
            f"head_{j}": tf.Variable([0.0, 0.0]) for j in range(10)
        }
    status.assert_consumed()
    last = root.block[59].attention_output_projection["head_9"]
    np.testing.assert_array_equal(last.numpy(), [59, 9])


def test_sharded_by_size():
    shapes = [[40, 10], [3], [100], [7, 7]]
    v = [tf.Variable(tf.zeros(s)) for s in shapes]
    tf.train.Checkpoint(v=v).restore(golden("sharded_by_size/ckpt-1")).assert_consumed()
    for x, s in zip(v, shapes):
        np.testing.assert_array_equal(x.numpy(), np.arange(np.prod(s)).reshape(s))


def test_name_based():
    w = tf.Variable(tf.zeros([2, 3]), name="layer/w")
    root = tf.train.Checkpoint(x=w)
    status = root.restore(golden("saver_name_based/model-3"))
    status.assert_existing_objects_matched().assert_nontrivial_match()
    np.testing.assert_array_equal(w.numpy(), np.arange(6).reshape(2, 3))
