"""The columns of tf.feature_column: what they are, refuse and give."""

import copy

import numpy as np
import pytest

import headrace as tf

fc = tf.feature_column
v1 = tf.compat.v1.feature_column


def rows(columns, features):
    return tf.keras.layers.DenseFeatures(columns)(features).numpy().tolist()


def indicated(column, **features):
    return rows([fc.indicator_column(column)], features)


def sparse(indices, values, shape):
    return tf.SparseTensor(indices, values, shape)


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("ape\nbee\ncat\n")
    return str(path)


# --- what columns are ---


def test_columns_are_values():
    def column():
        inner = fc.categorical_column_with_vocabulary_list("v", ["x", "y"])
        return fc.indicator_column(fc.crossed_column([inner, "b"], 5))

    assert column() == column() and hash(column()) == hash(column())
    assert copy.deepcopy(column()) == column()
    assert column().name == "b_X_v_indicator"
    assert column().parents == [column().categorical_column]
    assert repr(fc.numeric_column("a", shape=(2, 3))) == (
        "NumericColumn(key='a', shape=(2, 3), default_value=None, dtype=tf.float32, "
        "normalizer_fn=None)"
    )
    assert sorted([fc.numeric_column("b"), fc.numeric_column("a")])[0].key == "a"


def test_names():
    number = fc.numeric_column("n")
    ids = fc.categorical_column_with_identity("i", 3)
    bucketed = fc.bucketized_column(number, [1.0])
    nested = fc.crossed_column(["d", fc.crossed_column(["b", "a"], 5)], 4)
    named = {
        "n_bucketized": bucketed,
        "i_weighted_by_w": fc.weighted_categorical_column(ids, "w"),
        "i_embedding": fc.embedding_column(ids, 2),
        "i_indicator": fc.indicator_column(ids),
        "a_X_n_bucketized": fc.crossed_column(["a", bucketed], 4),
        "a_X_b_X_d": nested,
        "s": fc.sequence_categorical_column_with_identity("s", 3),
    }
    assert {name: column.name for name, column in named.items()} == {
        name: name for name in named
    }


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (dict(shape=[2], default_value=2), (2, 2)),
        (dict(shape=(2, 1), default_value=[[1], [2]]), ((1,), (2,))),
        (dict(shape=2, default_value=np.array([1.0, 2.0])), (1.0, 2.0)),
    ],
)
def test_default_values_have_the_columns_shape(arguments, expected):
    column = fc.numeric_column("a", **arguments)
    assert column.default_value == expected
    spec = fc.make_parse_example_spec([column])["a"]
    assert spec.default_value == expected and spec.shape == column.shape


