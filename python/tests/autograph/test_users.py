"""Functions of the user that the package calls: layers, losses, datasets, maps."""

import headrace as tf
import numpy as np
import pytest


def double_positive(x):
    if tf.reduce_sum(x) > 0:
        x = x * 2
    return x


class Gate(tf.keras.layers.Layer):
    def call(self, x, training=False):
        total = tf.zeros([])
        for row in x:
            if tf.reduce_sum(row) < 0:
                continue
            total += tf.reduce_sum(row)
        return x * total


def clipped(y_true, y_pred):
    error = tf.abs(y_true - y_pred)
    if tf.reduce_max(error) > 1:
        error = tf.minimum(error, 1.0)
    return tf.reduce_mean(error, -1)


class Largest(tf.keras.metrics.Metric):
    def __init__(self):
        super().__init__(name="largest")
        self.value = self.add_weight(name="value", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        for v in tf.reshape(y_pred, [-1]):
            if v > self.value:
                self.value.assign(v)

    def result(self):
        return self.value + 0.0


class Model(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, x):
        y = self.dense(x)
        while tf.reduce_max(tf.abs(y)) > 1:
            y = y / 2
        return y

    def train_step(self, data):
        x, y = data
        losses = tf.zeros([])
        for _ in tf.range(2):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(clipped(y, self(x)))
            slopes = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(slopes, self.trainable_variables))
            losses += loss
        return {"loss": losses}


def test_layers():
    x = np.array([[1.0, 2.0], [-3.0, 1.0]], np.float32)
    layer = Gate()
    expected = x * 3
    np.testing.assert_array_equal(tf.function(layer)(x), expected)
    model = tf.keras.Sequential([tf.keras.Input([2]), Gate()])
    np.testing.assert_array_equal(model.predict(x, verbose=0), expected)
    halved = tf.keras.Sequential([tf.keras.layers.Lambda(double_positive)])
    np.testing.assert_array_equal(halved.predict(x, verbose=0), x * 2)


def test_losses_metrics_and_steps():
    x = np.array([[1.0, 2.0], [3.0, 1.0]], np.float32)
    y = np.array([[1.0], [0.0]], np.float32)
    model = Model()
    model.compile("sgd", loss=clipped, metrics=[Largest()])
    logs = model.evaluate(x, y, verbose=0, return_dict=True)
    assert logs["largest"] == 1.0
    assert logs["loss"] == pytest.approx(np.mean([0.25, 1.0]))
    history = model.fit(x, y, verbose=0, epochs=2)
    assert history.history["loss"][1] < history.history["loss"][0]


def test_datasets():
    data = tf.data.Dataset.from_tensor_slices([[1.0], [-1.0]])
    mapped = list(data.map(double_positive).as_numpy_iterator())
    assert [v.tolist() for v in mapped] == [[2.0], [-1.0]]

    def keep(x):
        if x[0] > 0:
            return True
        return False

    assert len(list(data.filter(keep))) == 1
    assert len(list(data.filter(lambda x: True if x[0] > 0 else False))) == 1


def test_maps():
    x = tf.constant([[1.0], [-1.0]])
    for f in (tf.map_fn, tf.function(lambda f, x: tf.map_fn(f, x))):
        assert f(double_positive, x).numpy().tolist() == [[2.0], [-1.0]]


def test_methods_in_their_class():
    class Counter(tf.Module):
        def __init__(self):
            self.count = tf.Variable(0)

        @tf.function
        def add(self, n):
            for i in tf.range(n):
                if i % 2 == 0:
                    self.count.assign_add(i)
            return self.count.read_value()

    c = Counter()
    assert c.add(5).numpy() == 6
    assert c.add(tf.constant(3)).numpy() == 8


def test_functions_that_the_package_compiles_are_no_users(caplog):
    x = tf.constant(3.0)
    slope = tf.function(lambda x: tf.gradients(x * x, x)[0])
    assert float(slope(x)) == 6.0
    assert caplog.text == ""
