"""Whole models in files: those of tf_keras 2.21 (tests/golden/keras/whole, written by
whole_cases.py) and our own."""

import json
import os
import pathlib
import zipfile

import numpy as np
import pytest
import whole_cases

import headrace as tf
from headrace import _protos
from headrace.keras.engine import folder

h5py = pytest.importorskip("h5py")
GOLDEN = pathlib.Path(__file__).parents[3] / "tests/golden/keras/whole"
FILES = [(name, end) for name, ends in whole_cases.ENDINGS.items() for end in ends]
load_model = tf.keras.models.load_model


def _check(folder, name, ending):
    model = load_model(os.path.join(folder, name + ending))
    expected = np.load(os.path.join(folder, "predicted.npz"))
    inputs = whole_cases.inputs_of(name)
    np.testing.assert_allclose(
        model.predict(inputs, verbose=0), expected[name], atol=1e-5
    )
    model.fit(inputs, whole_cases.TARGETS, verbose=0, shuffle=False)
    on = model.predict(inputs, verbose=0)
    np.testing.assert_allclose(on, expected[f"{name}_on"], atol=1e-5)
    return model


@pytest.mark.parametrize("name, ending", FILES)
def test_models_of_tf_keras_go_on(name, ending):
    model = _check(GOLDEN, name, ending)
    losses = {"stack": "mse", "steps": tf.keras.losses.mean_absolute_error}
    if name == "graph":
        assert model.loss.get_config()["delta"] == 0.5
        assert isinstance(model.optimizer, tf.keras.optimizers.legacy.SGD)
        assert [m.name for m in model.metrics] == ["loss", "error"]
    elif ending == ".keras":
        assert model.loss == losses[name]
        assert [m.name for m in model.metrics] in (["loss", "mae"], ["loss"])
    if name == "steps":
        schedule = model.optimizer.get_config()["learning_rate"]
        assert schedule["class_name"] == "ExponentialDecay"


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("whole"))
    whole_cases.write(tf, folder)
    return folder


@pytest.mark.parametrize("name, ending", FILES)
def test_our_models_go_on(ours, name, ending):
    _check(ours, name, ending)


def test_files_are_like_those_of_tf_keras(ours):
    for name in ("stack", "steps"):
        found = []
        for folder in (ours, GOLDEN):
            with zipfile.ZipFile(os.path.join(folder, f"{name}.keras")) as file:
                assert file.namelist() == [
                    "metadata.json",
                    "config.json",
                    "model.weights.h5",
                ]
                found.append(json.loads(file.read("config.json")))
        for key in ("module", "class_name", "registered_name", "build_config"):
            assert found[0][key] == found[1][key]
        for mine, theirs in zip(*(f["config"]["layers"] for f in found)):
            assert list(mine) == list(theirs)
            assert mine.get("build_config") == theirs.get("build_config")
            assert sorted(mine["config"]) == sorted(theirs["config"])
        mine, theirs = (f["compile_config"] for f in found)
        assert list(mine) == list(theirs)
    attributes, names = [], []
    for folder in (ours, GOLDEN):
        with h5py.File(os.path.join(folder, "stack.h5")) as file:
            attributes.append(sorted(file.attrs))
            names.append(list(file["optimizer_weights"].attrs["weight_names"]))
            training = json.loads(file.attrs["training_config"])
            assert training["optimizer_config"]["class_name"] == "Custom>Adam"
    assert attributes[0] == attributes[1]
    assert len(names[0]) == len(names[1]) == 13


@tf.keras.utils.register_keras_serializable("mine")
class Double(tf.keras.layers.Layer):
    """Doubles."""

    def call(self, x):
        return 2 * x


class Plain(tf.keras.Model):
    """A subclass with a weight made by its first call."""

    def __init__(self, units=2):
        super().__init__()
        self.dense = tf.keras.layers.Dense(units)

    def call(self, x):
        return self.dense(x)


@pytest.mark.parametrize("ending", [".keras", ".h5", ""])
def test_custom_classes(tmp_path, ending):
    path = str(tmp_path / f"m{ending}")
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,)), Double()])
    model.save(path)
    x = whole_cases.INPUTS
    again = load_model(path)
    assert isinstance(again.layers[1], Double)
    np.testing.assert_allclose(again(x), model(x), rtol=1e-6)
    assert again.optimizer is None


@pytest.mark.parametrize("ending", [".keras", ""])
def test_subclasses(tmp_path, ending):
    path = str(tmp_path / f"m{ending}")
    model = Plain(3)
    x = whole_cases.INPUTS
    expected = model.predict(x, verbose=0)
    tf.keras.models.save_model(model, path)
    if ending:
        with pytest.raises(TypeError, match="Could not locate class 'Plain'"):
            load_model(path)
    else:  # a SavedModel has its functions
        made = load_model(path)
        assert type(made) is not Plain and type(made).__name__ == "Plain"
        np.testing.assert_allclose(made.predict(x, verbose=0), expected, rtol=1e-6)
    again = load_model(path, custom_objects={"Plain": Plain})
    np.testing.assert_allclose(again.predict(x, verbose=0), expected, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="requires the model to be a Funct"):
        model.save(str(tmp_path / "m.h5"))


