"""compile, fit, evaluate and predict; values are tf-keras 2.21's."""

import headrace as tf
import numpy as np
import pytest

keras = tf.keras
layers = keras.layers


def data():
    x = np.sin(np.arange(40)).astype("float32").reshape(20, 2)
    return x, x.sum(1)


def fixed(units, value=0.1, **kwargs):
    init = keras.initializers.Constant(value)
    return layers.Dense(units, kernel_initializer=init, **kwargs)


def test_fit_learns_and_reports():
    x, y = data()
    model = keras.Sequential([fixed(3, activation="relu"), fixed(1)])
    model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit(x, y, epochs=2, batch_size=20, shuffle=False, verbose=0)
    # tf-keras: the same program with TF_USE_LEGACY_KERAS=1.
    np.testing.assert_allclose(
        history.history["loss"], [1.4743289947509766, 1.4726970195770264], rtol=1e-5
    )
    assert history.epoch == [0, 1]
    assert set(history.history) == {"loss", "mae"}
    assert history.params == {"verbose": 0, "epochs": 2, "steps": 1}


def test_validation_split_takes_the_last_rows():
    x, y = data()
    model = keras.Sequential([fixed(1)])
    model.compile("sgd", "mse")
    history = model.fit(x, y, validation_split=0.25, batch_size=5, verbose=0)
    expected = model.evaluate(x[15:], y[15:], verbose=0)
    assert history.history["val_loss"][-1] == pytest.approx(expected, rel=1e-6)


def test_evaluate_and_predict_agree_with_calls():
    x, y = data()
    model = keras.Sequential([fixed(2), fixed(1)])
    model.compile("adam", "mse", metrics=["mae"])
    loss, mae = model.evaluate(x, y, verbose=0, batch_size=7)
    out = model.predict(x, batch_size=7, verbose=0)
    np.testing.assert_allclose(out, model(x).numpy(), rtol=1e-6)
    assert loss == pytest.approx(float(np.mean((out[:, 0] - y) ** 2)), rel=1e-5)
    assert mae == pytest.approx(float(np.mean(abs(out[:, 0] - y))), rel=1e-5)
    as_dict = model.evaluate(x, y, verbose=0, return_dict=True)
    assert list(as_dict) == ["loss", "mae"]


def test_several_outputs_have_names():
    i = keras.Input((4,), name="inp")
    a = layers.Dense(3, name="a")(i)
    b = layers.Dense(2, name="b")(a + 1.0)
    model = keras.Model(i, [a, b])
    model.compile("adam", {"a": "mse", "b": "mae"}, {"a": ["mse", "mae"]}, {"a": 2.0})
    model.fit(np.ones((4, 4)), {"a": np.ones((4, 3)), "b": np.ones((4, 2))}, verbose=0)
    assert model.metrics_names == ["loss", "a_loss", "b_loss", "a_mse", "a_mae"]


def test_own_train_step_and_metrics():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.d = fixed(1)
            self.seen = keras.metrics.Mean(name="seen")

        def call(self, x):
            return self.d(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y[:, None]) ** 2)
            grads = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
            self.seen.update_state(loss)
            return {"seen": self.seen.result()}

        @property
        def metrics(self):
            return [self.seen]

    x, y = data()
    model = Own()
    model.compile("sgd")
    history = model.fit(x, y, epochs=3, verbose=0)
    values = history.history["seen"]
    assert values[2] < values[1] < values[0]


def test_progress_line(capsys):
    x, y = data()
    model = keras.Sequential([fixed(1)])
    model.compile("sgd", "mse")
    model.fit(x, y, epochs=2, batch_size=10)
    out = capsys.readouterr().out
    assert out.startswith("Epoch 1/2\n\r1/2 [==============>...............] - ETA: ")
    assert "2/2 [==============================] - 0s " in out
    model.fit(x, y, verbose=2)
    assert capsys.readouterr().out.startswith("1/1 - 0s - loss: ")


def test_class_and_sample_weights():
    x, y = data()
    labels = (y > 0).astype("int64")
    model = keras.Sequential([fixed(2)])
    crossentropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.0), crossentropy)
    by_class = model.fit(x, labels, class_weight={0: 1.0, 1: 3.0}, verbose=0)
    weights = np.where(labels == 1, 3.0, 1.0)
    by_sample = model.fit(x, labels, sample_weight=weights, verbose=0)
    assert by_class.history["loss"] == pytest.approx(by_sample.history["loss"])
    expected = np.log(2.0) * weights.mean()
    assert by_sample.history["loss"][0] == pytest.approx(expected, rel=1e-4)


