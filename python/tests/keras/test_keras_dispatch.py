"""Functions of tf on KerasTensors."""

import subprocess
import sys

import headrace as tf
import numpy as np
import pytest

A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = A[::-1].copy()


def built(function):
    """(names of the layers, what the model of it gives, what it gives itself)."""
    x, y = tf.keras.Input([4], name="x"), tf.keras.Input([4], name="y")
    model = tf.keras.Model([x, y], function(x, y))
    names = [layer.name.rstrip("_0123456789") for layer in model.layers]
    return set(names) - {"x", "y"}, model([A, B]), function(A, B)


@pytest.mark.parametrize(
    "function, names",
    [
        (lambda x, y: tf.nn.relu(x), {"tf.nn.relu"}),
        (lambda x, y: tf.reduce_mean(x, axis=1), {"tf.math.reduce_mean"}),
        (lambda x, y: tf.concat([x, y], axis=-1), {"tf.concat"}),
        (lambda x, y: tf.matmul(x, y, transpose_b=True), {"tf.linalg.matmul"}),
        (lambda x, y: tf.where(y > x, x, y), {"tf.where", "tf.math.greater"}),
        (lambda x, y: tf.math.add(x=x, y=y), {"tf.math.add"}),
        (lambda x, y: tf.split(x, 2, axis=1), {"tf.split"}),
        (lambda x, y: tf.cast(x, tf.int32), {"tf.cast"}),
        (lambda x, y: tf.nn.softmax(x), {"tf.nn.softmax"}),
        (lambda x, y: tf.einsum("bi,bi->b", x, y), {"tf.einsum"}),
        (lambda x, y: tf.nn.l2_normalize(x, -1), {"tf.math.l2_normalize"}),
        (
            lambda x, y: tf.one_hot(tf.argmax(x, -1), 4),
            {"tf.math.argmax", "tf.one_hot"},
        ),
        (lambda x, y: tf.reshape(x, [-1, 2, 2]), {"tf.reshape"}),
        (lambda x, y: 1.0 - x[:, 1:], {"tf.__operators__.getitem", "tf.math.subtract"}),
        (
            lambda x, y: x[:, : tf.shape(y)[1] - 1],
            {"tf.compat.v1.shape", "tf.__operators__.getitem", "tf.math.subtract"},
        ),
        (lambda x, y: tf.shape(x), {"tf.compat.v1.shape"}),
    ],
)
def test_functions_become_layers(function, names):
    layers, got, want = built(function)
    assert layers == names
    for g, w in zip(tf.nest.flatten(got), tf.nest.flatten(want)):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=1e-6)


def test_between_layers_with_weights():
    x = tf.keras.Input([4])
    h = tf.keras.layers.Dense(3, kernel_initializer="ones")(tf.abs(x))
    model = tf.keras.Model(x, tf.reduce_sum(h, -1))
    assert len(model.trainable_variables) == 2
    assert model(A).numpy().tolist() == (3 * A.sum(1)).tolist()
    model.compile("sgd", "mse")
    model.fit(A, A.sum(1), epochs=1, verbose=0)


def test_what_needs_values_says_so():
    x = tf.keras.Input([4])
    with pytest.raises(TypeError, match="that is being described"):
        np.asarray(x)
    with pytest.raises(TypeError, match="do not implement `__len__`"):
        bool(x)
    y = tf.nn.relu(x)
    y.set_shape([2, None])
    assert y.shape == [2, 4]


def test_sizes_that_are_known_reach_shapes():
    x = tf.keras.Input((2, 4), name="q")
    s = tf.shape(x)
    values = [s, s[1] * s[2], 3 + s[1:], tf.stack([s[0], 8]), -s]
    assert [v.inferred_value for v in values] == [
        *([None, 2, 4], [8], [5, 7], [None, 8], [None] * 3)
    ]
    assert "dtype=int32 inferred_value=[None, 2, 4] (created" in repr(s)
    assert "dtype=tf.int32, name=None), inferred_value=[None, 2, 4]," in str(s)
    for shape in ([-1, s[1] * s[2]], [s[0], 8]):
        y = tf.reshape(x, shape)
        assert y.shape.as_list() == [None, 8]
        model = tf.keras.Model(x, tf.keras.layers.Dense(3)(y))
        assert model(np.ones([5, 2, 4], "float32")).shape == [5, 3]
    for other in (tf.cast(x, tf.int32), s[1] > 0, tf.shape(x, tf.int64)):
        assert other.inferred_value is None


def test_programs_without_such_models_have_no_dispatcher():
    code = """
import headrace as tf
from headrace.framework import dispatch
relu = tf.nn.relu
tf.keras.Sequential([tf.keras.layers.Dense(2)])(tf.ones([1, 2]))
assert not dispatch._global_dispatchers
x = tf.keras.Input([2])
tf.keras.Input([3])
assert len(dispatch._global_dispatchers) == 1
assert tf.nn.relu is relu and relu(x).shape == [None, 2] and relu(-1.0) == 0.0
"""
    subprocess.run([sys.executable, "-c", code], check=True)
