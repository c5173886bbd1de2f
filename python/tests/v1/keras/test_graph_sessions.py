"""Keras' session, values, files and callbacks of models in graphs, and what they refuse.

Error classes and texts are tf_keras 2.21's (TF_USE_LEGACY_KERAS=1), after
tf.compat.v1.disable_v2_behavior(), but where a test says otherwise.
"""

import glob
import json
import subprocess
import sys
import tempfile
import textwrap

import numpy as np
import pytest

import headrace as tf
from headrace.context import stack

L, K = tf.keras.layers, tf.keras.backend
sessions = tf.compat.v1.keras.backend
X = np.linspace(-1, 1, 12).reshape(4, 3).astype("float32")
Y = np.linspace(0, 1, 4).reshape(4, 1).astype("float32")


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def simple(loss="mse", optimizer="sgd", **given):
    model = tf.keras.Sequential([L.Dense(2, input_shape=(3,)), L.Dense(1)])
    model.compile(optimizer, loss, **given)
    return model


def test_tensors_of_models_are_tensors_of_the_graph(graph):
    model = simple()
    assert model.input.name == "dense_input:0"
    assert model.output.name == "dense_1/BiasAdd:0"
    assert model.output.graph is graph
    assert model.layers[0].kernel.name == "dense/kernel:0"
    assert model.layers[0].output.name == "dense/BiasAdd:0"
    assert model.total_loss.graph is graph
    assert K.is_keras_tensor(model.output)
    assert not K.is_keras_tensor(tf.constant(1.0))
    model.fit(X, Y, verbose=0)
    names = [v.name for v in model.optimizer.weights]
    assert names == ["training/SGD/iter:0"]
    assert K.get_value(model.optimizer.iterations) == 1


def test_layers_know_their_updates(graph):
    normal = L.BatchNormalization()
    model = tf.keras.Sequential([L.Dense(2, input_shape=(3,)), normal])
    assert len(model.updates) == len(normal.updates) == 2
    assert len(model.get_updates_for(model.inputs)) == 2
    assert model.get_updates_for(None) == []
    normal.trainable = False
    assert model.updates == []


def test_values_are_those_of_the_session():
    v = K.variable(np.ones(2), name="v")
    assert K.get_value(v).tolist() == [1, 1]
    K.set_value(v, [3, 4])
    assert K.get_value(v).tolist() == [3, 4]
    K.batch_set_value([(v, [5, 6])])
    assert K.batch_get_value([v, v * 2])[1].tolist() == [10, 12]
    with pytest.raises(ValueError, match="Cannot feed value of shape"):
        K.set_value(v, [[1.0, 2.0]] * 2 + [[1.0, 2.0]])
    count = len(tf.compat.v1.get_default_graph().get_operations())
    K.set_value(v, [7, 8])  # adds no more operations
    assert len(tf.compat.v1.get_default_graph().get_operations()) == count


def test_variables_that_have_a_value_keep_it():
    model = simple()
    session = tf.compat.v1.Session()
    sessions.set_session(session)
    kernel = model.layers[0].kernel
    session.run(kernel.initializer)
    session.run(kernel.assign(np.full((3, 2), 7.0)))
    model.predict(X)  # gives the others their first values
    assert (session.run(kernel) == 7).all()
    with tf.compat.v1.Session() as entered:  # which has values of its own
        model.predict(X)
        assert not (entered.run(kernel) == 7).all()
    assert (model.get_weights()[0] == 7).all()


def test_a_closed_session():
    model = simple()
    sessions.set_session(tf.compat.v1.Session())
    model.fit(X, Y, verbose=0)
    sessions.get_session().close()
    with pytest.raises(tf.errors.CancelledError, match="Session has been closed."):
        model.fit(X, Y, verbose=0)
    model.stop_training = True
    with pytest.raises(tf.errors.CancelledError, match="Session has been closed."):
        model.predict(X)
    sessions.set_session(None)
    assert model.predict(X).shape == (4, 1)


