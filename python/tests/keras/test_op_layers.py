"""Functions of tf as layers of functional models, and losses and metrics of KerasTensors:
configurations, clones, files of tf_keras 2.21 (tests/golden/keras/op_layers, written by
op_layer_cases.py) and our own."""

import copy
import json
import os
import pathlib
import pickle

import numpy as np
import op_layer_cases as cases
import pytest

import headrace as tf

pytest.importorskip("h5py")
K = tf.keras
GOLDEN = pathlib.Path(__file__).parents[3] / "tests/golden/keras/op_layers"
FILES = [(name, end) for name, ends in cases.ENDINGS.items() for end in ends]


def _loaded(folder, name, ending):
    path = os.path.join(folder, name + ending)
    if ending == ".json":
        return K.models.model_from_json(pathlib.Path(path).read_text())
    return K.models.load_model(path)


def _check(model, folder, name):
    expected = np.load(os.path.join(folder, "results.npz"))
    found = cases.results(model, name)
    assert len(found) == sum(key.startswith(name) for key in expected)
    for i, value in enumerate(found):
        want = expected[f"{name}_{i}"]
        assert value.dtype == want.dtype
        np.testing.assert_allclose(value, want, atol=1e-5)


@pytest.mark.parametrize("name, ending", FILES)
def test_models_of_tf_keras(name, ending):
    model = _loaded(GOLDEN, name, ending)
    _check(model, GOLDEN, name)
    if name == "vae":
        assert model.metrics_names == ["loss", "divergence", "sum"]
        kinds = [type(layer).__name__ for layer in model.layers]
        assert [kinds.count(k) for k in ("AddLoss", "AddMetric")] == [1, 2]


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("ops"))
    cases.write(tf, folder)
    return folder


@pytest.mark.parametrize("name, ending", FILES)
def test_our_files(ours, name, ending):
    _check(_loaded(ours, name, ending), ours, name)


@pytest.mark.parametrize("name", list(cases.MODELS))
def test_clones_and_saved_models(name, tmp_path):
    model = cases.MODELS[name](tf)
    clone = K.models.clone_model(model)
    clone.set_weights(model.get_weights())
    assert [x.name for x in clone.layers] == [x.name for x in model.layers]
    flat = tf.nest.flatten
    want = model(cases.INPUTS[name])
    for again in (clone, _saved(model, tmp_path)):
        found = again(cases.INPUTS[name])
        for x, y in zip(flat(found), flat(want)):
            np.testing.assert_allclose(x, y, rtol=1e-6)
        assert len(again.losses) == len(model.losses)


def _saved(model, folder):
    model.save(os.path.join(folder, "saved"))
    return K.models.load_model(os.path.join(folder, "saved"))


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_copies(again):
    model = cases.forms(tf)
    inputs = cases.INPUTS["forms"]
    for x, y in zip(again(model)(inputs), model(inputs)):
        np.testing.assert_array_equal(x, y)


SLICE = {"start": None, "stop": None, "step": None}


@pytest.mark.parametrize(
    "function, kind, called, call",
    [
        (lambda a, b: a * 0.5, "TFOpLambda", "math.multiply", ["a", {"y": 0.5}]),
        (lambda a, b: 2 - b, "TFOpLambda", "math.subtract", [2.0, {"y": "b"}]),
        (lambda a, b: a**b, "TFOpLambda", "math.pow", ["a", {"y": "b"}]),
        (lambda a, b: 1 // a, "TFOpLambda", "compat.v1.floor_div", [1.0, {"y": "a"}]),
        (lambda a, b: -a, "TFOpLambda", "math.negative", ["a", {}]),
        (
            lambda a, b: a[:, 1:],
            "SlicingOpLambda",
            "__operators__.getitem",
            ["a", {"slice_spec": (SLICE, {**SLICE, "start": 1})}],
        ),
        (
            lambda a, b: a[..., None, 0],
            "SlicingOpLambda",
            "__operators__.getitem",
            ["a", {"slice_spec": (Ellipsis, None, 0)}],
        ),
    ],
)
def test_configurations(function, kind, called, call):
    a, b = K.Input((3,), name="a"), K.Input((3,), name="b")
    model = K.Model([a, b], function(a, b))
    row = model.get_config()["layers"][-1]
    assert row["class_name"] == kind and row["registered_name"] == kind
    assert row["module"] == "tf_keras.src.layers.core.tf_op_layer"
    config = row["config"]
    assert (config["function"], config["dtype"]) == (called, "float32")
    assert config["name"].startswith(f"tf.{called}")
    first, kwargs = call
    kwargs = {k: [v, 0, 0] if isinstance(v, str) else v for k, v in kwargs.items()}
    if kind == "TFOpLambda":
        kwargs["name"] = None
    first = [first, 0, 0] if isinstance(first, str) else ["_CONSTANT_VALUE", -1, first]
    assert row["inbound_nodes"] == [[*first, kwargs]]
    _check_again(model)


def _check_again(model):
    inputs = [cases.A, cases.B]
    for again in (
        K.Model.from_config(model.get_config()),
        K.models.model_from_json(model.to_json()),
    ):
        np.testing.assert_array_equal(again(inputs), model(inputs))


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: tf.einsum("ij,ij->i", a, b),
        lambda a, b: tf.boolean_mask(a, [True, False]),
        lambda a, b: (a > 0) ^ (b > 0),
        lambda a, b: tf.cast(a * 9, tf.int32) & 3 | ~tf.cast(b * 9, tf.int32),
        lambda a, b: tf.size(a) + tf.shape(a, out_type=tf.int32),
        lambda a, b: tf.math.top_k(a, 2)[0],
        lambda a, b: tf.compat.v1.reduce_sum(a, 1),
        lambda a, b: tf.fill([tf.shape(a)[0], 2], 1.0),
        lambda a, b: a[:, np.int64(1)],
        lambda a, b: K.losses.mse(a, b),
        lambda a, b: tf.image.resize(tf.reshape(a, [-1, 3, 1, 1]), [6, 1]),
    ],
)
def test_further_functions_come_back(function):
    a, b = K.Input((3,), name="a"), K.Input((3,), name="b")
    _check_again(K.Model([a, b], function(a, b)))


