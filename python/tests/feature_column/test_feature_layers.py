"""DenseFeatures, SequenceFeatures, input_layer and linear_model."""

import numpy as np
import pytest

import headrace as tf

fc = tf.feature_column
v1 = tf.compat.v1
layers = tf.keras.layers
TABLE = v1.initializers.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
SIDE_BY_SIDE = {"a": np.array([[1.0], [2.0]]), "b": np.array([[0], [1]])}


def ids(key, count=3):
    return fc.categorical_column_with_identity(key, count)


def sequence_ids(key, count=3):
    return fc.sequence_categorical_column_with_identity(key, count)


def embedded(column, **options):
    return fc.embedding_column(column, 2, initializer=TABLE, **options)


def rows(columns, **features):
    return layers.DenseFeatures(columns)(features).numpy().tolist()


def sparse(indices, values, shape):
    return tf.SparseTensor(indices, values, shape)


# --- DenseFeatures ---


def test_columns_lie_in_the_order_of_their_names():
    given = {}
    layer = layers.DenseFeatures([fc.numeric_column("b"), fc.numeric_column("a")])
    out = layer({"a": [[1.0]], "b": [[2.0]]}, cols_to_output_tensors=given)
    assert out.numpy().tolist() == [[1.0, 2.0]]
    assert {c.name: t.numpy().tolist() for c, t in given.items()} == {
        "a": [[1.0]],
        "b": [[2.0]],
    }


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, [[2, 3], [5, 6]]),
        ({"combiner": "sum"}, [[4, 6], [10, 12]]),
        ({"combiner": "sqrtn"}, [[2 * 2**0.5, 3 * 2**0.5], [5 * 2**0.5, 6 * 2**0.5]]),
        ({"use_safe_embedding_lookup": False}, [[2, 3], [5, 6]]),
        ({"max_norm": 1.0}, [[0.5236068, 0.8472136], [0.6401844, 0.7682213]]),
    ],
)
def test_embeddings_are_combined(options, expected):
    found = rows([embedded(ids("a"), **options)], a=[[0, 1], [2, 2]])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_embeddings_of_sparse_ragged_weighted_and_bucketed_features():
    of = [embedded(ids("a"))]
    expected = [[1, 2], [0, 0], [4, 5]]
    indices = [[0, 0], [2, 0], [2, 1]]
    assert rows(of, a=sparse(indices, [0, 2, 1], [3, 2])) == expected
    assert rows(of, a=tf.ragged.constant([[0], [], [2, 1]])) == expected
    weighted = embedded(fc.weighted_categorical_column(ids("a"), "w"))
    found = rows([weighted], a=[[0, 2], [1, 1]], w=[[0.5, 1.0], [2.0, 3.0]])
    np.testing.assert_allclose(found, [[11 / 3, 14 / 3], [3, 4]], rtol=1e-6)
    bucketed = fc.bucketized_column(fc.numeric_column("a"), [1.0, 2.0])
    assert rows([embedded(bucketed)], a=[[0.0], [3.0]]) == [[1, 2], [5, 6]]


@pytest.mark.parametrize(
    "columns, text",
    [
        ([], "feature_columns must not be empty"),
        ({"a": fc.numeric_column("a")}, "to be iterable, found dict"),
        ([fc.numeric_column("a")] * 2, "Duplicate feature column name found"),
        ([ids("a")], "You can wrap a categorical column with an embedding_column"),
        (
            [fc.sequence_numeric_column("a")],
            "Items of feature_columns must be a <class",
        ),
        ([3], "Items of feature_columns must be a FeatureColumn. Given"),
    ],
)
def test_columns_that_are_refused(columns, text):
    with pytest.raises(ValueError, match=text):
        layers.DenseFeatures(columns)


def test_the_layer_of_tensorflow_1():
    kind = tf.compat.v1.keras.layers.DenseFeatures
    assert kind is not layers.DenseFeatures and kind.__name__ == "DenseFeatures"
    layer = kind([fc.numeric_column("x", (2,)), embedded(ids("k"))], name="d")
    assert layer({"x": [[1.0, 2.0]], "k": [[1]]}).shape[0] == 1
    assert [v.name for v in layer.weights] == ["d/k_embedding/embedding_weights:0"]
    again = kind.from_config(layer.get_config())
    assert again.get_config()["partitioner"] is None
    with pytest.raises(NotImplementedError, match="partitioner is not supported"):
        kind([fc.numeric_column("x")], partitioner=lambda shape, dtype: [2])