def test_compile_false_and_no_optimizer(tmp_path):
    model = load_model(GOLDEN / "stack.keras", compile=False)
    assert model.optimizer is None
    path = str(tmp_path / "m.h5")
    model = load_model(GOLDEN / "stack.h5")
    model.save(path, include_optimizer=False)
    assert load_model(path).optimizer is None


def test_lambdas_are_refused_in_safe_mode(tmp_path):
    path = str(tmp_path / "m.keras")
    three = 3.0
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((3,)),
            tf.keras.layers.Lambda(lambda x, by=2.0: tf.math.abs(x) * by * three),
        ]
    )
    model.save(path)
    with pytest.raises(ValueError, match="`safe_mode=False` to the loading function"):
        load_model(path)
    again = load_model(path, safe_mode=False)
    x = whole_cases.INPUTS
    np.testing.assert_allclose(again(x), abs(x) * 6, rtol=1e-6)
    with pytest.raises(ValueError, match="Lambda"):
        tf.keras.models.model_from_json(model.to_json())
    config = model.layers[0].get_config()
    for damaged in (["!!", None, None], ["AAAA", None, None], [3], 7, ["4w==", 1, 2]):
        with pytest.raises(ValueError, match="cannot be read"):
            tf.keras.layers.Lambda.from_config({**config, "function": damaged})


def _triple(x):
    return 3 * x


def test_functions_of_lambdas_are_found_by_name(tmp_path):
    path = str(tmp_path / "m.keras")
    layer = tf.keras.layers.Lambda(_triple, input_shape=(3,))
    tf.keras.Sequential([layer]).save(path)
    with pytest.raises((TypeError, ValueError), match="_triple"):
        load_model(path)
    again = load_model(path, custom_objects={"_triple": _triple})
    assert again(np.ones((1, 3), "float32")).numpy().tolist() == [[3, 3, 3]]


def test_configurations():
    models = tf.keras.models
    model = whole_cases.models(tf)["graph"]
    again = models.model_from_json(model.to_json())
    assert [layer.name for layer in again.layers] == [x.name for x in model.layers]
    saving = tf.keras.saving
    row = saving.serialize_keras_object(model)
    assert row["module"] == "tf_keras.src.engine.functional"
    assert row["registered_name"] == "Functional"
    assert saving.deserialize_keras_object(row).name == "graph"
    assert models.model_from_config(row).name == "graph"
    loss = saving.serialize_keras_object([tf.keras.losses.Huber(0.5), {"a": 1}, "b"])
    assert loss[0]["module"] == "keras.losses"
    assert loss[1:] == [{"a": 1}, "b"]
    assert saving.deserialize_keras_object(loss)[0].get_config()["delta"] == 0.5
    with pytest.raises(json.JSONDecodeError):
        models.model_from_json("nope")
    with pytest.raises(ValueError, match="Cannot deserialize empty config"):
        models.model_from_json("{}")
    with pytest.raises(TypeError, match="expects a dictionary, not a list"):
        models.model_from_config([1])
    with pytest.raises(ValueError, match="Unknown layer: 'Nope'"):
        models.model_from_config({"class_name": "Nope", "config": {}})
    with pytest.raises(RuntimeError, match="has been removed"):
        models.model_from_yaml("a")
    with pytest.raises(TypeError, match="Could not locate class 'Nope'"):
        saving.deserialize_keras_object({"class_name": "Nope", "config": {}})
    with pytest.raises(TypeError, match="Could not locate function 'nope'"):
        saving.deserialize_keras_object({"class_name": "function", "config": "nope"})


def test_what_is_no_model(tmp_path):
    for name in ("no.keras", "no.h5", "no", 5, None):
        with pytest.raises(OSError, match=r"No file or dir|Unable to load model"):
            load_model(tmp_path / name if isinstance(name, str) else name)
    (tmp_path / "bad.keras").write_text("no zip")
    (tmp_path / "bad.h5").write_text("no HDF5")
    (tmp_path / "empty").mkdir()
    h5py.File(tmp_path / "e.h5", "w").close()
    for name in ("bad.keras", "bad.h5", "empty"):
        with pytest.raises(OSError, match=r"no .keras file|signature|does not exist"):
            load_model(tmp_path / name)
    with pytest.raises(ValueError, match="No model config found"):
        load_model(tmp_path / "e.h5")
    for name, content in (("config.json", "[]"), ("config.json", "{"), ("a", "")):
        with zipfile.ZipFile(tmp_path / "z.keras", "w") as file:
            file.writestr(name, content)
            file.writestr("model.weights.h5", "")
        with pytest.raises(ValueError, match=r"no model|no .keras|Expecting"):
            load_model(tmp_path / "z.keras")
    (tmp_path / "empty" / "saved_model.pb").write_bytes(b"")
    with pytest.raises(ValueError, match="Keras says nothing"):
        load_model(tmp_path / "empty")
    for content in (b"\xff\xff", b""):
        (tmp_path / "empty" / "keras_metadata.pb").write_bytes(content)
        with pytest.raises(ValueError, match="keras_metadata.pb"):
            load_model(tmp_path / "empty")