@pytest.mark.parametrize(
    "name",
    [
        *("io.read_file", "io.write_file", "io.matching_files", "load_library"),
        *("py_function", "numpy_function", "compat.v1.py_func", "function", "Module"),
        *("keras.layers.Dense", "math", "math.nosuch", "__operators__.nothing", ""),
        *("os.system", "__builtins__", "compat.v1.io.read_file", "saved_model.load", 5),
        *(None, "raw_ops.ReadFile", "compat.v1.compat.v1.cast", "..", "data.Dataset"),
    ],
)
def test_only_functions_of_tensors_are_found(name):
    a = K.Input((3,), name="a")
    config = K.Model(a, tf.cast(a, tf.int32)).get_config()
    config["layers"][1]["config"]["function"] = name
    with pytest.raises(ValueError, match=f"TF symbol `{name}` could not be found"):
        K.Model.from_config(config)


def test_damaged_calls():
    a = K.Input((3,), name="a")
    config = K.Model(a, tf.add(a[:, 1:], 1.0)).get_config()
    item, add = config["layers"][1:]
    for row, call in (
        (item, ["a", 0, 0, {"slice_spec": {"begin": 1}}]),
        (item, ["a", 0, 0, {"slice_spec": ["x"]}]),
        (item, ["a", 0, 0]),
        (item, []),
        (item, {}),
        (add, ["nosuch", 0, 0, {"y": 1.0}]),
        (add, [item["name"], 3, 0, {"y": 1.0}]),
        (add, [item["name"], 0, 0, {"y": [item["name"], 0, 9]}]),
        (add, ["_CONSTANT_VALUE", -1, None, {"y": 1.0}]),
        (add, [item["name"], 0, 0, {"z": 1.0}]),
        (add, 3),
    ):
        bad = copy.deepcopy(config)
        place = config["layers"].index(row)
        bad["layers"][place]["inbound_nodes"] = [call]
        with pytest.raises((ValueError, TypeError)):
            K.Model.from_config(bad)


def test_functions_that_no_configuration_may_name():
    name = K.Input((), dtype="string", name="file")
    model = K.Model(name, tf.io.read_file(name))
    with pytest.raises(NotImplementedError, match="`io.read_file` could not be found"):
        model.get_config()


def test_layers_with_more_arguments():
    class Scaled(K.layers.Layer):
        def call(self, x, y, scale=1.0, others=()):
            return x + scale * y + sum(others)

    a, b = K.Input((3,), name="a"), K.Input((3,), name="b")
    out = [Scaled(name="s")(a, b, 2.0), Scaled(name="t")(a, y=b, others=[a, b])]
    model = K.Model([a, b], out)
    config = model.get_config()
    assert [row["inbound_nodes"] for row in config["layers"][2:]] == [
        [[["a", 0, 0, {"y": ["b", 0, 0], "scale": 2.0}]]],
        [[["a", 0, 0, {"y": ["b", 0, 0], "others": [["a", 0, 0], ["b", 0, 0]]}]]],
    ]
    again = K.Model.from_config(config, {"Scaled": Scaled})
    inputs = [cases.A, cases.B]
    for x, y in zip(again(inputs), model(inputs)):
        np.testing.assert_array_equal(x, y)
    old = json.loads(
        json.dumps(config["layers"][3]).replace('["b"', '["_KERAS_TENSOR", "b"')
    )
    config["layers"][3] = old  # as older versions of ours wrote them
    again = K.Model.from_config(config, {"Scaled": Scaled})
    np.testing.assert_array_equal(again(inputs)[1], model(inputs)[1])


# --- losses and metrics ---


def _model():
    x = K.Input((3,), name="i")
    h = K.layers.Dense(2, name="d", kernel_initializer="ones")(x)
    return K.Model(x, K.layers.Dense(1, name="o", kernel_initializer="ones")(h)), x, h


ONES, ZEROS = np.ones((8, 3), "float32"), np.zeros((8, 1), "float32")