@pytest.mark.parametrize(
    "columns, features, text",
    [
        ([fc.numeric_column("a")], {"a": 1.0}, r"Feature \(key: a\) cannot have rank 0"),
        ([fc.numeric_column("a")], {"b": [1.0]}, "Feature a is not in features dictionary"),
        ([fc.numeric_column("a")], [1.0], "We expected a dictionary here"),
        ([fc.numeric_column("a"), fc.numeric_column("b")], {"a": [[1.0]], "b": [[1.0]] * 2}, r"Batch size of columns \(a, b\): \(1, 2\)"),
        ([fc.numeric_column("a")], {"a": sparse([[0, 0]], [1.0], [1, 1])}, "SparseTensor is not supported. key: a"),
        ([fc.indicator_column(sequence_ids("a"))], {"a": [[0]]}, "In indicator_column: a_indicator. categorical_column must not be of type SequenceCategoricalColumn"),
        ([embedded(sequence_ids("a"))], {"a": [[0]]}, "In embedding_column: a_embedding. categorical_column must not be"),
        ([embedded(ids("a"), combiner="bad")], {"a": [[0]]}, "combiner must be one of 'mean', 'sqrtn' or 'sum', got bad"),
    ],
)  # fmt: skip
def test_features_that_are_refused(columns, features, text):
    with pytest.raises(ValueError, match=text):
        layers.DenseFeatures(columns)(features)


def test_weights_are_named_and_kept_by_their_columns(tmp_path):
    def layer():
        columns = [embedded(ids("a")), fc.embedding_column(ids("b", 4), 2)]
        made = layers.DenseFeatures(columns, name="features")
        made({"a": [[0]], "b": [[1]]})
        return made

    first, second = layer(), layer()
    assert [w.name for w in first.weights] == [
        "features/a_embedding/embedding_weights:0",
        "features/b_embedding/embedding_weights:0",
    ]
    path = tf.train.Checkpoint(features=first).save(tmp_path / "c")
    keys = [key for key, _ in tf.train.list_variables(path)]
    for name in "ab":
        key = f"features/{name}_embedding.Sembedding_weights/.ATTRIBUTES/VARIABLE_VALUE"
        assert key in keys
    status = tf.train.Checkpoint(features=second).restore(path)
    status.assert_consumed()
    np.testing.assert_array_equal(second.weights[1], first.weights[1])


def test_trainable():
    def counts(column_trainable, layer_trainable):
        columns = [embedded(ids("a"), trainable=column_trainable), embedded(ids("b"))]
        layer = layers.DenseFeatures(columns, trainable=layer_trainable)
        layer({"a": [[0]], "b": [[0]]})
        return len(layer.trainable_weights)

    assert [counts(True, True), counts(False, True), counts(True, False)] == [2, 1, 0]


def test_configurations():
    columns = [
        fc.embedding_column(ids("a"), 2, initializer=v1.ones_initializer()),
        fc.bucketized_column(fc.numeric_column("b"), [1.0]),
    ]
    layer = layers.DenseFeatures(columns, name="q")
    features = {"a": [[0]], "b": [[1.0]]}
    config = layer.get_config()
    assert config["partitioner"] is None
    assert [c["class_name"] for c in config["feature_columns"]] == [
        "EmbeddingColumn",
        "BucketizedColumn",
    ]
    again = layers.DenseFeatures.from_config(config)
    assert again(features).numpy().tolist() == [[1.0, 1.0, 0.0, 1.0]]
    wrapped = layers.deserialize(layers.serialize(layer))
    assert wrapped(features).numpy().tolist() == [[1.0, 1.0, 0.0, 1.0]]
    assert layer.compute_output_shape([5, 1]) == [5, 4]


def test_first_values_from_a_checkpoint(tmp_path):
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    path = tf.train.Checkpoint(v=table).write(tmp_path / "c")
    column = fc.embedding_column(
        ids("a"),
        2,
        ckpt_to_load_from=path,
        tensor_name_in_ckpt="v/.ATTRIBUTES/VARIABLE_VALUE",
    )
    assert rows([column], a=[[2]]) == [[5.0, 6.0]]
    with tf.Graph().as_default(), v1.Session() as session:
        out = v1.feature_column.input_layer({"a": [[1]]}, [column])
        session.run(v1.global_variables_initializer())
        assert session.run(out).tolist() == [[3.0, 4.0]]


# --- models ---


def _model():
    columns = [fc.numeric_column("a"), embedded(ids("b"))]
    return tf.keras.Sequential(
        [layers.DenseFeatures(columns), layers.Dense(1, kernel_initializer="ones")]
    )


