"""Models of sparse and ragged inputs; the values are what tf_keras 2.21 gave."""

import numpy as np
import pytest

import headrace as tf

K = tf.keras
SPARSE = tf.sparse.from_dense([[1.0, 0, 0], [0, 2, 0]])
RAGGED = tf.ragged.constant([[1, 2], [3]], dtype=tf.int32)
ONES = {"kernel_initializer": "ones"}


def sparse_input():
    return K.Input((3,), sparse=True, name="s")


def ragged_input():
    return K.Input((None,), ragged=True, name="r", dtype="int32")


def test_inputs_and_their_configurations():
    s, r = sparse_input(), ragged_input()
    assert repr(s) == (
        "<KerasTensor: type_spec=SparseTensorSpec(TensorShape([None, 3]), tf.float32) "
        "(created by layer 's')>"
    )
    assert repr(r.type_spec) == (
        "RaggedTensorSpec(TensorShape([None, None]), tf.int32, 1, tf.int64)"
    )
    for shape, batch, rank in (
        ((None, 3), 2, 1),
        ((3,), None, 0),
        ((None,) * 3, None, 3),
    ):
        made = K.Input(shape, batch_size=batch, ragged=True)
        assert (made.type_spec.ragged_rank, made.shape[0]) == (rank, batch)
    for x, flags in ((s, (True, False)), (r, (False, True))):
        layer = x.node.layer
        config = layer.get_config()
        assert (config["sparse"], config["ragged"]) == flags
        assert (layer.sparse, layer.ragged) == flags
        again = type(layer).from_config(config)
        assert again.output.type_spec == x.type_spec
    with pytest.raises(ValueError, match="Cannot set both `sparse` and `ragged`"):
        K.Input((3,), sparse=True, ragged=True)


def test_sparse_inputs():
    s = sparse_input()
    model = K.Model(s, K.layers.Dense(2, **ONES)(s))
    assert model.output.shape.as_list() == [None, 2]
    for found in (model(SPARSE), model.predict(SPARSE, verbose=0)):
        np.testing.assert_array_equal(found, [[1, 1], [2, 2]])
    again = K.Model.from_config(model.get_config())
    assert again.input.type_spec == s.type_spec
    model.compile("sgd", "mse")
    ones = np.ones((2, 2), "float32")
    logs = model.fit(SPARSE, ones, batch_size=1, shuffle=False, verbose=0)
    assert logs.history == {"loss": [0.5]}
    model.fit(SPARSE, ones, verbose=0)
    assert model.evaluate(SPARSE, ones, verbose=0) < 0.5
    assert model.train_on_batch(SPARSE, ones) < 0.5
    assert model(np.ones((2, 3), "float32")).shape == [2, 2]


def test_backend_of_sparse_values():
    s = sparse_input()
    backend = K.backend
    assert backend.is_sparse(s) and backend.is_sparse(SPARSE)
    assert not backend.is_sparse(ragged_input()) and not backend.is_sparse(
        K.Input((3,))
    )
    model = K.Model(s, backend.to_dense(s))
    np.testing.assert_array_equal(model(SPARSE), [[1, 0, 0], [0, 2, 0]])
    made = backend.placeholder((None, 3), sparse=True)
    assert made.type_spec == s.type_spec and backend.is_sparse(made)
    assert backend.placeholder((None, None), ragged=True).type_spec.ragged_rank == 1
    with pytest.raises(ValueError, match="Cannot set both sparse and ragged"):
        backend.placeholder((2, 2), sparse=True, ragged=True)
    with tf.Graph().as_default():
        made = backend.placeholder((None, 3), sparse=True, name="s")
    assert made.indices.name == "s/indices:0" and made.shape.as_list() == [None, 3]


def test_ragged_inputs():
    r = ragged_input()
    embedded = K.layers.Embedding(5, 2, embeddings_initializer="ones")(r)
    assert embedded.type_spec == tf.RaggedTensorSpec([None, None, 2], tf.float32, 1)
    lstm = K.layers.LSTM(2, recurrent_initializer="ones", **ONES)(embedded)
    assert lstm.shape.as_list() == [None, 2]
    model = K.Model(r, lstm)
    expected = [[0.9098231] * 2, [0.60828346] * 2]
    for found in (model(RAGGED), model.predict(RAGGED, verbose=0)):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    model = K.Model(r, K.layers.Dense(1, **ONES)(lstm))
    model.compile("sgd", "mse")
    logs = model.fit(RAGGED, np.ones((2, 1), "float32"), verbose=0).history
    np.testing.assert_allclose(logs["loss"], [0.3594], atol=1e-4)
    for function in (
        K.layers.Lambda(lambda x: tf.reduce_sum(x, 1)),
        lambda x: tf.reduce_sum(x, axis=1),
    ):
        model = K.Model(r, function(r))
        assert model(RAGGED).numpy().tolist() == [3, 3]
    model = K.Model(r, r + 1)
    assert model(RAGGED).to_list() == [[2, 3], [4]]
    assert K.Model.from_config(model.get_config())(RAGGED).to_list() == [[2, 3], [4]]


