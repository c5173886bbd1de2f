"""Threads that save under one prefix."""

import threading

import headrace as tf
import numpy as np


def _fifty(save, errors):
    try:
        for _ in range(50):
            save()
    except Exception as e:  # noqa: BLE001 - whatever it is, the test shows it
        errors.append(e)


def _together(*saves):
    errors = []
    threads = [threading.Thread(target=_fifty, args=(s, errors)) for s in saves]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []


def test_two_write_one_prefix(tmp_path):
    prefix = str(tmp_path / "both")

    def saving(value):
        tensors = [tf.fill([1000], value), tf.fill([3], value)]
        return lambda: tf.raw_ops.SaveV2(
            prefix=prefix,
            tensor_names=["a", "b"],
            shape_and_slices=["", ""],
            tensors=tensors,
        )

    _together(saving(1.0), saving(2.0))
    a, b = tf.raw_ops.RestoreV2(
        prefix=prefix,
        tensor_names=["a", "b"],
        shape_and_slices=["", ""],
        dtypes=[tf.float32] * 2,
    )
    assert a.numpy()[0] in (1.0, 2.0)
    np.testing.assert_array_equal(a, np.full(1000, a.numpy()[0]))
    np.testing.assert_array_equal(b, np.full(3, a.numpy()[0]))
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "both.data-00000-of-00001",
        "both.index",
    ]


def test_two_checkpoints_of_one_prefix(tmp_path):
    prefix = str(tmp_path / "both")
    points = [tf.train.Checkpoint(v=tf.Variable([float(i)] * 100)) for i in (1, 2)]
    _together(*[lambda p=p: p.write(prefix) for p in points])
    found = tf.train.Checkpoint(v=tf.Variable([0.0] * 100))
    found.read(prefix).assert_consumed()
    assert found.v.numpy()[0] in (1.0, 2.0)
    assert len(set(found.v.numpy())) == 1