def test_a_sequential_model_trains_on_features_by_name(tmp_path):
    model = _model()
    model.compile("sgd", "mse")
    model.fit(SIDE_BY_SIDE, np.array([[1.0], [2.0]]), epochs=2, verbose=0)
    found = model.predict(SIDE_BY_SIDE, verbose=0)
    np.testing.assert_allclose(found, [[2.0382235], [4.835277]], rtol=1e-5)
    assert [w.name.split("/")[-1] for w in model.weights] == [
        "embedding_weights:0",
        "kernel:0",
        "bias:0",
    ]
    model.save_weights(tmp_path / "w")
    other = _model()
    other(SIDE_BY_SIDE)
    other.load_weights(tmp_path / "w").expect_partial()
    np.testing.assert_array_equal(other.predict(SIDE_BY_SIDE, verbose=0), found)
    again = tf.keras.Sequential.from_config(model.get_config())
    assert again(SIDE_BY_SIDE).shape == [2, 1]


def test_a_functional_model_of_words():
    inputs = {"a": tf.keras.Input((1,)), "s": tf.keras.Input((1,), dtype="string")}
    words = fc.categorical_column_with_vocabulary_list("s", ["p", "q"])
    columns = [fc.numeric_column("a"), fc.indicator_column(words)]
    out = layers.DenseFeatures(columns)(inputs)
    assert out.shape.as_list() == [None, 3]
    model = tf.keras.Model(inputs, layers.Dense(1, kernel_initializer="ones")(out))
    features = {"a": np.array([[1.0], [2.0]]), "s": np.array([["p"], ["z"]])}
    assert model.predict(features, verbose=0).tolist() == [[2.0], [2.0]]


def test_a_traced_function_shares_the_tables_of_eager_calls():
    words = fc.categorical_column_with_vocabulary_list("s", ["p", "q", "r"])
    layer = layers.DenseFeatures([embedded(words)])
    traced = tf.function(lambda s: layer({"s": s}))
    assert traced(tf.constant([["q"]])).numpy().tolist() == [[3.0, 4.0]]
    assert layer({"s": [["r"]]}).numpy().tolist() == [[5.0, 6.0]]
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(traced(tf.constant([["q"], ["q"]])))
    gradient = tape.gradient(total, layer.weights[0])
    dense = tf.convert_to_tensor(gradient).numpy().tolist()
    assert dense == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0]]


# --- SequenceFeatures ---

STEPS = [[0, 0], [0, 1], [1, 0]]


def _sequences(columns, **features):
    values, lengths = tf.keras.experimental.SequenceFeatures(columns)(features)
    return values.numpy().tolist(), lengths.numpy().tolist()


def test_sequences_of_numbers_and_categories():
    number = fc.sequence_numeric_column("n")
    numbers = sparse(STEPS, [1.0, 2.0, 3.0], [2, 2])
    values = [[[1.0], [2.0]], [[3.0], [0.0]]]
    assert _sequences([number], n=numbers) == (values, [2, 1])
    default = fc.sequence_numeric_column("n", default_value=9.0)
    assert _sequences([default], n=numbers)[0][1] == [[3.0], [9.0]]
    pairs = sparse(
        [[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [1, 1]],
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        [2, 4],
    )
    found = _sequences([fc.sequence_numeric_column("n", shape=[2])], n=pairs)
    assert found == ([[[1, 2], [3, 4]], [[5, 6], [0, 0]]], [2, 1])
    numbered = sparse(STEPS, [1, 2, 0], [2, 2])
    both = [embedded(sequence_ids("a")), number]
    values = [[[3, 4, 1], [5, 6, 2]], [[1, 2, 3], [0, 0, 0]]]
    assert _sequences(both, a=numbered, n=numbers) == (values, [2, 1])
    shown = [fc.indicator_column(sequence_ids("a"))]
    values = [[[0, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 0]]]
    assert _sequences(shown, a=numbered) == (values, [2, 1])
    assert _sequences(shown, a=tf.ragged.constant([[1, 2], [0]])) == (values, [2, 1])


def test_several_values_a_step():
    of = sparse([[0, 0, 0], [0, 0, 1], [1, 0, 0]], [1, 2, 0], [2, 2, 2])
    found = _sequences([fc.indicator_column(sequence_ids("a"))], a=of)
    assert found == ([[[0, 1, 1], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]]], [1, 1])