ROWS = tf.RaggedTensor.from_row_lengths(
    np.arange(6, dtype="float32").reshape(3, 2) / 10, [2, 1]
)


@pytest.mark.parametrize(
    "name, every, last_of_reversed",
    [
        ("SimpleRNN", [0.099668, 0.5368133, 0.71629786], [0.46211714, 0.5095466]),
        ("GRU", [0.04734438, 0.20787461, 0.20704627], [0.174468, 0.18399888]),
        ("LSTM", [0.027443772, 0.20987292, 0.33369258], [0.17426972, 0.20449844]),
    ],
)
def test_recurrent_layers_end_with_their_rows(name, every, last_of_reversed):
    def layer(**options):
        made = getattr(K.layers, name)(
            1, recurrent_initializer="ones", **ONES, **options
        )
        return tf.function(made) if options.get("return_state") else made

    last = layer()(ROWS)
    np.testing.assert_allclose(last, np.reshape(every[1:], [2, 1]), rtol=1e-5)
    found = layer(return_sequences=True)(ROWS)
    assert found.row_lengths().numpy().tolist() == [2, 1]
    np.testing.assert_allclose(found.flat_values[:, 0], every, rtol=1e-5)
    found, state, *_ = layer(
        return_sequences=True, return_state=True, go_backwards=True
    )(ROWS)
    np.testing.assert_allclose(found[0][:, 0], last_of_reversed, rtol=1e-5)
    np.testing.assert_allclose(state[:, 0], [last_of_reversed[1], every[2]], rtol=1e-5)


def test_further_layers_of_ragged_rows():
    two_ways = K.layers.Bidirectional(
        K.layers.LSTM(1, return_sequences=True, recurrent_initializer="ones", **ONES)
    )
    expected = [[0.02744377, 0.20449844], [0.20987292, 0.17426972], [0.33369258] * 2]
    np.testing.assert_allclose(two_ways(ROWS).flat_values, expected, rtol=1e-5)
    found = K.layers.Dense(1, **ONES)(ROWS)
    np.testing.assert_allclose(found.flat_values, [[0.1], [0.5], [0.9]], rtol=1e-6)
    with tf.GradientTape() as tape:
        layer = K.layers.LSTM(1, **ONES)
        y = tf.reduce_sum(layer(ROWS))
    assert all(g is not None for g in tape.gradient(y, layer.trainable_variables))
    with pytest.raises(ValueError, match="cannot be applied to RaggedTensor inputs"):
        K.layers.LSTM(1)(ROWS, mask=tf.ones((2, 2), "bool"))
    with pytest.raises(ValueError, match="ragged inputs have the batch first"):
        K.layers.LSTM(1, time_major=True)(ROWS)


TABLE = [[0.0, 1, 2], [0, 0, 0], [3, 0, 4], [5, 6, 7], [8, 9, 0]]


def table(sparse):
    rows = tf.keras.initializers.Constant(TABLE)
    return K.layers.Embedding(5, 3, embeddings_initializer=rows, sparse=sparse)


def test_embeddings_that_are_sparse():
    layer, plain = table(True), table(False)
    found = layer(np.array([[1, 2], [0, 4]]))
    places = [[0, 1, 0], [0, 1, 2], [1, 0, 1], [1, 0, 2], [1, 1, 0], [1, 1, 1]]
    assert found.indices.numpy().tolist() == places
    assert found.values.numpy().tolist() == [3, 4, 1, 2, 8, 9]
    given = tf.sparse.from_dense([[1, 2], [3, 0]])
    found = layer(given)  # rows of the values that are there, whole
    assert found.values.numpy().tolist() == [0, 0, 0, 3, 0, 4, 5, 6, 7]
    assert found.indices.numpy().tolist() == [
        [*place, k] for place in ([0, 0], [0, 1], [1, 0]) for k in range(3)
    ]
    assert found.dense_shape.numpy().tolist() == [2, 2, 3]
    assert plain(given).numpy()[1].tolist() == [[5, 6, 7], [0, 1, 2]]
    with pytest.raises(TypeError, match="RaggedTensor"):
        layer(RAGGED)
    assert plain(RAGGED).to_list()[1] == [[5, 6, 7]]
    with tf.GradientTape() as tape:
        loss = tf.sparse.reduce_sum(layer(np.array([[1, 2], [0, 4]])))
    rows = tape.gradient(loss, layer.embeddings).values.numpy().tolist()
    assert rows == [[0, 0, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0]]


def test_sparse_embeddings_in_models_and_configurations():
    model = K.Sequential([K.Input([2]), table(True)])
    assert isinstance(model.output.type_spec, tf.SparseTensorSpec)
    found = model.predict(np.array([[1, 2]]), verbose=0)
    assert found.values.numpy().tolist() == [3, 4]
    assert "sparse" not in table(False).get_config()
    again = K.layers.Embedding.from_config(table(True).get_config())
    assert again.sparse