@pytest.mark.parametrize(
    "error, text, make",
    [
        (ValueError, "key must be a string. Got: type <class 'tuple'>", lambda: fc.numeric_column(("a",))),
        (ValueError, "shape dimensions must be greater than 0", lambda: fc.numeric_column("a", shape=[0])),
        (TypeError, "shape dimensions must be integer", lambda: fc.numeric_column("a", shape=[1.5])),
        (ValueError, "The shape of default_value must be equal", lambda: fc.numeric_column("a", shape=[2], default_value=[1, 2, 3])),
        (TypeError, "default_value must be compatible with dtype", lambda: fc.numeric_column("a", default_value="s")),
        (TypeError, "default_value must be compatible with dtype", lambda: fc.numeric_column("a", default_value=3.5, dtype=tf.int32)),
        (ValueError, "dtype must be convertible to float", lambda: fc.numeric_column("a", dtype=tf.string)),
        (TypeError, "normalizer_fn must be a callable. Given: x", lambda: fc.numeric_column("a", normalizer_fn="x")),
        (ValueError, "source_column must be a column generated with", lambda: fc.bucketized_column("a", [1])),
        (ValueError, "source_column must be one-dimensional", lambda: fc.bucketized_column(fc.numeric_column("a", shape=[2, 2]), [1])),
        (ValueError, "boundaries must not be empty", lambda: fc.bucketized_column(fc.numeric_column("a"), [])),
        (ValueError, "boundaries must be a sorted list", lambda: fc.bucketized_column(fc.numeric_column("a"), [1, 1])),
        (ValueError, "hash_bucket_size must be set. key: k", lambda: fc.categorical_column_with_hash_bucket("k", None)),
        (ValueError, "hash_bucket_size must be at least 1", lambda: fc.categorical_column_with_hash_bucket("k", 0)),
        (ValueError, "column_name: k dtype must be string or integer", lambda: fc.categorical_column_with_hash_bucket("k", 3, tf.float32)),
        (ValueError, "num_buckets 0 < 1, column_name k", lambda: fc.categorical_column_with_identity("k", 0)),
        (ValueError, r"default_value 3 not in range \[0, 3\)", lambda: fc.categorical_column_with_identity("k", 3, 3)),
        (ValueError, r"vocabulary_list \[\] must be non-empty", lambda: fc.categorical_column_with_vocabulary_list("k", [])),
        (ValueError, "Duplicate keys in vocabulary_list", lambda: fc.categorical_column_with_vocabulary_list("k", ["a", "a"])),
        (ValueError, "Invalid num_oov_buckets -1 in k", lambda: fc.categorical_column_with_vocabulary_list("k", ["a"], num_oov_buckets=-1)),
        (ValueError, "Can't specify both num_oov_buckets and default_value", lambda: fc.categorical_column_with_vocabulary_list("k", ["a"], default_value=0, num_oov_buckets=2)),
        (ValueError, "vocabulary dtype must be string or integer", lambda: fc.categorical_column_with_vocabulary_list("k", [1.5])),
        (ValueError, "and vocabulary dtype .*string.* do not match", lambda: fc.categorical_column_with_vocabulary_list("k", ["a"], dtype=tf.int64)),
        (ValueError, "Missing vocabulary_file in k", lambda: fc.categorical_column_with_vocabulary_file("k", "")),
        (ValueError, "vocabulary_file in k does not exist", lambda: fc.categorical_column_with_vocabulary_file("k", "/nowhere")),
        (ValueError, "Invalid vocabulary_size in k", lambda: fc.categorical_column_with_vocabulary_file("k", "/nowhere", vocabulary_size=0)),
        (ValueError, "keys must be a list with length > 1", lambda: fc.crossed_column(["a"], 10)),
        (ValueError, "Unsupported key type", lambda: fc.crossed_column(["a", fc.numeric_column("c")], 10)),
        (ValueError, "hash_bucket_size must be > 1. hash_bucket_size: 0", lambda: fc.crossed_column(["a", "b"], 0)),
        (ValueError, "categorical_column_with_hash_bucket is not supported", lambda: fc.crossed_column(["a", fc.categorical_column_with_hash_bucket("c", 9)], 9)),
        (ValueError, "is not convertible to float", lambda: fc.weighted_categorical_column(fc.categorical_column_with_identity("a", 2), "w", tf.string)),
        (ValueError, "Input must be a CategoricalColumn. Given: aaa", lambda: fc.indicator_column("aaa")),
        (ValueError, "Invalid dimension None", lambda: fc.embedding_column(fc.categorical_column_with_identity("a", 2), None)),
        (ValueError, "initializer must be callable if specified. Embedding of column_name: a", lambda: fc.embedding_column(fc.categorical_column_with_identity("a", 2), 2, initializer="x")),
        (ValueError, "Must specify both `ckpt_to_load_from`", lambda: fc.embedding_column(fc.categorical_column_with_identity("a", 2), 2, ckpt_to_load_from="x")),
        (RuntimeError, "are not supported when eager execution is enabled", lambda: fc.shared_embeddings([fc.categorical_column_with_identity("a", 2)], 2)),
        (TypeError, "normalizer_fn must be a callable", lambda: fc.sequence_numeric_column("a", normalizer_fn=1)),
        (ValueError, "All feature_columns must be FeatureColumn instances. Given: a", lambda: fc.make_parse_example_spec(["a"])),
        (ValueError, "All feature_columns must be _FeatureColumn instances", lambda: v1.make_parse_example_spec(["a"])),
        (ValueError, "feature_columns contain different parse_spec for key a", lambda: fc.make_parse_example_spec([fc.numeric_column("a"), fc.numeric_column("a", shape=[2])])),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(error, text, make):
    with pytest.raises(error, match=text):
        make()


# --- what parsers need ---


def test_examples_are_parsed_for_columns():
    columns = [
        fc.numeric_column("a", shape=[2]),
        fc.indicator_column(fc.categorical_column_with_hash_bucket("h", 5)),
    ]
    made = tf.train.Example()
    made.features.feature["a"].float_list.value.extend([1.0, 2.0])
    made.features.feature["h"].bytes_list.value.extend([b"x", b"y"])
    spec = fc.make_parse_example_spec(columns)
    features = tf.io.parse_example([made.SerializeToString()] * 2, spec)
    assert rows(columns, features) == [[1.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0]] * 2


def test_what_sequences_crosses_and_weights_are_parsed_as():
    of = fc.make_parse_example_spec(
        [
            fc.sequence_numeric_column("s"),
            fc.crossed_column(["q", fc.bucketized_column(fc.numeric_column("z"), [1.0])], 5),
            fc.weighted_categorical_column(
                fc.categorical_column_with_identity("u", 3), "w"
            ),
        ]
    )  # fmt: skip
    assert of == {
        "s": tf.io.VarLenFeature(tf.float32),
        "q": tf.io.VarLenFeature(tf.string),
        "z": tf.io.FixedLenFeature((1,), tf.float32),
        "u": tf.io.VarLenFeature(tf.int64),
        "w": tf.io.VarLenFeature(tf.float32),
    }


# --- what columns give ---


def test_numbers_are_normalized_and_made_float32():
    ten_times = fc.numeric_column("a", normalizer_fn=lambda x: x * 10)
    assert rows([ten_times], {"a": tf.constant([1, 2])}) == [[10.0], [20.0]]


def test_buckets():
    column = fc.bucketized_column(fc.numeric_column("a", shape=[2]), [0.0, 1.0])
    features = {"a": [[-1.0, 3.0], [0.0, 0.5]]}
    expected = [[1, 0, 0, 0, 0, 1], [0, 1, 0, 0, 1, 0]]
    assert rows([column], features) == expected
    # As categories, each place has buckets of its own.
    assert indicated(column, **features) == expected
    assert column.num_buckets == 6


def test_ids_outside_are_none_or_the_default():
    plain = fc.categorical_column_with_identity("a", 3)
    assert indicated(plain, a=[[0], [3]]) == [[1, 0, 0], [0, 0, 0]]
    assert indicated(plain, a=[[0], [-1]]) == [[1, 0, 0], [0, 0, 0]]
    default = fc.categorical_column_with_identity("a", 3, default_value=1)
    assert indicated(default, a=[[0], [7]]) == [[1, 0, 0], [0, 1, 0]]


def test_sparse_ragged_dense_and_flat_features():
    column = fc.categorical_column_with_identity("a", 3)
    expected = [[1, 0, 0], [0, 1, 1], [0, 0, 0]]
    indices = [[0, 0], [1, 0], [1, 1]]
    assert indicated(column, a=sparse(indices, [0, 2, 1], [3, 2])) == expected
    assert indicated(column, a=tf.ragged.constant([[0], [2, 1], []])) == expected
    assert indicated(column, a=[[0, -1], [2, 1], [-1, -1]]) == expected
    assert indicated(column, a=[0, 2]) == [[1, 0, 0], [0, 0, 1]]
    value = tf.compat.v1.SparseTensorValue(indices, [0, 2, 1], [3, 2])
    assert indicated(column, a=value) == expected


def test_words_of_lists_files_and_hashes(words):
    list_of = fc.categorical_column_with_vocabulary_list
    assert indicated(list_of("a", ["x", "y"]), a=[["x"], ["z"]]) == [[1, 0], [0, 0]]
    default = list_of("a", ["x", "y"], default_value=1)
    assert indicated(default, a=[["x"], ["z"]]) == [[1, 0], [0, 1]]
    buckets = list_of("a", ["x", "y"], num_oov_buckets=2)
    found = indicated(buckets, a=[["y"], ["z"], [""]])
    assert found == [[0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert indicated(list_of("a", [10, 20]), a=[[10], [30]]) == [[1, 0], [0, 0]]
    small = list_of("a", np.array([10, 20], np.int32))
    assert small.dtype == tf.int32
    assert indicated(small, a=tf.constant([[20]], tf.int32)) == [[0, 1]]

    of_file = fc.categorical_column_with_vocabulary_file("a", words)
    assert of_file.vocabulary_size == 3 and of_file.default_value == -1
    assert indicated(of_file, a=[["cat"], ["dog"]]) == [[0, 0, 1], [0, 0, 0]]
    part = fc.categorical_column_with_vocabulary_file(
        "a", words, vocabulary_size=2, num_oov_buckets=1
    )
    assert indicated(part, a=[["bee"], ["cat"]]) == [[0, 1, 0], [0, 0, 1]]

    hashed = fc.categorical_column_with_hash_bucket("a", 5)
    assert indicated(hashed, a=[["ape"], ["z"]]) == [[0, 1, 0, 0, 0], [0, 0, 1, 0, 0]]
    of_numbers = fc.categorical_column_with_hash_bucket("a", 5, tf.int64)
    assert indicated(of_numbers, a=[[1], [3]]) == [[0, 0, 0, 0, 1], [0, 1, 0, 0, 0]]


def test_words_of_compressed_records(tmp_path):
    path = str(tmp_path / "words.tfrecord.gz")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        for word in (b"7", b"9"):
            writer.write(word)
    column = fc.categorical_column_with_vocabulary_file("a", path)
    assert column.file_format == "tfrecord_gzip" and column.num_buckets == 2
    assert indicated(column, a=[["9"], ["8"]]) == [[0, 1], [0, 0]]
    numbers = fc.categorical_column_with_vocabulary_file("a", path, dtype=tf.int64)
    assert indicated(numbers, a=[[9], [8]]) == [[0, 1], [0, 0]]
    long = fc.categorical_column_with_vocabulary_file("a", path, vocabulary_size=3)
    with pytest.raises(tf.errors.FailedPreconditionError, match="contain 3 elements"):
        indicated(long, a=[["9"]])
    other = fc.categorical_column_with_vocabulary_file("a", path, file_format="csv")
    with pytest.raises(ValueError, match="file_format 'csv' is not supported"):
        indicated(other, a=[["9"]])


@pytest.mark.parametrize(
    "column, feature, text",
    [
        (fc.categorical_column_with_identity("a", 3), [[0.5]], "Invalid input, not integer. key: a"),
        (fc.categorical_column_with_hash_bucket("a", 3), [[1]], "dtype must be compatible. key: a"),
        (fc.categorical_column_with_vocabulary_list("a", [1]), [["x"]], "dtype must be compatible. key: a"),
        (fc.categorical_column_with_hash_bucket("a", 3), [[0.5]], "column_name: a input_tensor dtype must be"),
        (fc.categorical_column_with_identity("b", 3), [[1]], "Feature b is not in features dictionary"),
    ],
)  # fmt: skip
def test_features_that_do_not_fit(column, feature, text):
    with pytest.raises(ValueError, match=text):
        indicated(column, a=feature)


def test_crosses():
    features = {"a": [["x"], ["y"]], "b": [["p", "q"], ["r", "s"]]}
    column = fc.crossed_column(["a", "b"], 7)
    expected = [[0, 1, 0, 1, 0, 0, 0], [1, 0, 0, 0, 1, 0, 0]]
    assert indicated(column, **features) == expected
    keyed = fc.crossed_column(["a", "b"], 7, hash_key=5)
    expected = [[0, 0, 0, 0, 0, 1, 1], [1, 0, 0, 0, 1, 0, 0]]
    assert indicated(keyed, **features) == expected
    # A crossed column among the keys stands for its own keys.
    nested = fc.crossed_column([fc.crossed_column(["a", "b"], 9), "c"], 7)
    found = indicated(nested, c=[["1"], ["2"]], **features)
    assert found == [[0, 0, 0, 1, 0, 0, 1], [0, 0, 0, 1, 0, 1, 0]]
    bucketed = fc.bucketized_column(fc.numeric_column("n", shape=[2]), [0.0, 1.0])
    mixed = fc.crossed_column([bucketed, "b"], 7)
    found = indicated(mixed, n=[[-1.0, 5.0], [0.5, 0.2]], b=features["b"])
    assert found == [[0, 0, 1, 1, 0, 2, 0], [0, 1, 1, 0, 1, 1, 0]]


def test_weights():
    ids = fc.categorical_column_with_identity("a", 3)
    column = fc.weighted_categorical_column(ids, "w")
    found = indicated(column, a=[[0, 2], [1, 1]], w=[[0.5, 1.0], [2.0, 3.0]])
    assert found == [[0.5, 0.0, 1.0], [0.0, 5.0, 0.0]]
    with pytest.raises(ValueError, match="Bad dtype, expected"):
        indicated(column, a=[[0]], w=[[1]])
    with pytest.raises(ValueError, match="Dimensions 4 and 2 are not compatible"):
        indicated(column, a=[[0, 2], [1, 1]], w=[[1.0], [2.0]])
    crossed = fc.crossed_column([column, "b"], 7)
    with pytest.raises(ValueError, match="crossed_column does not support weight"):
        indicated(crossed, a=[[1]], w=[[1.0]], b=[["p"]])


def _square(x):
    return x * x


def test_configurations():
    serialize = tf.__internal__.feature_column.serialize_feature_column
    deserialize = tf.__internal__.feature_column.deserialize_feature_column
    ids = fc.categorical_column_with_identity("i", 3)
    number = fc.numeric_column("n", default_value=[2.0], normalizer_fn=_square)
    bucketed = fc.bucketized_column(number, [1.0])
    columns = [
        bucketed,
        fc.crossed_column(["q", ids, bucketed], 5),
        fc.weighted_categorical_column(ids, "w"),
        fc.indicator_column(fc.categorical_column_with_hash_bucket("h", 5)),
        fc.categorical_column_with_vocabulary_list("v", ["x", "y"]),
        fc.sequence_categorical_column_with_identity("t", 5),
        fc.sequence_numeric_column("s", shape=2),
    ]
    custom = {"_square": _square}
    assert [deserialize(serialize(c), custom) for c in columns] == columns
    assert serialize(ids) == {
        "class_name": "IdentityCategoricalColumn",
        "config": {"key": "i", "number_buckets": 3, "default_value": None},
    }
    assert serialize(bucketed)["config"]["source_column"]["config"] == {
        "key": "n",
        "shape": (1,),
        "default_value": (2.0,),
        "dtype": "float32",
        "normalizer_fn": "_square",
    }
    # Equal names become one column, where the caller keeps them.
    by_name = {}
    one = deserialize(serialize(ids), columns_by_name=by_name)
    assert deserialize(serialize(ids), columns_by_name=by_name) is one
    with pytest.raises(ValueError, match="Unknown feature_column_v2: Other"):
        deserialize({"class_name": "Other", "config": {}})
    with pytest.raises(ValueError, match="Improper config format: {}"):
        deserialize({})
    with pytest.raises(ValueError, match="Invalid config:.*expected keys.*dtype"):
        deserialize({"class_name": "NumericColumn", "config": {"key": "a"}})
    with pytest.raises(ValueError, match="is not a FeatureColumn"):
        serialize(3)


def test_a_cache_computes_a_column_once():
    calls = []

    class Counted(tf.__internal__.feature_column.FeatureColumn):
        name = "counted"
        parents = ["a"]
        parse_example_spec = {}
        _is_v2_column = True

        def transform_feature(self, transformation_cache, state_manager):
            calls.append(1)
            return transformation_cache.get("a", state_manager) * 2

    cache = tf.__internal__.feature_column.FeatureTransformationCache({"a": [[3]]})
    column = Counted()
    assert cache.get(column, None).numpy() == 6
    assert cache.get(column, None).numpy() == 6 and calls == [1]
    with pytest.raises(ValueError, match="Feature b is not in features dictionary"):
        cache.get("b", None)
    with pytest.raises(TypeError, match='must be either a "str" or "FeatureColumn"'):
        cache.get(3, None)


def test_features_of_unknown_rank():
    column = fc.indicator_column(fc.categorical_column_with_identity("a", 3))
    layer = tf.keras.layers.DenseFeatures([column])

    @tf.function(input_signature=[tf.TensorSpec(None, tf.int64)])
    def dense(a):
        return layer({"a": a})

    assert dense(tf.constant([2, 0], tf.int64)).numpy().tolist() == [
        [0, 0, 1],
        [1, 0, 0],
    ]
    assert dense(tf.constant([[2, 0]], tf.int64)).numpy().tolist() == [[1, 0, 1]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot have rank 0"):
        dense(tf.constant(1, tf.int64))
