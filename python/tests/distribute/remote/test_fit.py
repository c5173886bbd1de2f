"""Keras models whose variables lie on servers and whose steps workers run."""

import headrace as tf
import numpy as np
import pytest

keras = tf.keras
X = np.arange(256, dtype=np.float32).reshape(64, 4) / 100
Y = X.sum(1, keepdims=True)


@pytest.fixture
def model(strategy):
    with strategy.scope():
        made = keras.Sequential(
            [
                keras.layers.Input((4,)),
                keras.layers.Dense(
                    1, kernel_initializer=keras.initializers.Constant(0.2)
                ),
            ]
        )
        made.compile(keras.optimizers.SGD(0.01), loss="mse", metrics=["mae"])
    return made


def test_evaluate_and_predict(model):
    """The values of TensorFlow 2.21."""
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)
    found = model.evaluate(data, verbose=0)
    np.testing.assert_allclose(found, [22.237442, 4.08], rtol=1e-5)
    np.testing.assert_allclose(model.predict(X[:2], verbose=0), [[0.012], [0.044]])
    np.testing.assert_allclose(model(X[:2]), [[0.012], [0.044]], rtol=1e-5)


def test_fit(model, coordinator, capsys):
    seen = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            seen.append((batch, type(logs["loss"])))

    data = tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(16)
    before = model.trainable_variables[0].numpy()
    history = model.fit(data, steps_per_epoch=8, epochs=3, verbose=1).history
    assert "loss" in capsys.readouterr().out
    assert history["loss"][2] < history["loss"][0] / 10
    assert model.optimizer.iterations.numpy() == 24
    assert not np.allclose(before, model.trainable_variables[0].numpy())
    model.fit(X, Y, batch_size=32, epochs=1, verbose=0, callbacks=[Watch()])
    assert seen == [(0, float), (1, float)]
    assert model.optimizer.iterations.numpy() == 26
    assert model.train_on_batch(X[:4], Y[:4])[0] >= 0.0


class Bad(keras.losses.Loss):
    """One that fails at the first batch."""

    def call(self, y_true, y_pred):
        tf.debugging.assert_less(y_pred, -1e9, message="mine")
        return tf.reduce_mean(y_pred)


def test_an_error_of_a_step_ends_fit(model, coordinator):
    model.compile(keras.optimizers.SGD(0.01), loss=Bad())
    with pytest.raises(tf.errors.InvalidArgumentError, match="mine"):
        model.fit(X, Y, batch_size=4, verbose=0)
    coordinator.join()
    assert coordinator.done()
