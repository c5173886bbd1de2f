"""Models in graphs of TensorFlow 1 that train on what layers add; batches of other sizes
than inputs say; averages of variables; what callbacks do there.

Values are what tf_keras 2.21 gave (TF_USE_LEGACY_KERAS=1) after
tf.compat.v1.disable_v2_behavior(), but where a test says otherwise.
"""

import numpy as np
import pytest

import headrace as tf

L = tf.keras.layers
X = np.arange(20, dtype="float32").reshape(5, 4) / 10
Y = np.arange(5, dtype="float32").reshape(5, 1)
HISTORY = [16.71624116897583, 6.464656138420105]
RUN = dict(verbose=0, epochs=2, batch_size=2, shuffle=False)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def ones(name=None):
    return L.Dense(1, kernel_initializer="ones", name=name)


def squares():
    x = tf.keras.Input((4,))
    out = ones()(x)
    model = tf.keras.Model(x, out)
    model.add_loss(tf.reduce_mean(out * out))
    return model


class Adds(L.Layer):
    def call(self, x):
        self.add_loss(tf.reduce_mean(x * x))
        return x


class Own(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = ones()

    def call(self, x):
        out = self.dense(x)
        self.add_loss(tf.reduce_mean(out * out))
        return out


def layered():
    x = tf.keras.Input((4,))
    return tf.keras.Model(x, Adds()(ones()(x)))


@pytest.mark.parametrize("make", [squares, layered, Own])
def test_no_other_loss(make):
    model = make()
    model.compile("sgd")
    assert model.metrics_names == ["loss"]
    history = model.fit(X, **RUN).history["loss"]
    np.testing.assert_allclose(history, HISTORY, rtol=1e-6)
    loss = model.evaluate(X, verbose=0, batch_size=2)
    np.testing.assert_allclose(loss, 2.9061997, rtol=1e-6)
    np.testing.assert_allclose(model.train_on_batch(X), 2.9061997, rtol=1e-6)
    np.testing.assert_allclose(model.test_on_batch(X), 2.3060384, rtol=1e-6)


def test_no_other_loss_of_datasets():
    rows = tf.data.Dataset.from_tensor_slices(X).batch(2)
    model = squares()
    model.compile("sgd")
    history = model.fit(rows, epochs=2, verbose=0).history["loss"]
    np.testing.assert_allclose(
        history, [20.00347367922465, 7.854013502597809], rtol=1e-6
    )
    loss = model.evaluate(rows, verbose=0)
    np.testing.assert_allclose(loss, 3.7508363723754883, rtol=1e-6)


def test_metrics_of_outputs_without_loss_are_none():
    model = squares()
    model.compile("sgd", metrics=["mae"])
    assert model.metrics_names == ["loss"]
    with pytest.raises(ValueError, match="model target: expected no data, but got"):
        model.fit(X, Y, **RUN)
    out = model.output
    model.add_metric(tf.reduce_max(out), name="most", aggregation="mean")
    model.compile("sgd")
    assert model.metrics_names == ["loss", "most"]


def two():
    x = tf.keras.Input((4,))
    return tf.keras.Model(x, [ones("a")(x), ones("b")(x)])


def test_losses_of_some_outputs():
    model = two()
    model.add_loss(tf.reduce_mean(model.outputs[1] ** 2))
    model.compile("sgd", {"a": "mse"})
    assert model.metrics_names == ["loss", "a_loss"]
    history = model.fit(X, Y, **RUN).history
    expected = [20.084589958190918, 7.788472843170166]
    np.testing.assert_allclose(history["loss"], expected, rtol=1e-6)
    expected = [3.8889122009277344, 1.5222059488296509]
    np.testing.assert_allclose(history["a_loss"], expected, rtol=1e-6)
    history = model.fit(X, {"a": Y}, **RUN).history
    expected = [3.0335603594779967, 1.205938446521759]
    np.testing.assert_allclose(history["loss"], expected, rtol=1e-6)
    losses = model.evaluate(X, [Y], verbose=0)
    np.testing.assert_allclose(losses, [0.5693419, 0.09795648], rtol=1e-6)
    for y in ([Y, Y], [Y, None]):
        with pytest.raises(ValueError, match=r"Expected to see 1 array\(s\)"):
            model.fit(X, y, **RUN)


def test_no_loss_at_all():
    model = tf.keras.Sequential([ones()])
    model.compile("sgd", metrics=["mae"])
    with pytest.raises(ValueError, match="it has no loss to optimize"):
        model.evaluate(X, Y, verbose=0)


def test_batches_of_other_sizes():
    x = tf.keras.Input((4,), batch_size=2)
    model = tf.keras.Model(x, ones()(x))
    expected = [[0.6], [2.2], [3.8], [5.4], [7.0]]
    rows = tf.data.Dataset.from_tensor_slices(X).batch(2)
    for given in (dict(x=X), dict(x=X, batch_size=2), dict(x=X, steps=1), dict(x=rows)):
        np.testing.assert_allclose(model.predict(**given), expected, rtol=1e-6)
    np.testing.assert_allclose(model.predict_on_batch(X), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="specified batch size of your Input Layer: 2"):
        model.predict(X, batch_size=3)
    model.compile("sgd", "mse", metrics=["mae"])
    found = model.evaluate(X, Y, verbose=0)  # there the last batch counts by half
    np.testing.assert_allclose(found, [3.96, 1.8], rtol=1e-6)
    with pytest.raises(ValueError, match="Cannot feed value of shape"):
        model.fit(X, Y, verbose=0)


def test_rows_with_states_keep_their_number():
    x = tf.keras.Input((2, 2), batch_size=2)
    states = dict(
        kernel_initializer="ones", recurrent_initializer="ones", stateful=True
    )
    model = tf.keras.Model(x, L.LSTM(1, **states)(x))
    expected = [[0.20987291], [0.70982712], [0.91420978], [0.97532373]]
    found = model.predict(X[:4].reshape(4, 2, 2))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="Cannot feed value of shape"):
        model.predict(X.reshape(5, 2, 2))