def test_a_model_of_another_graph():
    model, untouched = simple(), simple()
    model.predict(X)
    with tf.Graph().as_default():
        with pytest.raises(ValueError):
            model.fit(X, Y, verbose=0)
        with pytest.raises(tf.errors.InvalidArgumentError, match="not found"):
            model.predict(X)
        with pytest.raises(ValueError, match="is not an element of this graph"):
            untouched.predict(X)
        with pytest.raises(ValueError):
            simple().layers[0](model.output)
    assert model.predict(X).shape == (4, 1)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (
            lambda m: m.fit(X[:, :2], Y),
            ValueError,
            r"expected \w+ to have shape \(3,\) but got array with shape \(2,\)",
        ),
        (
            lambda m: m.predict(X[:, None]),
            ValueError,
            r"to have 2 dimensions, but got array with shape \(4, 1, 3\)",
        ),
        (
            lambda m: m.fit(X, Y[:3]),
            ValueError,
            "same number of samples as target arrays. Found 4 input samples and 3",
        ),
        (
            lambda m: m.fit(X, np.ones((4, 2))),
            ValueError,
            r"A target array with shape \(4, 2\) was passed for an output of shape "
            r"\(None, 1\) while using as loss `mean_squared_error`",
        ),
        (lambda m: m.fit(X, np.ones((4, 0))), ValueError, r"shape \(4, 0\)"),
        (lambda m: m.evaluate(X), tf.errors.InvalidArgumentError, "_target"),
        (
            lambda m: m.fit(X, Y, sample_weight=np.ones((4, 1, 1))),
            ValueError,
            r"Found a sample_weight array with shape \(4, 1, 1\)",
        ),
        (
            lambda m: m.fit(X, Y, sample_weight=np.ones(3)),
            ValueError,
            "sample_weight cannot be broadcast",
        ),
        (
            lambda m: m.fit(X, Y, class_weight={0: 1.0}),
            ValueError,
            "`class_weight` must contain all classes in the data",
        ),
        (lambda m: m.fit(X, Y, validation_split=0.99), ValueError, "Empty training"),
        (
            lambda m: m.fit(tf.constant(X), tf.constant(Y)),
            ValueError,
            "When using data tensors as input to a model, you should specify",
        ),
        (
            lambda m: m.fit(iter([(X, Y)])),
            ValueError,
            "Please specify the number of steps",
        ),
        (
            lambda m: m.fit(
                tf.compat.v1.data.make_one_shot_iterator(
                    tf.compat.v1.data.Dataset.from_tensors((X, Y))
                ),
                steps_per_epoch=1,
            ),
            ValueError,
            "not iterators that have been manually generated",
        ),
        (lambda m: m.compile("sgd", "nonsense"), ValueError, "Unknown loss function"),
        (lambda m: m.compile("sgd"), ValueError, "it has no loss to optimize"),
        (lambda m: m.compile("sgd", "mse", other=1), TypeError, "other"),
        (
            lambda m: m.compile("sgd", "mse", sample_weight_mode="x"),
            ValueError,
            "temporal",
        ),
        (lambda m: m.compile("sgd", "mse", metrics={"x": "mae"}), ValueError, "x"),
        (lambda m: m.set_weights([X]), ValueError, "weight list of length 1"),
        (
            lambda m: tf.keras.Sequential([L.Dense(1)]).fit(X, Y),
            RuntimeError,
            "You must compile your model before training/testing",
        ),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(simple())


def test_values_of_other_types_are_fed():
    model = simple()
    got = model.predict(X.astype(str))  # as sessions take them, there too
    np.testing.assert_allclose(got, model.predict(X.astype("float64")), rtol=1e-6)
    with pytest.raises(ValueError, match="could not convert string to float"):
        model.predict(np.full((1, 3), "word"))
    with pytest.raises(NotImplementedError, match="models in graphs take arrays"):
        model.predict(tf.IndexedSlices([[1.0] * 3], [0], [4, 3]))


def test_losses_that_nobody_gave():
    model = tf.keras.Sequential([L.Dense(1)])
    model.compile("sgd")  # nobody knows its outputs yet
    with pytest.raises(ValueError, match="it has no loss to optimize"):
        model.fit(X, Y, verbose=0)


def test_tensors_in_place_of_data():
    a = L.Input(tensor=tf.constant(X))
    model = tf.keras.Model(a, L.Dense(1)(a))
    model.compile("sgd", "mse", target_tensors=[tf.constant(Y)])
    history = model.fit(steps_per_epoch=3, epochs=2, verbose=0).history
    assert history["loss"][1] < history["loss"][0]
    assert model.evaluate(steps=2, verbose=0) < history["loss"][0]
    b = L.Input((3,))
    model = tf.keras.Model(b, L.Dense(1)(b))
    model.compile("sgd", "mse", target_tensors=tf.constant(Y))
    model.fit(X, verbose=0)
    with pytest.raises(ValueError, match="has a target tensor already"):
        model.fit(X, Y, verbose=0)


