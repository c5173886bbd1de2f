"""Attributes that a function, or an object that is called, had when tf.function was made
of it. Expected: TensorFlow 2.21."""

import headrace as tf
import pytest


class _Scaled(tf.Module):
    kind = "scaled"

    def __init__(self):
        super().__init__()
        self.rate, self.v = 5, tf.Variable(2.0)

    def __call__(self, x):
        return x * self.v


def test_attributes_of_objects_that_are_called():
    scaled = _Scaled()
    function = tf.function(scaled)
    assert function.v is scaled.v and function.rate == 5
    assert float(function(tf.constant(3.0))) == 6.0
    scaled.rate = 7
    assert function.rate == 5
    for name in ("kind", "variables"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(function, name)
    path = tf.train.Checkpoint(m=scaled)
    assert path.m is scaled and function.name == "function"


def test_attributes_of_functions():
    def plain(x):
        return x

    plain.note, plain.python_function = 1, "mine"
    function = tf.function(plain)
    assert function.note == 1 and tf.function(function).note == 1
    assert function.python_function is plain
    plain.later = 2
    assert not hasattr(function, "later")
