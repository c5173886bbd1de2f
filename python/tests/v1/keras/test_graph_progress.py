"""What fit, evaluate and predict show and tell callbacks in graphs of TensorFlow 1, and which
batches they make of data.

Values are what tf_keras 2.21 gave (TF_USE_LEGACY_KERAS=1) to the same lines, after
tf.compat.v1.disable_v2_behavior(). Times in what is shown are left out.
"""

import re

import numpy as np
import pytest

import headrace as tf

L, K = tf.keras.layers, tf.keras.backend


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def numbers(*shape, seed):
    """Values between -0.5 and 0.5 that NumPy and nobody else draws."""
    return np.random.RandomState(seed).uniform(-0.5, 0.5, shape).astype("float32")


X, Y, RANKS = numbers(12, 4, seed=20), numbers(12, 1, seed=21), np.arange(12.0)


def mean_of(y_true, y_pred):
    """Of targets: says which rows are in a batch."""
    return K.mean(y_true)


def made(**first):
    model = tf.keras.Sequential([L.Dense(1, **(first or {"input_shape": (4,)}))])
    model.set_weights([numbers(4, 1, seed=0), numbers(1, seed=1)])
    model.compile("sgd", "mse", metrics=[mean_of])
    return model


def generator(*sizes):
    while True:
        at = 0
        for size in sizes:
            yield X[at : at + size], Y[at : at + size]
            at += size


class Parts(tf.keras.utils.Sequence):
    def __init__(self, ended=None):
        self.ended = ended

    def __len__(self):
        return 3

    def __getitem__(self, index):
        rows = slice(index * 5, index * 5 + 5)
        return X[rows], Y[rows]

    def on_epoch_end(self):
        if self.ended is not None:
            self.ended.append(1)


def dataset():
    return tf.compat.v1.data.Dataset.from_tensor_slices((X, Y)).batch(5)


# --- what is shown ---