def test_losses_and_metrics_of_functional_models():
    model, _, h = _model()
    dense = model.layers[1]
    model.add_loss(tf.reduce_mean(h) * 0.1)
    model.add_loss(lambda: tf.reduce_sum(dense.kernel))
    model.add_metric(tf.reduce_sum(h), name="s")
    model.add_metric(tf.reduce_mean(h), name="m", aggregation="mean")
    assert [type(x).__name__ for x in model.layers] == [
        *("InputLayer", "Dense", "Dense", "TFOpLambda", "TFOpLambda", "AddLoss"),
        *("TFOpLambda", "AddMetric", "TFOpLambda", "AddMetric"),
    ]
    assert len(model.losses) == 2 and model.metrics_names == ["s", "m"]
    model.compile("sgd", "mse")
    logs = model.fit(ONES, ZEROS, epochs=2, batch_size=4, verbose=0).history
    expected = {"loss": [28.5789, 8.2915], "s": [21.952, 17.9433], "m": [2.744, 2.2429]}
    assert logs.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(logs[name], values, atol=1e-4)
    assert model.metrics_names == ["loss", "s", "m"]
    found = model.evaluate(ONES, ZEROS, verbose=0)
    np.testing.assert_allclose(found, [6.084, 33.7241, 2.1078], atol=1e-4)
    model(ONES)
    assert [round(float(x), 4) for x in model.losses] == [4.6016, 0.2108]
    rows = [row["config"] for row in model.get_config()["layers"][5:8:2]]
    assert rows[0].pop("name").startswith("add_loss")
    assert rows[1].pop("name").startswith("add_metric")
    common = {"trainable": True, "dtype": "float32"}
    assert rows == [
        {**common, "unconditional": False},
        {**common, "aggregation": "mean", "metric_name": "s"},
    ]
    again = K.Model.from_config(model.get_config())
    assert [x.name for x in again.layers] == [x.name for x in model.layers]
    assert again.metrics_names == ["s", "m"] and len(again.losses) == 1


def test_models_trained_by_added_losses_alone():
    model, x, h = _model()
    model.add_loss([tf.reduce_mean(tf.square(model.output)), tf.reduce_mean(h)])
    model.compile("adam")
    logs = model.fit(ONES, epochs=3, verbose=0).history
    assert list(logs) == ["loss"] and logs["loss"][0] == 39.0  # 6 * 6 + 3
    assert logs["loss"][2] < logs["loss"][1] < 39.0
    outer = K.Model(x, model(x) * 2.0)
    outer(ONES)
    assert len(outer.losses) == 2


def test_losses_of_sequential_models():
    model = K.Sequential([K.layers.Dense(1, input_shape=(3,), name="d")])
    model.add_loss(tf.reduce_sum(model.outputs[0]))
    assert [type(x).__name__ for x in model.layers] == [
        "Dense",
        "TFOpLambda",
        "AddLoss",
    ]
    model.compile("sgd", "mse")
    loss = model.evaluate(ONES, ZEROS, verbose=0)
    y = model(ONES).numpy()
    assert loss == pytest.approx(np.mean(y**2) + y.sum(), rel=1e-5)
    with pytest.raises(NotImplementedError, match="use a functional model"):
        model.get_config()
    model.add(K.layers.Dense(2, name="e"))
    assert [x.name for x in model.layers] == ["d", "e"] and not model.losses


def test_what_cannot_be_a_loss_or_metric():
    model, x, h = _model()
    dense = model.layers[1]
    with pytest.raises(ValueError, match="Expected a symbolic Tensors or a callable"):
        model.add_loss(tf.constant(2.0))
    with pytest.raises(TypeError, match=r"arguments: dict_keys\(\['foo'\]\)"):
        model.add_loss(tf.reduce_sum(h), foo=1)
    with pytest.raises(TypeError, match=r"\(\['foo'\]\). Expected `aggregation`."):
        model.add_metric(tf.reduce_sum(h), name="q", foo=1)
    with pytest.raises(ValueError, match="Please provide a name for your metric"):
        model.add_metric(tf.reduce_sum(h))
    with pytest.raises(ValueError, match="Graph disconnected"):
        model.add_loss(tf.reduce_sum(K.Input((2,))))
    assert [layer.name for layer in model.layers] == ["i", "d", "o"]
    with pytest.raises(ValueError, match="add_metric` of a functional model"):
        dense.add_metric(tf.reduce_sum(h), name="k")
    dense.add_loss(tf.reduce_sum(h))  # a layer keeps it, and training says so
    assert len(model.losses) == 1
    model.compile("sgd", "mse")
    with pytest.raises(TypeError, match="You are passing KerasTensor"):
        model.fit(ONES, ZEROS, verbose=0)


def test_losses_of_layers_are_known_before_the_first_call():
    class Penalized(K.layers.Layer):
        def call(self, x):
            self.add_loss(tf.reduce_sum(x))
            return x

    layer = Penalized()
    x = K.Input((3,))
    model = K.Model(x, layer(x))
    assert len(model.losses) == 1 and model.losses[0].shape == []
    model(ONES)
    assert [float(loss) for loss in model.losses] == [24.0]
