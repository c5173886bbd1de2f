"""tf.keras.experimental.WideDeepModel and SharpnessAwareMinimization: values are
TensorFlow's."""

import headrace as tf
import numpy as np
import pytest

keras = tf.keras
X = np.array([[1.0, 2.0], [3.0, -4.0], [0.5, 0.5]], np.float32)
Z = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, -0.6], [0, 0, 1]], np.float32)
Y = np.array([[1.0], [0.0], [1.0]], np.float32)


def _dense(units=1, **kwargs):
    return keras.layers.Dense(units, kernel_initializer="ones", **kwargs)


def _wide_deep():
    linear = keras.experimental.LinearModel(kernel_initializer="ones")
    deep = keras.Sequential([_dense()])
    return keras.experimental.WideDeepModel(linear, deep, activation="sigmoid")


def _fit(model, x, epochs, **kwargs):
    options = {"batch_size": 3, "shuffle": False, "verbose": 0, **kwargs}
    return model.fit(x, Y, epochs=epochs, **options).history


def _close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6)


def test_inputs_are_a_pair_or_common():
    expected = [[0.973403], [0.331812], [0.880797]]
    _close(_wide_deep()([X, Z]), expected)
    _close(_wide_deep()(X), 1 / (1 + np.exp(-2 * X.sum(1, keepdims=True))))


def test_an_optimizer_for_each_model():
    model = _wide_deep()
    model.compile(["sgd", "adam"], "mse", metrics=["mse"])
    history = _fit(model, [X, Z], 3)
    _close(history["loss"], [0.041672, 0.040931, 0.040211])
    _close(history["mse"], history["loss"])
    kernel, bias, deep_kernel, deep_bias = model.trainable_variables
    _close(kernel, [[0.995792], [1.005949]])
    _close(bias, [-0.001185])
    _close(deep_kernel, [[0.997002], [0.997002], [1.002999]])
    _close(deep_bias, [-0.002998])
    one = _wide_deep()
    one.compile("sgd", "mse")
    _close(_fit(one, [X, Z], 2)["loss"], [0.041672, 0.041012])


@pytest.mark.parametrize("optimizers", [["sgd"], ["sgd"] * 3])
def test_other_numbers_of_optimizers(optimizers):
    model = _wide_deep()
    model.compile(optimizers, "mse")
    with pytest.raises(ValueError, match=f"a list of two.*got {len(optimizers)}"):
        _fit(model, [X, Z], 1)


def test_training_reaches_the_deep_model():
    class Deep(keras.Model):
        def call(self, x, training=None):
            return tf.reduce_sum(x, 1, keepdims=True) * (0.0 if training else 1.0)

    linear = keras.experimental.LinearModel(kernel_initializer="ones")
    model = keras.experimental.WideDeepModel(linear, Deep())
    _close(model([X, Z], training=True), [[3.0], [-1.0], [1.0]])
    _close(model([X, Z]), [[3.6], [-0.7], [2.0]])


def test_configurations_of_both():
    model = _wide_deep()
    model([X, Z])
    config = model.get_config()
    assert config["linear_model"]["module"] == "keras.experimental"
    again = keras.experimental.WideDeepModel.from_config(config)
    _close(again([X, Z]), model([X, Z]))
    assert keras.layers.serialize(model)["module"] == "keras.experimental"


def _net():
    first = _dense(3, activation="tanh", input_shape=(2,))
    return keras.Sequential([first, _dense()])


def _sharp(**kwargs):
    make = keras.models.experimental.SharpnessAwareMinimization
    return make(_net(), rho=0.1, **kwargs)


@pytest.mark.parametrize(
    "splits, loss, mae, bias",
    [
        (
            None,
            [3.995501, 0.616525, 0.463997],
            [1.851576, 0.631869, 0.450581],
            -0.16163,
        ),
        (3, [4.114597, 1.803925, 3.020964], [1.851576, 1.172079, 1.514014], -0.41246),
        (1, [3.995501, 0.616525, 0.463997], [1.851576, 0.631869, 0.450581], -0.16163),
    ],
)
def test_sharpness_aware_training(splits, loss, mae, bias):
    model = _sharp(num_batch_splits=splits)
    model.compile(keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    history = _fit(model, X, 3)
    _close(history["loss"], loss)
    _close(history["mae"], mae)
    np.testing.assert_allclose(model.trainable_variables[-1], [bias], rtol=1e-4)
    assert model.evaluate(X, Y, verbose=0)[1] > 0
    np.testing.assert_array_equal(model.predict(X, verbose=0), model.model(X))


@pytest.mark.parametrize(
    "splits, loss, mae",
    [
        (None, [11.48083, 2.399449], [2.234846, 0.923543]),
        (3, [11.579892, 15.090236], [2.234846, 2.524611]),
    ],
)
def test_weights_of_samples_count(splits, loss, mae):
    model = _sharp(num_batch_splits=splits)
    model.compile(keras.optimizers.SGD(0.1), "mse", weighted_metrics=["mae"])
    weights = np.array([1.0, 5.0, 0.0], np.float32)
    history = _fit(model, X, 2, sample_weight=weights)
    _close(history["loss"], loss)
    _close(history["mae"], mae)


def test_batches_that_cannot_be_divided_and_configurations():
    model = _sharp(num_batch_splits=2)
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="split"):
        _fit(model, X, 1)
    again = type(model).from_config(model.get_config())
    assert again.rho == 0.1
    _close(again(X), _net()(X))
