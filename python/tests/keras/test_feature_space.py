"""tf.keras.utils.FeatureSpace.

Values and messages are those of tf_keras 2.21 (TF_USE_LEGACY_KERAS=1), but where a test
says otherwise.
"""

import zipfile

import numpy as np
import pytest

import headrace as tf

Space = tf.keras.utils.FeatureSpace
DATA = {
    "f1": np.arange(10, dtype="float32") / 10,
    "f2": np.arange(10, dtype="float32"),
    "f3": np.arange(10, dtype="float32") * 2,
    "s1": np.array(list("abcabcabca")),
    "s2": np.array(["x", "y"] * 5),
    "i1": np.array([0, 1, 2, 3, 0, 1, 2, 3, 0, 1]),
    "i2": np.arange(10),
}
KINDS = {
    "f1": "float",
    "f2": "float_normalized",
    "f3": "float_discretized",
    "s1": "string_categorical",
    "s2": "string_hashed",
    "i1": "integer_categorical",
    "i2": "integer_hashed",
}
# Of the first two rows: each column's value, or the place of the 1 among so many.
VALUES = {"f1": [0, 0.1], "f2": [-1.5666989088058472, -1.2185436487197876]}
PLACES = {
    "f3": (3, [0, 0]),
    "i1": (5, [2, 1]),
    "i2": (4, [3, 1]),
    "s1": (4, [1, 3]),
    "s2": (4, [2, 1]),
    "s1_X_i1": (8, [5, 4]),
}


def dataset(data=None):
    return tf.data.Dataset.from_tensor_slices(DATA if data is None else data)


def space(**given):
    made = Space(
        KINDS,
        crosses=[("s1", "i1")],
        crossing_dim=8,
        hashing_dim=4,
        num_discretization_bins=3,
        **given,
    )
    made.adapt(dataset())
    return made


def rows(at):
    return {name: column[at] for name, column in DATA.items()}


def expected():
    found = {k: np.reshape(v, (2, 1)).astype("float32") for k, v in VALUES.items()}
    for name, (size, places) in PLACES.items():
        found[name] = np.eye(size, dtype="float32")[places]
    return found


NAMES = ["f1", "f2", "f3", "i1", "i2", "s1", "s2", "s1_X_i1"]


def test_dicts():
    made = space(output_mode="dict")
    found = made(rows(slice(2)))
    assert list(found) == NAMES
    for name, value in expected().items():
        assert found[name].dtype == tf.float32
        np.testing.assert_allclose(found[name], value, rtol=1e-6)
        np.testing.assert_allclose(made(rows(0))[name], value[0], rtol=1e-6)
    columns = {k: v.reshape(2, 1) for k, v in rows(slice(2)).items()}
    lists = {k: v.tolist() for k, v in rows(slice(2)).items()}
    plain = {k: v.item() for k, v in rows(1).items()}
    for name, value in expected().items():
        np.testing.assert_allclose(made(columns)[name], value, rtol=1e-6)
        np.testing.assert_allclose(made(lists)[name], value, rtol=1e-6)
        np.testing.assert_allclose(made(plain)[name], value[1], rtol=1e-6)


def test_vectors():
    made = space()
    whole = np.concatenate([expected()[name] for name in NAMES], 1)
    np.testing.assert_allclose(made(rows(slice(2))), whole, rtol=1e-6)
    np.testing.assert_allclose(made(rows(0)), whole[0], rtol=1e-6)
    (row,) = dataset().map(made).take(1)
    np.testing.assert_allclose(row, whole[0], rtol=1e-6)
    (batch,) = dataset().batch(3).map(made).take(1)
    assert batch.shape == (3, 30)


def test_parts():
    made = space()
    assert made.built and made.output_mode == "concat" and made.crossing_dim == 8
    assert (made.hashing_dim, made.num_discretization_bins) == (4, 3)
    kinds = {k: type(v).__name__ for k, v in made.preprocessors.items()}
    assert kinds["f1"] == "Identity" and kinds["f3"] == "Discretization"
    assert type(made.crossers["s1_X_i1"]) is tf.keras.layers.HashedCrossing
    assert sorted(made.one_hot_encoders) == sorted(PLACES)
    assert made.preprocessors["i2"].name == "i2_preprocessor"
    inputs = made.get_inputs()
    assert inputs["s1"].dtype == tf.string and inputs["i1"].dtype == tf.int64
    assert inputs["f1"].shape == (None, 1) and inputs["f1"].name == "f1"
    assert made.get_encoded_features().shape == (None, 30)
    assert made.get_encoded_features() is made.encoded_features