def test_bad_arguments(tmp_path):
    model = whole_cases.models(tf)["stack"]
    path = str(tmp_path / "x")
    with pytest.raises(ValueError, match="Received: save_format=zz"):
        model.save(path, save_format="zz")
    with pytest.raises(ValueError, match="expected a `.keras` extension"):
        model.save(path, save_format="keras")
    with pytest.raises(ValueError, match=r"native TF-Keras format: \['signatures'\]"):
        model.save(f"{path}.keras", signatures=1)
    with pytest.raises(ValueError, match="take no signatures"):
        model.save(f"{path}.h5", signatures=1)
    with pytest.raises(TypeError, match="unexpected argument"):
        model.save(f"{path}.h5", nope=1)
    with pytest.raises(TypeError, match="nope"):
        load_model(GOLDEN / "stack.h5", nope=1)


def test_asks_before_it_replaces(tmp_path, monkeypatch):
    path = tmp_path / "m.keras"
    path.write_text("kept")
    model = whole_cases.models(tf)["stack"]
    monkeypatch.setattr("builtins.input", lambda text: "n")
    model.save(path, overwrite=False)
    assert path.read_text() == "kept"
    monkeypatch.setattr("builtins.input", lambda text: "y")
    model.save(path, overwrite=False)
    assert zipfile.is_zipfile(path)


def test_folders_say_what_tf_keras_needs_of_each_layer(tmp_path):
    """tf_keras 2.21 loads such folders as a Sequential and a Functional (tried by hand);
    these are the rows by which it does."""
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((3,)),
            tf.keras.layers.Dense(4),
            tf.keras.layers.Dense(2),
        ],
        name="seq",
    )
    model.compile("adam", "mse")
    model.fit(np.ones([4, 3]), np.ones([4, 2]), verbose=0)
    path = str(tmp_path / "seq")
    model.save(path, save_format="tf")
    saved = _protos.message(folder._MESSAGE)()
    with open(path + "/keras_metadata.pb", "rb") as f:
        saved.ParseFromString(f.read())
    rows = {n.node_path: (n.identifier, json.loads(n.metadata)) for n in saved.nodes}
    assert [(p, r[0]) for p, r in rows.items()] == [
        ("root", "_tf_keras_sequential"),
        ("root.layer_with_weights-0", "_tf_keras_layer"),
        ("root.layer_with_weights-1", "_tf_keras_layer"),
    ]
    row = rows["root.layer_with_weights-0"][1]
    assert (row["class_name"], row["config"]["units"]) == ("Dense", 4)
    assert row["build_input_shape"] == {"class_name": "TensorShape", "items": [None, 3]}
    graph = _protos.message("tensorflow.SavedModel")()
    with open(path + "/saved_model.pb", "rb") as f:
        graph.ParseFromString(f.read())
    nodes = graph.meta_graphs[0].object_graph_def.nodes
    below = {c.local_name: nodes[c.node_id] for c in nodes[0].children}
    optimizer = below["optimizer"]
    assert optimizer.user_object.identifier == "experimentalOptimizer"
    names = {c.local_name for c in optimizer.children}
    assert not optimizer.slot_variables and names == {
        *("_variables", "_iterations", "_learning_rate", "_momentums", "_velocities")
    }
    # The model itself goes on with slots, and reads what it wrote.
    again = tf.keras.models.load_model(path)
    assert int(again.optimizer.iterations) == 1
    names = {
        n for n, _ in tf.train.list_variables(tf.train.Checkpoint(m=model).save(path))
    }
    assert any(".OPTIMIZER_SLOT" in name for name in names)


def test_loaded_models_list_their_variables(tmp_path):
    tf.keras.utils.set_random_seed(0)
    layers = [tf.keras.layers.Dense(2), tf.keras.layers.BatchNormalization()]
    model = tf.keras.Sequential([tf.keras.Input((3,)), *layers])
    tf.saved_model.save(model, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    # As TensorFlow's files do: the order is the model's, the objects are its parts'.
    assert [v.shape.as_list() for v in loaded.variables] == [[3, 2], *[[2]] * 5]
    assert [v.name for v in loaded.trainable_variables] == [
        "dense/kernel:0",
        "dense/bias:0",
        "batch_normalization/gamma:0",
        "batch_normalization/beta:0",
    ]
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(loaded(tf.ones((1, 3)), training=False))
    kernel, bias, gamma, beta = tape.gradient(total, loaded.trainable_variables)
    assert kernel.shape == (3, 2) and beta.numpy().tolist() == [1.0, 1.0]