def test_models_of_operations_in_files(tmp_path):
    a = L.Input((3,))
    model = tf.keras.Model(a, L.Dense(2)(tf.nn.relu(a) + tf.constant(2.0)))
    names = [layer.name for layer in model.layers]
    assert names == ["input_1", "tf_op_layer_Relu", "tf_op_layer_add", "dense"]
    model.save(tmp_path / "model.h5")
    again = tf.keras.models.load_model(tmp_path / "model.h5")
    assert again.predict(X).tolist() == model.predict(X).tolist()
    with tf.Graph().as_default():
        other = tf.keras.models.model_from_json(model.to_json())
        assert other.predict(X).shape == (4, 2)
    grown = lambda x: tf.reduce_sum(x) < 9
    (loop,) = tf.while_loop(grown, lambda x: x + 1.0, [model.output])
    whole = tf.keras.Model(a, L.Dense(1)(loop))
    assert whole.predict(np.abs(X)).shape == (4, 1)


@pytest.mark.parametrize("name", ["model.h5", "model.keras", "folder"])
def test_models_in_files(tmp_path, name):
    model = simple(optimizer="adam", metrics=["mae"])
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / name)
    again = tf.keras.models.load_model(tmp_path / name)
    assert again.output.graph is model.output.graph
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.evaluate(X, Y, verbose=0) == model.evaluate(X, Y, verbose=0)
    if name == "model.h5":  # which has the optimizer's state
        both = [m.fit(X, Y, shuffle=False, verbose=0).history for m in (model, again)]
        assert both[0] == both[1]
        np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-6)


def legacy():
    return tf.keras.optimizers.legacy.SGD(0.1, momentum=0.9)


@pytest.mark.parametrize(
    "name, optimizer",
    [  # The state of legacy ones is not in archives, there as here.
        ("model.keras", lambda: tf.keras.optimizers.Adam(0.01)),
        ("model.h5", lambda: tf.keras.optimizers.Adam(0.01)),
        ("folder", lambda: tf.keras.optimizers.Adam(0.01)),
        ("model.h5", legacy),
        ("folder", legacy),
        ("model.h5", lambda: "adam"),
        ("folder", lambda: "adam"),
    ],
)
def test_optimizers_in_files(tmp_path, name, optimizer):
    """Training goes on where it stood, whichever the kind of optimizer and of file."""
    model = simple(optimizer=optimizer())
    model.fit(X, Y, epochs=3, verbose=0)
    model.save(tmp_path / name, save_format="tf" if name == "folder" else None)
    loaded = tf.keras.models.load_model(tmp_path / name)
    assert type(loaded.optimizer) is type(model.optimizer)
    assert loaded.optimizer.get_config() == model.optimizer.get_config()
    assert K.get_value(loaded.optimizer.iterations) == 3
    for each in (model, loaded):  # in one order of rows, so of sums
        each.fit(X, Y, epochs=2, verbose=0, shuffle=False)
    for ours, theirs in zip(model.get_weights(), loaded.get_weights()):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_optimizers_of_tensorflow_1_are_not_saved(tmp_path, caplog):
    model = simple(optimizer=tf.compat.v1.train.AdamOptimizer())
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "model.h5")
    assert "saved without its optimizer" in caplog.text
    assert tf.keras.models.load_model(tmp_path / "model.h5").optimizer is None


@pytest.mark.parametrize("name", ["weights.h5", "checkpoint_of_it"])
def test_weights_in_files(tmp_path, name):
    model, other = simple(), simple()
    model.save_weights(tmp_path / name)
    assert not np.array_equal(other.predict(X), model.predict(X))
    other.load_weights(tmp_path / name)
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_subclasses_are_saved_as_folders(tmp_path):
    class Own(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(1)

        def call(self, x):
            return self.dense(x)

    model = Own()
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "folder", save_format="tf")
    classes = {"Own": Own}
    again = tf.keras.models.load_model(tmp_path / "folder", custom_objects=classes)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-6)
    assert again.optimizer.get_config()["name"] == "SGD" and again.loss == "mse"


