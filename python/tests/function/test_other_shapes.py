"""Concrete functions that are given tensors of other shapes than those traced for."""

import headrace as tf
import numpy as np
import pytest


def _traced():
    v = tf.Variable(2.0)
    return v, tf.function(lambda x: x * v).get_concrete_function(tf.constant([1.0]))


def test_eager_calls_look_at_no_shape():
    v, concrete = _traced()
    for x in ([1.0, 2.0], [[3.0]], 4.0, [5.0]):
        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = concrete(x)
        np.testing.assert_array_equal(y, x * 2.0)
        by_x, by_v = tape.gradient(y, [x, v])
        np.testing.assert_array_equal(by_x, tf.fill(x.shape, 2.0))
        assert float(by_v) == float(tf.reduce_sum(x))


def test_operations_look_at_them():
    x = tf.ones([2])
    concrete = tf.function(lambda a, b: a + b).get_concrete_function(x, x)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2\] vs\. \[3\]"):
        concrete(x, tf.ones([3]))
    np.testing.assert_array_equal(concrete(x, x), [2.0, 2.0])


def test_calls_in_graphs_look_at_them():
    _, concrete = _traced()
    with pytest.raises(TypeError) as e:
        tf.function(lambda: concrete(tf.constant([1.0, 2.0])), autograph=False)()
    told = str(e.value)
    assert "Can not cast TensorSpec(shape=(2,), dtype=tf.float32, name=None) to" in told
    assert "Expected shape (1,), but got shape (2,)." in told
    caller = tf.function(lambda x: concrete(x))
    assert caller.get_concrete_function(tf.TensorSpec([None])).output_shapes == [1]


def test_collections_of_the_graph_around():
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        v1.add_to_collection("x", 2)
        v1.get_variable("v", [])
        seen = {}

        @tf.function
        def f():
            inner = v1.get_default_graph()
            for key in "x", "variables":
                seen[key] = inner.get_collection(key)
            v1.add_to_collection("x", 5)
            v1.add_to_collection("z", 7)
            v1.add_to_collection("local_variables", "q")
            return 1

        f()
    assert seen["x"] == [2] and len(seen["variables"]) == 1
    assert graph.get_collection("x") == [2] and graph.get_collection("z") == []
    assert graph.get_collection("local_variables") == ["q"]