@pytest.mark.parametrize(
    "error, text, columns, features",
    [
        (ValueError, "Items of feature_columns must be a <class", [fc.numeric_column("a")], {}),
        (ValueError, "categorical_column must be of type SequenceCategoricalColumn to use", [embedded(ids("a"))], {"a": [[1]]}),
        (TypeError, "Input must be a SparseTensor", [fc.sequence_numeric_column("a")], {"a": [[1.0]]}),
        (tf.errors.InvalidArgumentError, "Condition x == y did not hold", [embedded(sequence_ids("a")), fc.sequence_numeric_column("b")], {"a": sparse(STEPS, [1, 2, 0], [2, 2]), "b": sparse([[0, 0], [1, 0]], [1.0, 3.0], [2, 1])}),
    ],
)  # fmt: skip
def test_sequences_that_are_refused(error, text, columns, features):
    with pytest.raises(error, match=text):
        tf.keras.experimental.SequenceFeatures(columns)(features)


# --- TensorFlow 1's functions ---


def _run(build):
    """(value, names of global variables, of trainable ones) of a graph's tensor."""
    with tf.Graph().as_default(), v1.Session() as session:
        made = build()
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        found = session.run(made)
        value = (
            [x.tolist() for x in found] if isinstance(found, list) else found.tolist()
        )
        names = [v.name for v in v1.global_variables()]
        return value, names, [v.name for v in v1.trainable_variables()]


def test_input_layer():
    features = {"a": [[1.0], [2.0]], "b": [[0], [1]]}
    columns = [fc.numeric_column("a"), embedded(ids("b"))]
    of, collected = {}, []

    def build():
        out = v1.feature_column.input_layer(
            features, columns, weight_collections=["mine"], cols_to_vars=of
        )
        collected.extend(v1.get_collection("mine"))
        assert v1.get_collection(v1.GraphKeys.MODEL_VARIABLES) == collected
        return out

    name = "input_layer/b_embedding/embedding_weights:0"
    assert _run(build) == ([[1, 1, 2], [2, 3, 4]], [name], [name])
    assert [v.name for v in collected] == [name]
    assert {c.name: [v.name for v in vs] for c, vs in of.items()} == {
        "a": [],
        "b_embedding": [name],
    }


def test_input_layers_have_scopes_of_their_own():
    def build():
        one = v1.feature_column.input_layer({"b": [[0]]}, [embedded(ids("b"))])
        with v1.variable_scope("s"):
            two = v1.feature_column.input_layer(
                {"b": [[1]]}, [embedded(ids("b"))], trainable=False
            )
        three = v1.feature_column.input_layer({"b": [[2]]}, [embedded(ids("b"))])
        return [one, two, three]

    value, names, trainable = _run(build)
    assert value == [[[1, 2]], [[3, 4]], [[5, 6]]]
    assert names == [
        "input_layer/b_embedding/embedding_weights:0",
        "s/input_layer/b_embedding/embedding_weights:0",
        "input_layer_1/b_embedding/embedding_weights:0",
    ]
    assert trainable == [names[0], names[2]]


def test_cut_variables_are_listed_in_their_parts():
    of = {}

    def build():
        cut = v1.fixed_size_partitioner(3)
        with v1.variable_scope("s", partitioner=cut):
            table = fc.embedding_column(ids("b"), 2, initializer=v1.ones_initializer())
            return v1.feature_column.input_layer(
                {"b": [[0], [2]]}, [table], cols_to_vars=of
            )

    assert _run(build)[0] == [[1, 1], [1, 1]]
    (variables,) = of.values()
    assert [v.name for v in variables] == [
        f"s/input_layer/b_embedding/embedding_weights/part_{i}:0" for i in range(3)
    ]


def test_shared_embeddings():
    features = {"a": [[0], [1]], "b": [[2], [1]]}
    expected = [[1, 2, 5, 6], [3, 4, 3, 4]]

    def scoped(name=None):
        columns = v1.feature_column.shared_embedding_columns(
            [ids("b"), ids("a")],
            2,
            initializer=TABLE,
            shared_embedding_collection_name=name,
        )
        return v1.feature_column.input_layer(features, columns)

    name = "input_layer/a_b_shared_embedding/embedding_weights:0"
    assert _run(scoped) == (expected, [name], [name])
    name = "input_layer/one/embedding_weights:0"
    assert _run(lambda: scoped("one")) == (expected, [name], [name])

    def layer():
        columns = fc.shared_embeddings([ids("a"), ids("b")], 2, initializer=TABLE)
        return layers.DenseFeatures(columns)(features)

    name = "a_b_shared_embedding:0"
    assert _run(layer) == (expected, [name], [name])