SHOWN = {
    "arrays": (
        lambda m: m.fit(
            X, Y, 5, 2, verbose=1, shuffle=False, validation_data=(X[:5], Y[:5])
        ),
        "Train on 12 samples, validate on 5 samples\n"
        "Epoch 1/2\n"
        "\r 5/12 [===========>..................] - ETA: T - loss: 0.1416 - mean_of: -0.2427"
        "\r12/12 [==============================] - T T/sample - loss: 0.1157"
        " - mean_of: -0.1308 - val_loss: 0.1391 - val_mean_of: -0.2427\n"
        "Epoch 2/2\n"
        "\r 5/12 [===========>..................] - ETA: T - loss: 0.1391 - mean_of: -0.2427"
        "\r12/12 [==============================] - T T/sample - loss: 0.1143"
        " - mean_of: -0.1308 - val_loss: 0.1368 - val_mean_of: -0.2427\n",
    ),
    "a line an epoch": (
        lambda m: m.fit(X, Y, 5, 1, verbose=2, shuffle=False),
        "Train on 12 samples\n"
        "12/12 - T - loss: 0.1157 - mean_of: -1.3084e-01 - T/epoch - T/sample\n",
    ),
    "steps": (
        lambda m: m.fit(X, Y, verbose=1, steps_per_epoch=3),
        "Train on 3 samples\n"
        "\r1/3 [=========>....................] - ETA: T - batch: 0.0000e+00 - size: 1.0000"
        " - loss: 0.1159 - mean_of: -0.1557"
        "\r3/3 [==============================] - T T/step - batch: 1.0000 - size: 1.0000"
        " - loss: 0.1153 - mean_of: -0.1557\n",
    ),
    "dataset": (
        lambda m: m.fit(dataset(), verbose=2, validation_data=dataset()),
        "Train on 3 steps, validate on 3 steps\n"
        "3/3 - T - loss: 0.1269 - mean_of: -1.3084e-01 - val_loss: 0.1258"
        " - val_mean_of: -1.3084e-01 - T/epoch - T/step\n",
    ),
    "generator": (
        lambda m: m.fit(generator(5, 5, 2), verbose=1, steps_per_epoch=3),
        "\r1/3 [=========>....................] - ETA: T - batch: 0.0000e+00 - size: 5.0000"
        " - loss: 0.1416 - mean_of: -0.2427"
        "\r3/3 [==============================] - T T/step - batch: 1.0000 - size: 4.0000"
        " - loss: 0.1241 - mean_of: -0.1308\n",
    ),
    "no epochs": (lambda m: m.fit(X, Y, epochs=0, verbose=1), "Train on 12 samples\n"),
    "evaluate": (lambda m: m.evaluate(X, Y, verbose=1), ""),
    "predict": (lambda m: m.predict(X, verbose=1), ""),
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown(name, capsys):
    run, expected = SHOWN[name]
    run(made())
    shown = capsys.readouterr().out.replace("\b", "")
    shown = re.sub(r"\b\d+(s|ms|us)\b", "T", shown)
    assert re.sub(r" +(?=[\r\n])", "", shown) == expected


# --- what callbacks are told ---


class Told(tf.keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.of_fit = dict(self.params)

    def on_test_begin(self, logs=None):
        self.of_test = dict(self.params)
        self.sizes = []

    def on_test_batch_begin(self, batch, logs=None):
        self.sizes.append(logs["size"])

    def on_predict_begin(self, logs=None):
        self.of_predict, self.outputs = dict(self.params), []

    def on_predict_batch_end(self, batch, logs=None):
        outputs = [x.shape for x in logs["outputs"]]
        self.outputs.append((logs["batch"], logs["size"], outputs))

    def on_train_end(self, logs=None):
        self.ends = [logs]

    def on_test_end(self, logs=None):
        self.ends = [logs]


def params(batch_size, steps, samples, metrics, epochs=1, validates=False):
    return {
        "batch_size": batch_size,
        "epochs": epochs,
        "steps": steps,
        "samples": samples,
        "verbose": 0,
        "do_validation": validates,
        "metrics": metrics,
    }


NAMES = ["loss", "mean_of"]
ALL_NAMES = [*NAMES, "val_loss", "val_mean_of"]


def test_params_of_arrays():
    told, model = Told(), made()
    given = dict(verbose=0, callbacks=[told])
    model.fit(X, Y, 5, 2, validation_split=0.5, **given)
    assert told.of_fit == params(5, None, 6, ALL_NAMES, 2, True)
    assert list(told.of_fit) == list(params(5, None, 6, [], 2))
    assert told.of_test == told.of_fit and told.ends == [{}]
    model.evaluate(X, Y, **given)
    assert told.of_test == params(32, None, 12, NAMES) and told.ends == [{}]
    model.predict(X, 5, **given)
    assert told.of_predict == params(5, None, 12, [])
    rows = [(0, 5, [(5, 1)]), (1, 5, [(5, 1)]), (2, 2, [(2, 1)])]
    assert told.outputs == rows


def test_params_of_steps():
    told, model = Told(), made()
    given = dict(verbose=0, callbacks=[told])
    model.fit(X, Y, 4, steps_per_epoch=2, **given)
    assert told.of_fit == params(4, 2, 2, NAMES)
    model.fit(dataset(), validation_data=dataset(), **given)
    assert told.of_fit == params(None, 3, 3, ALL_NAMES, validates=True)
    assert told.sizes == [1, 1, 1]
    model.fit(generator(4, 4, 4), steps_per_epoch=3, **given)
    assert told.of_fit == params(None, 3, 3, NAMES)


# --- batches ---


def test_arrays_in_steps_are_given_whole():
    model = made()
    model.compile("sgd", "mse", metrics=[mean_of])
    history = model.fit(X, RANKS, batch_size=4, steps_per_epoch=2, verbose=0).history
    np.testing.assert_allclose(history["loss"], [42.5054], rtol=1e-5)
    assert history["mean_of"] == [5.5]
    assert made().predict(X, batch_size=5, steps=2).shape == (24, 1)
    found = made().evaluate(X, RANKS, batch_size=5, steps=2, verbose=0)
    np.testing.assert_allclose(found, [43.1232, 5.5], rtol=1e-5)


def test_arrays_that_validate_are_shuffled():
    np.random.seed(3)
    given = dict(epochs=3, verbose=0, validation_data=(X, RANKS))
    history = made().fit(X, RANKS, 5, **given).history
    np.testing.assert_allclose(history["mean_of"], [6.2, 5.2, 5.0], rtol=1e-5)
    np.testing.assert_allclose(history["val_mean_of"], [5.9, 6.2, 5.7], rtol=1e-5)
    np.testing.assert_allclose(
        history["val_loss"], [39.1108, 36.1949, 33.7189], rtol=1e-5
    )
    np.testing.assert_allclose(np.random.rand(), 0.56277, rtol=1e-5)


@pytest.mark.parametrize(
    "sizes, steps, expected",
    [
        ((5, 5, 2), 3, [2] * 6),
        ((3, 5, 2), 2, [3] * 4),  # the second epoch has batches of 2 and 3 rows
        ((6, 3), 4, [3] * 4),
    ],
)
def test_arrays_that_validate_a_generator(sizes, steps, expected):
    told = Told()
    given = dict(verbose=0, callbacks=[told], validation_steps=1)
    made().fit(
        generator(*sizes),
        steps_per_epoch=steps,
        epochs=2,
        validation_data=(X, RANKS),
        **given,
    )
    assert told.sizes == expected


def test_sequences_are_told_of_epochs_of_training_only():
    training, other = [], []
    model = made()
    model.fit(Parts(training), epochs=2, verbose=0, validation_data=Parts(other))
    model.evaluate(Parts(other), verbose=0)
    model.predict(Parts(other))
    assert len(training) == 2 and not other


def test_sequences_that_are_iterators_know_their_steps():
    images, made_of = numbers(12, 8, 8, 1, seed=2), []
    flow = tf.keras.preprocessing.image.ImageDataGenerator(rescale=2.0).flow
    model = tf.keras.Sequential([L.Flatten(input_shape=(8, 8, 1)), L.Dense(1)])
    model.compile("sgd", "mse")
    for steps in (None, 3):
        batches = flow(images, Y, batch_size=5, shuffle=False)
        made_of.append(model.predict_generator(batches, steps))
    np.testing.assert_array_equal(*made_of)
    assert made_of[0].shape == (12, 1)


def test_batches_have_the_size_that_inputs_say():
    model = made(batch_input_shape=(4, 4))
    told = Told()
    history = model.fit(X, Y, shuffle=False, verbose=0, callbacks=[told]).history
    np.testing.assert_allclose(history["loss"], [0.1157215], rtol=1e-5)
    assert told.of_fit["batch_size"] == 4
    assert model.predict(X).shape == (12, 1)
    with pytest.raises(ValueError, match="`batch_size` argument value 3 is incompatib"):
        model.predict(X, batch_size=3)


def test_weights_of_single_batches_are_checked():
    model = tf.keras.Sequential([L.Dense(2, input_shape=(5, 3))])
    model.compile("sgd", "mse")
    x, y = numbers(12, 5, 3, seed=1), numbers(12, 5, 2, seed=2)
    with pytest.raises(ValueError, match=r"weight array with shape \(11,\) for an inp"):
        model.train_on_batch(x, y, sample_weight=np.ones(11))
    with pytest.raises(ValueError, match=r"weight array with shape \(12, 5, 2\)\."):
        model.test_on_batch(x, y, sample_weight=np.ones((12, 5, 2)))


# --- saving ---


def test_checkpoints_every_few_epochs(tmp_path):
    saves = tf.keras.callbacks.ModelCheckpoint(
        str(tmp_path / "p{epoch}.h5"), period=2, save_weights_only=True
    )
    made().fit(X, Y, epochs=5, verbose=0, callbacks=[saves])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p2.h5", "p4.h5"]


# --- before threads ---


def test_functions_made_before_a_graph_is_finalized(graph):
    model = made()
    model.compile("sgd", "mse")
    model._make_predict_function()
    model._make_train_function()
    model._make_test_function()
    model.get_weights()
    graph.finalize()
    assert model.predict(X).shape == (12, 1)
    np.testing.assert_allclose(model.train_on_batch(X, Y), 0.11594, 1e-4)
    np.testing.assert_allclose(model.evaluate(X, Y, verbose=0), 0.11532, 1e-4)


def test_metrics_begin_anew_in_a_finalized_graph(graph):
    model = made()
    model._make_train_function()
    graph.finalize()
    for loss in (0.115941, 0.1153169):
        found = model.train_on_batch(X, Y)
        np.testing.assert_allclose(found, [loss, -0.1556686], 1e-5)


def test_the_count_of_steps_of_optimizers_of_tensorflow_1():
    model = made()
    model.compile(tf.compat.v1.train.AdamOptimizer(0.01), "mse")
    model.fit(X, Y, 5, verbose=0)
    assert model.optimizer.iterations.name == "TFOptimizer/iterations:0"
    assert K.get_value(model.optimizer.iterations) == 3


# --- what programs ask a model for ---


def test_slopes_of_the_loss_by_its_placeholders():
    model = made()
    slopes = model.optimizer.get_gradients(model.total_loss, model.trainable_weights)
    places = model._feed_inputs + model._feed_targets
    found = K.function([*places, K.learning_phase()], slopes)([X, Y, 0])
    np.testing.assert_allclose(
        np.ravel(found[0]), [0.0647119, 0.1243555, 0.0859733, -0.0623518], 1e-5
    )
    np.testing.assert_allclose(found[1], [0.1783112], 1e-5)


def test_placeholders_of_a_model():
    model = made()
    target = [t.name for t in model._feed_targets]
    assert [t.name for t in model._feed_inputs] == ["dense_input:0"]
    assert target == ["dense_target:0"]
    assert model.sample_weights == [None] and model._feed_sample_weights == []
    model.fit(X, Y, sample_weight=RANKS, verbose=0)
    weights = [t.name for t in model.sample_weights]
    assert weights == ["dense_sample_weights:0"]
    assert [t.name for t in model._feed_sample_weights] == weights
    assert [t.name for t in model._feed_targets] == target


def test_functions_of_lists():
    model = made()
    model.compile("sgd", "mse")
    model._make_train_function()
    model._make_predict_function()
    found = [model.train_function([X, Y, np.ones(12)]) for _ in range(2)]
    np.testing.assert_allclose(found, [[0.1159414], [0.1153169]], 1e-5)
    np.testing.assert_array_equal(model.predict_function([X])[0], model.predict(X))


def test_names_of_graphs_alone():
    a = tf.keras.Sequential([L.Dense(1, input_shape=(4,))])
    assert not hasattr(a, "sample_weights") and not hasattr(a, "_feed_targets")
    with pytest.raises(AttributeError, match="was not compiled in a graph"):
        a._feed_sample_weights  # noqa: B018
