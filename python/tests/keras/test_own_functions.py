"""Models whose make_train_function() and the like are the program's: fit, evaluate and
predict call what these give, with an iterator whose next element is a batch.

Losses are those of tf_keras 2.21 (TF_USE_LEGACY_KERAS=1).
"""

import copy

import numpy as np
import pytest

import headrace as tf

X = np.arange(20, dtype="float32").reshape(5, 4) / 10
Y = X[:, :1]
RUN = dict(batch_size=2, verbose=0)


def made(cls):
    x = tf.keras.Input((4,))
    model = cls(x, tf.keras.layers.Dense(1, kernel_initializer="ones")(x))
    model.compile("sgd", "mse")
    return model


class Around(tf.keras.Model):
    trained = tested = predicted = 0

    def make_train_function(self, force=False):
        function = super().make_train_function(force)

        def train(iterator):
            self.trained += 1
            return function(iterator)

        return train

    def make_test_function(self, force=False):
        function = super().make_test_function(force)

        def test(iterator):
            self.tested += 1
            return function(iterator)

        return test

    def make_predict_function(self, force=False):
        function = super().make_predict_function(force)

        def predict(iterator):
            self.predicted += 1
            return function(iterator) * 2

        return predict


class Traced(tf.keras.Model):
    traces = 0

    def make_train_function(self, force=False):
        if self.train_function is not None and not force:
            return self.train_function

        @tf.function
        def train(iterator):
            self.traces += 1
            x, y = next(iterator)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
            return {"mine": loss}

        self.train_function = train
        return train


def test_functions_around_those_of_the_base():
    model = made(Around)
    history = model.fit(X, Y, shuffle=False, epochs=2, **RUN).history["loss"]
    np.testing.assert_allclose(history, [10.13837718963623, 3.923476457595825], 1e-6)
    loss = model.evaluate(X, Y, **RUN)
    np.testing.assert_allclose(loss, 1.7668240070343018, rtol=1e-6)
    expected = [0.06340652704238892, 1.9274711608886719, 3.7915360927581787]
    found = model.predict(X, **RUN).ravel()
    np.testing.assert_allclose(found[:3], expected, rtol=1e-6)
    assert (model.trained, model.tested, model.predicted) == (6, 3, 3)
    model.train_on_batch(X, Y)
    model.test_on_batch(X, Y)
    np.testing.assert_allclose(model.predict_on_batch(X), 2 * model(X), rtol=1e-6)
    assert (model.trained, model.tested, model.predicted) == (7, 4, 4)


def test_traced_functions():
    model = made(Traced)
    history = model.fit(X, Y, shuffle=False, epochs=3, **RUN).history
    expected = [21.53952980041504, 8.658610343933105, 3.534756898880005]
    np.testing.assert_allclose(history["mine"], expected, rtol=1e-6)
    rows = tf.data.Dataset.from_tensor_slices((X, Y)).batch(2)
    history = model.fit(rows, verbose=0, epochs=2).history
    expected = [1.4769847393035889, 0.6386622190475464]
    np.testing.assert_allclose(history["mine"], expected, rtol=1e-6)
    logs = model.train_on_batch(X, Y, return_dict=True)
    np.testing.assert_allclose(logs["mine"], 0.1152801364660263, rtol=1e-5)
    assert model.traces == 1


def test_errors_leave_the_next_batch_alone():
    model = made(Traced)
    with pytest.raises(Exception, match="incompatible|Incompatible|Matrix size"):
        model.fit(X[:, :3], Y, **RUN)
    assert len(model.fit(X, Y, **RUN).history["mine"]) == 1


class Clock:
    """Steps that a tuner measures, as many in each second as these numbers say."""

    def __init__(self):
        self.optimizer = tf.keras.optimizers.SGD()
        self.number = tf.Variable(1, dtype=tf.int64)
        tuner = tf.keras.utils.StepsPerExecutionTuner
        self.tuner = tuner(self.optimizer, self.number, 3600, 2, 0.1)
        self.thread = self.tuner.start()
        self.steps, self.now = self.tuner._last

    def run(self, speed):
        for _ in range(2):
            self.steps, self.now = self.steps + speed, self.now + 1
            self.tuner._measure(self.steps, self.now)
        return int(self.number)


def test_steps_per_execution_are_tuned():
    clock = Clock()
    assert clock.thread.is_alive()
    speeds = [10, 20, 40, 41, 30, 40]  # more, the same, less, then better with fewer
    assert [clock.run(speed) for speed in speeds] == [2, 3, 4, 4, 2, 1]
    assert clock.run(0) == 1  # nothing was trained
    clock.tuner.stop()
    assert not clock.thread.is_alive() and clock.tuner.thread is None
    assert clock.tuner.steps_per_execution is clock.number
    clock.tuner.steps_per_execution = 5
    assert int(clock.number) == 5


def test_fit_tunes():
    model = made(tf.keras.Model)
    model.compile("sgd", "mse", steps_per_execution="auto")
    assert model.autotune_steps_per_execution and int(model.steps_per_execution) == 1
    tuner, alive = model._steps_per_execution_tuner, []

    class Sees(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            alive.append(tuner.thread.is_alive())

    model.fit(X, Y, verbose=0, callbacks=[Sees()])
    assert alive == [True] and tuner.thread is None


@pytest.mark.parametrize("cls", [Around, Traced])
def test_models_are_copied(cls):
    model = made(cls)
    model.compile("sgd", "mse", steps_per_execution="auto")
    before = copy.deepcopy(model)
    model.fit(X, Y, **RUN)
    before.fit(X, Y, shuffle=False, **RUN)
    tuner = before._steps_per_execution_tuner
    assert tuner is not model._steps_per_execution_tuner
    assert tuner.optimizer is before.optimizer
