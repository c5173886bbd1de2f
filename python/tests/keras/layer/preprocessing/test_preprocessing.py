"""Layers that prepare inputs give tf-keras' values (see preprocessing_cases.py)."""

import headrace as tf
import numpy as np
import preprocessing_cases as cases
import pytest
import recorded

layers = tf.keras.layers


@pytest.mark.parametrize("name", recorded.names(cases))
def test_as_recorded(name):
    recorded.check(cases, name, tf)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: layers.CategoryEncoding(), "num_tokens must be set"),
        (lambda: layers.CategoryEncoding(3, "x"), "Unkown value for `output_mode`"),
        (lambda: layers.Discretization([1.0], 3), "Both `num_bins` and"),
        (lambda: layers.Hashing(0), "cannot be `None` or non-positive"),
        (lambda: layers.Normalization(mean=1.0), "both `mean` and `variance`"),
        (lambda: layers.Normalization(3)(tf.ones([2, 2])), "must be in the range"),
        (lambda: layers.StringLookup(vocabulary=["a", "a"]), "one repeated term"),
        (lambda: layers.StringLookup(max_tokens=1), "must be greater than 1"),
        (lambda: layers.StringLookup(vocabulary=[]), "an empty vocabulary"),
        (lambda: layers.StringLookup(2, vocabulary=["a", "b"]), "larger than the max"),
        (lambda: layers.StringLookup(idf_weights=[1.0]), "only be set if"),
        (lambda: layers.StringLookup(sparse=True), "`sparse` may only be true"),
        (lambda: layers.TextVectorization(split="q"), "Unkown value for `split`"),
        (lambda: layers.TextVectorization(ngrams="q"), "`ngrams` must be None"),
        (
            lambda: layers.TextVectorization(vocabulary=["a"])([["b", "c"]]),
            "the last shape dimension must be 1",
        ),
        (lambda: layers.StringLookup(vocabulary=["a"]).adapt(["b"]), "Cannot adapt"),
    ],
)
def test_errors(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_states_of_errors():
    with pytest.raises(tf.errors.FailedPreconditionError, match="not initialized"):
        layers.StringLookup()(["a"])
    strict = layers.StringLookup(vocabulary=["a"], num_oov_indices=0)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r'found OOV values \["x"\]'
    ):
        strict(["x", "a"])
    with pytest.raises(NotImplementedError, match="Value not recognized"):
        layers.Resizing(2, 2, "x")


def test_in_models():
    texts = layers.TextVectorization(output_sequence_length=3)
    texts.adapt(["a b", "b c"])
    model = tf.keras.Sequential(
        [
            tf.keras.Input((1,), dtype="string"),
            texts,
            layers.Embedding(texts.vocabulary_size(), 4),
            layers.GlobalAveragePooling1D(),
            layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    x = np.array([["a b"], ["c"]])
    model.fit(tf.constant(x), np.ones([2, 1]), epochs=2, verbose=0)
    assert model.predict(tf.constant(x), verbose=0).shape == (2, 1)


def test_checkpoint_keys(tmp_path):
    norm, bins = layers.Normalization(), layers.Discretization(num_bins=3)
    norm.adapt(np.ones((3, 2), np.float32))
    bins.adapt(np.arange(10.0, dtype=np.float32))
    words = layers.StringLookup()
    words.adapt(["a", "b"])
    for layer, want in (
        (norm, ["count", "mean", "variance"]),
        (bins, ["summary"]),
        (words, ["token_counts", "token_counts"]),
    ):
        path = str(tmp_path / layer.name)
        tf.keras.Sequential([layer]).save_weights(path)
        keys = [k for k, _ in tf.train.list_variables(path)]
        assert keys[0] == "_CHECKPOINTABLE_OBJECT_GRAPH"
        assert [k.split("/")[1] for k in keys[1:]] == want
        assert all(k.startswith("layer_with_weights-0/") for k in keys[1:])


@pytest.mark.parametrize(
    "layer",
    [
        layers.Normalization(mean=[1.0], variance=[2.0]),
        layers.Discretization([1.0, 2.0], output_mode="count"),
        layers.Hashing(3, salt=5),
        layers.StringLookup(vocabulary=["a", "b"], mask_token=""),
        layers.IntegerLookup(vocabulary=[5, 6]),
        layers.TextVectorization(vocabulary=["a"], output_sequence_length=3),
        layers.CategoryEncoding(3),
        layers.Resizing(2, 3, "area"),
        layers.CenterCrop(2, 3),
    ],
)
def test_configurations(layer):
    copy = layers.deserialize(layers.serialize(layer))
    assert copy.get_config() == layer.get_config()


tf.keras.backend.clear_session()  # names that other files' layers get


def test_documents_are_counted_by_their_rows():
    texts = ["b a b", "a", "", "b c c c"]
    lists = [t.split() for t in texts]
    documents = {w: sum(w in words for words in lists) for w in "abc"}
    want = [np.log(1 + len(texts) / (1 + documents[w])) for w in "cba"]
    nested = tf.RaggedTensor.from_row_lengths(tf.ragged.constant(lists), [1, 1, 1, 1])
    for data in (tf.ragged.constant(lists), nested):
        layer = tf.keras.layers.StringLookup(output_mode="tf_idf")
        layer.adapt(
            tf.data.Dataset.from_tensors(data[:1]).concatenate(
                tf.data.Dataset.from_tensors(data[1:])
            )
        )
        assert layer.get_vocabulary() == ["[UNK]", "c", "b", "a"]
        np.testing.assert_allclose(layer._idf[1:], want, rtol=1e-6)


def test_words_of_every_shape_of_data_are_counted():
    words = np.array([["x", "y"], ["y", "z"], ["y", "x"]])
    sparse = tf.sparse.from_dense(words)
    for data in (words, words.reshape(-1), words.tolist(), sparse, tf.constant(words)):
        layer = tf.keras.layers.StringLookup()
        layer.adapt(tf.data.Dataset.from_tensors(data))
        assert layer.get_vocabulary() == ["[UNK]", "y", "x", "z"]
    numbers = tf.keras.layers.IntegerLookup()
    numbers.adapt(np.array([[5, -3], [5, 7], [5, -3]]))
    assert numbers.get_vocabulary() == [-1, 5, -3, 7]
