"""tf.data.experimental.enable_debug_mode; as TensorFlow 2.21 behaves."""

import pytest

import headrace as tf
from headrace.data import functions


@pytest.fixture
def debug(monkeypatch):
    monkeypatch.setattr(functions.debug, "on", False)
    tf.data.experimental.enable_debug_mode()


def test_functions_are_called_for_each_element(debug):
    seen = []

    def double(x):
        seen.append(x)
        return {"x": x * 2, "y": (tf.zeros([3]), x)}

    dataset = tf.data.Dataset.range(3).map(double, num_parallel_calls=2)
    assert dataset.element_spec == {
        "x": tf.TensorSpec([], tf.int64),
        "y": (tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.int64)),
    }
    assert [e["x"].numpy() for e in dataset] == [0, 2, 4]
    assert not hasattr(seen[0], "numpy")  # traced once, for the spec
    assert sorted(x.numpy() for x in seen[1:]) == [0, 1, 2]
    kept = tf.data.Dataset.range(6).filter(
        lambda x: x.numpy() % 2 == 0 if hasattr(x, "numpy") else x % 2 == 0
    )
    assert [x.numpy() for x in kept] == [0, 2, 4]


def test_only_eagerly():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="in eager mode"):
        tf.data.experimental.enable_debug_mode()
    assert not functions.debug.on


def test_applied_functions_take_what_upstream_takes():
    apply = tf.data.experimental
    dataset = tf.data.Dataset.range(4).apply(apply.enumerate_dataset(start=2))
    assert [i.numpy() for i, _ in dataset] == [2, 3, 4, 5]
    dataset = tf.data.Dataset.range(4).apply(apply.take_while(lambda x: x < 2))
    assert [x.numpy() for x in dataset] == [0, 1]
    with pytest.raises(TypeError):
        apply.unbatch(3)
    with pytest.raises(TypeError):
        apply.take_while()
