"""Layers that run eagerly alone, inputs of tensors and inputs that may be missing, parts of
summaries; as tf_keras 2.21 has them."""

import numpy as np
import pytest

import headrace as tf

K = tf.keras


class Eager(K.layers.Layer):
    """Asks for values, which tracing has none of."""

    def call(self, x):
        return x * float(tf.reduce_sum(x).numpy())


class Told(Eager):
    def compute_output_shape(self, input_shape):
        return input_shape


def test_dynamic_layers():
    layer = Eager(dynamic=True, name="d")
    assert layer.dynamic and not K.layers.Dense(1).dynamic
    assert layer(tf.ones([2])).numpy().tolist() == [2.0, 2.0]
    assert layer.get_config() == {
        "name": "d",
        "trainable": True,
        "dtype": "float32",
        "dynamic": True,
    }
    with pytest.raises(
        NotImplementedError, match="implement the `compute_output_shape`"
    ):
        layer(K.Input((2,)))


def test_models_of_dynamic_layers_run_eagerly():
    x = K.Input((2,))
    model = K.Model(x, Told(dynamic=True)(x))
    assert model.dynamic and model.output_shape == (None, 2)
    assert model(tf.ones([1, 2])).numpy().tolist() == [[2.0, 2.0]]
    assert model.predict(np.ones((1, 2)), verbose=0).tolist() == [[2.0, 2.0]]
    stack = K.Sequential(
        [Told(dynamic=True), K.layers.Dense(1, kernel_initializer="ones")]
    )
    stack.compile("sgd", "mse")
    assert stack.run_eagerly
    history = stack.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0).history
    assert history == {"loss": [225.0]}


def test_inputs_of_tensors():
    x = K.Input(tensor=tf.ones([2, 3], tf.int32), name="q")
    assert x.shape == (2, 3) and x.dtype == tf.int32
    assert K.Input((2,), tensor=tf.ones([2, 3])).shape == (2, 3)
    assert K.layers.InputLayer(input_tensor=tf.ones([2, 3])).output.shape == (2, 3)
    with pytest.raises(ValueError, match="`input_tensor.dtype` differs from `dtype`"):
        K.Input(tensor=tf.ones([2, 3]), dtype="int32")
    with pytest.raises(ValueError, match="Please provide to Input a `shape`"):
        K.Input()


def test_optional_inputs_may_be_missing():
    class First(K.layers.Layer):
        def call(self, x, other):
            return x if other is None else x + other

    x, y = K.Input((2,)), K.Input((2,), name="y", optional=True)
    model = K.Model([x, y], First()(x, y))
    one = tf.ones([1, 2])
    assert model([one, None]).numpy().tolist() == [[1.0, 1.0]]
    assert model([one, one]).numpy().tolist() == [[2.0, 2.0]]
    assert model.get_layer("y").get_config()["optional"]
    with pytest.raises(ValueError):
        model([None, one])


def test_summaries_of_a_part():
    def dense(name):
        return K.layers.Dense(1, name=name)

    model = K.Sequential([K.Input((2,)), dense("a"), dense("b"), dense("c")], name="s")

    def rows(*names):
        lines = []
        model.summary(print_fn=lines.append, layer_range=names)
        assert "Total params: 7 (28.00 Byte)" in lines
        return [line.split()[0] for line in lines if "(Dense)" in line]

    assert rows("a", "b") == rows("b", "a") == ["a", "b"]
    assert rows("b", "b") == ["b"]
    assert rows("[ab]", "c.*") == ["a", "b", "c"]
    for names, text in (
        (["b"], "must be a list or tuple of length 2"),
        (["z", "a"], "do not match the layer names in the model"),
        (["", 3], "should contain string type only"),
    ):
        with pytest.raises(ValueError, match=text):
            model.summary(layer_range=names)
