"""load_model() of SavedModels whose classes nobody knows: layers of their functions.

What they compute, their names and losses are as tf_keras 2.21 has them for such files
(TF_USE_LEGACY_KERAS=1).
"""

import numpy as np
import pytest

import headrace as tf

K = tf.keras
X = np.arange(20, dtype="float32").reshape(5, 4) / 10
Y = X[:, :1]


class Scaled(K.layers.Layer):
    def __init__(self, units=0, **kwargs):
        super().__init__(**kwargs)
        self.inner = K.layers.Dense(4, kernel_regularizer="l2") if units else None

    def build(self, shape):
        self.w = self.add_weight(
            "w", (shape[-1],), initializer="ones", regularizer="l2"
        )

    def call(self, x, training=False):
        self.add_loss(tf.reduce_sum(self.w) * 0.1)
        y = x * self.w * (3.0 if training else 2.0)
        return y if self.inner is None else self.inner(y)


class Own(K.Model):
    def __init__(self):
        super().__init__()
        self.dense = K.layers.Dense(1, kernel_initializer="ones")
        self.steps = [Scaled(), K.layers.BatchNormalization()]

    def call(self, x, training=None):
        for step in self.steps:
            x = step(x, training=training)
        return self.dense(x)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def other(self, x):
        return x * 5.0


def functional(units=0):
    x = K.Input((4,))
    return K.Model(x, K.layers.Dense(1)(Scaled(units, name="s")(x)))


def loaded(model, tmp_path):
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "model")
    again = K.models.load_model(tmp_path / "model")
    assert_alike(again, model)
    return again


def assert_alike(again, model):
    for training in (False, True):
        found = again(X, training=training)
        np.testing.assert_allclose(found, model(X, training=training), rtol=1e-6)
        np.testing.assert_allclose(sum(again.losses), sum(model.losses), rtol=1e-6)
    found = again.evaluate(X, Y, verbose=0)
    np.testing.assert_allclose(found, model.evaluate(X, Y, verbose=0), rtol=1e-6)
    names = [w.name for w in model.weights]
    assert [w.name for w in again.weights] == names


@pytest.mark.parametrize("units", [0, 4])
def test_layers_of_functional_models(tmp_path, units):
    model = functional(units)
    again = loaded(model, tmp_path)
    layer = again.layers[1]
    assert type(again) is type(model) and type(layer) is not Scaled
    assert type(layer).__name__ == "Scaled" and layer.name == "s" and layer.built
    assert type(again.layers[2]) is K.layers.Dense
    for one in (model, again):
        one.fit(X, Y, verbose=0, shuffle=False)
    assert_alike(again, model)
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        layer(tf.ones((1, 5)))


def test_models(tmp_path):
    model = Own()
    again = loaded(model, tmp_path)
    assert type(again).__name__ == "Own" and isinstance(again, K.Model)
    kinds = [type(layer).__name__ for layer in again.layers]
    assert sorted(kinds) == ["BatchNormalization", "Dense", "Scaled"]
    assert again.dense.units == 1 and again.dense.kernel is again.dense.weights[0]
    assert again.other(tf.ones(2)).numpy().tolist() == [5, 5]
    for one in (model, again):
        one.fit(X, Y, verbose=0, shuffle=False, epochs=2)
    assert_alike(again, model)
    again.save(tmp_path / "second")
    third = K.models.load_model(tmp_path / "second")
    np.testing.assert_allclose(third.predict(X, verbose=0), again.predict(X, verbose=0))


def test_classes_that_are_given_come_first(tmp_path):
    functional().save(tmp_path / "model", save_format="tf")
    again = K.models.load_model(tmp_path / "model", custom_objects={"Scaled": Scaled})
    assert type(again.layers[1]) is Scaled


def test_no_functions(tmp_path):
    functional().save(tmp_path / "model", save_format="tf", save_traces=False)
    with pytest.raises(ValueError, match="has no functions of it: give its class"):
        K.models.load_model(tmp_path / "model")


def test_graphs(tmp_path):
    """Of models of graphs, copies outside of them are written; functions are not called."""
    with tf.Graph().as_default():
        for model in (functional(), Own()):
            model.compile("sgd", "mse")
            model.fit(X, Y, verbose=0)
            path = tmp_path / model.name
            model.save(path, save_format="tf")
            classes = {"Scaled": Scaled, "Own": Own}
            again = K.models.load_model(path, custom_objects=classes)
            np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-6)
            found = again.evaluate(X, Y, verbose=0)
            expected = model.evaluate(X, Y, verbose=0)
            np.testing.assert_allclose(found, expected, rtol=1e-6)
            with pytest.raises(ValueError, match="give the classes in custom_objects"):
                K.models.load_model(path)
            outside = model.predict(X), path
    again = K.models.load_model(outside[1])
    np.testing.assert_allclose(again.predict(X, verbose=0), outside[0], rtol=1e-6)