def test_callbacks_see_numbers(tmp_path):
    seen = []

    class Sees(tf.keras.callbacks.Callback):
        def on_batch_begin(self, batch, logs=None):
            seen.append((batch, logs))

        def on_batch_end(self, batch, logs=None):
            assert logs["size"] == (3 if batch == 0 else 1)
            seen.append((batch, sorted(logs)))

    callbacks = tf.keras.callbacks
    best = callbacks.ModelCheckpoint(
        str(tmp_path / "{epoch}.h5"), monitor="loss", save_best_only=True
    )
    model = simple()
    history = model.fit(
        X,
        Y,
        batch_size=3,
        epochs=5,
        verbose=0,
        callbacks=[
            Sees(),
            best,
            callbacks.EarlyStopping(monitor="loss", patience=1, min_delta=100),
            callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5),
            callbacks.ReduceLROnPlateau(monitor="loss", patience=1, min_delta=100),
            callbacks.CSVLogger(str(tmp_path / "log.csv")),
            callbacks.TensorBoard(str(tmp_path / "board"), histogram_freq=1),
        ],
    ).history
    assert seen[:2] == [
        (0, {"batch": 0, "size": 3}),
        (0, ["batch", "loss", "size"]),
    ]
    np.testing.assert_allclose(history["lr"], [0.005, 0.0025], rtol=1e-6)
    np.testing.assert_allclose(K.get_value(model.optimizer.lr), 0.00025, rtol=1e-6)
    assert (tmp_path / "log.csv").read_text().startswith("epoch,loss,lr")
    again = tf.keras.models.load_model(tmp_path / "2.h5")
    assert again.predict(X).tolist() == model.predict(X).tolist()
    (file,) = glob.glob(str(tmp_path / "board" / "events.*"))  # as TensorFlow 1 has it
    tags = [
        value.tag
        for event in tf.compat.v1.train.summary_iterator(file)
        for value in event.summary.value
    ]
    assert {"epoch_loss", "epoch_lr"} <= set(tags)


def test_generators_by_their_older_names():
    model = simple()
    with pytest.warns(UserWarning, match="fit_generator` is deprecated"):
        model.fit_generator(iter([(X, Y)] * 2), steps_per_epoch=2, verbose=0)
    with pytest.warns(UserWarning, match="evaluate_generator` is deprecated"):
        found = model.evaluate_generator(iter([(X, Y)]), steps=1)
    np.testing.assert_allclose(found, model.evaluate(X, Y, verbose=0), rtol=1e-6)
    with pytest.warns(UserWarning, match="predict_generator` is deprecated"):
        found = model.predict_generator(iter([X]), steps=1)
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-6)


def test_programs_of_tensorflow_1():
    """All of TensorFlow 1's ways: names of metrics, files, a session that is cleared."""
    program = """
        import json, os, sys
        import numpy as np
        import headrace as tf

        tf.compat.v1.disable_v2_behavior()
        layers = tf.keras.layers
        sessions = tf.compat.v1.keras.backend
        dense = [layers.Dense(2, input_shape=(3,)), layers.BatchNormalization()]
        model = tf.keras.Sequential([*dense, layers.Dropout(0.5), layers.Dense(1)])
        model.compile("adam", "mse", metrics=["mae", "accuracy"], weighted_metrics=["mse"])
        x, y = np.ones((4, 3)), np.ones((4, 1))
        history = model.fit(x, y, epochs=2, verbose=0).history
        model.save(sys.argv[1])
        before = tf.compat.v1.get_default_graph()
        names = [v.name for v in model.optimizer.weights[:2]]
        phase = tf.keras.backend.learning_phase().name
        sessions.clear_session()
        again = tf.keras.models.load_model(sys.argv[1])
        print(json.dumps({
            "names": model.metrics_names,
            "history": list(history),
            "file": os.path.isfile(sys.argv[1]),
            "slots": names,
            "phase": phase,
            "cleared": tf.compat.v1.get_default_graph() is not before,
            "kernel": again.layers[0].kernel.name,
            "shape": again.predict(x).shape,
        }))
    """
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), f"{folder}/model"],
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert done.returncode == 0, done.stderr
    names = ["loss", "mean_absolute_error", "acc", "weighted_mean_squared_error"]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "names": names,
        "history": names,
        "file": True,
        "slots": ["training/Adam/iter:0", "training/Adam/dense/kernel/m:0"],
        "phase": "keras_learning_phase:0",
        "cleared": True,
        "kernel": "dense/kernel:0",
        "shape": [4, 1],
    }


@pytest.mark.parametrize("name", ["fit", "evaluate", "train_on_batch", "predict"])
def test_models_made_outside_of_graphs(name):
    with stack.entering(None):
        model = simple()
        model.fit(X, Y, verbose=0)
    text = f"Calling `Model.{name}` in graph mode is not supported when the `Model`"
    with pytest.raises(ValueError, match=text):
        getattr(model, name)(*([X] if name == "predict" else [X, Y]))
    with stack.entering(None):
        assert model.predict(X).shape == (4, 1)


def test_walks_over_a_dataset_share_their_nodes():
    model = simple()
    rows = tf.compat.v1.data.Dataset.from_tensor_slices((X, Y)).batch(2)
    model.fit(rows, epochs=1, verbose=0)
    counts = []
    for epochs in (1, 6):
        before = len(tf.compat.v1.get_default_graph().get_operations())
        model.fit(rows, epochs=epochs, verbose=0)
        after = len(tf.compat.v1.get_default_graph().get_operations())
        counts.append(after - before)
    assert counts[0] == counts[1]
