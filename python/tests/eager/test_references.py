"""What `ref()` of tensors and variables gives."""

import headrace as tf
import pytest


def test_references_are_sorted_as_keys_of_nested_dicts():
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    refs = sorted([a.ref(), b.ref()])
    assert (refs[0] < refs[1]) and not (refs[0] > refs[1])
    flat = tf.nest.flatten({b.ref(): 2, a.ref(): 1})
    assert sorted(flat) == [1, 2]
    assert flat == tf.nest.flatten({a.ref(): 1, b.ref(): 2})
    with pytest.raises(TypeError, match="Cannot compare"):
        a.ref() < 3