def test_models():
    made = space()
    features = made.get_encoded_features()
    outputs = tf.keras.layers.Dense(1)(features)
    model = tf.keras.Model(features, outputs)
    model.compile("sgd", "mse")
    model.fit(dataset().map(lambda x: (made(x), 1.0)).batch(5), verbose=0)
    raw = tf.keras.Model(made.get_inputs(), outputs)
    columns = {k: v.reshape(3, 1) for k, v in rows(slice(3)).items()}
    found = raw.predict(columns, verbose=0)
    wanted = model.predict(made(rows(slice(3))), verbose=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_kinds():
    made = Space(
        {
            "s1": Space.string_categorical(output_mode="int"),
            "i1": Space.integer_categorical(3, 2, output_mode="int"),
            "f3": Space.float_discretized(3, output_mode="int"),
            "f1": Space.float_rescaled(2.0, 1.0),
            "s2": Space.string_hashed(3),
            "i2": Space.integer_hashed(3),
        },
        crosses=[Space.cross(("s1", "i1"), 8, output_mode="int")],
        output_mode="dict",
    )
    made.adapt(dataset())
    given = {k: v for k, v in rows(slice(2)).items() if k != "f2"}
    found = {k: v.numpy().ravel().tolist() for k, v in made(given).items()}
    assert found["s1"] == [1, 3] and found["f3"] == [0, 0]
    np.testing.assert_allclose(found["f1"], [1.0, 1.2], rtol=1e-6)
    plain = Space({"s": Space.string_hashed(3), "i": Space.integer_hashed(3)})
    assert plain({"s": ["a"], "i": [2]}).numpy().tolist() == [[0, 1, 0, 1, 0, 0]]


def test_layers_of_the_program():
    text = tf.keras.layers.TextVectorization(output_mode="tf_idf")
    words = {"t": ["1st string", "2nd string", "3rd string"]}
    made = Space({"t": Space.feature("string", text, "float")})
    made.adapt(dataset(words))
    found = np.sort(made({"t": ["1st string"]}).numpy()).tolist()
    wanted = [[0, 0, 0, 0.5596157908439636, 0.9162907600402832]]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    made = Space({"f": Space.feature("float32", lambda x: x * 2, "float")})
    assert made({"f": [1.0]}).numpy().tolist() == [[2]]


def test_names():
    tf.keras.backend.clear_session()
    names = [Space.float().preprocessor.name for _ in range(2)]
    assert names == ["float_1_preprocessor", "float_2_preprocessor"]
    assert Space.string_hashed(3).preprocessor.name == "string_hashed_1_preprocessor"
    assert Space.float_normalized(name="n").preprocessor.name == "n_preprocessor"
    cross = Space.cross(["b", "a"], 4)
    assert (cross.name, cross.feature_names) == ("b_X_a", ("b", "a"))
    made = Space(
        {"a": "string_categorical", "b": "integer_categorical"},
        crosses=[["b", "a"], "ab"],
        crossing_dim=5,
    )
    assert list(made.crossers) == ["b_X_a", "a_X_b"]
    assert made.crossers["b_X_a"].num_bins == 5


def test_configurations():
    made = space()
    config = made.get_config()
    assert config["crosses"][0]["config"] == {
        "feature_names": ("s1", "i1"),
        "crossing_dim": 8,
        "output_mode": "one_hot",
    }
    row = config["features"]["s1"]
    assert row["class_name"] == "Feature" and row["config"]["dtype"] == "string"
    again = Space.from_config(config)
    assert sorted(again.features) == sorted(KINDS) and again.hashing_dim == 4
    with pytest.raises(ValueError, match=r"You need to call `.adapt\(dataset\)`"):
        again(DATA)


def test_files(tmp_path):
    """tf_keras' files hold the same; it does not read the bins again."""
    made, path = space(), tmp_path / "space.keras"
    made.save(path)
    assert sorted(zipfile.ZipFile(path).namelist())[:2] == [
        "assets/preprocessors/integer_lookup/vocabulary.txt",
        "assets/preprocessors/string_lookup/vocabulary.txt",
    ]
    again = tf.keras.models.load_model(path)
    assert type(again) is Space and again.built
    np.testing.assert_allclose(again(DATA), made(DATA), rtol=1e-6)
    assert again.get_encoded_features().shape == (None, 30)
    with pytest.raises(ValueError, match="expected a `.keras` extension"):
        made.save(tmp_path / "space.h5")


def test_bins_are_read_again(tmp_path):
    layer = tf.keras.layers.Discretization(num_bins=3)
    layer.adapt(np.arange(6.0).reshape(6, 1))
    model = tf.keras.Sequential([tf.keras.Input((2,)), layer])
    model.save(tmp_path / "bins.keras")
    again = tf.keras.models.load_model(tmp_path / "bins.keras")
    x = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(again(x), model(x))


UNKNOWN = r"Received unknown features: \('a', 's'\)"
ERRORS = {
    "cannot be None or empty": lambda: Space({}),
    "Invalid feature type: strange": lambda: Space({"a": "strange"}),
    r"Expected one of \{'dict', 'concat'\}. Received: output_mode=list": lambda: Space(
        {"a": "float"}, output_mode="list"
    ),
    UNKNOWN: lambda: Space({"s": "string_categorical"}, crosses=[("a", "s")]),
    r"\{'int', 'one_hot', 'float'\}. Received: output_mode=x": lambda: (
        Space.float_discretized(3, output_mode="x")
    ),
    r"\{'int', 'one_hot'\}. Received: output_mode=float": lambda: Space.cross(
        ("a", "b"), 3, output_mode="float"
    ),
    r"before you can start using it": lambda: Space({"s": "string_categorical"})(
        {"s": ["a"]}
    ),
    r"can only be called on a tf.data.Dataset": lambda: space().adapt(DATA),
    r"A FeatureSpace can only be called with a dict": lambda: space()([1.0]),
    r"Cannot concatenate features because feature 's1' has not been encoded": lambda: (
        Space({"s1": Space.string_categorical(output_mode="int")}).adapt(dataset())
    ),
    r"Instead it returns a float32 dtype": lambda: Space(
        {"f": Space.feature("float32", tf.keras.layers.Rescaling(1.0), "one_hot")}
    )({"f": [1.0]}),
    r"it isn't a standard feature": lambda: Space(
        {
            "f": Space.feature(
                "int64", tf.keras.layers.Identity(dtype="int64"), "one_hot"
            )
        }
    )({"f": [1]}),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message):
    with pytest.raises(ValueError, match=message):
        ERRORS[message]()


def test_missing_and_further_columns():
    made = space()
    with pytest.raises(KeyError):
        made({"s1": ["a"]})
    with pytest.raises(KeyError):
        made({**DATA, "zz": [1.0]})


class Total(tf.keras.layers.experimental.preprocessing.PreprocessingLayer):
    def build(self, shape):
        super().build(shape)
        self.total = self.add_weight("t", (), initializer="zeros", trainable=False)

    def update_state(self, data):
        self.total.assign_add(tf.reduce_sum(tf.cast(data, tf.float32)))

    def reset_state(self):
        self.total.assign(0.0)


class Counted(Total):
    calls = 0

    def make_adapt_function(self):
        function = super().make_adapt_function()

        def counted(iterator):
            self.calls += 1
            return function(iterator)

        return counted


class Traced(Total):
    def make_adapt_function(self):
        @tf.function
        def doubled(iterator):
            self.update_state(next(iterator) * 2.0)

        return doubled


def test_functions_of_adapt():
    ones = np.ones((5, 2), "float32")
    layer = Total()
    layer.adapt(ones, batch_size=2)
    assert layer.total.numpy() == 10 and layer.is_adapted
    layer.adapt(ones, batch_size=2, steps=2)
    assert layer.total.numpy() == 8
    layer.adapt(tf.data.Dataset.range(5).batch(2))
    assert layer.total.numpy() == 10
    layer = Counted()
    layer.adapt(ones, batch_size=2)
    assert layer.total.numpy() == 10 and layer.calls == 3
    layer.compile(steps_per_execution=2)
    layer.adapt(ones, batch_size=1, steps=3)
    assert layer.total.numpy() == 6 and layer.calls == 5
    layer = Traced()
    layer.build((None, 2))
    layer.adapt(ones, batch_size=2)
    assert layer.total.numpy() == 20