def averages(**given):
    v = tf.Variable([1.0, 2.0], constraint=tf.keras.constraints.NonNeg())
    optimizer = tf.keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5, **given)
    step = optimizer.apply_gradients([(tf.constant([1.0, 1.0]), v)])
    session = tf.compat.v1.Session()
    session.run(v.initializer)
    tf.compat.v1.keras.backend.set_session(session)
    # which gives the optimizer's variables their first values
    return v, optimizer, step, tf.compat.v1.keras.backend.get_session()


def test_averages():
    """As eager steps give them; in graphs TensorFlow updates nothing."""
    v, optimizer, step, session = averages()
    for _ in range(3):
        session.run(step)
    average = [0.7875, 1.7875]  # of 1, then 0.9, 0.8, 0.7, each by half
    np.testing.assert_allclose(session.run(v), [0.7, 1.7], rtol=1e-6)
    np.testing.assert_allclose(session.run(optimizer.variables[1]), average, rtol=1e-6)
    optimizer.finalize_variable_values([v])
    np.testing.assert_allclose(session.run(v), average, rtol=1e-6)


def test_averages_come_back():
    v, _, step, session = averages(ema_overwrite_frequency=2)
    session.run(step)
    np.testing.assert_allclose(session.run(v), [0.9, 1.9], rtol=1e-6)
    session.run(step)  # averages 0.95, then 0.875
    np.testing.assert_allclose(session.run(v), [0.875, 1.875], rtol=1e-6)


def test_fit_ends_with_averages():
    x = tf.keras.Input((4,))
    model = tf.keras.Model(x, ones()(x))
    rule = tf.keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)
    model.compile(rule, "mse")
    model.fit(X, Y, batch_size=5, verbose=0)
    kernel = model.get_weights()[0].ravel()
    np.testing.assert_allclose(kernel, [0.808, 0.79, 0.772, 0.754], rtol=1e-6)


def test_callbacks_of_graphs(tmp_path):
    x = tf.keras.Input((4,))
    model = tf.keras.Model(x, ones()(x))
    model.compile("sgd", "mse")
    path = str(tmp_path / "w{epoch}-{batch}.h5")
    saves = tf.keras.callbacks.ModelCheckpoint(path, save_freq=4)
    model.fit(X, Y, verbose=0, epochs=2, batch_size=1, callbacks=[saves])
    names = [p.name for p in tmp_path.iterdir()]
    assert sorted(names) == ["w1-3.h5", "w2-2.h5"]
    with pytest.raises(ValueError, match="BackupAndRestore only supports eager mode"):
        backup = tf.keras.callbacks.BackupAndRestore(str(tmp_path))
        model.fit(X, Y, verbose=0, callbacks=[backup])
    folder = tmp_path / "board"
    board = tf.keras.callbacks.TensorBoard(str(folder), histogram_freq=1)
    model.fit(X, Y, verbose=0, validation_data=(X, Y), callbacks=[board])
    (file,) = folder.iterdir()
    events = tf.compat.v1.train.summary_iterator(str(file))
    tags = [value.tag for event in events for value in event.summary.value]
    assert tags[-3:] == ["dense_out", "epoch_loss", "epoch_val_loss"]