def test_shared_embeddings_that_are_refused():
    shared = fc.shared_embeddings
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="have the same number of buckets"):
            shared([ids("a"), ids("b", 4)], 2)
        hashed = fc.categorical_column_with_hash_bucket("h", 3)
        with pytest.raises(
            ValueError, match="all categorical_columns must have the sa"
        ):
            v1.feature_column.shared_embedding_columns([ids("a"), hashed], 2)
        columns = shared([ids("a"), ids("b")], 2)
        with pytest.raises(ValueError, match="not supported in `linear_model` or `inp"):
            v1.feature_column.input_layer({"a": [[0]], "b": [[0]]}, columns)
        with pytest.raises(NotImplementedError, match="Must be implemented"):
            columns[0].get_config()


def test_linear_model():
    of = {}
    features = {"a": [[1.0], [2.0]], "b": [[0], [1]]}

    def build():
        return v1.feature_column.linear_model(
            features, [fc.numeric_column("a"), ids("b")], units=2, cols_to_vars=of
        )

    names = [f"linear_model/{x}:0" for x in ("a/weights", "b/weights", "bias_weights")]
    assert _run(build) == ([[0, 0], [0, 0]], names, names)
    assert {getattr(k, "name", k): [v.name for v in vs] for k, vs in of.items()} == {
        "a": names[:1],
        "b": names[1:2],
        "bias": names[2:],
    }


@pytest.mark.parametrize("combiner, expected", [("sum", 43), ("mean", 28), ("sqrtn", 10 + 3 + 30 / 2**0.5)])  # fmt: skip
def test_a_linear_model_adds_weighted_categories(combiner, expected):
    features = {"n": [[1.0]], "c": [[1, 2]]}
    columns = [fc.numeric_column("n"), ids("c")]
    with tf.Graph().as_default(), v1.Session() as session:
        out = v1.feature_column.linear_model(
            features, columns, sparse_combiner=combiner
        )
        categories, number, bias = v1.global_variables()
        session.run(v1.global_variables_initializer())
        session.run(categories.assign([[5.0], [10.0], [20.0]]))
        session.run([number.assign([[3.0]]), bias.assign([10.0])])
        np.testing.assert_allclose(session.run(out), [[expected]])


def test_a_linear_model_of_an_embedding():
    def build():
        return v1.feature_column.linear_model({"b": [[0]]}, [embedded(ids("b"))])

    assert _run(build)[1] == [
        "linear_model/b_embedding/weights:0",
        "linear_model/b_embedding/embedding_weights:0",
        "linear_model/bias_weights:0",
    ]


def test_a_vocabulary_file_is_an_asset_of_the_graph(tmp_path):
    path = tmp_path / "words"
    path.write_text("ape\nbee\n")
    column = v1.feature_column.categorical_column_with_vocabulary_file("a", str(path))
    with tf.Graph().as_default():
        v1.feature_column.linear_model({"a": [["ape"]]}, [column])
        (kept,) = v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS)
        with v1.Session() as session:
            assert session.run(kept) == str(path).encode()


@pytest.mark.parametrize(
    "function, columns, features, text",
    [
        ("linear_model", [], {}, "feature_columns must not be empty"),
        ("linear_model", ["x"], {"a": [[0]]}, "Items of feature_columns must be a _FeatureColumn. Given"),
        ("linear_model", [fc.sequence_numeric_column("a")], {"a": [[0]]}, "must be either a _DenseColumn or _CategoricalColumn"),
        ("linear_model", [ids("a")] * 2, {"a": [[0]]}, "Duplicate feature column name found"),
        ("linear_model", [fc.numeric_column("a"), fc.numeric_column("b")], {"a": [[1.0]], "b": [[1.0]] * 2}, "Batch size of columns"),
        ("input_layer", [ids("a")], {"a": [[0]]}, "Items of feature_columns must be a _DenseColumn"),
        ("input_layer", {"a": fc.numeric_column("a")}, {"a": [[0]]}, "found dict"),
        ("input_layer", [fc.numeric_column("b")], {"a": [[0]]}, "Feature b is not in"),
    ],
)  # fmt: skip
def test_calls_that_are_refused(function, columns, features, text):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=text):
        getattr(v1.feature_column, function)(features, columns)


def test_eager_calls():
    features = {"a": [[1.0], [2.0]], "b": [[1], [2]]}
    out = v1.feature_column.input_layer(features, [embedded(ids("b"))])
    assert out.numpy().tolist() == [[3, 4], [5, 6]]
    out = v1.feature_column.linear_model(features, [fc.numeric_column("a")])
    assert out.numpy().tolist() == [[0], [0]]
    assert v1.tables_initializer() is None
