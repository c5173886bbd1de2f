"""Names of Keras that stand by themselves. The values are TensorFlow's."""

import headrace as tf
import numpy as np
import pytest

keras = tf.keras
X = tf.constant(np.sin(np.arange(6)).reshape(2, 3).astype("float32"))


class Kept:
    def __init__(self, a=1):
        self.a = a

    def get_config(self):
        return {"a": self.a}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def test_legacy_formats():
    legacy = keras.utils.legacy
    made = legacy.serialize_keras_object(keras.layers.Dense(2, name="d"))
    assert set(made) == {"class_name", "config"} and made["class_name"] == "Dense"
    assert legacy.serialize_keras_object(keras.activations.relu) == "relu"
    assert legacy.serialize_keras_object(None) is None
    read = legacy.deserialize_keras_object
    config = {"class_name": "Kept", "config": {"a": 5}}
    assert read(config, module_objects={"Kept": Kept}).a == 5
    assert read("Kept", custom_objects={"Kept": Kept}).a == 1
    assert read("len", module_objects={"len": len}) is len
    assert read(None) is None and read(test_legacy_formats) is test_legacy_formats
    for call, words in (
        (lambda: legacy.serialize_keras_object(3.5), "Cannot serialize 3.5 because it"),
        (
            lambda: read("z", {}, printable_module_name="thing"),
            "Unknown thing: 'z'. Pl",
        ),
        (lambda: read(3), "Could not interpret serialized object: 3"),
        (lambda: read({"a": 1}), "Improper config format for {'a': 1}. Expecting"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_embeddings_of_a_new_vocabulary(tmp_path):
    warm = keras.utils.warmstart_embedding_matrix
    base = np.arange(6, dtype="float32").reshape(3, 2)
    nine = keras.initializers.Constant(9.0)
    found = warm(["a", "b", "c"], ["c", "d", "a"], base, nine)
    assert found.numpy().tolist() == [[4, 5], [9, 9], [0, 1]]
    for name, words in (("base", "a\nb\n"), ("new", "b\nq\n")):
        (tmp_path / name).write_text(words)
    paths = str(tmp_path / "base"), str(tmp_path / "new")
    found = warm(*paths, base[:2], "zeros")
    assert found.numpy().tolist() == [[2, 3], [0, 0]]


def test_means_of_an_epoch():
    logger = keras.callbacks.BaseLogger(["s"])
    logger.set_params({"metrics": ["loss", "s"]})
    logger.on_epoch_begin(0)
    logger.on_batch_end(0, {"size": 2, "loss": 1.0, "s": 5.0})
    logger.on_batch_end(1, {"size": 4, "loss": 4.0, "s": 7.0})
    logs = {}
    logger.on_epoch_end(0, logs)
    assert logs == {"loss": 3.0, "s": 7.0}


@pytest.mark.parametrize(
    ("given", "inputs", "wanted", "shapes"),
    [
        ({}, X, [[1.75077], [-1.57461]], [[3, 1], [1]]),
        (
            {"units": 2, "activation": "relu", "use_bias": False},
            X,
            [[1.75077, 1.75077], [0, 0]],
            [[3, 2]],
        ),
        ({}, [X, X[:, :2]], [[2.59224], [-2.19029]], [[3, 1], [2, 1], [1]]),
        ({}, {"a": X, "b": X[:, :2]}, [[2.59224], [-2.19029]], [[3, 1], [2, 1], [1]]),
    ],
)
def test_linear_model(given, inputs, wanted, shapes):
    model = keras.experimental.LinearModel(kernel_initializer="ones", **given)
    np.testing.assert_allclose(model(inputs).numpy(), wanted, atol=1e-5)
    assert [w.shape.as_list() for w in model.weights] == shapes
    again = keras.experimental.LinearModel.from_config(model.get_config())
    assert again.get_config() == model.get_config()


def test_linear_model_learns():
    model = keras.experimental.LinearModel()
    model.compile("sgd", "mse")
    losses = model.fit(X, np.array([1.0, 2]), epochs=3, verbose=0).history["loss"]
    np.testing.assert_allclose(losses, [2.5, 2.39565, 2.29574], atol=1e-5)
    named = keras.experimental.LinearModel()
    named({"a": X})
    with pytest.raises(ValueError, match="not built for inputs"):
        named({"b": X})


def test_fourier_features():
    make = keras.layers.experimental.RandomFourierFeatures
    layer = make(4, kernel_initializer=keras.initializers.Constant(0.3))
    layer(X)
    layer.bias.assign([0.1, 0.2, 0.3, 0.4])
    wanted = [
        [0.81083, 0.74835, 0.67839, 0.60165],
        [0.93146, 0.96313, 0.98518, 0.99738],
    ]
    np.testing.assert_allclose(layer(X).numpy(), wanted, atol=1e-5)
    gaussian = make(4, name="r")
    assert gaussian(X).shape == [2, 4]
    assert gaussian.get_config()["scale"] == pytest.approx(1.224744871391589)
    assert gaussian.get_config()["kernel_initializer"] == "gaussian"
    assert make(4, "laplacian")(X).shape == [2, 4]
    many = make(4096, trainable=True, scale=1.0)
    rows = many(X).numpy()
    kernel = 2 / 4096 * rows[0] @ rows[1]
    distance = float(tf.reduce_sum((X[0] - X[1]) ** 2))
    assert kernel == pytest.approx(np.exp(-distance / 2), abs=0.1)
    assert make(4).compute_output_shape((None, 3)).as_list() == [None, 4]
    for call, words in (
        (lambda: make(4, "x"), "Unsupported `kernel_initializer`: x Expected one of"),
        (lambda: make(0), "`output_dim` should be a positive integer. Received: 0"),
        (lambda: make(2, scale=-1.0), "`scale` should be a positive float. Received"),
        (
            lambda: make(4)(tf.ones((2, 3, 4))),
            "The rank of the input tensor should be 2",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_progress_without_a_console(capsys):
    utils = keras.utils
    assert utils.is_interactive_logging_enabled()
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(3,))])
    model.compile("sgd", "mse")
    utils.disable_interactive_logging()
    try:
        model.fit(X, np.array([1.0, 2]), epochs=2, verbose=1)
        model.fit(X, np.array([1.0, 2]))
        assert not utils.is_interactive_logging_enabled()
    finally:
        utils.enable_interactive_logging()
    assert capsys.readouterr().out == ""
    model.fit(X, np.array([1.0, 2]), verbose=1)
    assert "1/1 [" in capsys.readouterr().out


def test_second_names():
    callbacks = keras.callbacks
    assert callbacks.experimental.BackupAndRestore is callbacks.BackupAndRestore
    assert tf.compat.v1.keras.models.LinearModel is keras.experimental.LinearModel


Creator = keras.utils.experimental.DatasetCreator


def rows_of(context, seen):
    seen.append((context.num_input_pipelines, context.num_replicas_in_sync))
    x = np.sin(np.arange(12)).reshape(4, 3).astype("float32")
    rows = tf.data.Dataset.from_tensor_slices((x, np.arange(4.0)))
    return rows.repeat().batch(2)


def small_model():
    layer = keras.layers.Dense(1, kernel_initializer="ones", input_shape=(3,))
    model = keras.Sequential([layer])
    model.compile("sgd", "mse")
    return model


def test_datasets_that_are_made_where_they_are_read():
    seen = []
    made = Creator(lambda context: rows_of(context, seen))
    how = {"steps_per_epoch": 2, "verbose": 0}
    losses = small_model().fit(made, epochs=2, **how).history["loss"]
    np.testing.assert_allclose(losses, [6.66882, 6.10846], atol=1e-5)
    assert seen == [(1, 1)]
    model = small_model()
    assert model.evaluate(made, steps=2, verbose=0) == pytest.approx(6.79178, abs=1e-5)
    assert model.predict(made, steps=2, verbose=0).shape == (4, 1)
    validated = model.fit(made, validation_data=made, validation_steps=1, **how)
    assert sorted(validated.history) == ["loss", "val_loss"]


def test_datasets_of_replicas_are_made_for_all():
    seen = []
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        model = small_model()
    made = Creator(lambda context: rows_of(context, seen))
    losses = model.fit(made, steps_per_epoch=1, verbose=0).history["loss"]
    assert losses == pytest.approx([6.79178], abs=1e-5) and seen == [(1, 2)]


def test_datasets_that_cannot_be_made():
    made = Creator(lambda context: rows_of(context, []))
    for error, words, call in (
        (TypeError, "must be a `callable`. Received: 3", lambda: Creator(3)),
        (TypeError, "must be a `tf.distribute.InputO", lambda: Creator(len, 5)),
        (
            TypeError,
            "must return a Dataset. It returns",
            lambda: small_model().fit(Creator(lambda c: [1]), steps_per_epoch=1),
        ),
        (
            ValueError,
            "`steps_per_epoch`, `validation_st",
            lambda: small_model().fit(made),
        ),
        (
            ValueError,
            "`y` argument is not supported when using dataset",
            lambda: small_model().fit(made, np.ones(2), steps_per_epoch=1),
        ),
    ):
        with pytest.raises(error, match=words):
            call()