def test_errors():
    model = keras.Sequential([layers.Dense(2)])
    with pytest.raises(RuntimeError, match="You must compile your model"):
        model.fit(np.ones((2, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="Unknown optimizer: 'zz'"):
        model.compile("zz")
    with pytest.raises(ValueError, match="No such layer: q"):
        model.get_layer("q")


def test_config_after_an_assignment():
    opt = keras.optimizers.Adam(0.5, beta_1=0.9)
    opt.build([tf.Variable(1.0)])
    assert opt.get_config()["beta_1"] == 0.9
    opt.beta_1 = 0.8
    opt.learning_rate = 0.25
    config = opt.get_config()
    assert config["beta_1"] == pytest.approx(0.8) and config["beta_2"] == 0.999
    assert config["learning_rate"] == 0.25


def test_bools_of_any_bytes_are_zero_or_one():
    """fit reads arrays where they lie, but not those."""
    odd = np.arange(64, dtype=np.uint8).reshape(64, 1).view(bool)
    model = keras.Sequential([layers.Lambda(lambda x: tf.cast(x, tf.float32))])
    found = model.predict(odd, batch_size=16, verbose=0)
    np.testing.assert_array_equal(found[:, 0], [0.0] + [1.0] * 63)


@pytest.mark.parametrize(
    "how, text",
    [
        ({"epochs": 0}, "Expected epochs to be positive. Received is 0."),
        ({"batch_size": -1}, "Expected batch_size to be positive. Received is -1."),
        ({"steps_per_epoch": 0}, "steps_per_epoch must be positive, None or -1. Rec"),
    ],
)
def test_counts_that_are_refused(how, text):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=text):
        model.fit(np.ones((4, 2)), np.ones((4, 1)), **how)


def test_no_data_at_all():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensors((np.ones((4, 2)), np.ones((4, 1))))
    text = "Expected input data to be non-empty"
    for call in (
        lambda: model.fit(data.take(0)),
        lambda: model.predict(np.ones((0, 2))),
        lambda: model.evaluate(data.take(0)),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    assert len(model.fit(data, steps_per_epoch=-1, verbose=0).epoch) == 1
    with pytest.raises(ValueError, match="`run_eagerly` and `jit_compile` at the same"):
        model.compile("sgd", "mse", jit_compile=True, run_eagerly=True)


def test_steps_of_an_epoch_go_on_in_arrays():
    """Where an epoch takes other than all batches the next one goes on behind it, and the
    rows are gone over as often as there are epochs. TensorFlow's numbers."""
    rows = np.arange(12, dtype="float32")[:, None]
    for steps, epochs, seen in (
        (2, 3, [[0, 4], [8, 0], [4, 8]]),
        (1, 4, [[0], [4], [8], [0]]),
        (3, 2, [[0, 4, 8], [0, 4, 8]]),
        (4, 2, [[0, 4, 8, 0], [4, 8]]),
    ):
        found = []

        class Watching(tf.keras.Model):
            def train_step(self, data):
                found[-1].append(int(data[0, 0]))
                return {}

        model = Watching()
        model.compile(run_eagerly=True)
        begin = tf.keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda epoch, logs: found.append([])
        )
        model.fit(
            rows,
            batch_size=4,
            epochs=epochs,
            steps_per_epoch=steps,
            shuffle=False,
            verbose=0,
            callbacks=[begin],
        )
        assert found == seen
    shuffled = []
    model = Watching()
    model.train_step = lambda data: shuffled.extend(data.numpy().ravel()) or {}
    model.compile(run_eagerly=True)
    model.fit(rows, batch_size=4, epochs=3, steps_per_epoch=2, verbose=0)
    assert sorted(shuffled[:12]) == sorted(shuffled[12:]) == list(range(12))


def test_classes_of_weights_are_rounded():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    model.compile("sgd", lambda y, found: tf.ones_like(y)[:, 0] + 0.0 * found[:, 0])
    for y, loss in ((0.4, 1.0), (0.6, 2.0), (1.4, 2.0), (1.6, 4.0)):
        weights = {0: 1.0, 1: 2.0, 2: 4.0}
        history = model.fit(
            np.ones([1, 1]), np.full([1, 1], y), verbose=0, class_weight=weights
        )
        assert history.history["loss"] == [loss]
